"""Whether attention falls with the distance of a key, or with the length of what it is shared among."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from relaymodel.checks import positive_integer, show
from relaymodel.inference.cells import Array
from relaymodel.inference.estimate import Estimate

CELL_ROWS = 8
"""Of log n and of log d: cells small enough for slopes within them not to matter, with many weights in each."""
FEWEST_SAMPLES = 4
"""Samples whose scatter is an error."""
LEAST_FALL = 0.05
"""An exponent that counts as a fall."""
MOST_ROUNDS = 50
"""Of the fit, which takes the last exponents out of the weights and fits what is left; a handful are taken."""


@dataclass(frozen=True)
class AttentionDecay:
    r"""How attention falls: $A_{ns} \propto d^{-p} n^{-q}$, d = n - s.

    Attributes
    ----------
    distance
        p, the exponent of the distance of the key.
    dilution
        q, the exponent of the number of keys.  Uniform attention has p = 0, q = 1; a normalised power of the distance,
        p below 1, has q = 1 - p.
    apparent
        The exponent that is read where queries of all lengths are put together and n is left out.
    groups
        What the errors are the scatter of: samples, or blocks of queries of the only one.
    """

    distance: Estimate
    dilution: Estimate
    apparent: float
    groups: int

    @property
    def verdict(self) -> str:
        """What the attention falls with, 'distance', 'dilution', 'both' or 'neither': by more than .05, at 95 %.

        'both' is what a normalised power of the distance below 1 looks like, 'distance' one above it.
        """
        falls = {"distance": self.distance.lower > LEAST_FALL, "dilution": self.dilution.lower > LEAST_FALL}
        return "both" if all(falls.values()) else next((name for name, does in falls.items() if does), "neither")


def distance_or_dilution(attention: ArrayLike, *, nearest: int = 2, first: int = 2) -> AttentionDecay:
    r"""Tell a fall with distance from dilution, on attention weights of which both indices vary (THEORY section 10).

    At a fixed key, distance and context length grow together: uniform attention, 1/n, then reads as a power of the
    distance.  Over a whole matrix they do not, and the mean weight of cells in $(\log d, \log n)$ is fitted by
    $\log A = a - p\log d - q\log n$.

    Parameters
    ----------
    attention
        Weights, (..., n, n), queries by keys: one matrix, or independent samples of it (texts; take the mean over
        heads and layers first, which are not independent).  Above the diagonal they are not read.
    nearest
        The smallest distance d that counts; nearer keys are often favoured for themselves.
    first
        The first key that counts, from 1; the first token is often a sink.

    Returns
    -------
    AttentionDecay
        Both exponents, with errors by Student's t over samples, or, of fewer than four, by a jackknife over blocks of
        queries.

    Raises
    ------
    TypeError, ValueError
        For weights that are not a square matrix of finite numbers, none of them negative, with at least 32 queries;
        where a cell has no attention at all, which no power describes.

    Examples
    --------
    >>> n = np.arange(1, 201)
    >>> found = distance_or_dilution(np.tril(np.ones((200, 200))) / n[:, None])
    >>> found.verdict, round(found.distance.value, 3), round(found.dilution.value, 3)
    ('dilution', 0.0, 1.0)
    >>> round(found.apparent, 1)  # read as a law of distance
    0.4
    """
    weights = np.asarray(attention)
    if weights.dtype.kind not in "fiu" or np.ma.isMaskedArray(attention):
        raise TypeError(f"attention must be an array of numbers without a mask, got {show(attention)}")
    if weights.ndim < 2 or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 32 or not weights.size:
        raise ValueError(f"attention must have the shape (..., n, n) with n of at least 32, got {weights.shape}")
    nearest, first = positive_integer("nearest", nearest), positive_integer("first", first)
    count = weights.shape[-1]
    if count - first - nearest < 16:
        raise ValueError(f"nearest and first must leave at least 16 of {count} keys, got {nearest} and {first}")
    samples = weights.reshape(-1, count, count).astype(np.float64)
    lower = np.tril(np.ones((count, count), dtype=bool))
    if not np.all(np.isfinite(samples[:, lower])) or np.any(samples[:, lower] < 0):
        raise ValueError("attention must be finite and not negative on and below the diagonal")
    n, d, cell = _cells(count, nearest, first)
    counts = np.bincount(cell, minlength=CELL_ROWS**2)
    used = counts > 0
    x = np.stack([np.bincount(cell, np.log(v), minlength=CELL_ROWS**2)[used] / counts[used] for v in (d, n)], axis=-1)
    rows = np.arange(CELL_ROWS**2)[used] // CELL_ROWS
    logs = np.stack([np.log(d), np.log(n)])

    def fitted(sample: Array, keep: NDArray[np.bool_], size: int = 2) -> Array:
        """Return the exponents of one matrix over the cells kept; exact for a power, however wide the cells."""
        found = np.zeros(size)
        for _ in range(MOST_ROUNDS):
            flat = sample * np.exp(found @ logs[:size])
            means = np.bincount(cell, flat, minlength=CELL_ROWS**2)[used][keep] / counts[used][keep]
            if np.any(means == 0):
                raise ValueError("attention must not vanish in a whole cell of distances and queries: no power does")
            step = _slopes(x[keep, :size], np.log(means))
            found += step
            if np.max(np.abs(step)) < 1e-12:
                break
        return found

    pairs = samples[:, n - 1, n - d - 1]
    whole = np.ones(len(x), dtype=bool)
    if len(pairs) >= FEWEST_SAMPLES:
        slopes = np.stack([fitted(sample, whole) for sample in pairs])
        values, groups = slopes.mean(axis=0), len(slopes)
        errors = slopes.std(axis=0, ddof=1) / np.sqrt(groups)
    else:
        mean = pairs.mean(axis=0)
        values = fitted(mean, whole)
        slopes = np.stack([fitted(mean, rows != k) for k in np.unique(rows)])
        groups = len(slopes)
        errors = np.sqrt((groups - 1) / groups * np.sum((slopes - slopes.mean(axis=0)) ** 2, axis=0))
    reach = float(stats.t.ppf(0.975, groups - 1)) * errors
    p, q = (
        Estimate(float(v), float(e), float(v - r), float(v + r)) for v, e, r in zip(values, errors, reach, strict=True)
    )
    return AttentionDecay(p, q, float(fitted(pairs.mean(axis=0), whole, 1)[0]), groups)


def _cells(count: int, nearest: int, first: int) -> tuple[NDArray[np.int64], ...]:
    """Return n, d and the cell, row by row of equal queries, of every pair that counts."""
    n, s = np.tril_indices(count, -nearest)
    n, s = n[s >= first - 1] + 1, s[s >= first - 1] + 1
    d = n - s
    ends = (
        np.geomspace(nearest, count - first + 1, CELL_ROWS + 1)[1:-1],
        np.geomspace(n.min(), count + 1, CELL_ROWS + 1)[1:-1],
    )
    column, row = np.searchsorted(ends[0], d, side="right"), np.searchsorted(ends[1], n, side="right")
    return n, d, row * CELL_ROWS + column


def _slopes(x: Array, y: Array) -> Array:
    """Return minus the slopes of y against the columns of x, with a constant."""
    found = np.linalg.lstsq(np.column_stack([np.ones(len(y)), x]), y, rcond=None)[0]
    return np.asarray(-found[1:])
