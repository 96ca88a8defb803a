"""A smoothing spline in log t whose bandwidth and noise correlation are chosen together by the data."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular

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
    """

    alpha: Array
    variance: Array
    noise: Array
    shared: Array
    scatter: float
    correlation_length: float
    freedom: int
    effective: float


def smooth(cells: Cells, at: Array) -> Smooth:
    r"""Fit a quintic smoothing spline to log D against log t and return its slopes at log t = `at` (M,).

    log D is a quadratic in log t plus a twice integrated random walk plus noise (Wahba's form of the smoothing
    spline whose penalty is $\int (d^3 \log D / d(\log t)^3)^2$).  The ratio of the two, which is the
    bandwidth, and the noise's correlation are averaged over a grid, weighted by the restricted likelihood, so
    the variance holds the noise, the smoothing bias and the uncertainty of the bandwidth.  Generalised
    cross-validation would not do: it takes correlated noise for signal.
    """
    n = cells.x.size
    width = cells.x[-1] - cells.x[0]
    z, where = (cells.x - cells.x[0]) / width, (at - cells.x[0]) / width
    powers = np.stack([np.ones(n), z, z * z], axis=1)
    slopes = np.stack([np.zeros_like(where), np.ones_like(where), 2 * where], axis=1)
    contrasts = np.linalg.qr(powers, mode="complete")[0][:, 3:]
    kernel = _integrated(z[:, None], z[None, :])
    freedom = n - 3
    rounding = freedom * (ROUNDING * np.maximum(1, np.abs(cells.y).max())) ** 2
    if cells.relative is not None:
        rounding /= np.median(cells.relative) ** 2
    candidates = list(cells.correlations())
    found: list[tuple[float, int, float, float, float]] = []
    for i, (_, R) in enumerate(candidates):
        lower = np.linalg.cholesky(contrasts.T @ R @ contrasts)
        half = solve_triangular(lower, contrasts.T, lower=True)
        values, vectors = eigh(half @ kernel @ half.T)
        values, data = np.maximum(values, 0), (vectors.T @ (half @ cells.y)) ** 2
        # From one bend more than a quadratic's, lest a bend below notice be called absent, to interpolation;
        # the upper end keeps R + ratio * kernel well conditioned.
        for ratio in np.geomspace(10 / values[-1], 1e14, 32):
            shrunk = 1 + ratio * values
            square = float(np.sum(data / shrunk)) + rounding
            evidence = -np.sum(np.log(np.diag(lower))) - 0.5 * np.sum(np.log(shrunk)) - 0.5 * freedom * np.log(square)
            found.append((float(evidence), i, float(ratio), square / (freedom - 2), float(np.sum(1 - 1 / shrunk))))
    weights = np.exp(np.array([f[0] for f in found]) - max(f[0] for f in found))
    weights[weights < 1e-3] = 0
    weights /= weights.sum()

    functionals, within, noise = [], [], np.zeros((n, n))
    length = effective = 0.0
    kept = [(w, f) for w, f in zip(weights, found, strict=True) if w > 0]
    for weight, (_, i, ratio, variance, extra) in kept:
        R = candidates[i][1]
        factor = cho_factor(R + ratio * kernel)
        solved = cho_solve(factor, powers)
        gram = np.linalg.inv(powers.T @ solved)
        cross = ratio * _sloped(where[:, None], z[None, :])
        weighed = cho_solve(factor, cross.T).T
        rest = slopes - weighed @ powers
        functionals.append(weighed + rest @ gram @ solved.T)
        prior = ratio * where**3 / 3
        within.append(variance * (prior - np.sum(weighed * cross, axis=1) + np.sum(rest @ gram * rest, axis=1)))
        noise += weight * variance * R
        length += weight * candidates[i][0]
        effective += weight * (3 + extra)
    share = np.array([w for w, _ in kept])
    functional = np.tensordot(share, np.array(functionals), axes=1)
    slope = functional @ cells.y
    between = (np.array(functionals) @ cells.y - slope) ** 2
    shared = _shared(cells, float(share @ [f[3] for _, f in kept]), freedom)
    spread = np.maximum(share @ (np.array(within) + between), 0) + np.sum(functional @ shared * functional, axis=1)
    point = 1.0 if cells.relative is None else float(np.median(cells.relative))
    return Smooth(
        alpha=0.0 - slope / width,
        variance=spread / width**2,
        noise=noise,
        shared=shared,
        scatter=point * float(np.sqrt(share @ [f[3] for _, f in kept])),
        correlation_length=length,
        freedom=freedom,
        effective=effective,
    )


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
