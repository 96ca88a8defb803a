r"""Float64 arithmetic rounded outward: proven upper bounds on norms of matrices, distances with their error.

Proven from the standard model: every operation has a relative error of at most u = 2^-53, sums may be taken in any
order, and no fast (Strassen-like) matrix product is used.  A dot product of m terms is then off by at most
$\gamma_m |x|\,|y|$, $\gamma_m = mu/(1-mu)$.  Source: Higham, Accuracy and Stability of Numerical Algorithms, chapter 3.
"""

import math
import sys
from fractions import Fraction

import numpy as np
import scipy.linalg
from flint import arb
from numpy.typing import NDArray

from relaymodel.checks import Number
from relaymodel.exact.precision import working

Array = NDArray[np.float64]

UNIT = 2.0**-53  # largest relative error of one rounding
SCALAR = 1 + 2.0**-40
"""Outward rounding of a formula of fewer than 4000 operations on numbers that are not negative."""
SMALLEST_SAFE = 1e-150
"""Far above all whose squares underflow: what norms of arrays are enlarged or lessened by."""
LARGEST_SAFE = 1e280  # beyond it a number becomes an integer, before products with it reach the end of floats
EXPONENT_LIMIT = 1e6  # exponents beyond it make integers of more than a million bits


def gamma(terms: int) -> float:
    r"""Return a bound on $\gamma_m$ for m terms, with room for a few more operations."""
    return 1.01 * (terms + 8) * UNIT


def above(value: float) -> float:
    """Return a float above what a formula of sums, products, quotients and roots of positive numbers has given.

    Where products may leave the range of floats they are `product`'s.
    """
    return math.nextafter(value * SCALAR, math.inf)


def product(*factors: float, over: float = 1.0) -> float:
    """Return a product of numbers that are not negative, divided by `over`, which no order of them makes too small.

    As floats give it, but rounded up where it is subnormal, and infinite only where it is beyond floats itself.

    >>> product(2.0**-900, 2.0**-900, 2.0**900) == 2.0**-900, product(1e200, 1e200, over=1e300) < 1.001e100
    (True, True)
    >>> product(1e-200, 1e-200), product(0.0, 1e300), product(1e200, 1e200)
    (5e-324, 0.0, inf)
    """
    mantissa, exponent = 1.0, 0
    for factor in factors:
        if factor == 0:
            return 0.0
        part, power = math.frexp(factor)
        mantissa, exponent = mantissa * part, exponent + power
    part, power = math.frexp(over)
    value = _ldexp(mantissa / part, exponent - power)
    return value if value >= sys.float_info.min else math.nextafter(value, math.inf)


def _ldexp(value: float, power: int) -> float:
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.inf


def _exponent(array: Array) -> int:
    """Return e with all entries of an array below 2^e in size, 0 for zeros."""
    return math.frexp(float(np.max(np.abs(array), initial=0.0)))[1]


def frobenius(matrix: Array | None) -> float:
    """Return an upper bound on the root of the sum of squares, whatever the size of the entries; None stands for zeros.

    >>> frobenius(np.array([3e-200, 4e-200])) / 5e-200 - 1 < 1e-12
    True
    """
    if matrix is None or not np.any(matrix):
        return 0.0
    if not np.all(np.isfinite(matrix)):
        return math.inf
    power = _exponent(matrix)
    return above(_ldexp(float(np.linalg.norm(np.ldexp(matrix, -power))) * (1 + gamma(matrix.size)), power))


def exponential(exponent: float) -> Number:
    """Return a number of at least e^exponent: a float, an integer where floats end, infinity where they take long."""
    if exponent > EXPONENT_LIMIT:
        return math.inf
    with working():
        value = arb(exponent).exp()
        top: arb = (value + value.rad()).upper()
    if top < LARGEST_SAFE:
        return math.nextafter(float(top), math.inf)
    mantissa, power = top.man_exp()
    return int(mantissa) << int(power) if power >= 0 else -(-int(mantissa) >> -int(power))


def lengths(matrix: Array) -> Array:
    """Return upper bounds on the lengths of the columns; short ones may gain 1e-150 of the largest entry."""
    if not np.all(np.isfinite(matrix)):
        return np.full(matrix.shape[1], math.inf)
    power = _exponent(matrix)
    columns = np.linalg.norm(np.ldexp(matrix, -power), axis=0) * (SCALAR + gamma(len(matrix)))
    return np.asarray(np.ldexp(columns + SMALLEST_SAFE * np.any(matrix, axis=0), power))


def operator_norm(matrix: Array, error: float = 0.0) -> float:
    r"""Return an upper bound on the largest singular value of a matrix that is known up to `error` in Frobenius norm.

    $G = W^TW$ on the shorter side is compared with $\tau I$, $\tau$ a little above the largest eigenvalue computed: if
    the Cholesky factorisation of $\tau I - G$ runs to its end in floating point, then
    $\lambda_{max}(G) \le \tau + \gamma_{n+1}\,\mathrm{tr}(\tau I - G)$; $\gamma_m|W|_F^2$ is added for the rounding of
    G.  Excess over the norm: about 1e-9.  Where it does not run, the Frobenius norm.

    Source: Rump, Verification of positive definiteness, BIT 46 (2006), 433-452.

    >>> bound = operator_norm(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    >>> 4 <= bound < 4.0001
    True
    """
    if not np.all(np.isfinite(matrix)):
        return math.inf
    power = _exponent(matrix)
    w = np.ldexp(matrix, -power)  # exact, but for entries too small to count
    size = best = frobenius(w)
    if size > 0 and min(matrix.shape) > 1:
        scale = 2.0 ** -math.floor(math.log2(size))
        w = w * scale
        gram = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
        n, m = len(gram), max(w.shape)
        largest = float(scipy.linalg.eigvalsh(gram, subset_by_index=[n - 1, n - 1])[0])
        square = (size * scale) ** 2
        tau = largest * (1 + 1e-10) + 4 * gamma(n + m) * (n * largest + square)
        shifted = -gram
        shifted[np.diag_indices(n)] += tau
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            pass
        else:
            best = min(best, math.sqrt(tau + 2 * gamma(n + 1) * n * tau + gamma(m) * square) / scale)
    return above(_ldexp(best, power) + error)


def product_norm(left: Array, right: Array) -> float:
    r"""Return an upper bound on the norm of left @ right, (d, r) by (r, d), in the small inner dimension.

    With $R R^T = F F^T + E$ the square is at most $|LF|^2 + |E|\,|L|^2$.

    >>> bound = product_norm(np.array([[2.0], [0.0]]), np.array([[0.0, 3.0]]))
    >>> 6 <= bound < 6.0001
    True
    """
    if not (np.all(np.isfinite(left)) and np.all(np.isfinite(right))):
        return math.inf
    powers = _exponent(left), _exponent(right)
    left, right = (np.ldexp(matrix, -power) for matrix, power in zip((left, right), powers, strict=True))
    return above(_ldexp(_product_norm(left, right), sum(powers)))


def _product_norm(left: Array, right: Array) -> float:
    if left.shape[1] >= min(left.shape[0], right.shape[1]):
        size = float(np.linalg.norm(left) * np.linalg.norm(right))
        return operator_norm(left @ right, above(2 * gamma(left.shape[1]) * size))
    gram = right @ right.T
    factor = root(gram)
    norms = float(np.linalg.norm(right)), float(np.linalg.norm(factor)), float(np.linalg.norm(left))
    rounding = gamma(right.shape[1]) * norms[0] ** 2 + gamma(len(gram)) * norms[1] ** 2
    residual = float(np.linalg.norm(gram - factor @ factor.T)) + 2 * rounding
    error = 2 * gamma(len(gram)) * norms[2] * norms[1]
    inner = operator_norm(left @ factor, above(error))
    return above(math.sqrt(inner**2 + residual * operator_norm(left) ** 2))


def root(gram: Array) -> Array:
    """Return F with F F^T = gram, to rounding, for a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def distances(states: Array) -> tuple[Array, Array]:
    """Return bounds below and above on the distance of two runs, states (2, N, d): exact for the numbers given."""
    difference = states[0] - states[1]
    size = np.sqrt(np.einsum("nd,nd->n", difference, difference))
    slack = gamma(states.shape[-1] + 2)
    tiny = SMALLEST_SAFE * np.any(difference, axis=-1)
    return np.maximum(size * (1 - slack) - tiny, 0), size * (1 + slack) + tiny


def scaled(number: Number, exponent: int) -> float:
    """Return a float of at least number * 2^-exponent, which floats can hold, for a number that is not negative.

    >>> scaled(10**400, 1300) * 2.0**100 > 10**400 / 2**1200
    True
    """
    if isinstance(number, int):  # of any size: no fractions, whose common divisors would take long
        shift = max(0, number.bit_length() - 64)
        value = math.nextafter(float(-(-number >> shift)), math.inf) if number else 0.0
        return math.ldexp(value, shift - exponent)
    exact = Fraction(number) / Fraction(2) ** exponent
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def log2(number: Number) -> int:
    """Return an integer e with number < 2^e, at most 2 above the least; for positive numbers."""
    if isinstance(number, int):
        return number.bit_length()
    exact = Fraction(number)
    return exact.numerator.bit_length() - exact.denominator.bit_length() + 1
