"""A smoothing spline in log t whose bandwidth and noise correlation are chosen together by the data."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from relaymodel.exponent.cells import Array, Cells

ROUNDING = 2.0**-51
"""Noise that any float64 distance has, relative to log D or 1."""


@dataclass(frozen=True, eq=False)
class Smooth:
    """What the spline says of a curve.

    alpha (M,), variance (M,)
        Exponents at the points asked for, and their variances.
    noise (K, K)
        Covariance of the cells' mean log D, correlation along t included.
    shared (K, K)
        Covariance of deviations smooth in log t that only the curve's own stderr tells of; 0 without one.
    scatter, correlation_length
        Standard deviation of a single point's log D about the spline, and how many tokens are worth one
        independent point.  Where a curve has no noise, the scatter is the spline's misfit and the length is idle.
    freedom
        Degrees of freedom of the scatter.
    effective
        Effective number of parameters of the spline.
    functional (K, M)
        How much each cell counts in each exponent.
    """

    alpha: Array
    variance: Array
    noise: Array
    shared: Array
    scatter: float
    correlation_length: float
    freedom: int
    effective: float
    functional: Array

    @property
    def systematic(self) -> Array:
        """The part of the variance (M,) that is not noise: smoothing bias, and choice of the bandwidth."""
        random = np.sum(self.functional * ((self.noise + self.shared) @ self.functional), axis=0)
        return np.asarray(np.maximum(self.variance - random, 0.0))


def smooth(cells: Cells, y: Array, at: Array) -> Smooth:
    r"""Fit a quintic smoothing spline to the cells' mean log D, y (K,), against log t and return its slopes at log t = `at` (M,).

    log D is a quadratic in log t plus a twice integrated random walk plus noise (Wahba's form of the smoothing
    spline whose penalty is $\int (d^3 \log D / d(\log t)^3)^2$).  The ratio of the two, which is the
    bandwidth, and the noise's correlation are averaged over a grid, weighted by the restricted likelihood, so
    the variance holds the noise, the smoothing bias and the uncertainty of the bandwidth.  Generalised
    cross-validation would not do: it takes correlated noise for signal.  Of the bias there are two accounts: what it is
    on average over random walks, which is more than smooth curves have, and what smoothing the fit once more would do,
    which is less than the fit has lost already.  The square of the bias is between both, half way where noise is most
    of the error, and all the first where it is none of it: such residuals say nothing.
    """
    n = cells.x.size
    width = cells.x[-1] - cells.x[0]
    z, where = (cells.x - cells.x[0]) / width, (at - cells.x[0]) / width
    # the least squares quadratic's slopes; whatever weights the spline adds to them is a contrast
    plain = np.linalg.pinv(_quadratic(z)).T @ np.stack([np.zeros_like(where), np.ones_like(where), 2 * where])
    kernel, cross = _integrated(z[:, None], z[None, :]), _sloped(where[None, :], z[:, None])
    rounding = (ROUNDING * np.maximum(1, np.abs(y).max())) ** 2
    if cells.relative is not None:
        rounding /= np.median(cells.relative) ** 2
    bases = [_Fitted.of(basis, y, rounding) for basis in _bases(cells)]
    evidence = np.array([fitted.evidence for fitted in bases]) + cells.prior[:, None]  # (candidates, ratios)
    weights = np.exp(evidence - evidence.max())
    weights[weights < 1e-3] = 0
    weights /= weights.sum()

    noise, functional = np.zeros((n, n)), np.zeros((n, at.size))
    alphas, variances, shares = [], [], []
    scale = length = effective = 0.0
    for weight, fitted in zip(weights, bases, strict=True):
        if not np.any(weight):
            continue
        basis, R = fitted.basis, fitted.basis.covariance
        share = weight @ fitted.scale
        noise += share * R
        scale += share
        length += weight.sum() * basis.length
        effective += weight @ (3 + np.sum(1 - 1 / basis.shrunk, axis=1))
        # kriging: the plain slopes plus contrasts that minimise the variance of the error, for all ratios at once
        ratio = basis.ratios[:, None, None]
        along, across = basis.vectors.T @ (cross - kernel @ plain), basis.vectors.T @ (R @ plain)
        added = (ratio * along - across) / basis.shrunk[:, :, None]  # (ratios, contrasts, M)
        error = ratio[:, 0] * (where**3 / 3 - np.sum(plain * (2 * cross - kernel @ plain), axis=0))
        error = error + np.sum(plain * (R @ plain), axis=0) - np.sum(added**2 * basis.shrunk[:, :, None], axis=1)
        alphas.append(-(plain.T @ y + np.einsum("rcm,c->rm", added, fitted.data)))
        random = np.sum(plain * (R @ plain), axis=0) + np.sum(added * (added + 2 * across), axis=1)
        # what the slopes of the residuals are: the bias, as far as the fit itself shows it
        left = np.einsum("rcm,rc->rm", added + across, fitted.data / basis.shrunk)
        trust = random / (2 * np.maximum(error, random))
        seen = fitted.scale[:, None] * random + left**2
        variances.append((1 - trust) * fitted.scale[:, None] * error + trust * seen)
        shares.append(weight)
        functional += weight.sum() * plain + basis.vectors @ np.einsum("r,rcm->cm", weight, added)
    share = np.concatenate(shares)
    alpha = share @ np.concatenate(alphas)
    variance = share @ (np.concatenate(variances) + (np.concatenate(alphas) - alpha) ** 2)
    shared = _shared(cells, scale, n - 3)
    variance = np.maximum(variance, 0) + np.sum(functional * (shared @ functional), axis=0)
    point = 1.0 if cells.relative is None else float(np.median(cells.relative))
    return Smooth(
        alpha=0.0 + alpha / width,
        variance=variance / width**2,
        noise=noise,
        shared=shared,
        scatter=point * float(np.sqrt(scale)),
        correlation_length=float(length),
        freedom=n - 3,
        effective=float(effective),
        functional=-functional / width,
    )


@dataclass(frozen=True, eq=False)
class _Basis:
    """The contrasts F in which one noise covariance (K, K) is the identity and the random walk is diagonal (K, F).

    For a grid (Q,) of ratios of random walk to noise: `shrunk` (Q, F) the variances of the contrasts, `logdet` (Q,) half
    the logarithm of their determinant.  `length` is the noise's correlation length.
    """

    vectors: Array
    ratios: Array
    shrunk: Array
    logdet: Array
    covariance: Array
    length: float

    @classmethod
    def of(cls, contrasts: Array, kernel: Array, R: Array, length: float) -> "_Basis":
        lower = np.linalg.cholesky(contrasts.T @ R @ contrasts)
        half = np.linalg.solve(lower, contrasts.T)  # not SciPy's: two BLAS thread pools by turns cost tenfold
        values, rotation = np.linalg.eigh(half @ kernel @ half.T)
        values, vectors = np.maximum(values, 0), half.T @ rotation
        # From one bend more than a quadratic's, lest a bend below notice be called absent, to interpolation: no
        # further, as that would count it many times over.  1e14 is where float64 ends.
        ratios = np.geomspace(10 / values[-1], min(1e14, 100 / max(values[0], 1e-14)), 32)
        shrunk = 1 + ratios[:, None] * values
        logdet = np.sum(np.log(np.diag(lower))) + 0.5 * np.sum(np.log(shrunk), axis=1)
        return cls(vectors, ratios, shrunk, logdet, R, length)


@lru_cache(maxsize=4)
def _bases(cells: Cells) -> tuple[_Basis, ...]:
    z = (cells.x - cells.x[0]) / (cells.x[-1] - cells.x[0])
    contrasts = np.linalg.qr(_quadratic(z), mode="complete")[0][:, 3:]
    kernel = _integrated(z[:, None], z[None, :])
    return tuple(_Basis.of(contrasts, kernel, R, length) for length, R in cells.correlations())


def _quadratic(z: Array) -> Array:
    return np.stack([np.ones_like(z), z, z * z], axis=1)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A curve in a basis: its contrasts `data` (F,), and by ratio of random walk to noise (Q,) the mean variance of
    the noise, `scale`, and the logarithm of the restricted likelihood, `evidence`.
    """

    basis: _Basis
    data: Array
    scale: Array
    evidence: Array

    @classmethod
    def of(cls, basis: _Basis, y: Array, rounding: float) -> "_Fitted":
        data = basis.vectors.T @ y
        freedom = data.size
        square = np.sum(data**2 / basis.shrunk, axis=1) + freedom * rounding
        # the mean of the inverse gamma distribution, and with it the variance of Student's t
        return cls(basis, data, square / (freedom - 2), -basis.logdet - 0.5 * freedom * np.log(square))


def _integrated(s: Array, t: Array) -> Array:
    """Return the covariance of a twice integrated random walk: (s-u)^2 (t-u)^2 / 4 integrated from 0 to min(s, t)."""
    m, d = np.minimum(s, t), np.abs(s - t)
    return m**3 * (m * m / 5 + d * m / 2 + d * d / 3) / 4


def _sloped(s: Array, t: Array) -> Array:
    """Return its derivative with respect to s: the integral of (s-u) (t-u)^2 / 2 over 0 < u < min(s, t)."""
    m, d = np.minimum(s, t), np.abs(s - t)
    return np.where(s <= t, m * m * (m * m / 4 + 2 * d * m / 3 + d * d / 2), m**3 * (m / 4 + d / 3)) / 2


def _shared(cells: Cells, scale: float, freedom: int) -> Array:
    """Return the part of the stated variance that the scatter along t does not show.

    Pairs of prompts differ over the whole curve, and such a deviation leaves no scatter.  It is taken to vary
    over an e-fold of t.  Only a significant excess counts: the scale itself is known to sqrt(2/freedom).
    """
    n = cells.x.size
    excess = 1 - scale * (1 + 2 * np.sqrt(2 / freedom))
    if cells.relative is None or excess <= 0:
        return np.zeros((n, n))
    distance = cells.x[:, None] - cells.x[None, :]
    shared: Array = excess * np.outer(cells.relative, cells.relative) * np.exp(-0.5 * distance**2)
    return shared
