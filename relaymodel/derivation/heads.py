r"""Layers of any heads (THEORY section 10): symbol, contour integral, residues, and what remains at large t.

A head of position exponent g and order $\delta = 1-\gamma$ has the eigenvalue
$\frac{\Gamma(1+g+\delta)\,\Gamma(z+g)}{\Gamma(1+g)\,\Gamma(z+g+\delta)}$.  Its poles are a ladder, $z = -g-k$; the
first of the smallest $g$ gives the leading terms.  With w = z + g there, everything is a power series whose logarithm
is a sum of polygamma functions:

$$ \frac{\Gamma(1+w)\,\Gamma(\delta)}{\Gamma(\delta+w)} =
   \exp \sum_{n\ge 1} \frac{\psi^{(n-1)}(1) - \psi^{(n-1)}(\delta)}{n!}\, w^n. $$
"""

import math
from dataclasses import dataclass
from functools import cached_property

import sympy

from relaymodel.checks import positive_integer
from relaymodel.derivation.asymptotics import LOG, AsymptoticSeries, LeadingTerm, log_derivative
from relaymodel.derivation.notation import ALPHA, D, latex
from relaymodel.derivation.stack import N, P, SymbolicHead, SymbolicHeads, t
from relaymodel.derivation.steps import DerivationStep, equation

z = sympy.Symbol("z")
k = sympy.Symbol("k", integer=True, nonnegative=True)
c = sympy.Symbol("c", real=True)
s, n = sympy.symbols("s n", integer=True, positive=True)

Series = list[sympy.Expr]


@dataclass(frozen=True)
class HeadDerivation:
    r"""What follows from a stack of layers of any heads, as SymPy expressions; made by `derive`.

    Attributes
    ----------
    layers
        The layers: residual, sink and heads, whose relay, position and recency are expressions.
    """

    layers: tuple[SymbolicHeads, ...]

    P = P
    t = t

    @property
    def depth(self) -> int:
        """Number of layers L."""
        return len(self.layers)

    @property
    def parameters(self) -> dict[str, tuple[sympy.Expr, ...]]:
        """What the layers have, by name, of each layer or of each head of all of them."""
        heads = [head for layer in self.layers for head in layer.heads]
        return {
            "relay strength": tuple(head.relay for head in heads),
            "position exponent": tuple(head.position for head in heads),
            "recency exponent": tuple(head.recency for head in heads),
            "residual strength": tuple(layer.residual for layer in self.layers),
            "weight of a sink": tuple(layer.sink for layer in self.layers),
        }

    @cached_property
    def symbol(self) -> sympy.Expr:
        r"""f(z), the eigenvalue at position z (THEORY section 10).

        >>> from relaymodel.derivation import derive
        >>> derive(1, relay=1, recency=sympy.Rational(1, 2)).symbol
        sqrt(pi)*gamma(z)/(2*gamma(z + 1/2)) + 1
        """
        return sympy.Mul(*(layer.residual + sympy.Add(*(_eigenvalue(h) for h in layer.heads)) for layer in self.layers))

    @property
    def equations(self) -> tuple[sympy.Eq, ...]:
        """The symbol f(z), and D(t) as a contour integral of it, which stand for a closed form."""
        f = sympy.Function("f")(z)
        return equation(f, self.symbol), equation(D, self.plateau + _upwards(f * _thinned()))

    @cached_property
    def plateau(self) -> sympy.Expr:
        """What the sinks keep for ever, the difference on the prompt less f(1); 0 without sinks."""
        strengths = [layer.residual + sympy.Add(*(head.relay for head in layer.heads)) for layer in self.layers]
        sinks = [layer.sink for layer in self.layers]
        return sympy.Mul(*(a + b for a, b in zip(strengths, sinks, strict=True))) - sympy.Mul(*strengths)

    @cached_property
    def integrand(self) -> sympy.Expr:
        """f(z) times what one mean with exponent -z leaves of the prompt, whose residues make up D(t)."""
        return self.symbol * _thinned()

    @cached_property
    def contour_form(self) -> sympy.Eq:
        """D(t) as an integral up a line between the first pole of f and 1, plus what the sinks keep."""
        return equation(D, self.plateau + _upwards(self.integrand))

    @cached_property
    def least(self) -> sympy.Expr:
        """The smallest position exponent g* of a relaying head; where SymPy cannot tell, the first given."""
        exponents = list(dict.fromkeys(h.position for layer in self.layers for h in layer.heads if h.relay != 0))
        if not exponents:
            raise ValueError("the relay strengths must not all vanish: the influence is what the sinks keep at every t")
        least = exponents[0]
        for other in exponents[1:]:
            if (least - other).is_positive:
                least = other
        return least

    @cached_property
    def multiplicity(self) -> int:
        """m*, how many layers have a head at g*."""
        return sum(any(h.relay != 0 and h.position == self.least for h in layer.heads) for layer in self.layers)

    def residue(self, step: int) -> sympy.Expr:
        """Return the residue at z = -g* - k, k = `step` from 0 on, in closed form, for heads of one position exponent.

        D(t) is the sum over k, plus the plateau; the terms fall as (P/N)^k at first.

        >>> from relaymodel.derivation import derive
        >>> derive(1, relay=1, recency=-1).residue(0)  # two sums: 2 P/(P + t), less
        2*P/(P + t)
        >>> derive(1, relay=1, recency=-1).residue(1)
        -P*(P + 1)/((P + t)*(P + t + 1))
        """
        step = positive_integer("step", step, least=0)
        g, m = self.least, self.multiplicity
        if any(head.position != g for layer in self.layers for head in layer.heads if head.relay != 0):
            raise ValueError("residues are given for heads of one position exponent, got several; see contour_form")
        front, product = _kernel(g + step, m, P, N)
        order = 0
        for layer in self.layers:
            heads = [head for head in layer.heads if head.relay != 0]
            # for whole delta the ladder ends, and the head is regular further on
            ended = [head for head in heads if (1 - head.recency).is_Integer and step >= 1 - head.recency]
            regular = [layer.residual, *([sympy.Integer(0)] * (m - 1))]
            for head in ended:
                regular = [a + b for a, b in zip(regular, _beyond(head, step, m), strict=True)]
            poles = [_ladder(head, step, m) for head in heads if head not in ended]
            if poles:
                factor, series = _together(poles, regular)
                front, product, order = front * factor, _multiply(product, series), order + 1
            else:
                product = _multiply(product, regular)
        return front * product[order - 1] if order else sympy.Integer(0)

    @cached_property
    def _coefficients(self) -> tuple[sympy.Expr, Series]:
        """The constant and 1, b_1, ..., b_(m-1): D - plateau is, but for powers of t, their product in this sense.

        Constant times t^-(1+g) times the sum of b_i log(t)^(m-1-i)/(m-1-i)!.
        """
        g, m = self.least, self.multiplicity
        # at large t Gamma(N)/Gamma(N+1+g-w) is t^-(1+g) e^(w log t)
        front, product = _kernel(g, m, P, None)
        for layer in self.layers:
            at = [_ladder(h, 0, m) for h in layer.heads if h.relay != 0 and h.position == g]
            regular = [layer.residual, *([sympy.Integer(0)] * (m - 1))]
            for head in layer.heads:
                if head.relay != 0 and head.position != g:
                    regular = [a + b for a, b in zip(regular, _regular(head, head.position - g, m), strict=True)]
            if at:
                factor, series = _together(at, regular)
            else:
                factor, series = regular[0], [x / regular[0] for x in regular]
            front, product = front * factor, _multiply(product, series)
        return front, product

    @cached_property
    def limit(self) -> LeadingTerm:
        r"""The limit 1 + g* of the exponent of D - plateau, and its leading term (THEORY section 10).

        For g = 0 the constant is $A = \prod_l \sum_h \lambda_h p_h / (L-1)!$, $p_h = \delta_h$ the density of the
        head's attention at the beginning of the context: D ~ A P (log t)^(L-1)/t.

        >>> from relaymodel.derivation import derive
        >>> derive(2, recency="equal").limit.A
        lambda**2*(1 - gamma)**2
        """
        g, m = self.least, self.multiplicity
        prompt = sympy.gammasimp(sympy.gamma(P + 1 + g) / sympy.gamma(P))
        A = sympy.gammasimp(self._coefficients[0] / prompt) / math.factorial(m - 1)
        return LeadingTerm(1 + g, m - 1, A, A * prompt * LOG ** (m - 1) * t ** -(1 + g))

    def asymptotic_series(self, order: int) -> AsymptoticSeries:
        r"""Return D - plateau at large t: leading term times [1 + c_1/log t + ...], relative error O(1/log^order t).

        From order m* on the series has ended, and the error is a power of t.
        """
        order = positive_integer("order", order)
        m, first = self.multiplicity, 1 + self.least
        error = t**-first * (LOG ** (m - 1 - order) if order < m else self._power)
        quantity = D - self.plateau if self.plateau != 0 else D
        return AsymptoticSeries(quantity, self.limit.leading, self._relative(order), error)

    @property
    def _power(self) -> sympy.Expr:
        """What the next poles leave, relative to t^-(1+g)."""
        m, exponents = self.multiplicity, {h.position for l in self.layers for h in l.heads if h.relay != 0}
        gaps = [sympy.Integer(1), *(g - self.least for g in exponents if g != self.least)]
        return LOG ** (self.depth if len(gaps) > 1 else m - 1) * sympy.Add(*(t**-gap for gap in gaps))

    def _relative(self, count: int) -> tuple[sympy.Expr, ...]:
        b, m = self._coefficients[1], self.multiplicity
        return tuple(sympy.ff(m - 1, i) * b[i] for i in range(min(count, m)))

    @cached_property
    def asymptotic(self) -> AsymptoticSeries:
        """`asymptotic_series(3)`."""
        return self.asymptotic_series(3)

    def exponent_series(self, order: int) -> AsymptoticSeries:
        r"""Return the local exponent of D - plateau, $1 + g^* - (m^*-1)/\log t + \dots$ with error O(1/log^order t).

        >>> from relaymodel.derivation import derive
        >>> print(derive(3, recency="equal").exponent_series(2))
        alpha(t) = 1 - 2/log(t) + O(log(t)**(-2))
        """
        order = positive_integer("order", order)
        m, one = self.multiplicity, sympy.Integer(1)
        if m == 1:
            return AsymptoticSeries(ALPHA, one, (1 + self.least,), self._power)
        relative = self._relative(order - 1)
        terms = [1 + self.least, sympy.Integer(1 - m), *(log_derivative(relative, i) for i in range(1, order - 1))]
        return AsymptoticSeries(ALPHA, one, tuple(terms[:order]), LOG**-order)

    @cached_property
    def steps(self) -> tuple[DerivationStep, ...]:
        """The derivation, step by step, from one head to the exponent's series."""
        return tuple(_steps(self))

    def latex(self) -> str:
        r"""Return the derivation as a LaTeX fragment: a paragraph with an `align*` for each step (needs amsmath)."""
        return "\n\n".join(step.latex() for step in self.steps)

    def _repr_latex_(self) -> str:
        lines = [latex(self.contour_form), self.exponent_series(3).latex()]
        body = " \\\\\n".join(f"& {line}" for line in lines)
        return f"$$\\begin{{aligned}}\n{body}\n\\end{{aligned}}$$"


def _eigenvalue(head: SymbolicHead) -> sympy.Expr:
    g, delta = head.position, 1 - head.recency
    value = sympy.gamma(1 + g + delta) * sympy.gamma(z + g) / (sympy.gamma(1 + g) * sympy.gamma(z + g + delta))
    return head.relay * (sympy.gammasimp(value) if delta.is_Integer else value)


def _exponential(logs: Series) -> Series:
    """Return exp(sum of logs[i] w^i, i >= 1) as a power series of as many terms; logs[0] is not read."""
    result = [sympy.Integer(1)]
    for i in range(1, len(logs)):
        result.append(sympy.Add(*(j * logs[j] * result[i - j] for j in range(1, i + 1))) / i)
    return result


def _log_gamma(a: sympy.Expr, sign: int, count: int) -> Series:
    """Return the Taylor coefficients of log Gamma(a + sign w), without the first, which is left 0."""
    return [sympy.Integer(0)] + [sympy.polygamma(i - 1, a) * sign**i / math.factorial(i) for i in range(1, count)]


def _multiply(a: Series, b: Series) -> Series:
    return [sympy.Add(*(a[j] * b[i - j] for j in range(i + 1))) for i in range(len(a))]


def _kernel(a: sympy.Expr, count: int, prompt: sympy.Expr, end: sympy.Expr | None) -> tuple[sympy.Expr, Series]:
    """Return Gamma(P+1+a-w) Gamma(N)/(Gamma(P) Gamma(N+1+a-w) (1+a-w)): its value at w = 0, and the series over that.

    With end = None without the factors of N.
    """
    logs = _log_gamma(prompt + 1 + a, -1, count)
    front = sympy.gamma(prompt + 1 + a) / sympy.gamma(prompt) / (1 + a)
    if end is not None:
        logs = [x - y for x, y in zip(logs, _log_gamma(end + 1 + a, -1, count), strict=True)]
        front *= sympy.gamma(end) / sympy.gamma(end + 1 + a)
    return sympy.gammasimp(front), _multiply(_exponential(logs), [(1 + a) ** -i for i in range(count)])


def _ladder(head: SymbolicHead, step: int, count: int) -> tuple[sympy.Expr, Series]:
    """Return w times the head's eigenvalue at z = -g - step + w: its value at w = 0, and the series over that."""
    g, delta = head.position, 1 - head.recency
    ends = _log_gamma(sympy.Integer(1), 1, count), _log_gamma(delta - step, 1, count)
    series = _exponential([x - y for x, y in zip(*ends, strict=True)])
    for i in range(1, step + 1):  # Gamma(w - k) = Gamma(1+w)/(w (w-1) ... (w-k))
        series = _multiply(series, [sympy.Integer(i) ** -j for j in range(count)])
    front = sympy.gamma(1 + g + delta) / (sympy.gamma(1 + g) * sympy.gamma(delta - step))
    sign = sympy.Rational((-1) ** step, math.factorial(step))
    return sign * head.relay * sympy.gammasimp(front), series


def _beyond(head: SymbolicHead, step: int, count: int) -> Series:
    """Return the eigenvalue of a head of whole delta at z = -g - step + w, step >= delta, as a power series."""
    g, delta = head.position, 1 - head.recency
    product = [head.relay * sympy.rf(1 + g, delta), *([sympy.Integer(0)] * (count - 1))]
    for i in range(int(delta)):  # 1/(w - step + i)
        product = _multiply(product, [-(sympy.Rational(1, step - i) ** (j + 1)) for j in range(count)])
    return product


def _together(heads: list[tuple[sympy.Expr, Series]], regular: Series) -> tuple[sympy.Expr, Series]:
    """Return the sum of heads with a pole, times w, and of w times a regular part, in the same form."""
    total = sympy.Add(*(front for front, _ in heads))
    if len(heads) == 1:
        series = list(heads[0][1])
    else:
        series = [sympy.Add(*(f * x[i] for f, x in heads)) / total for i in range(len(heads[0][1]))]
    for i, x in enumerate(regular[: len(series) - 1], start=1):
        series[i] += x / total
    return total, series


def _regular(head: SymbolicHead, gap: sympy.Expr, count: int) -> Series:
    """Return the head's eigenvalue at z + g = gap + w, as a power series."""
    g, delta = head.position, 1 - head.recency
    logs = [x - y for x, y in zip(_log_gamma(gap, 1, count), _log_gamma(gap + delta, 1, count), strict=True)]
    front = sympy.gamma(1 + g + delta) * sympy.gamma(gap) / (sympy.gamma(1 + g) * sympy.gamma(gap + delta))
    return [head.relay * sympy.gammasimp(front) * x for x in _exponential(logs)]


def _thinned() -> sympy.Expr:
    """Return what one mean with exponent -z leaves of the prompt, as a function of z."""
    return sympy.gamma(P + 1 - z) * sympy.gamma(N) / (sympy.gamma(P) * sympy.gamma(N + 1 - z) * (1 - z))


def _upwards(integrand: sympy.Expr) -> sympy.Expr:
    """Return the integral up the line z = c + iy, over 2 pi i."""
    y = sympy.Symbol("y", real=True)
    return sympy.Integral(integrand.subs(z, c + sympy.I * y) / (2 * sympy.pi), (y, -sympy.oo, sympy.oo))


def _steps(derivation: HeadDerivation) -> list[DerivationStep]:
    first = derivation.layers[0].heads[0]
    g, delta = first.position, 1 - first.recency
    weight = sympy.gamma(s + g) / sympy.gamma(s) * sympy.gamma(n - s + delta) / sympy.gamma(n - s + 1)
    total = (
        sympy.gamma(n + g + delta)
        * sympy.gamma(1 + g)
        * sympy.gamma(delta)
        / (sympy.gamma(n) * sympy.gamma(1 + g + delta))
    )
    A, u, E = sympy.IndexedBase("A"), sympy.Symbol("u", positive=True), sympy.Function("E")
    moment = sympy.Integral(
        u ** (z - 1)
        * u**g
        * (1 - u) ** (delta - 1)
        * sympy.gamma(1 + g + delta)
        / sympy.gamma(1 + g)
        / sympy.gamma(delta),
        (u, 0, 1),
    )
    f, sinks = sympy.Function("f")(z), derivation.plateau != 0
    steps = [
        DerivationStep(
            "One head",
            "A head weighs key s of position n by a power of its position and of its distance. The weights sum to a "
            "quotient of gamma functions, so that a late head's relative position u = s/n is Beta distributed.",
            (equation(A[n, s], weight / total), equation(sympy.Sum(weight, (s, 1, n)), total)),
        ),
        DerivationStep(
            "Its eigenvalue",
            "Row n is a binomial thinning: the chance that s - 1 of n - 1 tokens fall below u. Such matrices are "
            "triangular and commute, with the moment of u of order z - 1 as eigenvalue at position z; different heads "
            "and layers only multiply and add these.",
            (equation(E(z), moment), equation(moment, _eigenvalue(SymbolicHead(sympy.Integer(1), g, first.recency)))),
        ),
        DerivationStep(
            "The stack as one function",
            "The symbol is the product over the layers of the residual and the heads' eigenvalues."
            + (" A sink adds the first token's difference everywhere: it is no part of f, and stays." if sinks else ""),
            (equation(f, derivation.symbol),),
        ),
        DerivationStep(
            "The contour",
            "A mean with exponent -z leaves the prompt's share. D is f with z put in its place: by Mellin's inversion "
            "an integral up a line with its real part c between the first pole of f and 1."
            + (" The sinks' part is added." if sinks else ""),
            derivation.equations[1:],
        ),
    ]
    if all(head.position == derivation.least for layer in derivation.layers for head in layer.heads if head.relay != 0):
        steps.append(
            DerivationStep(
                "Residues",
                "Close the line to the left: the poles stand at z = -g - k, k = 0, 1, ..., of as high an order as "
                "there are relaying layers. The terms fall as $(P/N)^k$; the first rules at large t.",
                (
                    equation(
                        D,
                        derivation.plateau
                        + sympy.Sum(sympy.Function("Res")(z, -derivation.least - k), (k, 0, sympy.oo)),
                    ),
                ),
            )
        )
    return [
        *steps,
        DerivationStep(
            "Large t",
            "Near the first pole a head is its density at the beginning of the context over z + g: that, and not how "
            "near keys are weighed, is what the constant knows of it. Each layer adds a logarithm.",
            tuple(derivation.asymptotic_series(order) for order in ((1, 3) if derivation.multiplicity > 1 else (1,))),
        ),
        DerivationStep(
            "The series of the exponent",
            "Take minus the logarithmic derivative: the limit is that of uniform attention, 1 + g, approached as fast.",
            (derivation.exponent_series(3),),
        ),
    ]
