r"""The float64 path for every symbol: the inverse Mellin integral of THEORY section 10 on a hyperbola.

With $z = \zeta - g_*$, g* the smallest position exponent, $c = 1 + g_*$, $a = P + c$ and $b = N + c$,

$$ D = K + \frac{R}{2\pi i} \int \frac{f(\zeta - g_*) - C}{c - \zeta}\, e^{G(\zeta)}\, d\zeta, \qquad
   R = \frac{\Gamma(P+c)\Gamma(N)}{\Gamma(P)\Gamma(N+c)}, \qquad
   G = \log\frac{\Gamma(b)}{\Gamma(b-\zeta)} - \log\frac{\Gamma(a)}{\Gamma(a-\zeta)}, $$

K the plateau of the sinks.  A constant C has the integral 0: it takes out what f tends to far away, and the part of
heads near the token itself that would cancel.  The contour $\zeta(u) = \mu(1 + \sin(iu - \theta))$ crosses the real
axis between the poles of f and 1, where the integrand is least (a saddle: hardly anything cancels for positive
strengths), and the trapezoidal rule in u converges exponentially.  Its step is halved until the sums with h and 2h
agree to 1e-13 of the sum of magnitudes at both ends of a band of t: the finer one is off by far less, and its nodes
serve the whole band.  Poles that coincide, or nearly so, are far away from it and make no difference.

Token influences have $a = s + g_*$, no denominator $c - \zeta$, and cross left of a.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.exact.powersums import DIGAMMA, STIRLING
from relaymodel.exact.spectrum import Symbol

THETA = 0.6  # angle of the hyperbola
STIRLING_FROM = 32  # Stirling's series holds from here on
AGREEMENT = 1e-13  # of the sums with steps 2h and h, relative to the sum of magnitudes
NEGLIGIBLE_NODE = 1e-18  # of all nodes: what those left out may add up to
MOST_NODES = 20_000  # of a contour; more are refused
NEAR_SELF = 0.25  # heads with 1 - gamma below this are taken relative to the token itself

Array = NDArray[np.float64]
Complex = NDArray[np.complexfloating[Any, Any]]

_STEPS = np.arange(STIRLING_FROM + 20.0)[:, None]  # from |x| < 32 in any direction of the contour to beyond
_lgamma = np.vectorize(math.lgamma, otypes=[float])  # of few numbers


@dataclass(frozen=True, eq=False)
class Contour:
    """Nodes and weights, shape (J,); the integral is 2**exponent times the imaginary part of their sum.

    `doubt`, shape (J,), says how many times its own size the rounding error of a weight is.
    """

    nodes: Complex
    weights: Complex
    exponent: int
    doubt: Array


class ContourError(ArithmeticError):
    """No contour of a reasonable number of nodes holds its accuracy; balls must decide."""


def log1p(w: Complex) -> Complex:
    """Return log(1 + w) to full accuracy in both parts, which NumPy's complex log1p is not."""
    x, y = w.real, w.imag
    with np.errstate(over="ignore"):
        rise = x * (2 + x) + y * y  # |1 + w|^2 - 1
    near = (rise > -0.5) & (rise < np.inf)
    value: Complex = np.empty_like(w)
    value.real, value.imag = 0.5 * np.log1p(np.where(near, rise, 0.0)), np.arctan2(y, 1 + x)
    if not near.all():
        value.real[~near] = np.log(np.hypot(1 + x[~near], y[~near]))
    return value


def log_gamma_quotient(x: Complex, delta: float) -> Complex:
    r"""Return $\log\Gamma(x)/\Gamma(x+\delta)$, modulo $2\pi i$, relative to delta however small it is.

    x is off the negative axis by at least 0.4 of its argument; below |x| = 32 it is raised by recurrence.
    """
    low = np.abs(x) < STIRLING_FROM
    raised = np.where(low, x + _STEPS.size, x)
    passed = np.zeros_like(raised)
    if low.any():
        r = delta / (x[low] + _STEPS)
        if delta < NEAR_SELF:
            passed[low] = log1p(r).sum(axis=0)
        else:
            passed[low] = np.log(np.prod(1 + r, axis=0))
    end = raised + delta
    p, q = 1 / raised, 1 / end
    pp, qq = p * p, q * q
    value, slope = np.full_like(raised, STIRLING[-1]), np.zeros_like(raised)
    for coefficient in STIRLING[-2::-1]:  # the polynomial at qq and its divided difference between pp and qq
        slope = slope * pp + value
        value = value * qq + coefficient
    tail = -delta * p * q * (value + p * (p + q) * slope)
    return passed - ((raised - 0.5) * log1p(delta * p + 0j) + delta * (np.log(end) - 1) + tail)


def stirling(x: Complex) -> Complex:
    """Return the tail of Stirling's series at |x| >= 32, Re x > 0."""
    inverse = 1 / x
    square = inverse * inverse
    terms = STIRLING if np.min(np.abs(x), initial=np.inf) < 1e3 else STIRLING[:2]
    total: Complex = np.full_like(inverse, terms[-1])
    for coefficient in terms[-2::-1]:
        total = total * square + coefficient
    return total * inverse


def exponential(a: Array, span: Array, zeta: Complex) -> Complex:
    r"""Return $e^G$, b = a + span, shape (T, J) from columns a, span and a row zeta.  Nothing large cancels.

    $G = (a-\tfrac12)\log\bigl(1-\tfrac{\tau\zeta}{a(b-\zeta)}\bigr) + \zeta\log\bigl(1+\tfrac{\tau}{a-\zeta}\bigr)
    - \tau\log\bigl(1-\tfrac{\zeta}{b}\bigr)$ and Stirling's tails, $\tau = b - a$.
    """
    low = (a < STIRLING_FROM)[:, 0]
    if not low.any():
        return _stirling_exponential(a, span, zeta)
    value = np.empty((a.shape[0], zeta.size), dtype=complex)
    if not low.all():
        value[~low] = _stirling_exponential(a[~low], span[~low], zeta)
    far = np.abs(zeta) > 2 * STIRLING_FROM
    value[np.ix_(low, ~far)] = _raised_exponential(a[low], span[low], zeta[~far])
    if far.any():
        value[np.ix_(low, far)] = _far_exponential(a[low], span[low], zeta[far])
    return value


def _stirling_exponential(a: Array, span: Array, zeta: Complex) -> Complex:
    """Return e^G where a and b are at least 32."""
    b = a + span
    a1, b1 = a - zeta, b - zeta
    G = (a - 0.5) * log1p(-(span / b1) * (zeta / a))
    G += zeta * log1p(span / a1)
    G -= span * log1p(-zeta / b)
    G += (stirling(b + 0j) - stirling(a + 0j)) + (stirling(a1) - stirling(b1))
    value: Complex = np.exp(G)
    return value


def _raised_exponential(a: Array, span: Array, zeta: Complex) -> Complex:
    """Return e^G where a is small and zeta is not large: by recurrence from a + 32, and b + 32 if that is small too."""
    low = (a + span < STIRLING_FROM)[:, 0]
    value = _stirling_exponential(a + STIRLING_FROM, np.where(low[:, None], span, span - STIRLING_FROM), zeta)
    for j in range(STIRLING_FROM):
        value /= 1 - zeta / (a + j)
    for j in range(STIRLING_FROM if low.any() else 0):
        value[low] *= 1 - zeta / (a[low] + span[low] + j)
    return value


def _far_exponential(a: Array, span: Array, zeta: Complex) -> Complex:
    """Return e^G where a is small and zeta large: the two quotients of gamma functions apart.

    From a span of 1000 on it is below 1e-50 there and counts as 0: the formula would not hold.
    """
    a1, b1 = a - zeta, a + span - zeta
    G = -((a1 - 0.5) * log1p(span / a1) + span * (np.log(b1) - 1) + stirling(b1) - stirling(a1))
    value: Complex = np.where(span > 1000, 0.0, np.exp(G + (_lgamma(a + span) - _lgamma(a))))
    return value


def digamma_rise(N: Array, d: Complex) -> Complex:
    r"""Return $\psi(N+d) - \psi(N)$, shape (T, J) from a column N > 0 and a row d, Re d > 0."""
    low = (N < STIRLING_FROM)[:, 0]
    start = np.where(N < STIRLING_FROM, N + STIRLING_FROM, N)
    end = start + d
    p, q = 1 / start, 1 / end
    value = log1p(d * p) + 0.5 * d * p * q
    pp, qq = p * p, q * q
    tails = [np.full_like(x, DIGAMMA[-1]) for x in (pp + 0 * qq, qq)]
    for coefficient in DIGAMMA[-2::-1]:
        tails = [tail * x + coefficient for tail, x in zip(tails, (pp, qq), strict=True)]
    value += tails[0] * pp - tails[1] * qq
    if low.any():
        for j in range(STIRLING_FROM):
            value[low] += d / ((N[low] + j) * (N[low] + j + d))
    return value


def factors(
    found: Symbol, zeta: Complex, *, size: bool = False, modulus: bool = False
) -> tuple[list[Complex], list[float], list[Complex]]:
    r"""Return of each layer f_l, the constant C_l, and f_l - C_l, at z = zeta - g*.

    `size` takes absolute strengths, `modulus` the absolute values of the heads.
    """
    shapes: dict[tuple[float, float], tuple[Complex, Complex, bool]] = {}
    values, constants, differences = [], [], []
    for residual, heads in found.floats:
        constant, difference = abs(residual) if size else residual, np.zeros_like(zeta)
        value = np.full_like(zeta, constant)
        for strength, offset, delta, first in heads:
            if (offset, delta) not in shapes:
                front = log_gamma_quotient(np.array([first + 0j]), delta)[0].real
                exponent = log_gamma_quotient(zeta + offset, delta) - front
                near = delta < NEAR_SELF
                whole = np.exp(exponent)
                shapes[offset, delta] = whole, np.expm1(exponent) if near else whole, near
            whole, rest, near = shapes[offset, delta]
            if modulus:
                whole, rest = np.abs(whole) + 0j, np.abs(rest) + 0j
            weight = abs(strength) if size else strength
            value = value + weight * whole
            difference = difference + weight * rest
            constant += weight * near
        values.append(value)
        constants.append(constant)
        differences.append(difference)
    return values, constants, differences


def symbol_less_constant(found: Symbol, zeta: Complex, scales: list[int]) -> tuple[Complex, Array]:
    """Return (f - C) / 2**sum(scales), layer by layer, and how many times its own size its rounding errors are.

    The second is 1 or more, shape (J,): strengths of both signs cancel within layers and between them.
    """
    total, constant, doubt = np.zeros_like(zeta), 1.0, np.zeros(zeta.size)
    moduli = [[np.abs(x) for x in column] for column in factors(found, zeta, size=True, modulus=True)[::2]]
    for value, own, difference, scale, whole, apart in zip(*factors(found, zeta), scales, *moduli, strict=True):
        unit = 2.0**-scale
        doubt = doubt * np.abs(value * unit) + np.abs(total) * unit * whole + abs(constant) * unit * apart
        total = total * (value * unit) + constant * unit * difference
        constant *= own * unit
    with np.errstate(divide="ignore", invalid="ignore"):
        share = doubt / np.abs(total) / (1 + len(scales))
    return total, np.fmax(1.0, share)


def build(found: Symbol, starts: tuple[float, float], spans: tuple[float, float], *, token: bool) -> Contour:
    """Return a contour for a between the two starts and b - a between the two spans."""
    c = found.shift
    top = starts[0] if token else c
    corners = sorted({(a, span) for a in starts for span in spans})
    a, ends = (np.array(column)[:, None] for column in zip(*corners, strict=True))
    middle = [np.array([[np.sqrt(low) * np.sqrt(high)]]) for low, high in (starts, spans)]
    grid = top / (1 + np.exp(-np.linspace(-14, 8, 89))) + 0j
    sizes, *_ = factors(found, grid, size=True)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        height = sum(np.log(np.abs(value)) for value in sizes) + np.log(
            np.abs(exponential(middle[0], middle[1], grid)[0])
        )
    if not token:
        height = height - np.log(c - grid.real)
    best = int(np.argmin(np.where(np.isnan(height), np.inf, height)))
    crossing = grid[best]
    scales = [int(np.frexp(abs(value[best]))[1]) for value in sizes]
    mu = crossing.real / (1 - np.sin(THETA))
    reach = THETA + np.arcsin(min(1.0, top / mu - 1))  # how far the pole on the right is from the real axis of u

    def curve(u: Array) -> tuple[Complex, Complex]:
        zeta = mu * (1 - np.sin(THETA) * np.cosh(u)) + 1j * mu * np.cos(THETA) * np.sinh(u)
        speed = mu / np.pi * (-np.sin(THETA) * np.sinh(u) + 1j * np.cos(THETA) * np.cosh(u))
        return zeta, speed if token else speed / (c - zeta)

    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        coarse = np.arange(0, 160, 0.25)
        zeta, weight = curve(coarse)
        kernel = np.abs(weight * exponential(a, ends, zeta))
        # f does not grow to the left but near its poles: where the kernel alone is this small nothing counts
        near = np.arange(_count(kernel, NEGLIGIBLE_NODE**2) + 1)
        coarse, zeta = coarse[near], zeta[near]
        last = (
            coarse[_count(kernel[:, near] * np.abs(symbol_less_constant(found, zeta, scales)[0]), NEGLIGIBLE_NODE)]
            + 0.25
        )
        step = min(0.14, 2 * np.pi * reach / 30)
        while last / step < MOST_NODES:
            u = np.arange(0, last + 2 * step, step / 2)
            zeta, weight = curve(u)
            value, doubt = symbol_less_constant(found, zeta, scales)
            value = value * weight
            value[0] *= 0.5
            terms = value * exponential(a, ends, zeta)
            fine, rough = terms.imag.sum(axis=1) * (step / 2), terms[:, ::2].imag.sum(axis=1) * step
            if np.all(np.abs(fine - rough) <= AGREEMENT * np.abs(terms).sum(axis=1) * step / 2):
                return Contour(zeta, value * (step / 2), sum(scales), doubt)
            step /= 2
    raise ContourError


def _count(terms: Array, share: float) -> int:
    """Return the last column of `terms` that holds more than `share` of the largest entry of its row."""
    finite = np.where(np.isfinite(terms), terms, 0.0)
    largest = finite.max(axis=1, keepdims=True)
    if not np.all(largest > 0):
        raise ContourError
    return int(np.flatnonzero(np.any(finite > share * largest, axis=0))[-1])
