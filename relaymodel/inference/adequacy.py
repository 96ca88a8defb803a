"""Whether what a formula leaves of a curve is noise."""

import numpy as np
from scipy.special import fdtrc

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.regression import RIDGE, Problem, Solution
from relaymodel.inference.smoothing import Smooth, smooth

LEVEL = 0.05
"""A formula is adequate where what it leaves would be noise with at least this probability."""


def lack_of_fit(problem: Problem, solution: Solution) -> float:
    """Return the probability that curves of the formula would deviate from it as smoothly and as far as these.

    The noise is that of a smooth curve of any form; an F statistic for the generalised least squares gain from adding
    the two lowest of 1, log t, ..., (log t)^3 that the formula does not have.  Of several curves, the smallest
    probability, times their number.
    """
    found = []
    for b in range(problem.y.shape[1]):
        spline = smooth(problem.cells, problem.y[:, b], np.empty(0))
        found.append(smooth_misfit(problem.cells, spline, solution.jacobian[:, b], solution.residual[:, b]))
    return min(1.0, min(found) * len(found))


def smooth_misfit(cells: Cells, spline: Smooth, jacobian: Array, residual: Array) -> float:
    """Return the p-value of residuals (K,) of a fit with derivatives (K, q), under the noise that a spline finds."""
    z = 2 * (cells.x - cells.x[0]) / (cells.x[-1] - cells.x[0]) - 1
    covariance = spline.noise + spline.shared
    covariance = covariance + (1e-10 * np.diag(covariance).mean() + RIDGE**2) * np.eye(len(covariance))
    lower = np.linalg.cholesky(covariance)
    frame = np.linalg.svd(np.linalg.solve(lower, jacobian), full_matrices=False)
    own = frame[0][:, frame[1] > 1e-9 * frame[1][0]]
    powers = np.polynomial.legendre.legvander(z, own.shape[1] + 2)
    extra, r = np.linalg.solve(lower, powers), np.linalg.solve(lower, residual)
    rest = extra - own @ (own.T @ extra)
    directions, _, _ = np.linalg.svd(rest / np.linalg.norm(extra, axis=0), full_matrices=False)
    gain = float(np.sum((directions[:, :2].T @ r) ** 2)) / 2
    return float(fdtrc(2, max(1, spline.freedom - own.shape[1] + 2), gain))
