"""Errors corrected by what they prove to be worth on curves like the one at hand."""

import numpy as np

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.smoothing import slopes, smooth

DRAWS, CURVE_COUNT = 96, 7
"""How many curves are drawn, and at how many t, equally spaced in log t, they are judged."""

SMALLEST, LARGEST_FACTOR = 0.6, 2.5
"""How far an error is corrected; a stronger correction would rest on draws that are unlike the curve."""


def inflation(cells: Cells, y: Array, at: Array) -> Array:
    """Return the factors (M,) that make 1.96 standard errors of local exponents at log t = `at` (M,) 95 % intervals.

    The fit, smoothed once more lest noise that it follows be taken for the curve's, is drawn again with noise of its
    candidates by their probability.  Each draw is fitted, and what counts is how many errors its exponents are off: a
    parametric bootstrap of the pivot (Beran, Biometrika 74, 457 (1987)).  Its root mean square varies along the curve,
    and the rest of its distribution is taken to be the same everywhere.  Seeded, so that a curve has one answer.
    """
    rng = np.random.default_rng(len(cells.x))
    inner = np.linspace(cells.x[0], cells.x[-1], CURVE_COUNT + 2)[1:-1]
    fit = smooth(cells, y, inner)
    line = fit.smoother @ y
    which = np.searchsorted(np.cumsum(fit.shares), (np.arange(DRAWS) + 0.5) / DRAWS * fit.shares.sum())
    white = rng.standard_normal((cells.x.size, DRAWS))
    noise = np.empty_like(white)
    for kind in np.unique(which):
        drawn = which == kind
        noise[:, drawn] = np.linalg.cholesky(fit.kinds[kind]) @ white[:, drawn]
    alpha, variance = slopes(cells, (fit.smoother @ line)[:, None] + noise, inner)
    off = np.abs(alpha - (line @ fit.functional)[:, None]) / np.sqrt(variance)
    typical = np.sqrt(np.mean(off**2, axis=1))
    factor = np.quantile(off / typical[:, None], 0.95) / 1.96 * typical
    # draws with noise are no guide to a curve without, which the spline interpolates
    least = max(SMALLEST, min(1.0, 1.25 * fit.effective / cells.x.size))
    factors: Array = np.interp(at, inner, np.clip(factor, least, LARGEST_FACTOR))
    return factors
