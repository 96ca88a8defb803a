r"""The two-sided bounds on the influence, and how tight they are (THEORY section 4).

For position 0 and strengths that are not negative $D = \frac PN \sum_k E_k h_k$, N = P + t, and $h_k$ is a polynomial
with positive coefficients in the power sums $p_i$ (Newton's identities).  The first K are kept, the others replaced:

$$ 0 \le p_i \le r_i\, p_K \quad (i > K), \qquad r_i = (P+1)^{K-i} \; (t \ge 1), \qquad
   r_i = \frac{i\, \zeta(i+1, P+1)}{K\, \zeta(K+1, P+1)} \; (t > 0), $$

because $p_i / p_K$ falls with t: both are integrals over $0..t$, of $i\,\zeta(i+1, P+1+s)$ and its like, whose
quotient falls with s by the inequality of Cauchy and Schwarz; the first $r_i$ is its value at t = 1, the second that at
t = 0.  For K = 1 and t >= 1 that is

$$ \frac{p_1^k}{k!} \le h_k \le \frac{1}{k!} \prod_{i<k} \Bigl(p_1 + \frac{i}{P+1}\Bigr), $$

and the quotient of the two sides is at most $\exp\frac{(L-1)(L-2)}{2(P+1)p_1}$, which tends to 1: the rate
$O(P (\log t)^{L-1}/t)$ is attained.  For L <= K + 1 both sides are D itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Any, Generic, TypeVar, overload

import numpy as np
from flint import arb, fmpq
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.exact.ball import end_position, refine
from relaymodel.exact.powersums import power_sums
from relaymodel.exact.precision import working
from relaymodel.exact.promise import DEEPEST, LARGEST_PROMPT, LARGEST_T, rounding_error
from relaymodel.exact.residues import complete_homogeneous, scale_up, stack
from relaymodel.exact.spectrum import path_coefficients, poles, rational, tail_sums
from relaymodel.exact.values import check_model, times
from relaymodel.model import RelayModel

Array = NDArray[np.float64]
Side = TypeVar("Side")

LARGEST_FRACTION = 10**6
"""The sides are fractions with about as many digits as t."""

BITS = 160
"""To which power sums at fractional t, which are irrational, are enclosed between rational numbers."""


@dataclass(frozen=True)
class Bracket(Generic[Side]):
    """Both sides of the bound, of one type; unpacks as `lower, upper`.

    Floats are rounded outward, so that the exact D(t) lies between them; fractions hold as they stand, and balls
    enclose the sides.
    """

    lower: Side
    upper: Side

    def __iter__(self) -> Iterator[Side]:
        return iter((self.lower, self.upper))

    @property
    def tightness(self) -> Side:
        """The quotient upper / lower, at least 1; 1 means that the bound is an equality.  Balls keep their digits."""
        bits = max((side.bits() for side in self if isinstance(side, arb)), default=0)
        with working(bits=max(64, bits)):
            return self.upper / self.lower  # type: ignore[operator, no-any-return]


@dataclass(frozen=True)
class Rate:
    r"""The leading term $A\, (\log t)^k\, t^{-a}$ of D(t) (THEORY section 3).

    With m* layers at the smallest position exponent g*, $k = m_* - 1$, $a = 1 + g_*$, and
    $A = \frac{a_*}{k!} \frac{\Gamma(P+1+g_*)}{\Gamma(P)(1+g_*)}$, where $a_*$ is the coefficient of
    $(z+g_*)^{-m_*}$ in f.  For position 0 that is $A = P \prod_l \lambda_l / (L-1)!$.
    """

    model: RelayModel
    log_power: int
    exponent: Fraction

    def ball(self, t: Number, digits: int = 50) -> arb:
        """Return the leading term at t > 1, an integer of any size, as a ball of that many digits."""
        number = real("t", t)
        if number <= 1:
            raise ValueError(f"t must be greater than 1, got {show(t)}: the leading term holds for large log t")
        pole = poles(self.model)[0]
        x = fmpq(*Fraction(number).as_integer_ratio())
        P, a = self.model.prompt, 1 + pole.position

        def evaluate() -> arb:
            constant = arb(pole.principal[-1]) / factorial(self.log_power) / a
            constant *= (arb(P + a).lgamma() - arb(P).lgamma()).exp()
            log_t = arb(x).log()
            return constant * log_t**self.log_power * (-log_t * arb(a)).exp()

        size = (int(x.p) // int(x.q)).bit_length()
        return refine(evaluate, self.model, digits, 64 + size.bit_length())


def rate(model: RelayModel) -> Rate:
    """Return the leading term of D(t) as t grows (THEORY section 3), for any model with a relaying layer.

    >>> rate(RelayModel.uniform(prompt=10, depth=3, relay=1)).log_power
    2
    """
    model.demand_plain("rate")
    found = poles(model)
    if not found:
        raise ValueError(f"model must have an influence other than 0 for a rate, got {show(model)}")
    exponent = 1 + Fraction(int(found[0].position.p), int(found[0].position.q))
    return Rate(model, found[0].order - 1, exponent)


@overload
def bracket(model: RelayModel, t: Fraction, sums: int = 1) -> Bracket[Fraction]: ...
@overload
def bracket(model: RelayModel, t: float, sums: int = 1) -> Bracket[float]: ...
@overload
def bracket(model: RelayModel, t: Sequence[Any] | NDArray[Any], sums: int = 1) -> Bracket[Array]: ...
@overload
def bracket(model: RelayModel, t: ArrayLike | Fraction, sums: int = 1) -> Bracket[Any]: ...
def bracket(model: RelayModel, t: ArrayLike | Fraction, sums: int = 1) -> Bracket[Any]:
    r"""Return lower and upper bounds of D(t) that hold at every t and are asymptotically equal (THEORY section 4).

    The power sums $p_1, \dots, p_K$ are exact and the others bounded (see the module): the more, the closer, and for
    L <= K + 1 both sides are D(t).

    Parameters
    ----------
    model
        Position 0 in every layer, relay and residual not negative, at least one relay positive.
    t
        Positive real or array of them, up to 1e300: the bounds come as float64, rounded outward.
        A `Fraction` up to 10^6: they come as fractions, exact for whole t and rounded outward at 1e-45 for others.
    sums
        K, at least 1.

    Raises
    ------
    TypeError, ValueError
        For another t, and for a model to which the bound does not apply.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=2, depth=3, relay=1)
    >>> lower, upper = bracket(model, Fraction(2))
    >>> lower <= model.differences(4)[-1] <= upper
    True
    >>> bool(bracket(model, 1e100).tightness < 1.002)
    True
    >>> six = RelayModel.uniform(prompt=10, depth=6, relay=1)
    >>> [round(bracket(six, 100, sums=K).tightness - 1, 8) for K in (1, 2, 3)]
    [0.0341508, 0.0002912, 2.56e-06]
    """
    _applies(model)
    K = positive_integer("sums", sums)
    if isinstance(t, Fraction):
        return _bracket_fraction(model, t, K)
    exact, flat, shape = times(t)
    if model.prompt > LARGEST_PROMPT or model.depth > DEEPEST or np.any(flat > LARGEST_T):
        raise ValueError(
            f"prompt, depth and t must be at most {LARGEST_PROMPT:.0e}, {DEEPEST} and {LARGEST_T:.0e} for bounds "
            f"in float64, got {model.prompt}, {model.depth} and {show(flat.max(initial=0))}; use bracket_ball"
        )
    del exact  # a float within half a unit of t moves D by less than the outward rounding below
    found, count = stack(model, tail=True), model.depth - 1
    slack = 1 + rounding_error(model.depth)
    kept = power_sums(model.prompt + 1.0, flat, 1.0, max(1, min(K, count)))[0]
    with working(bits=64):
        late, early = (np.array([[float(r)] for r in quotients(model.prompt, K, count, w)]) for w in (False, True))
    most = np.where(flat < 1, early.reshape(-1, 1), late.reshape(-1, 1))
    sides = []
    for others, outward, towards in ((0.0 * most, 1 / slack, 0.0), (most * kept[-1], slack, np.inf)):
        h = complete_homogeneous(np.concatenate([kept, others])[:count])
        total = model.prompt / (model.prompt + flat) * (found.poles[0].values @ h) * outward
        sides.append(np.nextafter(scale_up(total, found.exponent), towards).reshape(shape))
    return Bracket(*(side if shape else float(side) for side in sides))


def bracket_ball(model: RelayModel, t: Number, digits: int = 50, sums: int = 1) -> Bracket[arb]:
    """Return the bounds of `bracket` as balls of the given relative accuracy, for t of any size.

    >>> model = RelayModel.uniform(prompt=10, depth=6, relay=1)
    >>> print((bracket_ball(model, 10**1000).tightness - 1).str(3, radius=False))
    0.000393
    """
    _applies(model)
    N, lost = end_position(model, t)
    K, P, L = positive_integer("sums", sums), model.prompt, model.depth
    E = tail_sums(path_coefficients(model))

    def side(upper: bool) -> arb:
        kept = _power_sums(P, N, min(K, L - 1))
        rest = quotients(P, K, L - 1, N - P < 1) if upper else [arb(0)] * (L - 1 - K)
        value: arb = arb(P) / arb(N) * _sum(E, [*kept, *(r * kept[-1] for r in rest)])
        return value

    return Bracket(*(refine(lambda u=u: side(u), model, digits, lost) for u in (False, True)))  # type: ignore[misc]


def _power_sums(prompt: int, N: fmpq, count: int) -> list[arb]:
    """Return p_1, ..., p_count as balls."""
    start, end = arb(prompt + 1), arb(N + 1)
    return [
        end.digamma() - start.digamma() if i == 1 else arb(i).zeta(start) - arb(i).zeta(end)
        for i in range(1, count + 1)
    ]


def quotients(prompt: int, kept: int, count: int, early: bool) -> list[arb]:
    """Return what p_i / p_K is at most, i = K+1..count, for t >= 1, or `early` for t > 0, as balls."""

    def tail(i: int) -> arb:
        return i * arb(i + 1).zeta(arb(prompt + 1))

    orders = range(kept + 1, count + 1)
    return [tail(i) / tail(kept) if early else arb(prompt + 1) ** (kept - i) for i in orders]


def _sum(E: Sequence[Any], p: Sequence[Any]) -> Any:
    """Return the sum of E_k h_k by Newton's identities; written once for fractions and balls."""
    h = [E[0] ** 0]
    for k in range(1, len(E)):
        h.append(sum(p[i] * h[k - 1 - i] for i in range(k)) / k)
    return sum(e * value for e, value in zip(E, h, strict=True))


def tightness_bound(model: RelayModel, t: Number) -> arb:
    r"""Return $\exp\frac{(L-1)(L-2)}{2(P+1)p_1}$, at least `bracket(model, t).tightness`, t >= 1 (THEORY section 4).

    >>> print(tightness_bound(RelayModel.uniform(prompt=10, depth=2, relay=1), 5))
    1.00000000000000
    """
    _applies(model)
    N, lost = end_position(model, t)
    L, P = model.depth, model.prompt
    if N - P < 1:
        raise ValueError(f"t must be at least 1 for this bound on the tightness, got {show(t)}")

    def evaluate() -> arb:
        exponent = arb((L - 1) * (L - 2)) / (2 * (P + 1) * (arb(N + 1).digamma() - arb(P + 1).digamma()))
        value: arb = exponent.exp()
        return value

    return refine(evaluate, model, 15, lost)


def _bracket_fraction(model: RelayModel, t: Fraction, K: int) -> Bracket[Fraction]:
    if not 0 < t <= LARGEST_FRACTION:
        raise ValueError(f"t must be positive and at most 10^6 for exact bounds, got {show(t)}; pass a float")
    P, L, N = model.prompt, model.depth, rational(t) + model.prompt
    E = tail_sums(path_coefficients(model))
    if t.denominator == 1:
        kept = [_exact_sum(i, P + 1, int(N)) for i in range(1, min(K, L - 1) + 1)]
        rest = [fmpq(1, (P + 1) ** (i - K)) for i in range(K + 1, L)]
        low = high = kept
    else:
        with working(bits=BITS + int(N).bit_length()):
            low, high = _ends(_power_sums(P, N, min(K, L - 1)))
            rest = _ends(quotients(P, K, L - 1, t < 1))[1]
    sides = (_sum(E, [*low, *(fmpq(0) for _ in rest)]), _sum(E, [*high, *(r * high[-1] for r in rest)]))
    return Bracket(*(Fraction(int(side.p), int(side.q)) for side in (P / N * value for value in sides)))


def _ends(balls: Sequence[arb]) -> tuple[list[fmpq], list[fmpq]]:
    """Return rational numbers below and above balls."""
    below: list[fmpq] = []
    above: list[fmpq] = []
    for ball in balls:
        for end, ends in ((ball.lower(), below), (ball.upper(), above)):
            mantissa, exponent = end.man_exp()
            ends.append(fmpq(int(mantissa)) * fmpq(2) ** int(exponent))
    return below, above


def _exact_sum(i: int, first: int, last: int) -> fmpq:
    """Return the sum of n^-i over n = first..last, by halves."""
    if last - first < 8:
        return sum((fmpq(1, n**i) for n in range(first, last + 1)), fmpq(0))
    middle = (first + last) // 2
    return _exact_sum(i, first, middle) + _exact_sum(i, middle + 1, last)


def _applies(model: RelayModel) -> None:
    """Refuse a model to which the bound does not apply, naming the first layer that is at fault."""
    check_model(model)
    model.demand_plain("the two-sided bound")
    for i, (relay, residual, position) in enumerate(model.rational):
        if position != 0 or relay < 0 or residual < 0:
            raise ValueError(
                "model must have position 0 and no negative strength in every layer for the two-sided bound, "
                f"got {show(model.layers[i])} in layer {i + 1}"
            )
    if not poles(model):
        raise ValueError(f"model must have an influence other than 0 for the two-sided bound, got {show(model)}")
