"""Power series in 1/log t fitted to a curve at every degree and over several windows, with what the cut costs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from relaymodel.inference.cells import LEAST, ROUNDING, Array, Cells
from relaymodel.inference.smoothing import Smooth

HIGHEST = 8
"""Highest degree tried: beyond it rounding errors take over, even in noise-free data."""

LATE_PARTS = (1.0, 0.8, 0.64, 0.51)
"""Late parts of the window, as shares of its length in log t, that the limit is compared over."""


@dataclass(frozen=True)
class Candidate:
    """The limit by a series of one degree over the cells from `first` on, and the two parts of its error."""

    value: float
    noise: float
    truncation: float
    degree: int
    first: int

    @property
    def total(self) -> float:
        """Both errors combined."""
        return float(np.hypot(self.noise, self.truncation))


def truncation(values: list[float]) -> float:
    """Return the last two changes of values at rising degree, added up; twice the change if there is one only."""
    changes = [abs(b - a) for a, b in pairwise(values[-3:])]
    return float(sum(changes) * (2 if len(changes) == 1 else 1))


def fit_series(cells: Cells, y: Array, logarithm: Array, fit: Smooth) -> list[Candidate]:
    """Return candidates for the limit, of every degree and window whose series has begun to converge.

    `logarithm` (T,) is log t, or log(P + t), at the curve's points.  Degrees next to which the changes grow, by more
    than noise explains, are left out: their last changes say nothing of the rest.
    """
    # Integrals of (log t)^-k over log t, up to factors, averaged over cells as log D is.
    ratio = logarithm / logarithm[0]
    terms = [np.ones_like(ratio), -logarithm, np.log(ratio), *(ratio ** (1 - k) for k in range(2, HIGHEST + 1))]
    design = np.stack([cells.mean(term) for term in terms], axis=1)
    x = -design[:, 1]
    rows: list[list[tuple[float, float]]] = []  # for each window, limit and noise at degree 0, 1, ...
    firsts: list[int] = []
    for share in LATE_PARTS:
        first = int(np.searchsorted(x, x[-1] - share * (x[-1] - x[0]) * (1 + 1e-12)))
        if rows and (x[-1] - x[first] < np.log(10) or x.size - first < LEAST + 1):
            break
        late = slice(first, None)
        firsts.append(first)
        rows.append(_limits(design[late], y[late], fit.noise[late, late], fit.shared[late, late]))
    candidates = []
    for i, (first, limits) in enumerate(zip(firsts, rows, strict=True)):
        grows = _growing(limits)
        for d in range(1, len(limits)):
            if grows[d] or grows[d + 1]:
                continue
            value, error = limits[d]
            cut = truncation([v for v, _ in limits[: d + 1]])
            if i + 1 < len(rows) and d < len(rows[i + 1]):
                cut = max(cut, 2 * abs(value - rows[i + 1][d][0]))
            elif i > 0:
                cut = max(cut, abs(value - rows[i - 1][d][0]))
            candidates.append(Candidate(value, error, cut, d, first))
    return candidates


def _growing(limits: list[tuple[float, float]]) -> list[bool]:
    """Return for each degree, and for one more, whether its change exceeds the one before by more than two errors."""
    grows = [False, False]
    for (a, _), (b, small), (c, large) in zip(limits, limits[1:], limits[2:], strict=False):
        grows.append(abs(c - b) - 2 * large > abs(b - a) + 2 * small)
    return [*grows, False]


def _limits(design: Array, y: Array, noise: Array, shared: Array) -> list[tuple[float, float]]:
    """Return the limit and its noise error at degree 0, 1, ... by generalised least squares."""
    lower = np.linalg.cholesky(noise)
    data = np.linalg.solve(lower, y)
    white = np.linalg.solve(lower, design)
    size = np.linalg.norm(white, axis=0)
    floor = np.sum(np.linalg.solve(lower, ROUNDING * np.maximum(1, np.abs(y))) ** 2)
    found = []
    for columns in range(2, min(HIGHEST, y.size - LEAST) + 3):
        scaled = white[:, :columns] / size[:columns]
        inverse = np.linalg.pinv(scaled, rcond=1e-14)
        coefficients = inverse @ data
        square = np.sum((data - scaled @ coefficients) ** 2) + floor
        row = np.linalg.solve(lower.T, inverse[1])
        # the noise is scaled to the residuals; the factor is the variance of Student's t
        variance = square / (y.size - columns - 2) * np.sum(inverse[1] ** 2) + row @ shared @ row
        found.append((float(coefficients[1] / size[1]), float(np.sqrt(variance) / size[1])))
    return found
