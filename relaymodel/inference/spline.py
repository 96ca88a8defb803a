"""A smoothing spline in log t whose bandwidth and noise correlation are chosen together by the data."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.gls import Gls, Posterior, gls, rounding
from relaymodel.inference.noise import Noise
from relaymodel.inference.waves import (
    CERTAIN,
    FINENESS,
    MOST,
    WAVE_COLUMNS,
    ZOOMS,
    Search,
    columns,
    overtone,
    tried,
    unseen,
)
from relaymodel.inference.waves import slopes as wave_slopes
from relaymodel.inference.window import LEAST

RATIOS = 32
"""How many ratios of walk to noise are tried: over the 20 decades there can be, four a decade of bandwidth."""


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
    waves, odds
        Frequencies of the waves in log t that the spline is fitted beside, per length of log t of the curve, and by how
        much the first makes the curve likelier; 0 if they were given.
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
    waves: tuple[float, ...]
    odds: float

    @property
    def bias(self) -> Array:
        """The part of the variance (M,) that is not noise: smoothing bias, and choice of the bandwidth."""
        random = np.sum(self.functional * (self.noise @ self.functional), axis=0)
        return np.asarray(np.maximum(self.variance - random, 0.0))

    @property
    def lasting(self) -> Array:
        """The variances (M,) from the deviations that are shared."""
        return np.asarray(np.sum(self.functional * (self.shared @ self.functional), axis=0))


def smooth(cells: Cells, y: Array, at: Array, waves: tuple[float, ...] | None = None) -> Smooth:
    r"""Fit a quintic smoothing spline to the cells' mean log D, y (K,), and return its slopes at log t = `at` (M,).

    log D is a quadratic in log t plus a twice integrated random walk plus noise (Wahba's form of the smoothing
    spline whose penalty is $\int (d^3 \log D / d(\log t)^3)^2$).  The ratio of the two, which is the
    bandwidth, and the noise's correlation are averaged over a grid, weighted by the restricted likelihood, so
    the variance holds the noise, the smoothing bias and the uncertainty of the bandwidth.  Generalised
    cross-validation would not do: it takes correlated noise for signal.
    """
    odds = 0.0
    if waves is None:
        waves, odds = find_waves(cells, y)
    prepared, target = _prepared(cells, waves), _Target.of(cells, at, waves)
    posterior = prepared.posterior((y - y[0])[:, None], floor=rounding(y[:, None]))
    readers = _readers(target, posterior)
    slope, variance = _read(target, posterior, readers, y[:, None])
    n, width = cells.x.size, cells.length
    smoother, functional = np.eye(n), np.zeros((n, at.size))
    candidates, freedom = prepared.noise.only(list(readers)), prepared.freedom
    chances = posterior.weights[list(readers), :, 0]
    # the mean of the inverse gamma distribution, and with it the variance of Student's t
    scales = posterior.square[list(readers), :, 0] / (freedom - 2)
    shares, variances = chances.sum(axis=1), np.sum(chances * scales, axis=1)
    for (c, (rows, reader)), weight, R in zip(readers.items(), chances, candidates.covariances, strict=True):
        vectors, shrunk = prepared.vectors[c], prepared.shrunk[c]
        smoother -= R @ (vectors * (weight @ (1 / shrunk))) @ vectors.T
        functional += vectors @ np.einsum("r,rcm->cm", weight[rows], reader.added)
    scale = float(np.sum(variances / candidates.units))
    variance += unseen(_unit(cells, cells.x), waves, np.linalg.pinv(_flat(cells, waves)) @ (y - y[0]))
    point = 1.0 if cells.relative is None else float(np.median(cells.relative))
    return Smooth(
        alpha=0.0 - slope[:, 0] / width,
        variance=variance[:, 0] / width**2,
        smoother=smoother,
        noise=np.einsum("c,ckl->kl", variances, candidates.covariances),
        shared=_shared(cells, scale, freedom),
        candidates=tuple(readers),
        kinds=candidates.covariances * (variances / shares)[:, None, None],
        shares=shares,
        scatter=point * float(np.sqrt(scale)),
        correlation_length=float(shares @ candidates.lengths),
        freedom=freedom,
        effective=float(np.sum(chances * (n - freedom + np.sum(1 - 1 / prepared.shrunk[list(readers)], axis=2)))),
        functional=-(target.plain + functional) / width,
        waves=waves,
        odds=odds,
    )


def slopes(cells: Cells, y: Array, at: Array, waves: tuple[float, ...] = ()) -> tuple[Array, Array]:
    """Return exponents and their variances, each (M, N), for N curves y (K, N) at log t = `at` (M,)."""
    target, posterior = _Target.of(cells, at, waves), _prepared(cells, waves).posterior(y - y[:1], floor=rounding(y))
    slope, variance = _read(target, posterior, _readers(target, posterior), y)
    return -slope / cells.length, variance / cells.length**2


def find_waves(cells: Cells, y: Array) -> tuple[tuple[float, ...], float]:
    """Return frequencies of the waves in log t that a curve y (K,) shows, and how much likelier the first makes it."""
    found: tuple[float, ...] = ()
    first, unit = 0.0, _unit(cells, cells.x)
    while len(found) < MOST and cells.x.size >= 3 + WAVE_COLUMNS * (len(found) + 1) + 2 * LEAST:
        search = _search(cells, found)
        if not search.frequencies.size:
            break
        gain = search.gain(y - y[0])
        best, top = search.frequencies[np.argmax(gain)], float(gain.max())
        odds = float(np.exp(min(top + np.log(np.mean(np.exp(gain - top))), 700.0)))
        if odds < CERTAIN:
            break
        for zoom in range(ZOOMS):
            near = best + 2 * np.pi / FINENESS ** (zoom + 1) * np.linspace(-0.75, 0.75, 2 * FINENESS - 1)
            best = near[np.argmax(Search.of(search.spline, unit, near).gain(y - y[0]))]
        found = (*found, float(best))
        first = first or odds
    return found, first


@lru_cache(maxsize=4)
def _search(cells: Cells, known: tuple[float, ...]) -> Search:
    unit = _unit(cells, cells.x)
    return Search.of(_prepared(cells, known), unit, tried(unit, known))


def _flat(cells: Cells, waves: tuple[float, ...]) -> Array:
    """Return what has flat priors (K, f), averaged over cells: a quadratic, and waves."""
    return np.concatenate([_walk(cells)[0], wave_columns(cells, waves)], axis=1)


def wave_columns(cells: Cells, waves: tuple[float, ...]) -> Array:
    """Return what waves and the overtone beside them add to a regression (K, m), averaged over cells."""
    return cells.over(columns(_unit(cells, cells.nodes[0].ravel()), waves, overtone(_unit(cells, cells.x), waves)))


@lru_cache(maxsize=8)
def _prepared(cells: Cells, waves: tuple[float, ...] = ()) -> Gls:
    """Return the spline as a regression: a quadratic, waves, and a walk whose ratio to the noise is tried on a grid."""
    kernel = _walk(cells)[1]
    values, vectors = np.linalg.eigh(kernel)
    prepared = gls(_flat(cells, waves), Noise.of(cells)).loaded(vectors * np.sqrt(np.maximum(values, 0)))
    # From a bend of a cell's noise, lest one below notice be called absent, to interpolation: no further, as that would
    # count it many times over.  1e14 is where float64 ends.
    least, most = prepared.values[:, 0], prepared.values[:, -1]
    ends = len(kernel) / most, np.minimum(1e14, 100 / np.maximum(least, 1e-14))
    return prepared.sized(np.geomspace(*ends, RATIOS, axis=1))


@dataclass(frozen=True, eq=False)
class _Target:
    """The points (M,) that slopes are wanted at: in units of the curve's length of log t, with what kriging needs.

    `plain` (K, M) are the slopes of the quadratic and waves of least squares; whatever weights the spline adds to them
    is a contrast.  `kernel` (K, K) is the covariance of the random walk, `cross` (K, M) that of its slopes with it, and
    `walk` (M,) the variance of what those slopes miss.  `near` (4, M) are the cells about each point.
    """

    plain: Array
    kernel: Array
    cross: Array
    walk: Array
    near: NDArray[np.intp]

    @classmethod
    def of(cls, cells: Cells, at: Array, waves: tuple[float, ...]) -> "_Target":
        where, kernel = _unit(cells, at), _walk(cells)[1]
        powers = np.stack([np.zeros_like(where), np.ones_like(where), 2 * where])
        changes = np.concatenate([powers, wave_slopes(where, waves, overtone(_unit(cells, cells.x), waves)).T])
        plain = np.asarray(np.linalg.pinv(_flat(cells, waves)).T @ changes)
        nodes = _unit(cells, cells.nodes[0].ravel())
        cross = cells.over(_sloped(where[None, :], nodes[:, None]))
        walk: Array = where**3 / 3 - np.sum(plain * (2 * cross - kernel @ plain), axis=0)
        right = np.clip(np.searchsorted(cells.x, at), 2, cells.x.size - 2)
        return cls(plain, kernel, cross, walk, right + np.arange(-2, 2)[:, None])


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
    def of(cls, prepared: Gls, c: int, rows: NDArray[np.intp], target: _Target) -> "_Reader":
        R, vectors, plain = prepared.noise.covariances[c], prepared.vectors[c], target.plain
        shrunk, ratio = prepared.shrunk[c, rows, :, None], prepared.sizes[c, rows, None, None]
        along = vectors.T @ (target.cross - target.kernel @ plain)
        across = vectors.T @ (R @ plain)
        added = (ratio * along - across) / shrunk
        own = np.sum(plain * (R @ plain), axis=0)
        error = ratio[:, 0] * target.walk + own - np.sum(added**2 * shrunk, axis=1)
        random = own + np.sum(added * (added + 2 * across), axis=1)
        return cls(added, np.maximum(error, random), random, (added + across) / shrunk)


_Readers = dict[int, tuple[NDArray[np.intp], _Reader]]


def _readers(target: _Target, posterior: Posterior) -> _Readers:
    """Return for each candidate that is likely at all its likely ratios, and what kriging makes of them."""
    likely: NDArray[np.bool_] = np.any(posterior.weights > 0, axis=2)
    rows = {c: np.flatnonzero(likely[c]) for c in np.flatnonzero(likely.any(axis=1)).tolist()}
    return {c: (found, _Reader.of(posterior.gls, c, found, target)) for c, found in rows.items()}


def _read(target: _Target, posterior: Posterior, readers: _Readers, y: Array) -> tuple[Array, Array]:
    """Return slopes and their variances, each (M, N), in units of the curve's length of log t.

    Of the smoothing bias there are two accounts: what it is on average over random walks, which is far more than
    smooth curves have, and what smoothing the fit once more would do, beyond what noise alone does.  The second counts
    where noise is a fair part of the error, and the first where it is none of it: such residuals say nothing.
    """
    weights, means, variances, shares = posterior.weights, [], [], []
    told = max(0.0, 1 - 4 / posterior.data.shape[1])  # a few residuals tell nothing of a bias
    for c, (rows, reader) in readers.items():
        data, scale = posterior.data[c], posterior.square[c, rows, None] / (posterior.gls.freedom - 2)
        again = (np.swapaxes(reader.left, 1, 2) @ data) ** 2 - scale * np.sum(reader.left**2, axis=1)[:, :, None]
        trust = (told * (1 - (1 - reader.random / reader.error) ** 2))[:, :, None]
        bias = trust * np.maximum(again, 0) + (1 - trust) * scale * (reader.error - reader.random)[:, :, None]
        quiet = np.flatnonzero(np.any(2 * reader.random < reader.error, axis=1))
        if quiet.size:  # without noise the walk is far off where the curve bends more than elsewhere
            local = _local(posterior, c, rows[quiet], target)
            bias[quiet] = np.maximum(1, local) * bias[quiet]
        means.append(np.swapaxes(reader.added, 1, 2) @ data)
        variances.append(scale * reader.random[:, :, None] + bias)
        shares.append(weights[c, rows, None])
    share, added = np.concatenate(shares), np.concatenate(means)
    mean = np.sum(share * added, axis=0)
    variance = np.sum(share * (np.concatenate(variances) + (added - mean) ** 2), axis=0)
    # of a constant the slope is 0 to the last digit
    return target.plain.T @ (y - y[:1]) + mean, np.maximum(variance, rounding(y))


def _local(posterior: Posterior, c: int, rows: NDArray[np.intp], target: _Target) -> Array:
    """Return the largest squares (Q, M, N), among neighbours, of how far a cell is from where the others put it.

    In units of the variance expected of that: with the inverse V of the cells' covariance, (V y)_k^2 / V_kk.
    """
    prepared = posterior.gls
    vectors, share = prepared.vectors[c], 1 / prepared.shrunk[c, rows]
    scale = posterior.square[c, rows, None] / prepared.freedom
    off = vectors @ (share[:, :, None] * posterior.data[c])
    square = off**2 / (share @ (vectors**2).T)[:, :, None] / scale
    return np.asarray(square[:, target.near].max(axis=1))


def _unit(cells: Cells, x: Array) -> Array:
    """Return log t in units of the curve's length of it."""
    unit: Array = (x - cells.x[0]) / cells.length
    return unit


@lru_cache(maxsize=4)
def _walk(cells: Cells) -> tuple[Array, Array]:
    """Return the means over the cells of a quadratic's powers (K, 3), and the covariance (K, K) of the walk's."""
    z = _unit(cells, cells.nodes[0].ravel())
    powers = cells.over(np.stack([np.ones_like(z), z, z * z], axis=1))
    return powers, cells.over(cells.over(_integrated(z[:, None], z[None, :])).T)


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
