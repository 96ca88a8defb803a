"""Curves prepared for estimation: grouped into cells equal in log t."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.curve import Curve
from relaymodel.inference.window import LEAST, UnderdeterminedError

Array = NDArray[np.float64]

COUNT = 128
"""Most cells a curve is grouped into; a curve with no more points than this is used point by point."""

SHORTEST = 1e-6
"""Least length of log t: below it the digits of t are spent."""

FINEST = float(np.finfo(float).eps)
"""The least median of stated errors there can be, in units of the distance; its inverse is the largest."""

UNEVEN = 1e5
"""Stated errors further from their median than this factor count as if they were not."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Groups of neighbouring points, over which log t and log D are averaged.

    A cell covers an equal length of log t, so that a dense linear curve does not let its last octave
    outvote all the others.  `starts` (K,) indexes the first point of each cell, `sizes` (K,) counts them, `x` (K,) are
    the means of log t, counted from the first point.  `relative` (K,) are the stated standard errors of a point's
    log D.  Cells of the same t and the same profile of errors are equal: what depends on nothing else is prepared once
    for all curves of a grid.
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
        x = _logarithm(curve.t, curve.t[0])
        if x[-1] < SHORTEST:
            raise ValueError(
                f"the points must span at least {SHORTEST:g} of log t for an exponent, got t = {curve.t[0]:.15g} to "
                f"{curve.t[-1]:.15g}; take a longer window"
            )
        slope = float((np.log(curve.distance[0]) - np.log(curve.distance[-1])) / x[-1])
        if len(curve) < LEAST:
            raise UnderdeterminedError(
                f"the curve must hold at least {LEAST} points between t = {curve.t[0]:.6g} and {curve.t[-1]:.6g} "
                f"for an error to be estimated, got {len(curve)}; widen the window or sample more densely",
                partial=slope,
            )
        if len(curve) <= COUNT:
            starts = np.arange(len(curve))
        else:
            cell = np.minimum(x * (COUNT / x[-1]), COUNT - 1).astype(int)
            starts = np.flatnonzero(np.diff(cell, prepend=-1))
        sizes = np.diff(starts, append=len(curve)).astype(float)
        if sizes.size < LEAST:
            raise UnderdeterminedError(
                f"the points of the curve must spread over at least {LEAST} cells equal in log t, got {sizes.size} "
                f"between t = {curve.t[0]:.6g} and {curve.t[-1]:.6g}; leave out the points that stand alone",
                partial=slope,
            )
        centre = np.add.reduceat(x, starts) / sizes
        stated = _stated(curve)
        if not np.any(stated > 0):
            return cls(curve.t, starts, sizes, centre, None)
        middle = float(np.median(stated[stated > 0]))
        if not FINEST < middle < 1 / FINEST:
            raise ValueError(
                f"stderr must be between {FINEST:.1g} and {1 / FINEST:.1g} of the distance, got a median of "
                f"{middle:.3g}; leave it out if it is not known"
            )
        stated = np.where(stated > 0, np.clip(stated, middle / UNEVEN, middle * UNEVEN), 0)
        relative = np.sqrt(_profile(centre, np.add.reduceat(stated**2, starts) / sizes))
        return cls(curve.t, starts, sizes, centre, relative)

    def mean(self, values: Array) -> Array:
        """Return the means (K,) over the cells of one value (T,) a point."""
        means: Array = np.add.reduceat(values, self.starts) / self.sizes
        return means

    def log(self, curve: Curve) -> Array:
        """Return the means (K,) of log D over the cells, of a curve with these t."""
        return self.mean(np.log(curve.distance))

    def along(self, t: Array) -> Array:
        """Return log t counted from the first point, as `x` is."""
        return _logarithm(t, self.t[0])

    @property
    def length(self) -> float:
        """The curve's length of log t."""
        return float(self.x[-1] - self.x[0])

    @property
    def weights(self) -> Array:
        """Lengths of log t (K,) the cells stand for, with mean 1."""
        width: Array = np.gradient(self.x)
        return width / np.mean(width)

    @property
    def unit(self) -> Array:
        """Means of log t (K,) from -1 at the first cell to 1 at the last."""
        return np.asarray(2 * (self.x - self.x[0]) / self.length - 1)

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Two log t a cell, counted from the first point, and their weights, shape (2, K) each.

        They have the first three moments of log t over the cell's points, so that the mean of a smooth function is that
        over these points up to fourth order of the cell's width.
        """
        deviation = self.along(self.t) - np.repeat(self.x, self.sizes.astype(int))
        variance = self.mean(deviation**2)
        spread = np.sqrt(variance)
        flat = spread < 1e-12  # a single point, up to rounding
        skew = np.where(flat, 0, self.mean(deviation**3) / np.where(flat, 1, spread) ** 3) / 2
        root = np.sqrt(1 + skew**2)
        places = self.x + spread * np.stack([skew - root, skew + root])
        return places, np.stack([1 + skew / root, 1 - skew / root]) / 2

    def over(self, values: NDArray[np.floating[Any]]) -> Array:
        """Return the means (K, ...) over the cells of a function with values (2 K, ...) at the nodes, raveled."""
        weights = self.nodes[1]
        return np.asarray(np.einsum("jk,jk...->k...", weights, values.reshape(*weights.shape, *values.shape[1:])))

    @property
    def times(self) -> Array:
        """The nodes' t, shape (2 K,)."""
        return np.asarray(self.t[0] * np.exp(self.nodes[0].ravel()))


def _logarithm(t: Array, first: float) -> Array:
    """Return log(t/first), to the last digit where t hardly differs from it."""
    ratio = (t - first) / first
    return np.asarray(np.where(ratio < 1, np.log1p(np.minimum(ratio, 1)), np.log(t) - np.log(first)))


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
