"""A power law fitted to a window of a curve, with an honest error and a test of whether it is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relaymodel.curve import Curve
from relaymodel.display import figure, table
from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.estimate import Estimate
from relaymodel.inference.gls import LEVEL, linear_errors, misfit, rounding
from relaymodel.inference.noise import Noise
from relaymodel.inference.pool import pair_errors, pool
from relaymodel.inference.spline import Smooth, smooth, wave_columns
from relaymodel.inference.threads import one_thread
from relaymodel.inference.waves import said
from relaymodel.inference.window import LEAST, window

NOT_EVEN = 2.0
"""Variance of the local exponents, in units of an even drift's, from which on they do not drift evenly."""

SIGNIFICANT = 3.84
"""Square of a drift, in its errors, that a true power law exceeds one time in twenty."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerLaw(Estimate):
    r"""The power law $D \approx A t^{-\alpha}$ of a window; see `fit_power_law`.

    Attributes
    ----------
    value, stderr, lower, upper
        The exponent (also `alpha`), its standard error (noise, correlated along t, and drift of the exponent in the
        window), and the 95 % interval, 1.96 errors to each side.
    noise_stderr
        The part of it that comes from noise alone.
    naive_stderr
        What the textbook formula for independent residuals says: far too small.
    amplitude, amplitude_stderr
        A, which is D extrapolated to t = 1, and its standard error by the same account; 0 or infinite beyond float64,
        as from a window far from t = 1.
    each
        The exponent of each pair, whose mean is the value; empty for a curve without pairs.
    window, points
        First and last t, and the number of points.
    drift, drift_stderr
        Change of the local exponent from the window's first to its last t, by a quadratic of least squares.
    p_value
        Probability that a true power law would bend as much as this one or more.  It is approximate: in simulations 2 %
        (white noise) to 11 % (correlated over a tenth of the window) of power laws had one below 0.05.
    adequate
        Whether a pure power law describes the window: `p_value >= 0.05`.
    scatter, correlation_length
        Standard deviation of one point's log D, and how many tokens are worth one independent point.
    method, provenance
        How the values were found, and what the curve says of itself.
    """

    noise_stderr: float
    naive_stderr: float
    amplitude: float
    amplitude_stderr: float
    each: tuple[float, ...] = ()
    window: tuple[float, float]
    points: int
    drift: float
    drift_stderr: float
    p_value: float
    adequate: bool
    scatter: float
    correlation_length: float
    method: str = "least squares of log D on log t"
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def alpha(self) -> float:
        """The exponent."""
        return self.value

    def __repr__(self) -> str:
        return (
            f"PowerLaw(alpha = {figure(self.alpha, self.stderr)}, t = {self.window[0]:.6g}..{self.window[1]:.6g}, "
            f"{'adequate' if self.adequate else 'not adequate'}, drift = {figure(self.drift, self.drift_stderr)})"
        )

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        rows = [
            ("α", figure(self.alpha, self.stderr)),
            ("error from noise alone", f"{self.noise_stderr:.2g}"),
            ("error if residuals were independent", f"{self.naive_stderr:.2g}"),
            ("window", f"t = {self.window[0]:.6g} to {self.window[1]:.6g}, {self.points} points"),
            ("drift of α in the window", figure(self.drift, self.drift_stderr)),
            *(("note", caveat) for caveat in self.caveats),
            ("a pure power law is adequate", f"{'yes' if self.adequate else 'no'} (p = {self.p_value:.2g})"),
            ("other laws", "see relaymodel.inference.compare_laws"),
            ("method", self.method),
        ]
        return table("Power law", [*rows, *self.provenance.items()])


@one_thread
def fit_power_law(
    curve: Curve | Sequence[Curve], *, t_min: float | None = None, t_max: float | None = None
) -> PowerLaw:
    r"""Fit $D = A t^{-\alpha}$ to a window by least squares of log D on log t.

    Every length of log t weighs the same: on log-spaced points this is `np.polyfit(log t, log D, 1)`; on dense
    ones `np.polyfit` would give the last octave half of all the weight.

    The exponent describes the window.  A forgetting curve $(\log t)^{L-1}/t$ gives 0.2 to 0.8 with a tiny
    `naive_stderr` where its limit is 1 (THEORY section 3); `extrapolate_exponent` is for the limit.  The standard
    error is the root of `noise_stderr`^2 + max(0, `drift`^2 - 3.84 `drift_stderr`^2)/12, where the last term is the
    variance of an exponent that drifts evenly over the window, as far as the drift is significant, and the noise is the
    one the residuals of the line show if it is adequate, and the one `estimate_exponent` finds if it is not.  Where the
    local exponents vary by twice as much or more, as in waves, it is their variance over the window, less its error.
    `adequate` tests the bend: the generalised least squares gain from adding $(\log t)^2$ and $(\log t)^3$,
    as an F statistic.  Whether the window can tell a power law from $A t^{-a} + c$, $A (\log t)^k/t$ and the relay
    model, and what would be needed if not, is what `relaymodel.inference.compare_laws` answers.

    Parameters
    ----------
    curve
        At least 6 points in the window.  A list holds curves of independent pairs on the same t: their geometric mean
        is fitted, and the noise is taken from how the pairs differ.
    t_min, t_max
        The window.  `t_max` is by default the last t.  `t_min` is by default 16 if at least a decade and 6 points
        remain from there on, otherwise the first t.

    Raises
    ------
    UnderdeterminedError
        For fewer than 6 points; `partial` is the slope between the first and the last.
    ValueError
        For a window with fewer than 2 points.

    Examples
    --------
    >>> t = np.geomspace(1e2, 1e7, 80)
    >>> fit_power_law(Curve(t, 3 * t**-0.5)).adequate
    True
    >>> fit_power_law(Curve(t, np.log(t) / t))  # the limit is 1
    PowerLaw(alpha = ..., t = 100..1e+07, not adequate, drift = ...)
    """
    used = window(pool(curve), t_min, t_max)
    cells = Cells.of(used)
    y = cells.log(used)
    fit = smooth(cells, y, cells.x)
    n = cells.x.size
    weights = cells.weights
    line = np.stack([np.ones(n), -cells.x], axis=1)
    normal = np.linalg.inv(line.T @ (weights[:, None] * line))
    functional = normal @ line.T * weights
    floor, level = float(rounding(y[:, None])[0]), float(y[0])
    y = y - level  # of a constant the slope is 0 to the last digit
    residual = y - line @ (functional @ y)
    functional[0] += np.log(used.t[0]) * functional[1]  # the line is counted from the first t, the amplitude from 1
    log_amplitude, alpha = functional @ y
    log_amplitude += level
    naive = np.sqrt(normal[1, 1] * np.sum(weights * residual**2) / (n - 2))
    covariance = fit.noise + fit.shared
    drift = drift_of(cells)
    bend, bend_stderr = float(drift @ y) + 0.0, float(np.sqrt(drift @ covariance @ drift))
    p_value = misfit(line, residual, cells.unit, covariance, fit.freedom)
    if fit.waves:  # a line makes them so much likelier at most that seldom (Markov's inequality)
        p_value = min(p_value, 1 / fit.odds)
    each: tuple[float, ...] = ()
    if used.pairs is not None:
        variance = pair_errors(used, cells, functional.T) ** 2
        each = tuple(float(functional[1] @ cells.mean(row - row[0])) for row in np.log(used.pairs))
    else:
        design = line if p_value >= LEVEL else _polynomial(cells, y, fit)
        variance = np.diag(functional @ fit.shared @ functional.T)
        if design is None:
            variance = variance + np.diag(functional @ fit.noise @ functional.T)
        else:  # polynomials leave the noise more room than a spline does, which follows some of it
            variance = variance + linear_errors(Noise.of(cells), y, design, functional.T, floor=floor) ** 2
    drifting = max(0.0, bend**2 - SIGNIFICANT * bend_stderr**2) / 12
    uneven = float(weights @ ((fit.alpha - alpha) ** 2 - SIGNIFICANT * fit.variance)) / n
    if p_value < LEVEL and uneven > NOT_EVEN * drifting:
        drifting = uneven
    with np.errstate(over="ignore"):
        amplitude = float(np.exp(log_amplitude))
    centre = float(np.log(used.t[0]) + weights @ cells.x / n)  # a drift turns the line about its middle
    spread = float(np.sqrt(variance[0] + drifting * centre**2))
    value, stderr = float(alpha) + 0.0, float(np.sqrt(variance[1] + drifting))
    return PowerLaw(
        value=value,
        stderr=stderr,
        lower=value - 1.96 * stderr,
        upper=value + 1.96 * stderr,
        each=each,
        noise_stderr=float(np.sqrt(variance[1])),
        naive_stderr=float(naive),
        amplitude=amplitude,
        amplitude_stderr=amplitude * spread if spread else 0.0,  # an amplitude beyond float64 times 0 is not a number
        window=(float(used.t[0]), float(used.t[-1])),
        points=len(used),
        drift=bend,
        drift_stderr=bend_stderr,
        p_value=p_value,
        adequate=p_value >= LEVEL,
        caveats=said(cells.length, fit.waves),
        scatter=fit.scatter,
        correlation_length=fit.correlation_length,
        provenance=used.provenance,
    )


def _polynomial(cells: Cells, y: Array, fit: Smooth) -> Array | None:
    """Return the powers of log t, and waves (K, q), that describe a curve, the fewest powers of up to 5, or None."""
    beside = wave_columns(cells, fit.waves)
    for degree in range(2, min(5, cells.x.size - LEAST) + 1):
        powers = np.asarray(np.polynomial.legendre.legvander(cells.unit, degree), dtype=np.float64)
        design = np.concatenate([powers, beside], axis=1)
        residual: Array = y - design @ np.linalg.lstsq(design, y)[0]
        if misfit(design, residual, cells.unit, fit.noise + fit.shared, fit.freedom) >= LEVEL:
            return design
    return None


def drift_of(cells: Cells) -> Array:
    """Return what makes of log D (K,) the change of the exponent over the window, by a quadratic of least squares."""
    powers = cells.over(
        np.polynomial.legendre.legvander(np.interp(cells.nodes[0].ravel(), cells.x[[0, -1]], [-1, 1]), 2)
    )
    root = np.sqrt(cells.weights)
    # P2 has slopes -3 and 3 at the ends of the window, and dz/dlog t = 2/width
    return np.asarray(-12 / cells.length * np.linalg.pinv(powers * root[:, None])[2] * root)
