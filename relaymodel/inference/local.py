"""The local exponent of a curve, alpha(t) = -dlog D/dlog t, with its standard errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from relaymodel.checks import demand, series
from relaymodel.curve import Curve
from relaymodel.display import figure, table
from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.noise import Noise
from relaymodel.inference.pool import pair_errors, pool
from relaymodel.inference.spline import slopes, smooth
from relaymodel.inference.threads import one_thread
from relaymodel.inference.waves import said
from relaymodel.inference.window import part

POINT_COUNT = 41
"""At how many t, equally spaced in log t, exponents are given unless told otherwise."""

DRAWS, JUDGED = 96, 7
"""How many curves are drawn, and at how many t, equally spaced in log t, they are judged."""

SMALLEST, LARGEST_FACTOR = 0.6, 2.5
"""How far an error is corrected; a stronger correction would rest on draws that are unlike the curve."""


@dataclass(frozen=True, eq=False)
class LocalExponent:
    """Local exponents of a curve; see `estimate_exponent`.

    Attributes
    ----------
    t, value, stderr, lower, upper
        Shape (M,): where, exponents (also `alpha`), standard errors and 95 % intervals.
    scatter
        Standard deviation of one point's log D about the smooth curve.
    correlation_length
        How many tokens of the curve are worth one independent point.
    bandwidth
        Length of log t over which the curve is smoothed: the length of log t of the curve over the effective number
        of parameters.
    caveats
        What else the curve shows, a sentence each: waves in log t, whose slope the values hold.
    method, provenance
        How the values were found, and what the curve says of itself.
    """

    t: Array
    value: Array
    stderr: Array
    scatter: float
    correlation_length: float
    bandwidth: float
    caveats: tuple[str, ...] = ()
    method: str = "quintic smoothing spline in log t, restricted likelihood; errors calibrated by a bootstrap"
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def alpha(self) -> Array:
        """The exponents."""
        return self.value

    @property
    def adequate(self) -> bool:
        """Whether a smooth curve and noise describe it, without waves in log t."""
        return not self.caveats

    @property
    def lower(self) -> Array:
        """Lower ends (M,) of the 95 % intervals."""
        return self.value - 1.96 * self.stderr

    @property
    def upper(self) -> Array:
        """Upper ends (M,) of the 95 % intervals."""
        return self.value + 1.96 * self.stderr

    def __repr__(self) -> str:
        first, last = (figure(self.alpha[i], self.stderr[i]) for i in (0, -1))
        return (
            f"LocalExponent({self.t.size} points, alpha = {first} at t = {self.t[0]:.6g}, "
            f"{last} at t = {self.t[-1]:.6g})"
        )

    def _repr_html_(self) -> str:
        shown = np.unique(np.linspace(0, self.t.size - 1, 9).astype(int))
        rows = [(f"α({self.t[i]:.4g})", figure(self.alpha[i], self.stderr[i])) for i in shown]
        return table(
            "Local exponent",
            [*rows, *(("note", caveat) for caveat in self.caveats), ("method", self.method), *self.provenance.items()],
        )


@one_thread
def estimate_exponent(
    curve: Curve | Sequence[Curve],
    t: ArrayLike | None = None,
    *,
    t_min: float | None = None,
    t_max: float | None = None,
) -> LocalExponent:
    r"""Estimate $\alpha(t) = -\mathrm d\log D/\mathrm d\log t$ (THEORY section 3) from a curve.

    A quintic smoothing spline is fitted to log D against log t, beside waves in log t that make the curve a hundred
    times as likely or more; `caveats` names them, and their slopes are part of the exponents.  The spline's bandwidth
    and the correlation of the noise along t are chosen together by the restricted likelihood, and the standard errors
    hold the noise, the smoothing bias and the uncertainty of the bandwidth; a bootstrap of curves like the one given
    then sets them so that 1.96 of them are the 95 % interval.  If the curve has a stderr, it weights the points; where
    it exceeds the scatter along t, the excess is taken as a deviation common to neighbouring t (pairs of prompts
    differ over the whole curve) that varies over an e-fold of t, and adds to the errors.

    Parameters
    ----------
    curve
        Dense or log-spaced, with gaps or without; noise-free or noisy.  More than 128 points are averaged over cells
        equal in log t.  Of 8 points or more, 95 % intervals cover the truth about as often as they say; of 6 or 7, nine
        times in ten; less often where the exponent changes within less than an e-fold of t under noise.  The errors
        are those of this curve: without a stderr nothing is known of how another pair of prompts would differ.  A list
        holds curves of independent pairs on the same t: their geometric mean is used, and the noise is taken from how
        the pairs differ, however they are correlated along t.
    t
        Shape (M,): where to estimate, between the first and the last point used.  By default 41 points
        equally spaced in log t.
    t_min, t_max
        Part of the curve to use; by default all of it.

    Raises
    ------
    UnderdeterminedError
        For fewer than 6 points; `partial` is the slope between the first and the last.
    TypeError, ValueError
        For t outside the part of the curve that is used, and for values that are not numbers.

    Examples
    --------
    >>> t = np.geomspace(10, 1e6, 60)
    >>> local = estimate_exponent(Curve(t, np.log(t) / t), [1e2, 1e4])
    >>> np.round(local.alpha, 4)  # 1 - 1/log t
    array([0.7829, 0.8914])
    """
    used = part(pool(curve), t_min, t_max)
    if t is None:
        at = np.geomspace(used.t[0], used.t[-1], POINT_COUNT)
        at[-1] = used.t[-1]
    else:
        at = series("t", t)
        demand(
            "t",
            at,
            (at >= used.t[0]) & (at <= used.t[-1]),
            f"within {used.t[0]:.6g}..{used.t[-1]:.6g}, as is the curve",
        )
    cells = Cells.of(used)
    y = cells.log(used)
    fit = smooth(cells, y, cells.along(at))
    if used.pairs is None:
        variance = fit.variance * inflation(cells, y, cells.along(at), fit.waves) ** 2 + fit.lasting
    else:
        variance = fit.bias + pair_errors(used, cells, fit.functional) ** 2
    return LocalExponent(
        t=at,
        value=fit.alpha,
        stderr=np.sqrt(variance),
        scatter=fit.scatter,
        correlation_length=fit.correlation_length,
        bandwidth=float(np.log(used.t[-1] / used.t[0])) / fit.effective,
        caveats=said(cells.length, fit.waves),
        provenance=used.provenance,
    )


def inflation(cells: Cells, y: Array, at: Array, waves: tuple[float, ...] = ()) -> Array:
    """Return the factors (M,) that make 1.96 standard errors of local exponents 95 % intervals.

    `at` (M,) is log t, counted as the cells' is.

    The fit, smoothed once more lest noise that it follows be taken for the curve's, is drawn again with noise of its
    candidates by their probability.  Each draw is fitted, and what counts is how many errors its exponents are off: a
    parametric bootstrap of the pivot (Beran, Biometrika 74, 457 (1987)).  Its root mean square varies along the curve,
    and the rest of its distribution is taken to be the same everywhere.  Seeded, so that a curve has one answer.
    """
    rng = np.random.default_rng(len(cells.x))
    inner = np.linspace(cells.x[0], cells.x[-1], JUDGED + 2)[1:-1]
    fit = smooth(cells, y, inner, waves)
    line = fit.smoother @ y
    which = np.searchsorted(np.cumsum(fit.shares), (np.arange(DRAWS) + 0.5) / DRAWS * fit.shares.sum())
    white = rng.standard_normal((cells.x.size, DRAWS))
    noise = np.empty_like(white)
    for kind in np.unique(which):
        drawn = which == kind
        noise[:, drawn] = Noise.single(fit.kinds[kind]).roots[0] @ white[:, drawn]
    alpha, variance = slopes(cells, (fit.smoother @ line)[:, None] + noise, inner, waves)
    off = np.abs(alpha - (line @ fit.functional)[:, None]) / np.sqrt(variance)
    typical = np.sqrt(np.mean(off**2, axis=1))
    factor = np.quantile(off / typical[:, None], 0.95) / 1.96 * typical
    # draws with noise are no guide to a curve without, which the spline interpolates
    least = max(SMALLEST, min(1.0, 1.25 * fit.effective / cells.x.size))
    factors: Array = np.interp(at, inner, np.clip(factor, least, LARGEST_FACTOR))
    return factors
