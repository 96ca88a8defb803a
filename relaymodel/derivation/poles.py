r"""The algebra of the exact solution: partial fractions of f, and symmetric polynomials in power sums.

With the mean's eigenvalue $\mu = (1+g)/(z+g)$ a stack is $f = \prod_l (\rho_l + \lambda_l \mu_l)$, and around a
position exponent g shared by m layers its principal part is $\sum_{j=1}^m c_j \mu^j$.  THEORY section 2 then reads

$$ D = \sum_g \Phi_g \sum_{k<m} E_k (1+g)^k h_k, \qquad E_k = \sum_{j>k} c_j, \qquad
   \Phi_g = \frac{\Gamma(P+1+g)\,\Gamma(N)}{\Gamma(P)\,\Gamma(N+1+g)}, $$

with $h_k$ the complete homogeneous symmetric polynomial in $1/(P+1+g), \dots, 1/(N+g)$; $\Phi_g$ is 1+g times
THEORY's $\Phi(g)$, and equal to the product of $1 - \mu$ over positions P+1, ..., N.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy
from flint import fmpq
from sympy.utilities.iterables import partitions

from relaymodel.derivation.functions import harmonic
from relaymodel.derivation.stack import N, P, SymbolicLayer
from relaymodel.exact.homogeneous import as_fraction, homogeneous, prefactor

LARGEST_MULTIPLICITY = 32
"""Layers at one position exponent beyond which h_k is not written out: it has as many terms as k has partitions."""


@dataclass(frozen=True)
class SymbolicPole:
    """A pole of f at z = -position, with the coefficients of mu, mu^2, ..., mu^m of its principal part."""

    position: sympy.Expr
    coefficients: tuple[sympy.Expr, ...]

    @property
    def multiplicity(self) -> int:
        """m, the order of the pole."""
        return len(self.coefficients)

    @cached_property
    def totals(self) -> tuple[sympy.Expr, ...]:
        """E_k for k = 0, ..., m-1."""
        return tuple(sympy.Add(*self.coefficients[k:]) for k in range(self.multiplicity))

    @cached_property
    def weights(self) -> tuple[sympy.Expr, ...]:
        """(1+g)^k E_k: what multiplies h_k."""
        return tuple((1 + self.position) ** k * total for k, total in enumerate(self.totals))

    @property
    def prefactor(self) -> sympy.Expr:
        """Phi_g: P/N for g = 0, a quotient of products for small integers, of gamma functions otherwise."""
        g = self.position
        if is_small_integer(g):
            return sympy.rf(P, 1 + g) / sympy.rf(N, 1 + g)
        return sympy.gamma(P + 1 + g) * sympy.gamma(N) / (sympy.gamma(P) * sympy.gamma(N + 1 + g))

    def power_sums(self, power_sum: Callable[[sympy.Expr, int], sympy.Expr]) -> list[sympy.Expr]:
        """Return p_1, ..., p_{m-1} in the given form."""
        return [power_sum(self.position, i) for i in range(1, self.multiplicity)]


def is_small_integer(g: sympy.Expr) -> bool:
    """Return whether quotients of gamma functions at g are written as products."""
    return bool(g.is_Integer and g <= 8)


def partial_fractions(layers: Sequence[SymbolicLayer]) -> tuple[SymbolicPole, ...]:
    """Return the poles of f in the order in which the layers name them; cancelled poles are left out.

    Different expressions for positions are taken to be different numbers.
    """
    positions: dict[sympy.Expr, list[SymbolicLayer]] = {}
    for layer in layers:
        positions.setdefault(sympy.expand(layer.position), []).append(layer)
    poles = []
    for g, inside in positions.items():
        m = len(inside)
        powers = _powers(inside)
        taylor = [sympy.Integer(1)] + [sympy.Integer(0)] * (m - 1)
        for other, outside in positions.items():
            # rho + lambda (1+h)/(z+h) around z = -g, in powers of 1/mu
            a, b = (1 + other) / (other - g), (1 + g) / (other - g)
            for layer in outside if other != g else ():
                factor = [layer.residual + layer.relay * a]
                factor += [layer.relay * a * (-b) ** n for n in range(1, m)]
                taylor = [sympy.Add(*(taylor[i] * factor[n - i] for i in range(n + 1))) for n in range(m)]
        coefficients = [sympy.Add(*(powers[j + n] * taylor[n] for n in range(m - j + 1))) for j in range(1, m + 1)]
        while coefficients and coefficients[-1] == 0:
            coefficients.pop()
        if coefficients:
            poles.append(SymbolicPole(g, tuple(coefficients)))
    return tuple(poles)


def _powers(layers: Sequence[SymbolicLayer]) -> list[sympy.Expr]:
    """Return the coefficients of prod (rho + lambda mu) in powers of mu (THEORY's e_m).

    Up to 8 different layers are multiplied out; beyond, 2^L terms are avoided by leaving products of blocks.
    """
    factors = [
        [math.comb(count, j) * relay**j * residual ** (count - j) for j in range(count + 1)]
        for (relay, residual), count in Counter((layer.relay, layer.residual) for layer in layers).items()
    ]

    def multiply(low: int, high: int) -> list[sympy.Expr]:
        if high - low == 1:
            return factors[low]
        expand = high - low <= 8
        middle = high - 1 if expand else (low + high) // 2
        a, b = multiply(low, middle), multiply(middle, high)
        return [
            sympy.Add(
                *(
                    term * b[j]
                    for j in range(max(0, n - len(a) + 1), min(len(b), n + 1))
                    for term in (sympy.Add.make_args(a[n - j]) if expand else [a[n - j]])
                )
            )
            for n in range(len(a) + len(b) - 1)
        ]

    return multiply(0, len(factors))


def hurwitz(i: int, a: sympy.Expr) -> sympy.Expr:
    """Return Hurwitz's zeta(i, a) = sum over n >= 0 of (a+n)^-i as a polygamma function, i >= 2.

    >>> hurwitz(2, sympy.Symbol("a"))
    polygamma(1, a)
    """
    return sympy.Rational((-1) ** i, math.factorial(i - 1)) * sympy.polygamma(i - 1, a)


def power_sum_polygamma(g: sympy.Expr, i: int) -> sympy.Expr:
    """Return p_i, the sum of (s+g)^-i over s = P+1, ..., N, in polygamma functions (THEORY section 2)."""
    if i == 1:
        return sympy.digamma(N + 1 + g) - sympy.digamma(P + 1 + g)
    return hurwitz(i, P + 1 + g) - hurwitz(i, N + 1 + g)


def power_sum_harmonic(g: sympy.Expr, i: int) -> sympy.Expr:
    """Return p_i in generalised harmonic numbers, at N+g and P+g."""
    return harmonic(N + g, i) - harmonic(P + g, i)


def complete_homogeneous(power_sums: Sequence[sympy.Expr]) -> list[sympy.Expr]:
    r"""Return $h_0, \dots, h_K$ as polynomials in the power sums $p_1, \dots, p_K$.

    $h_k = \sum \prod_i p_i^{r_i} / (i^{r_i} r_i!)$ over the partitions of k into $r_i$ parts i.

    >>> complete_homogeneous(sympy.symbols("p_1:4"))[3]
    p_1**3/6 + p_1*p_2/2 + p_3/3
    """
    return [
        sympy.Add(
            *(
                sympy.Mul(
                    sympy.Rational(1, math.prod(i**r * math.factorial(r) for i, r in partition.items())),
                    *(power_sums[i - 1] ** r for i, r in partition.items()),
                )
                for partition in partitions(k)
            )
        )
        for k in range(len(power_sums) + 1)
    ]


def closed_form(poles: Sequence[SymbolicPole], power_sum: Callable[[sympy.Expr, int], sympy.Expr]) -> sympy.Expr:
    """Return D(t) with the power sums written out in the given form (THEORY section 2)."""
    check_size(poles)
    return sympy.Add(
        *(pole.prefactor * combine(pole.weights, complete_homogeneous(pole.power_sums(power_sum))) for pole in poles)
    )


def local_exponent(poles: Sequence[SymbolicPole], homogeneous: Sequence[Sequence[sympy.Expr]]) -> sympy.Expr:
    """Return -dlogD/dlogt, given h_0, ..., h_{m-1} for each pole (THEORY section 3).

    From dh_k/dt = sum_i zeta(i+1, N+1+g) h_{k-i} and dlog(Phi_g)/dt = psi(N) - psi(N+1+g).
    """
    t = N - P
    if len(poles) == 1:
        slope, value = _slope(poles[0], homogeneous[0]), combine(poles[0].weights, homogeneous[0])
        return t * _log_slope(poles[0].position) - t * slope / value
    slopes, values = [], []
    for pole, h in zip(poles, homogeneous, strict=True):
        value = combine(pole.weights, h)
        slopes.append(pole.prefactor * (_log_slope(pole.position) * value - _slope(pole, h)))
        values.append(pole.prefactor * value)
    return t * sympy.Add(*slopes) / sympy.Add(*values)


def combine(weights: Sequence[sympy.Expr], h: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return the sum of weights times polynomials."""
    return sympy.Add(*(weight * polynomial for weight, polynomial in zip(weights, h, strict=True)))


def _slope(pole: SymbolicPole, h: Sequence[sympy.Expr]) -> sympy.Expr:
    """Return sum_k E_k (1+g)^k dh_k/dt, each h_k written once."""
    zetas = [hurwitz(i + 1, N + 1 + pole.position) for i in range(1, pole.multiplicity)]
    return sympy.Add(
        *(
            h[j] * sympy.Add(*(weight * zeta for weight, zeta in zip(pole.weights[j + 1 :], zetas, strict=False)))
            for j in range(pole.multiplicity)
        )
    )


def _log_slope(g: sympy.Expr) -> sympy.Expr:
    """Return psi(N+1+g) - psi(N), a rational function for small integers g."""
    if is_small_integer(g):
        return sympy.Add(*(1 / (N + i) for i in range(g + 1)))
    return sympy.digamma(N + 1 + g) - sympy.digamma(N)


def check_size(poles: Sequence[SymbolicPole]) -> None:
    """Raise `ValueError` if a result in closed form would have hundreds of thousands of terms."""
    m = max((pole.multiplicity for pole in poles), default=0)
    if m > LARGEST_MULTIPLICITY:
        raise ValueError(
            f"at most {LARGEST_MULTIPLICITY} layers may share a position exponent in a form written out in full, got "
            f"{m}; use compact_form with definitions, or evaluate(P, t)"
        )


def value(poles: Sequence[SymbolicPole], prompt: int, steps: int) -> sympy.Expr:
    """Return D at integers P and t exactly, expanded, for rational positions, by sums instead of special functions."""
    last, total = prompt + steps, defaultdict[sympy.Expr, fmpq](fmpq)
    for pole in poles:
        g = fmpq(int(pole.position.p), int(pole.position.q))
        front, sums = prefactor(prompt, last, g), homogeneous(pole.multiplicity, prompt, last, g)
        # each product of symbols apart: SymPy's own sums of long fractions take a time quadratic in their length
        rows: dict[sympy.Expr, list[fmpq]] = {}
        for k, weight in enumerate(pole.weights):
            for symbols, number in sympy.expand(weight).as_coefficients_dict().items():
                rows.setdefault(symbols, [fmpq(0)] * pole.multiplicity)[k] = fmpq(int(number.p), int(number.q))
        for symbols, weights in rows.items():
            total[symbols] += front * sums.combined(weights)
    return sympy.Add(*(sympy.Rational(as_fraction(number)) * symbols for symbols, number in total.items()))
