r"""The sum over $E_k \hat h_k$ behind a pole, far from the origin: a polynomial in a logarithm and in 1/y.

With $c = 1+g$, $y = N+c-\tfrac12$, $y_P = P+c-\tfrac12$ and $\lambda = c\log(y/y_P)$, the generating function of
THEORY section 2 is

$$ \sum_k \hat h_k x^k = e^{\lambda x}\; \frac{y_P^{cx}\,\Gamma(P+c-cx)}{\Gamma(P+c)}\;
   \frac{\Gamma(N+c)}{y^{cx}\,\Gamma(N+c-cx)}, \qquad
   \frac{\Gamma(y+\frac12)}{y^u\,\Gamma(y+\frac12-u)} = \sum_n \frac{Q_n(u)}{y^n}. $$

The second factor is a constant power series in x, the third Stirling's: $\log \sum Q_n y^{-n} =
\sum_n \frac{B_{n+1}(1/2) - B_{n+1}(1/2+u)}{n(n+1)\,y^n}$.  So

$$ \sum_k E_k \hat h_k = \sum_n y^{-n} \sum_j A_{nj} \lambda^j $$

with constants A: one small matrix product for all t, instead of Newton's identities at each t.

It is kept because it is measured to be worth its place: on 8192 points from 1 to 1e8 behind 64 tokens Newton's
identities take 7.6 times as long at L = 12 and 16 times at L = 64 (1.9 at L = 6, 1.1 at L = 2); on a single t 3.4, 3.9
(2.2, 1.2) times.

Cutting after the term n = M leaves a relative error of about $\sum_{n>M} \lVert Q_n(cx)\rVert_1\, y^{-n}$, because
the $E_k$ fall with k.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from flint import arb, arb_series, fmpq, fmpq_poly
from numpy.typing import NDArray

from relaymodel.exact.powersums import NEGLIGIBLE
from relaymodel.exact.precision import working

MOST_TERMS = 13  # terms in 1/y at most: below `Front.nearest` more would be needed
KNOWN = 20  # terms worked out to judge the remainder by

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terms:
    r"""The sums over $E_k \hat h_k$, over $|E_k| \hat h_k$ (0 unless asked for), and t times the first one's slope."""

    value: Array
    magnitude: Array | float
    slope: Array | float


@dataclass(frozen=True, eq=False)
class Front:
    """What depends on the prompt, the position exponent and the order of the pole alone.

    `series` holds the coefficients of x^i y^-n, shape (MOST_TERMS, m); `reach[n-1]` is the y from which n terms do.
    """

    scale: float
    start: float
    series: Array
    reach: Array

    @property
    def nearest(self) -> float:
        """The least y."""
        return float(self.reach[-1])


@lru_cache(maxsize=256)
def front(prompt: int, position: fmpq, order: int) -> Front:
    """Return c, y_P and the product of the second and third factor of the generating function."""
    c = position + 1
    start = c + prompt - fmpq(1, 2)
    powers = [c**i for i in range(order)]
    bits = 128
    while True:
        with working(bits=bits, order=order):
            constant = (
                arb_series([arb(c + prompt), arb(-c)], order).lgamma()
                - arb(c + prompt).lgamma()
                + arb_series([0, arb(c) * arb(start).log()], order)
            ).exp()
            scaled = [arb_series([q * p for q, p in zip(Q.coeffs(), powers, strict=False)], order) for Q in stirling()]
            entries = [[product[i] for i in range(order)] for product in (constant * factor for factor in scaled)]
            # beside the first entry, 1, an absolute error of this size is nothing, for the E_k fall with k
            if all(entry.rad() < NEGLIGIBLE / 256 for row in entries for entry in row):
                break
        bits *= 2
    series = np.array([[float(entry.mid()) for entry in row] for row in entries[:MOST_TERMS]])
    sizes = np.array([sum(abs(float(factor[i].mid())) for i in range(order)) for factor in scaled])
    n = np.arange(1, KNOWN)
    # from y on, each omitted term is negligible
    needed = (sizes[1:] / NEGLIGIBLE) ** (1 / n)
    reach = np.maximum.accumulate(needed[::-1])[::-1][:MOST_TERMS]
    return Front(_float(c), _float(start), series, reach)


@lru_cache(maxsize=1)
def stirling() -> tuple[fmpq_poly, ...]:
    """Return Q_0, ..., exactly, as polynomials in u."""
    logarithm = [fmpq_poly([0])]
    for n in range(1, KNOWN):
        k = n + 1
        # B_k(1/2 + u) in powers of u, without its constant; B_j(1/2) = (2^(1-j) - 1) B_j
        bernoulli = [comb(k, j) * (fmpq(2) ** (1 - j) - 1) * fmpq.bernoulli(j) for j in range(k)]
        logarithm.append(fmpq_poly([0, *reversed(bernoulli)]) / (-n * k))
    Q = [fmpq_poly([1])]
    for n in range(1, KNOWN):
        Q.append(sum((k * logarithm[k] * Q[n - k] for k in range(1, n + 1)), fmpq_poly([0])) / n)
    return tuple(Q)


def _float(value: fmpq) -> float:
    return int(value.p) / int(value.q)


@dataclass(frozen=True, eq=False)
class Expansion:
    """A for the weights E_k, for their magnitudes, and for t times the slope; each of shape (MOST_TERMS, m)."""

    front: Front
    values: Array
    magnitude: Array
    slopes: Array

    def sums(self, t: Array, *, exponent: bool, sure: bool) -> Terms:
        """Return the sums at t, y >= `front.nearest`."""
        inverse = 1 / (self.front.start + t)
        terms = 1 + int(np.searchsorted(-self.front.reach, -1 / np.max(inverse)))
        powers = _powers(self.front, t, self.values.shape[1])
        return Terms(
            _evaluate(self.values[:terms], powers, inverse),
            0.0 if sure else _evaluate(self.magnitude[:terms], powers, inverse),
            t * inverse * _evaluate(self.slopes[:terms], powers, inverse) if exponent else 0.0,
        )


def expand(prompt: int, position: fmpq, values: Array, magnitude: Array) -> Expansion:
    """Return the expansion for the weights E_k = `values`, shape (m,)."""
    known = front(prompt, position, values.size)
    A, size = _coefficients(known, values), _coefficients(known, magnitude)
    n, j = np.arange(MOST_TERMS)[:, None], np.arange(1, values.size)
    slopes = -n * A  # y d/dy
    slopes[:, :-1] += known.scale * j * A[:, 1:]
    return Expansion(known, A, size, slopes)


def _coefficients(known: Front, weights: Array) -> Array:
    m = weights.size
    shifted = np.zeros((m, m))  # E_{i+j}
    for i in range(m):
        shifted[i, : m - i] = weights[i:]
    A: Array = known.series @ shifted / np.cumprod(np.maximum(np.arange(float(m)), 1))
    return A


def _powers(known: Front, t: Array, count: int) -> Array:
    """Return 1, lambda, lambda^2, ..., shape (count, T)."""
    rows = np.empty((count, t.size))
    rows[0] = 1
    if count > 1:
        np.multiply(known.scale, np.log1p(t / known.start), out=rows[1])
    for j in range(2, count):
        np.multiply(rows[j // 2], rows[j - j // 2], out=rows[j])
    return rows


def _evaluate(A: Array, powers: Array, inverse: Array) -> Array:
    """Return the sum over n and j, shape (T,), by Horner's scheme in 1/y."""
    inner = A @ powers
    total: Array = inner[-1]
    for row in inner[-2::-1]:
        total *= inverse
        total += row
    return total
