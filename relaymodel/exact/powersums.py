r"""Differences of power sums over positions, the only transcendental input of the closed form.

For `low > 0`, `span >= 0` and `scale > 0`

$$ p_i = c^i \sum_{j\ge 0} \Bigl[ \frac1{(x+j)^i} - \frac1{(x+d+j)^i} \Bigr], $$

x = low, d = span, c = scale: for i = 1 this is $c[\psi(x+d)-\psi(x)]$, for i > 1
$c^i[\zeta(i,x)-\zeta(i,x+d)]$ (THEORY section 2).  Both come from the Euler-Maclaurin series, whose
coefficients are the Bernoulli numbers, after shifting small arguments upwards.
"""

from functools import lru_cache
from math import factorial

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

SHIFT = 32  # arguments below this are raised by this much; from there the series gives full precision
NEGLIGIBLE = 2.0**-56  # a sixteenth of the spacing of floats at 1

Array = NDArray[np.float64]


def zeta_tails(y: Array, scale: float, count: int) -> list[Array]:
    r"""Return $c(\log y - \psi(y))$ and $c^i \zeta(i, y)$, i = 2, 3, ..., up to `count` entries, for y >= 32.

    The list ends early where everything further is negligible beside the entry before.  Relative error of
    the entries: a few units in the last place.
    """
    tails: list[Array] = []
    smallest = float(np.min(y, initial=np.inf))
    inverse = 1.0 / y
    square = inverse * inverse
    ratio = scale * inverse
    power: Array | float = scale  # c (c/y)^(i-1)
    largest = scale / smallest
    for i in range(1, count + 1):
        size = 1.0 if i <= 2 else largest ** (i - 2)
        if size < NEGLIGIBLE:
            break
        needed = [b for j, b in enumerate(euler_maclaurin(i), 1) if abs(b) * size * smallest ** (-2 * j) > NEGLIGIBLE]
        series: Array | float = 0.0
        for coefficient in reversed(needed):
            series = (series + coefficient) * square
        entry = series + 0.5 * inverse
        if i > 1:
            entry += 1.0 / (i - 1)
            power = power * ratio
        entry *= power
        tails.append(entry)
    return tails


@lru_cache(maxsize=256)
def euler_maclaurin(i: int) -> tuple[float, ...]:
    r"""Return $\frac{B_{2j}}{(2j)!}\, i(i+1)\cdots(i+2j-2)$ for j = 1..20, the corrections to $\sum 1/n^i$."""
    return tuple(
        float(int(b.p) / int(b.q))
        for j in range(1, 21)
        for b in [fmpq.bernoulli(2 * j) * fmpq(factorial(i + 2 * j - 2), factorial(i - 1) * factorial(2 * j))]
    )


def power_sums(low: float | Array, span: Array, scale: float, count: int) -> tuple[Array, list[Array]]:
    """Return the p_i, i = 1..count, as an array of shape (count, T), and the `zeta_tails` at `low + span`.

    `span` has shape (T,), `low` too if it is an array; `low + span` is at least 1.
    """
    start, raised = _start(low, scale, count) if isinstance(low, float) else _starts(low, scale, count)
    high, small, passed = _raise(low + span, scale, count)
    end = zeta_tails(high, scale, count)
    sums = np.empty((count, span.size))
    distance = span + (low - raised)  # exact where low and high are close
    if passed is not None:
        distance += SHIFT * small
    np.log1p(distance / raised, out=sums[0])
    sums[0] *= scale
    sums[0] += start[0]
    sums[1:] = start[1:]
    for i, entry in enumerate(end):
        sums[i] -= entry
    if passed is not None:
        sums[:, small] -= passed
        # the tails themselves are asked for at `low + span`, not where it was raised to
        for i in range(count):
            if i == len(end):
                end.append(np.zeros(span.size))
            end[i][small] += passed[i]
    return sums, end


@lru_cache(maxsize=1024)
def _start(low: float, scale: float, count: int) -> tuple[Array, Array]:
    """Return what the lower end contributes to the p_i, shape (count, 1), and the argument it was raised to, (1,)."""
    return _starts(np.array([low]), scale, count)


def _starts(low: Array, scale: float, count: int) -> tuple[Array, Array]:
    """Return the same of several lower ends, shapes (count, T) and (T,)."""
    different, index = np.unique(low, return_inverse=True)
    raised, small, passed = _raise(different, scale, count)
    total = np.zeros((count, different.size))
    for i, entry in enumerate(zeta_tails(raised, scale, count)):
        total[i] += entry
    if passed is not None:
        total[:, small] += passed
    return total[:, index], raised[index]


def power_sums_near(low: Array, span: Array, scale: float, count: int) -> Array:
    r"""Return the p_i, shape (count, T), each to full relative accuracy however small the span or the scale.

    `low` and `span` have shape (T,).  The Euler-Maclaurin series of the difference, term by term: with x = low,
    $q = x/(x+d)$ and $w_m = 1 - q^m = w_{m-1} + q^{m-1} w_1$, nothing cancels.

    `power_sums` is faster and has p_1 to full relative accuracy, the others absolutely: enough for the
    influence, where E_k falls with k, but not for one token's weight without residuals.
    """
    high = low + span
    x, small_low, sums_low = _raise(low, scale, count)
    y, small_high, sums_high = _raise(high, scale, count)
    distance = span + SHIFT * (small_high * 1.0 - small_low * 1.0)  # negative if only the lower end was raised
    smallest = float(np.min(x, initial=np.inf))
    q, first = x / y, distance / y
    w, power = [np.zeros_like(x), first], q
    inverse = 1.0 / x
    square, ratio = inverse * inverse, scale * inverse
    sums = np.empty((count, low.size))
    front: Array | float = scale
    for i in range(1, count + 1):
        series: Array | float = np.log1p(distance / x) if i == 1 else 0.0
        needed = [b for j, b in enumerate(euler_maclaurin(i), 1) if abs(b) * smallest ** (-2 * j) > NEGLIGIBLE]
        while len(w) < i + 2 * len(needed) + 1:
            w.append(w[-1] + power * first)
            power = power * q
        if i > 1:
            series = series + w[i - 1] / (i - 1)
            front = front * ratio
        series = series + 0.5 * inverse * w[i]
        factor = square
        for j, coefficient in enumerate(needed, 1):
            series = series + coefficient * factor * w[i - 1 + 2 * j]
            factor = factor * square
        sums[i - 1] = front * series
    if sums_low is not None:
        sums[:, small_low] += sums_low
    if sums_high is not None:
        sums[:, small_high] -= sums_high
    return sums


def _raise(y: Array, scale: float, count: int) -> tuple[Array, NDArray[np.bool_], Array | None]:
    """Return y with small entries raised by SHIFT, the mask of these, and the terms that the shift passed over."""
    small = y < SHIFT
    if not small.any():
        return y, small, None
    terms = scale / (y[small] + np.arange(SHIFT)[:, None])
    powers = np.ones_like(terms)
    sums = np.empty((count, terms.shape[1]))
    for i in range(count):
        powers *= terms
        sums[i] = powers.sum(axis=0)
    return np.where(small, y + SHIFT, y), small, sums


def log_gamma_ratio(x: Array, c: float) -> Array:
    r"""Return $\log \frac{\Gamma(x+c)}{\Gamma(x)} - c \log(x+c)$ for x >= 1 and c > 0, to a few units in 1e-16 c.

    By Stirling's series at x + c and at x, in a form in which nothing large cancels.
    """
    raised = np.where(x < SHIFT, x + SHIFT, x)
    end = raised + c
    value = (raised - 0.5) * np.log1p(c / raised) - c
    for argument, sign in ((end, 1.0), (raised, -1.0)):
        inverse = 1.0 / argument
        square = inverse * inverse
        series: Array | float = 0.0
        for coefficient in reversed(STIRLING):
            series = series * square + coefficient
        value += sign * series * inverse
    small = x < SHIFT
    if small.any():
        steps = x[small] + np.arange(SHIFT)[:, None]
        value[small] += c * np.log(end[small] / (x[small] + c)) - np.log1p(c / steps).sum(axis=0)
    return value


def digamma_difference(x: Array, c: float) -> Array:
    r"""Return $\psi(x+c) - \psi(x)$ for x >= 1 and c > 0, to a few units in the last place."""
    raised, small, sums = _raise(x, 1.0, 1)
    end = raised + c
    value = np.log1p(c / raised) + 0.5 * c / raised / end
    for j, coefficient in enumerate(DIGAMMA[:6], 1):
        value += coefficient * (raised ** (-2 * j) - end ** (-2 * j))
    if sums is not None:
        steps = x[small] + np.arange(SHIFT)[:, None]
        value[small] += (c / (steps * (steps + c))).sum(axis=0)
    return value


# coefficients of digamma's asymptotic series
DIGAMMA = tuple(int(b.p) / int(b.q) for k in range(1, 9) for b in [fmpq.bernoulli(2 * k) / (2 * k)])
# and of log Gamma's
STIRLING = tuple(int(b.p) / int(b.q) for k in range(1, 9) for b in [fmpq.bernoulli(2 * k) / (2 * k * (2 * k - 1))])
