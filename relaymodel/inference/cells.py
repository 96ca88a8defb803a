"""Curves prepared for estimation: grouped into cells equal in log t, with the noise correlations to try."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import real, show
from relaymodel.curve import Curve

Array = NDArray[np.float64]

COUNT = 128
"""Most cells a curve is grouped into; a curve with no more points than this is used point by point."""

LEAST = 6
"""Fewest points from which an error can be estimated: a local quadratic leaves 3 degrees of freedom."""

SHORTEST = 1e-6
"""Least length of log t: below it the digits of t are spent."""

UNEVEN, FINEST = 1e5, float(np.finfo(float).eps)
"""Stated errors further from their median than this factor count as if they were not; the least median there can be."""

ROUNDING = 2.0**-51
"""Noise that any float64 distance has, relative to log D or 1."""

FIRST = 16.0
"""Where a fit starts unless told otherwise: before it the first few tokens' own words dominate."""


SHARES = (0.25, 0.5, 0.75, 1.0)
"""Correlated parts of the variance that are tried."""

WIDTHS = (6, 5)
"""How many correlation lengths are tried, in tokens and in log t."""


class UnderdeterminedError(ValueError):
    """The curve holds too little to answer; `partial` holds what could be computed.

    Attributes
    ----------
    partial
        `PowerLaw` where a power law could still be fitted, otherwise a float: the slope
        -dlog D/dlog t between the first and the last point used, without an error.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message, partial)  # both, so that it pickles
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, eq=False)
class Cells:
    """Groups of neighbouring points, over which log t and log D are averaged.

    A cell covers an equal length of log t, so that a dense linear curve does not let its last octave
    outvote all the others.  `starts` (K,) indexes the first point of each cell, `sizes` (K,) counts them, `x` (K,) are
    the mean log t.  Cells of the same t and the same profile of errors are equal: what depends on nothing else is
    prepared once for all curves of a grid.
    """

    t: Array
    starts: NDArray[np.intp]
    sizes: Array
    x: Array
    relative: Array | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cells) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[bytes, bytes]:
        return self.t.tobytes(), b"" if self.relative is None else self.relative.tobytes()

    @classmethod
    def of(cls, curve: Curve) -> "Cells":
        """Group a curve; raise `UnderdeterminedError` if it holds fewer than `LEAST` points."""
        x, y = np.log(curve.t), np.log(curve.distance)
        if x[-1] - x[0] < SHORTEST:
            raise ValueError(
                f"the points must span at least {SHORTEST:g} of log t for an exponent, got t = {curve.t[0]:.15g} to "
                f"{curve.t[-1]:.15g}; take a longer window"
            )
        if len(curve) < LEAST:
            raise UnderdeterminedError(
                f"the curve must hold at least {LEAST} points between t = {curve.t[0]:.6g} and {curve.t[-1]:.6g} "
                f"for an error to be estimated, got {len(curve)}; widen the window or sample more densely",
                partial=float(-(y[-1] - y[0]) / (x[-1] - x[0])),
            )
        if len(curve) <= COUNT:
            starts = np.arange(len(curve))
        else:
            cell = np.minimum((x - x[0]) * (COUNT / (x[-1] - x[0])), COUNT - 1).astype(int)
            starts = np.flatnonzero(np.diff(cell, prepend=-1))
        sizes = np.diff(starts, append=len(curve)).astype(float)
        if sizes.size < LEAST:
            raise UnderdeterminedError(
                f"the points of the curve must spread over at least {LEAST} cells equal in log t, got {sizes.size} "
                f"between t = {curve.t[0]:.6g} and {curve.t[-1]:.6g}; leave out the points that stand alone",
                partial=float(-(y[-1] - y[0]) / (x[-1] - x[0])),
            )
        centre = np.add.reduceat(x, starts) / sizes
        relative, stated = None, _stated(curve)
        if np.any(stated > 0):
            middle = np.median(stated[stated > 0])
            if not FINEST < middle < 1 / FINEST:
                raise ValueError(
                    f"stderr must be between {FINEST:.1g} and {1 / FINEST:.1g} of the distance, got a median of "
                    f"{middle:.3g}; leave it out if it is not known"
                )
            stated = np.where(stated > 0, np.clip(stated, middle / UNEVEN, middle * UNEVEN), 0)
            square = np.add.reduceat(stated**2, starts) / sizes
            relative = np.sqrt(_profile(centre, square))
        return cls(curve.t, starts, sizes, centre, relative)

    def mean(self, values: Array) -> Array:
        """Return the means (K,) over the cells of one value (T,) a point."""
        means: Array = np.add.reduceat(values, self.starts) / self.sizes
        return means

    def log(self, curve: Curve) -> Array:
        """Return the means (K,) of log D over the cells, of a curve with these t."""
        return self.mean(np.log(curve.distance))

    @property
    def weights(self) -> Array:
        """Lengths of log t (K,) the cells stand for, with mean 1."""
        width: Array = np.gradient(self.x)
        return width / np.mean(width)

    @property
    def nodes(self) -> Array:
        """Two values of t a cell, shape (2 K,), a standard deviation of log t below and above its mean.

        The mean of a smooth function over both is that over the cell's points, up to third order of its width.
        """
        spread = np.sqrt(np.maximum(0.0, self.mean(np.log(self.t) ** 2) - self.x**2)) * (self.sizes > 1)
        return np.asarray(np.exp(np.concatenate([self.x - spread, self.x + spread])))

    def correlations(self) -> Iterator[tuple[float, Array]]:
        r"""Yield candidates for the noise of the cell means: correlation length, covariance (K, K).

        A point's noise is white in part, and in part correlated along t:
        $\langle \epsilon_t \epsilon_{t'} \rangle = (1-\phi)\,\delta_{tt'} + \phi\, e^{-d(t, t')/\tau}$, times the
        points' own variances if the curve has a stderr.  The distance d is in tokens, which is what the noise of one
        run is correlated in, or in log t, as with noise of the prompts that fades along the curve.  The correlation
        length is that of the first kind, the integral of the correlation: $(1 - \phi)$ times the spacing plus
        $2 \phi\tau$, the tokens that are worth one independent point; of the second kind likewise, in tokens at the
        middle of the curve.
        """
        scale = 1.0 if self.relative is None else np.outer(self.relative, self.relative)
        white = np.diag(1 / self.sizes)
        spacing = float(np.min(np.diff(self.t)))
        yield spacing, white * scale
        longest = (self.t[-1] - self.t[0]) / 8
        for tau in np.geomspace(2 * spacing, longest, WIDTHS[0]) if longest > 2 * spacing else ():
            smooth = self._averaged(float(tau))
            for phi in SHARES:
                yield (1 - phi) * spacing + 2 * phi * tau, ((1 - phi) * white + phi * smooth) * scale
        distance = np.abs(self.x[:, None] - self.x[None, :])
        centre = float(np.exp((self.x[0] + self.x[-1]) / 2))
        closest = float(np.median(np.diff(self.x)))
        for tau in np.geomspace(closest, (self.x[-1] - self.x[0]) / 6, WIDTHS[1]):
            smooth = np.exp(-distance / tau)
            for phi in SHARES:
                yield (1 - phi) * spacing + 2 * phi * tau * centre, ((1 - phi) * white + phi * smooth) * scale

    @property
    def prior(self) -> Array:
        """Log prior weights of the candidates: half for white noise, a quarter each for noise along t and log t."""
        along = 0 if (self.t[-1] - self.t[0]) / 8 <= 2 * float(np.min(np.diff(self.t))) else WIDTHS[0] * len(SHARES)
        fades = WIDTHS[1] * len(SHARES)
        return np.asarray(np.log(np.concatenate([[2.0], np.full(along, 1 / max(along, 1)), np.full(fades, 1 / fades)])))

    def _averaged(self, tau: float) -> Array:
        """Return exp(-|t - t'|/tau) averaged over pairs of cells (K, K); the exponential factorises."""
        ends = np.append(self.starts[1:], self.t.size) - 1
        first, last = self.t[self.starts], self.t[ends]
        cell = np.repeat(np.arange(self.sizes.size), self.sizes.astype(int))
        forward = self.mean(np.exp((self.t - last[cell]) / tau))
        backward = self.mean(np.exp((first[cell] - self.t) / tau))
        gap = np.maximum(first[None, :] - last[:, None], 0)  # from row cell to a later column cell
        upper = np.triu(forward[:, None] * np.exp(-gap / tau) * backward[None, :], 1)
        # within a cell the points are as good as equally spaced
        inside = np.ones_like(first)
        for k in np.flatnonzero(self.sizes > 1):
            n = int(self.sizes[k])
            lag = np.arange(1, n)
            inside[k] = (1 + 2 * np.sum((1 - lag / n) * np.exp(-lag * (last[k] - first[k]) / ((n - 1) * tau)))) / n
        averaged: Array = upper + upper.T + np.diag(inside)
        return averaged


def _stated(curve: Curve) -> Array:
    """Return the relative standard error of each distance (T,), 0 where it is not known.

    Of pairs, once each has been freed of a factor of its own, which is no noise of an exponent.
    """
    if curve.pairs is None:
        return np.zeros(len(curve)) if curve.stderr is None else curve.stderr / curve.distance
    logs, length = np.log(curve.pairs), np.gradient(np.log(curve.t))
    own = logs - (logs @ length / length.sum())[:, None]
    return np.asarray(own.std(axis=0, ddof=1) / np.sqrt(len(own)))


def _profile(x: Array, square: Array) -> Array:
    """Return stated variances smoothed over half an e-fold of t, with the same mean.

    A stderr from a few pairs is itself a random number; weighting by it as it stands would hand the fit to the points
    whose pairs happen to agree, and to those with a stderr of 0 altogether.
    """
    known = square > 0
    exponent = -2 * (x[:, None] - x[None, known]) ** 2
    kernel = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    smoothed: Array = np.exp(kernel @ np.log(square[known]) / kernel.sum(axis=1))
    return smoothed * np.mean(square[known] / smoothed[known])


def part(curve: Curve, t_min: float | None, t_max: float | None) -> Curve:
    """Return the part of the curve from `t_min` to `t_max`, both checked; None leaves an end open."""
    return curve.window(_end("t_min", t_min), _end("t_max", t_max))


def _end(name: str, t: float | None) -> float | None:
    if t is None:
        return None
    try:
        return float(real(name, t))
    except OverflowError:
        raise ValueError(f"{name} must be at most {np.finfo(float).max:.2g}, got {show(t)}") from None


def window(curve: Curve, t_min: float | None, t_max: float | None) -> Curve:
    """Return the part of the curve to fit: from `t_min`, by default from t = 16, to `t_max`, by default the end.

    The default start is 16 if at least a decade and `LEAST` points remain from there on; otherwise it is
    the curve's first point.
    """
    used = part(curve, t_min, t_max)
    if t_min is not None:
        return used
    rest = np.count_nonzero(used.t >= FIRST)
    return used.window(t_min=FIRST) if rest >= LEAST and used.t[-1] >= 10 * FIRST else used
