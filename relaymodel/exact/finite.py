r"""The influence at integers as a finite sum over eigenvalues, for rationals and balls alike (THEORY section 10).

Closed to the right, the contour meets z = 1 and $z = n = P+1, \dots, N$ alone:

$$ D(t) = X - \sum_{j=0}^{t-1} \beta_j f(P+1+j), \qquad
   \beta_j = (-1)^j \frac{(N-1)!}{P!\,(t-1)!} \binom{t-1}{j} \frac{P}{P+j}, $$

X the saturation; the weight of token s on token n > s is $\sum_{j=0}^{n-s} \beta_j f(s+j)$ with
$\beta_j = (-1)^j \binom{n-1}{s-1} \binom{n-s}{j}$.  The $\beta$ alternate and grow like $2^t$: fractions do not mind,
and balls take as many more bits.
"""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, fmpq, fmpz

from relaymodel.exact.homogeneous import product
from relaymodel.exact.kernel import GammaKernel
from relaymodel.exact.spectrum import Symbol, rational

FAR_OUT = 10**9
"""Positions from which logarithms of gamma functions lose their digits; powers bound what they are there."""


def bits_lost(kernel: GammaKernel) -> int:
    """Return about how many bits the alternating sum of balls loses."""
    a, steps = int(kernel.a.p), int(kernel.span.p)
    rise = steps * math.log(a + steps) if a > FAR_OUT else math.lgamma(a + steps) - math.lgamma(a)
    return int((rise - math.lgamma(steps + 1)) / math.log(2) + steps) + 8


def influence_rational(found: Symbol, saturation: Fraction, P: int, t: int) -> fmpq:
    """Return D(t) exactly."""
    heads = {shape: _first_eigenvalue(*shape, P) for shape in found.shapes}
    start = fmpq(fmpz.bin_uiui(P + t - 1, min(P, t - 1)))
    total: fmpq = rational(saturation) - _sum(
        found, heads, fmpq, P + 1, t, start, lambda j: fmpq(-(t - 1 - j) * (P + j), (j + 1) * (P + j + 1))
    )
    return total


def ball(found: Symbol, kernel: GammaKernel, saturation: Fraction) -> arb:
    """Return the influence, or the weight of one token, as a ball at the current precision, without sinks."""
    a, steps = int(kernel.a.p), int(kernel.span.p)
    heads = {}
    for g, d in found.shapes:
        c, delta = rational(1 + g), rational(d)
        start = (arb(c + delta).lgamma() - arb(c).lgamma()).exp()
        x = rational(g) + a
        heads[g, d] = start * (arb(x).lgamma() - arb(x + delta).lgamma()).exp()
    front = (arb(kernel.b - 1).lgamma() - arb(kernel.a).lgamma() - arb(steps).lgamma()).exp()
    total: arb
    if kernel.tokens:
        total = _sum(found, heads, arb, a, steps, front, lambda j: arb(j - steps + 1) / (j + 1))
        return total
    P = a - 1
    total = arb(rational(saturation)) - _sum(
        found, heads, arb, a, steps, front, lambda j: arb(-(steps - 1 - j) * (P + j)) / ((j + 1) * (P + j + 1))
    )
    return total


def _sum(
    found: Symbol,
    heads: dict[tuple[Fraction, Fraction], Any],
    number: Callable[[Any], Any],
    first: int,
    count: int,
    start: Any,
    ratio: Callable[[int], Any],
) -> Any:
    """Return the sum of beta_j f(first + j), j < count, from the heads' eigenvalues at `first` on."""
    layers = [
        (number(rational(residual)), [(number(rational(s)), (g, d)) for s, g, d in own], times)
        for (residual, own), times in Counter(found.layers).items()
    ]
    places = {(g, d): (number(rational(g)), number(rational(g + d))) for g, d in heads}
    total, beta = number(0), start
    for j in range(count):
        value = beta
        for residual, own, times in layers:
            value *= sum((s * heads[shape] for s, shape in own), residual) ** times
        total += value
        beta = beta * ratio(j)
        for shape, (low, high) in places.items():
            heads[shape] = heads[shape] * ((low + (first + j)) / (high + (first + j)))
    return total


def _first_eigenvalue(g: Fraction, delta: Fraction, P: int) -> fmpq:
    """Return E[u^P], the head's eigenvalue at P + 1."""
    if delta.denominator == 1:
        c = rational(1 + g)
        return math.prod(((c + i) / (c + (P + i)) for i in range(int(delta))), start=fmpq(1))
    return _rising(1 + g, P) / _rising(1 + g + delta, P)


def _rising(x: Fraction, count: int) -> fmpq:
    """Return x (x+1) ... (x+count-1)."""
    p, q = x.numerator, x.denominator
    return fmpq(product(0, count, lambda i: p + i * q), fmpz(q) ** count)
