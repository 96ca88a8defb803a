r"""The two-sided bound on the influence, and how tight it is (THEORY section 4).

For position 0 and strengths that are not negative, with $N = P + t$ and
$p_1 = \frac1{P+1} + \dots + \frac1N$,

$$ \frac{p_1^k}{k!} \le h_k \le \frac{1}{k!} \prod_{i<k} \Bigl(p_1 + \frac{i}{P+1}\Bigr), $$

so that $D = \frac PN \sum_k E_k h_k$ is bracketed at every t.  The quotient of the two sides is at most
$\exp\frac{(L-1)(L-2)}{2(P+1)p_1}$, which tends to 1: the rate $O(P (\log t)^{L-1}/t)$ is attained.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import ArrayLike

from relaymodel.checks import Number, real, show
from relaymodel.exact.ball import end_position, refine
from relaymodel.exact.powersums import power_sums
from relaymodel.exact.precision import working
from relaymodel.exact.residues import scale_up, stack
from relaymodel.exact.spectrum import path_coefficients, poles, tail_sums
from relaymodel.exact.values import DEEPEST, LARGEST_PROMPT, LARGEST_T, check_model, rounding_error, times
from relaymodel.model import RelayModel


@dataclass(frozen=True)
class Bracket:
    """Both sides of the bound; unpacks as `lower, upper`.

    Floats are rounded outward, so that the exact D(t) lies between them; fractions and balls are exact.
    """

    lower: Any
    upper: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.lower, self.upper))

    @property
    def tightness(self) -> Any:
        """The quotient upper / lower, at least 1; 1 means that the bound is an equality."""
        with working():
            return self.upper / self.lower


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


def bracket(model: RelayModel, t: ArrayLike | Fraction) -> Bracket:
    r"""Return lower and upper bounds of D(t) that hold at every t and are asymptotically equal (THEORY section 4).

    Parameters
    ----------
    model
        Position 0 in every layer, relay and residual not negative, at least one relay positive.
    t
        Positive real or array of them, up to 1e300: the bounds come as float64, rounded outward.
        A `Fraction` with integer value up to 10^6: they come as exact fractions.

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
    """
    _applies(model)
    if isinstance(t, Fraction):
        return _bracket_fraction(model, t)
    exact, flat, shape = times(t)
    if model.prompt > LARGEST_PROMPT or model.depth > DEEPEST or np.any(flat > LARGEST_T):
        raise ValueError(
            f"prompt, depth and t must be at most {LARGEST_PROMPT:.0e}, {DEEPEST} and {LARGEST_T:.0e} for bounds "
            f"in float64, got {model.prompt}, {model.depth} and {show(flat.max(initial=0))}; use bracket_ball"
        )
    del exact  # a float within half a unit of t moves D by less than the outward rounding below
    found = stack(model, tail=True)
    p1 = power_sums(model.prompt + 1.0, flat, 1.0, 1)[0][0]
    front = model.prompt / (model.prompt + flat)
    slack = rounding_error(model.depth)
    sides = []
    for step, outward, towards in ((0.0, 1 - slack, 0.0), (1 / (model.prompt + 1), 1 + slack, np.inf)):
        total = front * _polynomial(found.poles[0].values, p1, step) * outward
        sides.append(np.nextafter(scale_up(total, found.exponent), towards).reshape(shape))
    return Bracket(*(side if shape else float(side) for side in sides))


def bracket_ball(model: RelayModel, t: Number, digits: int = 50) -> Bracket:
    """Return the bounds of `bracket` as balls of the given relative accuracy, for t of any size.

    >>> model = RelayModel.uniform(prompt=10, depth=6, relay=1)
    >>> print((bracket_ball(model, 10**1000).tightness - 1).str(3, radius=False))
    0.000393
    """
    _applies(model)
    N, lost = end_position(model, t)
    E = tail_sums(path_coefficients(model))
    P = model.prompt

    def side(step: fmpq) -> arb:
        p1 = arb(N + 1).digamma() - arb(P + 1).digamma()
        value: arb = arb(P) / arb(N) * _polynomial([arb(e) for e in E], p1, arb(step))
        return value

    lower, upper = (refine(lambda s=s: side(s), model, digits, lost) for s in (fmpq(0), fmpq(1, P + 1)))  # type: ignore[misc]
    return Bracket(lower, upper)


def tightness_bound(model: RelayModel, t: Number) -> arb:
    r"""Return $\exp\frac{(L-1)(L-2)}{2(P+1)p_1}$, at least `bracket(model, t).tightness` (THEORY section 4).

    >>> print(tightness_bound(RelayModel.uniform(prompt=10, depth=2, relay=1), 5))
    1.00000000000000
    """
    _applies(model)
    N, lost = end_position(model, t)
    L, P = model.depth, model.prompt

    def evaluate() -> arb:
        exponent = arb((L - 1) * (L - 2)) / (2 * (P + 1) * (arb(N + 1).digamma() - arb(P + 1).digamma()))
        value: arb = exponent.exp()
        return value

    return refine(evaluate, model, 15, lost)


def _bracket_fraction(model: RelayModel, t: Fraction) -> Bracket:
    if t.denominator != 1 or not 1 <= t <= 10**6:
        raise ValueError(f"t must be a whole number from 1 to 10^6 for exact bounds, got {show(t)}; pass a float")
    P, N = model.prompt, model.prompt + int(t)
    p1 = _harmonic(P + 1, N)
    E = tail_sums(path_coefficients(model))
    sides = (fmpq(P, N) * _polynomial(E, p1, step) for step in (fmpq(0), fmpq(1, P + 1)))
    return Bracket(*(Fraction(int(side.p), int(side.q)) for side in sides))


def _harmonic(first: int, last: int) -> fmpq:
    """Return 1/first + ... + 1/last by binary splitting."""
    if last - first < 16:
        return sum((fmpq(1, n) for n in range(first, last + 1)), fmpq(0))
    middle = (first + last) // 2
    return _harmonic(first, middle) + _harmonic(middle + 1, last)


def _polynomial(E: Any, p1: Any, step: Any) -> Any:
    """Return sum_k E_k / k! prod_{i<k} (p1 + i step), nested; written once for every number type."""
    total = E[-1]
    for k in range(len(E) - 1, 0, -1):
        total = E[k - 1] + total * (p1 + (k - 1) * step) / k
    return total


def _applies(model: RelayModel) -> None:
    """Refuse a model to which the bound does not apply, naming the first layer that is at fault."""
    check_model(model)
    model.demand_plain("the two-sided bound")
    for i, (relay, residual, position) in enumerate(model.rational):
        if position != 0 or relay < 0 or residual < 0:
            raise ValueError(
                "model must have position 0 and no negative strength in every layer for the two-sided bound, "
                f"got {show(model.layers[i])} at layer {i}"
            )
    if not poles(model):
        raise ValueError(f"model must have an influence other than 0 for the two-sided bound, got {show(model)}")
