"""Power series in 1/log t fitted to a curve at every degree and over several windows, with what the cut costs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.gls import ROUNDING, gls, rounding
from relaymodel.inference.noise import Noise
from relaymodel.inference.spline import Smooth
from relaymodel.inference.window import LEAST

HIGHEST = 8
"""Highest degree tried: beyond it rounding errors take over, even in noise-free data."""

LATE_PARTS = (1.0, 0.8, 0.64, 0.51)
"""Late parts of the window, as shares of its length in log t, that the limit is compared over."""


POWERS = np.geomspace(0.1, 2, 14)
"""Powers t^-delta tried for corrections that are powers of t; a curve without noise tells neighbours apart."""

ORDERS = 4
"""Most multiples of delta among the powers."""

BETTER = 200.0
"""A form that leaves residuals smaller by this factor is the curve's own."""

RATE_STEPS = np.append(0.0, np.geomspace(0.01, 1, 25))
"""Rates of growth t^rate between which the best is looked for, 0 for growth with log t; faster ones fall at once."""


@dataclass(frozen=True)
class Candidate:
    """The limit by a series of one degree over the cells from `first` on, and the two parts of its error.

    `form` is what it is a series in, `residual` the root mean square of what that leaves of log D, at its best, and
    `aicc` its least AICc, both over the whole window.
    """

    value: float
    noise: float
    truncation: float
    degree: int
    first: int
    residual: float
    aicc: float
    form: str

    @property
    def total(self) -> float:
        """Both errors combined."""
        return float(np.hypot(self.noise, self.truncation))


def truncation(values: list[float]) -> float:
    """Return the last two changes of values at rising degree, added up; twice the change if there is one only."""
    changes = [abs(b - a) for a, b in pairwise(values[-3:])]
    return float(sum(changes) * (2 if len(changes) == 1 else 1))


def fit_series(cells: Cells, y: Array, logarithm: Array, fit: Smooth, degree: int | None) -> list[Candidate]:
    """Return the best candidate for the limit of each form whose series has begun to converge, of one degree or any.

    `logarithm` (T,) is log t, or log(P + t), at the curve's points.  Degrees next to which the changes grow, by more
    than noise explains, are left out: their last changes say nothing of the rest.
    """
    # Integrals of (log t)^-k over log t, up to factors, averaged over cells as log D is.
    ratio = logarithm / logarithm[0]
    terms = [np.ones_like(ratio), -logarithm, np.log(ratio), *(ratio ** (1 - k) for k in range(2, HIGHEST + 1))]
    forms = {"1/log": [np.stack([cells.mean(term) for term in terms], axis=1)]}
    decays = [[np.exp(-k * d * (logarithm - logarithm[0])) for k in range(1, ORDERS + 1)] for d in POWERS]
    forms["1/t"] = [np.stack([cells.mean(term) for term in (*terms[:2], *decay)], axis=1) for decay in decays]
    found = []
    for form, designs in forms.items():
        candidates = [c for c in _converging(form, designs, y, fit) if degree in (None, c.degree)]
        if candidates:
            found.append(min(candidates, key=lambda c: c.total))
    return found


def growing_aicc(cells: Cells, y: Array) -> float:
    """Return the AICc of an exponent that grows without end, for log D (K,), at its best.

    It grows as log t or as t^rate, in a stretched exponential beside a power; infinite where such an exponent falls.
    """
    floor = float(rounding(y[:, None])[0])
    x = cells.along(cells.t)
    line = np.stack([np.ones_like(cells.x), cells.x], axis=1)

    def left(rate: float) -> tuple[float, float]:
        bend = cells.mean(np.exp(rate * (x - x[-1])) if rate else x * x)
        design = np.concatenate([line, bend[:, None]], axis=1)
        found = np.linalg.lstsq(design, y - y[0])[0]
        residual = float(np.sqrt(np.mean((y - y[0] - design @ found) ** 2) + floor))
        return _aicc(residual, y.size, 4), float(found[2])

    rates = RATE_STEPS.tolist()
    best = int(np.argmin([left(rate)[0] for rate in rates]))
    ends = rates[max(best - 1, 0)], rates[min(best + 1, len(rates) - 1)]
    near = minimize_scalar(lambda rate: left(rate)[0], bounds=ends, method="bounded", options={"xatol": 1e-10})
    aicc, bend = min(left(rates[best]), left(float(near.x)))
    return aicc if bend < 0 else np.inf


def _aicc(residual: float, points: int, parameters: int) -> float:
    return 2 * points * (float(np.log(residual)) + parameters / max(1, points - parameters - 1))


def _converging(form: str, designs: list[Array], y: Array, fit: Smooth) -> list[Candidate]:
    """Return the candidates of one form, of every degree and window; of several designs, those with least residuals."""
    x = -designs[0][:, 1]
    rows: list[list[_Limit]] = []  # for each window, limit and noise at degree 0, 1, ...
    firsts: list[int] = []
    for share in LATE_PARTS:
        first = int(np.searchsorted(x, x[-1] - share * (x[-1] - x[0]) * (1 + 1e-12)))
        if rows and (x[-1] - x[first] < np.log(10) or x.size - first < LEAST + 1):
            break
        late = slice(first, None)
        firsts.append(first)
        noise = Noise.single(fit.noise[late, late])
        each = [_limits(design[late], y[late], noise, fit.shared[late, late]) for design in designs]
        rows.append([min(same, key=lambda limit: limit.residual) for same in zip(*each, strict=True)])
    residual = min(limit.residual for limit in rows[0])
    aicc = min(_aicc(limit.residual, x.size, d + 2) for d, limit in enumerate(rows[0]))
    candidates = []
    for i, (first, limits) in enumerate(zip(firsts, rows, strict=True)):
        grows = _growing(limits)
        for d in range(1, len(limits)):
            if grows[d] or grows[d + 1]:
                continue
            value = limits[d].value
            cut = truncation([limit.value for limit in limits[: d + 1]])
            if i + 1 < len(rows) and d < len(rows[i + 1]):
                cut = max(cut, 2 * abs(value - rows[i + 1][d].value))
            elif i > 0:
                cut = max(cut, abs(value - rows[i - 1][d].value))
            candidates.append(Candidate(value, limits[d].error, cut, d, first, residual, aicc, form))
    return candidates


@dataclass(frozen=True)
class _Limit:
    value: float
    error: float
    residual: float


def _growing(limits: list[_Limit]) -> list[bool]:
    """Return for each degree, and for one more, whether its change exceeds the one before by more than two errors."""
    grows = [False, False]
    for a, b, c in zip(limits, limits[1:], limits[2:], strict=False):
        grows.append(abs(c.value - b.value) - 2 * c.error > abs(b.value - a.value) + 2 * b.error)
    return [*grows, False]


def _limits(design: Array, y: Array, noise: Noise, shared: Array) -> list[_Limit]:
    """Return the limit, its noise error and the residual at degree 0, 1, ... by generalised least squares."""
    floor = rounding(y[:, None])
    unit = float(np.median(np.diagonal(noise.covariances[0])))
    found: list[_Limit] = []
    y = (y - y[0])[:, None]
    most = min(design.shape[1], y.size - LEAST + 2)
    size = np.maximum(np.linalg.norm(design, axis=0), np.finfo(float).tiny)
    upper = np.abs(np.linalg.qr(noise.inverses[0] @ (design / size)[:, :most], mode="r"))
    own = np.diagonal(upper) > ROUNDING * upper.max(axis=0)
    for columns in range(2, most + 1):
        if not own[columns - 1] and found:  # powers of t that have decayed below rounding add nothing
            found.append(found[-1])
            continue
        part = (design / size)[:, :columns][:, own[:columns]]
        prepared = gls(part, noise)
        row = prepared.flat[0, 1]
        # the noise is scaled to the residuals; the factor is the variance of Student's t
        square = float(prepared.posterior(y, floor=floor / unit).square[0, 0, 0])
        variance = square / (prepared.freedom - 2) * prepared.normal[0, 1, 1] + row @ shared @ row
        left = y[:, 0] - part @ (prepared.flat[0] @ y[:, 0])
        residual = float(np.sqrt(np.mean(left**2) + np.mean(floor)))
        found.append(_Limit(float((row @ y)[0] / size[1]), float(np.sqrt(variance) / size[1]), residual))
    return found
