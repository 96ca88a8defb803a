"""A smoothing spline in log t whose bandwidth and noise correlation are chosen together by the data."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from relaymodel.inference.cells import ROUNDING, Array, Cells

IGNORED_CANDIDATE = 1e-3
"""Candidates less likely than this, against the likeliest, are left out."""


@dataclass(frozen=True, eq=False)
class Smooth:
    """What the spline says of a curve.

    alpha (M,), variance (M,)
        Exponents at the points asked for, and their variances, `shared` left out.
    smoother (K, K)
        What makes of the cells' mean log D those of the spline.
    noise (K, K)
        Covariance of the cells' mean log D, correlation along t included.
    shared (K, K)
        Covariance of deviations smooth in log t that only the curve's own stderr tells of; 0 without one.
    candidates, kinds (C, K, K), shares (C,)
        Numbers of the candidates for the noise that are likely at all, their covariances, and how likely each is.
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
    smoother: Array
    noise: Array
    shared: Array
    candidates: tuple[int, ...]
    kinds: Array
    shares: Array
    scatter: float
    correlation_length: float
    freedom: int
    effective: float
    functional: Array

    @property
    def bias(self) -> Array:
        """The part of the variance (M,) that is not noise: smoothing bias, and choice of the bandwidth."""
        random = np.sum(self.functional * (self.noise @ self.functional), axis=0)
        return np.asarray(np.maximum(self.variance - random, 0.0))

    @property
    def lasting(self) -> Array:
        """The variances (M,) from the deviations that are shared."""
        return np.asarray(np.sum(self.functional * (self.shared @ self.functional), axis=0))


def smooth(cells: Cells, y: Array, at: Array) -> Smooth:
    r"""Fit a quintic smoothing spline to the cells' mean log D, y (K,), and return its slopes at log t = `at` (M,).

    log D is a quadratic in log t plus a twice integrated random walk plus noise (Wahba's form of the smoothing
    spline whose penalty is $\int (d^3 \log D / d(\log t)^3)^2$).  The ratio of the two, which is the
    bandwidth, and the noise's correlation are averaged over a grid, weighted by the restricted likelihood, so
    the variance holds the noise, the smoothing bias and the uncertainty of the bandwidth.  Generalised
    cross-validation would not do: it takes correlated noise for signal.
    """
    posterior, target = _Posterior.of(cells, y[:, None]), _Target.of(cells, at)
    readers = _readers(target, posterior)
    slope, variance = _read(target, posterior, readers, y[:, None])
    n, width = cells.x.size, cells.x[-1] - cells.x[0]
    noise, smoother = np.zeros((n, n)), np.eye(n)
    functional = np.zeros((n, at.size))
    kinds, shares = [], []
    scale = length = effective = 0.0
    for c, (rows, reader) in readers.items():
        basis, weight = posterior.bases[c], posterior.weights[c, :, 0]
        share = float(weight @ posterior.scale[c, :, 0])
        kinds.append(share / weight.sum() * basis.covariance)
        shares.append(float(weight.sum()))
        noise += share * basis.covariance
        scale += share
        length += shares[-1] * basis.length
        effective += float(weight @ (3 + np.sum(1 - 1 / basis.shrunk, axis=1)))
        smoother -= basis.covariance @ (basis.vectors * (weight @ (1 / basis.shrunk))) @ basis.vectors.T
        functional += basis.vectors @ np.einsum("r,rcm->cm", weight[rows], reader.added)
    shared = _shared(cells, scale, n - 3)
    functional = -(target.plain + functional) / width
    point = 1.0 if cells.relative is None else float(np.median(cells.relative))
    return Smooth(
        alpha=0.0 - slope[:, 0] / width,
        variance=variance[:, 0] / width**2,
        smoother=smoother,
        noise=noise,
        shared=shared,
        candidates=tuple(readers),
        kinds=np.stack(kinds),
        shares=np.array(shares),
        scatter=point * float(np.sqrt(scale)),
        correlation_length=float(length),
        freedom=n - 3,
        effective=effective,
        functional=functional,
    )


def slopes(cells: Cells, y: Array, at: Array) -> tuple[Array, Array]:
    """Return exponents and their variances, each (M, N), for N curves y (K, N) at log t = `at` (M,)."""
    target, posterior = _Target.of(cells, at), _Posterior.of(cells, y)
    slope, variance = _read(target, posterior, _readers(target, posterior), y)
    width = cells.x[-1] - cells.x[0]
    return -slope / width, variance / width**2


@dataclass(frozen=True, eq=False)
class _Basis:
    """The contrasts F in which one noise covariance (K, K) is the identity and the random walk is diagonal (K, F).

    For a grid (Q,) of ratios of random walk to noise: `shrunk` (Q, F) the variances of the contrasts, `logdet` (Q,)
    half the logarithm of their determinant.  `length` is the noise's correlation length.
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
        # From a bend of a cell's noise, lest one below notice be called absent, to interpolation: no further, as that
        # would count it many times over.  1e14 is where float64 ends.
        ratios = np.geomspace(len(R) / values[-1], min(1e14, 100 / max(values[0], 1e-14)), 32)
        shrunk = 1 + ratios[:, None] * values
        logdet = np.sum(np.log(np.diag(lower))) + 0.5 * np.sum(np.log(shrunk), axis=1)
        return cls(vectors, ratios, shrunk, logdet, R, length)

    def rows(self, used: NDArray[np.intp]) -> "_Basis":
        """Return the basis for some of the ratios."""
        return replace(self, ratios=self.ratios[used], shrunk=self.shrunk[used], logdet=self.logdet[used])


@lru_cache(maxsize=4)
def _bases(cells: Cells) -> tuple[_Basis, ...]:
    powers, kernel = _walk(cells)
    contrasts = np.linalg.qr(powers, mode="complete")[0][:, 3:]
    return tuple(_Basis.of(contrasts, kernel, R, length) for length, R in cells.correlations())


@dataclass(frozen=True, eq=False)
class _Posterior:
    """N curves in the bases of all candidates C for the noise.

    `data` (C, F, N) are the contrasts, `scale` (C, Q, N) the mean variance of the noise, `weights` (C, Q, N) the
    probabilities of noise and bandwidth, for each curve.
    """

    bases: tuple[_Basis, ...]
    data: Array
    scale: Array
    weights: Array

    @classmethod
    def of(cls, cells: Cells, y: Array) -> "_Posterior":
        bases = _bases(cells)
        rounding = (ROUNDING * np.maximum(1, np.abs(y).max(axis=0))) ** 2
        if cells.relative is not None:
            rounding /= np.median(cells.relative) ** 2
        data = np.stack([basis.vectors.T @ y for basis in bases])
        freedom = data.shape[1]
        square = np.stack([(1 / basis.shrunk) @ found**2 for basis, found in zip(bases, data, strict=True)])
        square += freedom * rounding
        evidence = cells.prior[:, None, None] - 0.5 * freedom * np.log(square)
        evidence -= np.stack([basis.logdet for basis in bases])[:, :, None]
        weights = np.exp(evidence - evidence.max(axis=(0, 1)))
        weights[weights < IGNORED_CANDIDATE] = 0
        # the mean of the inverse gamma distribution, and with it the variance of Student's t
        return cls(bases, data, square / (freedom - 2), weights / weights.sum(axis=(0, 1)))


@dataclass(frozen=True, eq=False)
class _Target:
    """The points (M,) that slopes are wanted at: in units of the curve's length of log t, with what kriging needs.

    `plain` (K, M) are the slopes of the least squares quadratic; whatever weights the spline adds to it is a contrast.
    `kernel` (K, K) is the covariance of the random walk, `cross` (K, M) that of its slopes with it, and `walk` (M,) the
    variance of what the quadratic's slopes miss.
    """

    plain: Array
    kernel: Array
    cross: Array
    walk: Array

    @classmethod
    def of(cls, cells: Cells, at: Array) -> "_Target":
        where, (powers, kernel) = _unit(cells, at), _walk(cells)
        changes = np.stack([np.zeros_like(where), np.ones_like(where), 2 * where])
        plain = np.asarray(np.linalg.pinv(powers).T @ changes)
        nodes = _unit(cells, np.log(cells.nodes))
        cross: Array = _sloped(where[None, :], nodes[:, None]).reshape(2, cells.x.size, at.size).mean(axis=0)
        walk: Array = where**3 / 3 - np.sum(plain * (2 * cross - kernel @ plain), axis=0)
        return cls(plain, kernel, cross, walk)


@dataclass(frozen=True, eq=False)
class _Reader:
    """What kriging adds to the slopes of the quadratic, for the ratios (Q,) of one candidate.

    `added` (Q, F, M) are the weights of the contrasts that minimise the variance of the error.  Of that, in units of
    the noise's variance, `error` (Q, M) is all and `random` (Q, M) the noise's part.  `left` (Q, F, M) are the weights
    of the contrasts in the slopes of the residuals.
    """

    added: Array
    error: Array
    random: Array
    left: Array

    @classmethod
    def of(cls, basis: _Basis, target: _Target) -> "_Reader":
        R, shrunk, ratio, plain = basis.covariance, basis.shrunk[:, :, None], basis.ratios[:, None, None], target.plain
        along = basis.vectors.T @ (target.cross - target.kernel @ plain)
        across = basis.vectors.T @ (R @ plain)
        added = (ratio * along - across) / shrunk
        own = np.sum(plain * (R @ plain), axis=0)
        error = ratio[:, 0] * target.walk + own - np.sum(added**2 * shrunk, axis=1)
        random = own + np.sum(added * (added + 2 * across), axis=1)
        return cls(added, np.maximum(error, random), random, (added + across) / shrunk)


_Readers = dict[int, tuple[NDArray[np.intp], _Reader]]


def _readers(target: _Target, posterior: _Posterior) -> _Readers:
    """Return for each candidate that is likely at all its likely ratios, and what kriging makes of them."""
    likely: NDArray[np.bool_] = np.any(posterior.weights > 0, axis=2)
    found = {}
    for c in np.flatnonzero(likely.any(axis=1)).tolist():
        rows = np.flatnonzero(likely[c])
        found[c] = rows, _Reader.of(posterior.bases[c].rows(rows), target)
    return found


def _read(target: _Target, posterior: _Posterior, readers: _Readers, y: Array) -> tuple[Array, Array]:
    """Return slopes and their variances, each (M, N), in units of the curve's length of log t.

    Of the smoothing bias there are two accounts: what it is on average over random walks, which is far more than
    smooth curves have, and what smoothing the fit once more would do, beyond what noise alone does.  The second counts
    where noise is a fair part of the error, and the first where it is none of it: such residuals say nothing.
    """
    means, variances, shares = [], [], []
    told = max(0.0, 1 - 4 / posterior.data.shape[1])  # a few residuals tell nothing of a bias
    for c, (rows, reader) in readers.items():
        data, scale = posterior.data[c], posterior.scale[c, rows, None]  # (F, N), (Q, 1, N)
        again = (np.swapaxes(reader.left, 1, 2) @ data) ** 2 - scale * np.sum(reader.left**2, axis=1)[:, :, None]
        trust = (told * (1 - (1 - reader.random / reader.error) ** 2))[:, :, None]
        bias = trust * np.maximum(again, 0) + (1 - trust) * scale * (reader.error - reader.random)[:, :, None]
        means.append(np.swapaxes(reader.added, 1, 2) @ data)
        variances.append(scale * reader.random[:, :, None] + bias)
        shares.append(posterior.weights[c, rows, None])
    share, added = np.concatenate(shares), np.concatenate(means)
    mean = np.sum(share * added, axis=0)
    variance = np.sum(share * (np.concatenate(variances) + (added - mean) ** 2), axis=0)
    return target.plain.T @ y + mean, np.maximum(variance, 0)


def _unit(cells: Cells, x: Array) -> Array:
    """Return log t in units of the curve's length of it."""
    unit: Array = (x - cells.x[0]) / (cells.x[-1] - cells.x[0])
    return unit


@lru_cache(maxsize=4)
def _walk(cells: Cells) -> tuple[Array, Array]:
    """Return the means over the cells of a quadratic's powers (K, 3), and the covariance (K, K) of the walk's."""
    z, K = _unit(cells, np.log(cells.nodes)), cells.x.size
    powers = np.stack([np.ones_like(z), z, z * z], axis=1).reshape(2, K, 3).mean(axis=0)
    return powers, _integrated(z[:, None], z[None, :]).reshape(2, K, 2, K).mean(axis=(0, 2))


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
