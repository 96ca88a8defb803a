"""The derivation as a sequence of steps, from what one layer does to the exponent's series."""

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from relaymodel.derivation import asymptotics
from relaymodel.derivation.asymptotics import AsymptoticSeries
from relaymodel.derivation.layout import align
from relaymodel.derivation.notation import ALPHA, D, indexed, latex
from relaymodel.derivation.poles import (
    SymbolicPole,
    combine,
    hurwitz,
    local_exponent,
    power_sum_harmonic,
    power_sum_polygamma,
)
from relaymodel.derivation.stack import LETTERS, N, P, SymbolicLayer, t

j, k, l, n, s = sympy.symbols("j k l n s", integer=True, positive=True)
z, x, y = sympy.symbols("z x y")
INPUT, MEAN, STACK, REPEATED_MEAN, HOMOGENEOUS = map(sympy.Function, ["x", "m", "f", "S", "h"])


@dataclass(frozen=True)
class DerivationStep:
    """One step of a derivation: a title, what is done and why, and the equations that come out."""

    title: str
    text: str
    equations: tuple[sympy.Eq | AsymptoticSeries, ...]

    def latex(self) -> str:
        """Return the step as a LaTeX paragraph (needs amsmath)."""
        return f"\\paragraph{{{self.title}.}} {self.text}\n{align(self.equations)}"

    def _repr_markdown_(self) -> str:
        lines = " \\\\\n".join(f"& {latex(item)}" for item in self.equations)
        return f"**{self.title}.** {self.text}\n\n$$\\begin{{aligned}}\n{lines}\n\\end{{aligned}}$$"


def equation(left: sympy.Expr, right: sympy.Expr) -> sympy.Eq:
    """Return an equation that SymPy does not try to decide."""
    return sympy.Eq(left, right, evaluate=False)


def recursion(layers: Sequence[SymbolicLayer]) -> sympy.Eq:
    """Return what layer l does (THEORY section 1); a parameter that varies between layers gets the index l."""
    relay, residual, g = (_common(layers, name, sympy.IndexedBase(LETTERS[name])[l]) for name in LETTERS)
    mean = sympy.Sum(_weight(g) * INPUT(l - 1, s), (s, 1, n))
    return equation(INPUT(l, n), residual * INPUT(l - 1, n) + relay / _total_weight(g, n) * mean)


def _common(layers: Sequence[SymbolicLayer], name: str, otherwise: sympy.Expr) -> sympy.Expr:
    values = {getattr(layer, name) for layer in layers}
    return values.pop() if len(values) == 1 else otherwise


def _weight(g: sympy.Expr) -> sympy.Expr:
    return sympy.Integer(1) if g == 0 else sympy.gamma(s + g) / sympy.gamma(s)


def _total_weight(g: sympy.Expr, end: sympy.Expr) -> sympy.Expr:
    """Return the sum of the weights of positions 1, ..., end."""
    return end if g == 0 else sympy.gamma(end + 1 + g) / ((1 + g) * sympy.gamma(end))


def atom(layers: Sequence[SymbolicLayer]) -> sympy.Expr:
    """Return the product of the residual strengths: what a token keeps of itself as n grows (THEORY section 6)."""
    return sympy.Mul(*(layer.residual for layer in layers))


def stack_function(layers: Sequence[SymbolicLayer]) -> sympy.Expr:
    """Return f(z) (THEORY section 2)."""
    return sympy.Mul(*(layer.residual + layer.relay * (1 + layer.position) / (z + layer.position) for layer in layers))


def _names(poles: Sequence[SymbolicPole], letter: str, a: int, *, start: int) -> list[sympy.Symbol]:
    """Return the symbols p_i, h_i or E_i of pole number a."""
    label = None if len(poles) == 1 else a + 1
    stop = poles[a].multiplicity
    return [indexed(letter, label, i) for i in range(start, stop)]


def _homogeneous(poles: Sequence[SymbolicPole], a: int) -> list[sympy.Expr]:
    return [sympy.Integer(1), *_names(poles, "h", a, start=1)]


def _with_names(poles: Sequence[SymbolicPole]) -> list[SymbolicPole]:
    """Return the poles with E_k in the place of their expressions."""
    named = []
    for a, pole in enumerate(poles):
        E = [*_names(poles, "E", a, start=0), sympy.Integer(0)]
        named.append(SymbolicPole(pole.position, tuple(E[k] - E[k + 1] for k in range(pole.multiplicity))))
    return named


def compact_form(poles: Sequence[SymbolicPole]) -> sympy.Eq:
    """Return D(t) in E_k and h_k (THEORY section 2)."""
    return equation(
        D,
        sympy.Add(
            *(
                pole.prefactor * combine(pole.weights, _homogeneous(poles, a))
                for a, pole in enumerate(_with_names(poles))
            )
        ),
    )


def compact_exponent(poles: Sequence[SymbolicPole]) -> sympy.Eq:
    """Return the local exponent in E_k and h_k (THEORY section 3)."""
    return equation(ALPHA, local_exponent(_with_names(poles), [_homogeneous(poles, a) for a in range(len(poles))]))


def definitions(poles: Sequence[SymbolicPole]) -> tuple[sympy.Eq, ...]:
    """Return E_k, p_i and h_k, each in terms of the ones before it."""
    equations: list[sympy.Eq] = []
    for a in range(len(poles)):
        equations += _totals(poles, a) + _power_sums(poles, a) + _newton(poles, a)
    return tuple(equations)


def _totals(poles: Sequence[SymbolicPole], a: int) -> list[sympy.Eq]:
    return [equation(E, total) for E, total in zip(_names(poles, "E", a, start=0), poles[a].totals, strict=True)]


def _power_sums(poles: Sequence[SymbolicPole], a: int) -> list[sympy.Eq]:
    values = poles[a].power_sums(power_sum_polygamma)
    return [equation(p, value) for p, value in zip(_names(poles, "p", a, start=1), values, strict=True)]


def _newton(poles: Sequence[SymbolicPole], a: int) -> list[sympy.Eq]:
    p, h = _names(poles, "p", a, start=1), _homogeneous(poles, a)
    return [
        equation(h[i], sympy.Add(*(p[b - 1] * h[i - b] for b in range(1, i + 1))) / i)
        for i in range(1, poles[a].multiplicity)
    ]


def steps(layers: Sequence[SymbolicLayer], poles: Sequence[SymbolicPole]) -> tuple[DerivationStep, ...]:
    """Return the whole derivation."""
    g = _common(layers, "position", sympy.Symbol("g", real=True))
    result = [*_operator_steps(layers, g), *_power_steps(g), *_pole_steps(layers, poles)]
    return (*result, *_sum_steps(poles), *_exponent_steps(poles)) if poles else tuple(result)


def _operator_steps(layers: Sequence[SymbolicLayer], g: sympy.Expr) -> list[DerivationStep]:
    listed = []
    for name, letter in LETTERS.items():
        values = [getattr(layer, name) for layer in layers]
        if len(set(values)) > 1:
            listed.append(f"${latex(sympy.IndexedBase(letter)[l])} = {', '.join(map(latex, values))}$")
    return [
        DerivationStep(
            "One layer",
            "A layer keeps its input times the residual strength and adds the relay strength times the weighted mean "
            "of all inputs so far. The difference between the two runs starts as 1 on the prompt, n = 1, ..., P, and "
            "as 0 after it; D(t) is what is left at position N = P + t after the last layer."
            + (f" Layer by layer, {'; '.join(listed)}." if listed else ""),
            (recursion(layers),),
        ),
        DerivationStep(
            "The mean as an inverse",
            "The mean m of an input x obeys a recursion of one step. With the operator "
            r"$(T m)_n = n\,m_n - (n-1)\,m_{n-1}$ it says $(T + g)\,m = (1+g)\,x$, so taking the mean is "
            "$(1+g)/(T+g)$. All layers are functions of the same T: they commute, and their order does not matter.",
            (equation((n + g) * MEAN(n), (n - 1) * MEAN(n - 1) + (1 + g) * INPUT(n)),),
        ),
        DerivationStep(
            "The stack as one function",
            "The stack is f(T), the product of its layers. T is triangular with n on its diagonal, so f(n) is the "
            "eigenvalue at position n, and the weight of token n on itself.",
            (equation(STACK(z), stack_function(layers)),),
        ),
    ]


def _power_steps(g: sympy.Expr) -> list[DerivationStep]:
    share = sympy.Sum(_weight(g), (s, 1, P)) / sympy.Sum(_weight(g), (s, 1, N))
    mu, moved = (1 + g) / (z + g), g - (1 + g) * y
    ratio = sympy.gamma(P + 1 + g - x) * sympy.gamma(N + 1 + g) / (sympy.gamma(P + 1 + g) * sympy.gamma(N + 1 + g - x))
    prefactor = SymbolicPole(g, ()).prefactor
    return [
        DerivationStep(
            "One mean of the prompt",
            "The mean of a sequence that is 1 on the prompt and 0 after it is the prompt's share of the weights.",
            (equation(share, prefactor),),
        ),
        DerivationStep(
            "All powers of the mean at once",
            r"Add up $y^j$ times the j-th power of the mean, $j = 1, 2, \dots$: the geometric series (left, with T "
            "written z) is a multiple of another mean, whose exponent has moved from g to $g - (1+g)y$ (right). So the "
            "previous step, at the moved exponent, answers for every power.",
            (equation(y * mu / (1 - y * mu), y / (1 - y) * (1 + moved) / (z + moved)),),
        ),
        DerivationStep(
            "The generating function",
            "Divide the prompt's share at the moved exponent by that at g, with $x = (1+g)y$: the quotient is a finite "
            "product, whose Taylor coefficients in x are the complete homogeneous symmetric polynomials $h_k$ of "
            "$1/(P+1+g), \\dots, 1/(N+g)$. The factor $y/(1-y)$ adds them up: $S_j$ is what the j-th power of the mean "
            "leaves of the prompt.",
            (
                equation(ratio, sympy.Product(1 / (1 - x / (s + g)), (s, P + 1, N))),
                equation(REPEATED_MEAN(j), prefactor * sympy.Sum((1 + g) ** k * HOMOGENEOUS(k), (k, 0, j - 1))),
            ),
        ),
    ]


def _pole_steps(layers: Sequence[SymbolicLayer], poles: Sequence[SymbolicPole]) -> list[DerivationStep]:
    principal = sympy.Add(
        *(
            coefficient * ((1 + pole.position) / (z + pole.position)) ** power
            for pole in poles
            for power, coefficient in enumerate(pole.coefficients, start=1)
        )
    )
    fractions = DerivationStep(
        "Poles and residues",
        "Expand f in partial fractions. Layers that share a position exponent make a pole of higher order; exponents "
        "written differently are taken to be different. The constant acts on each token alone and leaves nothing of "
        "the prompt behind it." + ("" if poles else " There is no pole: D(t) is 0."),
        (equation(STACK(z), atom(layers) + principal),),
    )
    if not poles:
        return [fractions]
    totals = [item for a in range(len(poles)) for item in _totals(poles, a)]
    collected = DerivationStep(
        "Collect",
        "Put $S_j$ in the place of the j-th power. $E_k$ is the sum of the coefficients of all powers beyond k. (The "
        "result is a sum of residues, over the poles of f, of f(z) times what one mean with exponent -z leaves.)",
        (compact_form(poles), *totals),
    )
    return [fractions, collected]


def _sum_steps(poles: Sequence[SymbolicPole]) -> list[DerivationStep]:
    sums, newton = [], []
    for a, pole in enumerate(poles):
        for i, symbol in enumerate(_names(poles, "p", a, start=1), start=1):
            sums.append(equation(symbol, sympy.Sum((s + pole.position) ** -i, (s, P + 1, N))))
            sums.append(equation(symbol, power_sum_harmonic(pole.position, i)))
            sums.append(equation(symbol, power_sum_polygamma(pole.position, i)))
        newton += _newton(poles, a)
    if not newton:
        return []
    return [
        DerivationStep(
            "Power sums",
            "The logarithm of the generating function is the sum of $p_i x^i/i$ with the power sums $p_i$: differences "
            "of generalised harmonic numbers, which polygamma functions continue to real t.",
            tuple(sums),
        ),
        DerivationStep(
            "Newton's identities",
            "They give each $h_k$ from the power sums and the ones before it, with $h_0 = 1$. Put in from the last to "
            "the first, they turn the form above into the closed form.",
            tuple(newton),
        ),
    ]


def _exponent_steps(poles: Sequence[SymbolicPole]) -> list[DerivationStep]:
    first = asymptotics.increasing(poles)[0]
    a, g = poles.index(first), first.position
    one = sympy.Integer(1)
    limit = asymptotics.prompt_factor(first) * t ** -(1 + g)
    tails = [AsymptoticSeries(first.prefactor, limit, (one,), limit / t)]
    for i, p in enumerate(_names(poles, "p", a, start=1), start=1):
        tail = sympy.log(t) - sympy.digamma(P + 1 + g) if i == 1 else hurwitz(i, P + 1 + g)
        tails.append(AsymptoticSeries(p, tail, (one,), 1 / t if i == 1 else t ** (1 - i)))
    orders = (1, 3) if first.multiplicity > 1 else (1,)
    return [
        DerivationStep(
            "The local exponent",
            r"Differentiate: $dh_k/dt = \sum_i \zeta(i+1, N+1+g)\,h_{k-i}$, from the logarithm of the generating "
            r"function; the $\zeta(i+1, \cdot)$ are written as polygamma functions.",
            (compact_exponent(poles),),
        ),
        DerivationStep(
            "Large t",
            "A power of t separates the smallest position exponent from the others"
            + (f"; here it is ${latex(g)}$" if len(poles) > 1 else "")
            + ". Of its power sums only the first grows, like log t. So D becomes a polynomial in log t times a power.",
            tuple(tails),
        ),
        DerivationStep(
            "The series of D",
            "Sort by powers of log t. The leading term is the rate at which the prompt is forgotten.",
            tuple(asymptotics.influence_series(poles, order) for order in orders),
        ),
        DerivationStep(
            "The series of the exponent",
            "Take minus the logarithmic derivative. The limit is one more than the smallest position exponent; with "
            "several layers there it is approached only as fast as 1/log t.",
            (asymptotics.exponent_series(poles, 3),),
        ),
    ]
