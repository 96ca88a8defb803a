"""Curves of independent pairs of prompts: their geometric mean, and what the pairs say of an error."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from relaymodel.checks import show
from relaymodel.curve import Curve
from relaymodel.inference.cells import Array, Cells

SAME = 1e-12
"""Differences of log D to which pairs' curves are the same: rounding, at the ends of float64."""


def pool(curves: Curve | Sequence[Curve]) -> Curve:
    """Return one curve: the one given, or the geometric mean of curves of independent pairs, which it carries along.

    Raises `TypeError` for anything but curves and `ValueError` for curves whose t differ, for curves that are all the
    same up to factors, and for an empty list.
    """
    if isinstance(curves, Curve):
        return _differing(curves)
    if isinstance(curves, (str, bytes)) or not isinstance(curves, Sequence):
        raise TypeError(f"curves must be a Curve or a list of Curves, one for each pair, got {show(curves)}")
    for i, curve in enumerate(curves):
        if not isinstance(curve, Curve):
            raise TypeError(f"curves must be Curve objects, got {show(curve)} at index {i}")
    if not curves:
        raise ValueError("curves must hold at least one Curve, got none")
    first = curves[0]
    if len(curves) == 1:
        return _differing(first)
    for i, curve in enumerate(curves):
        if not np.array_equal(curve.t, first.t):
            raise ValueError(
                f"curves must have the same t, one curve for each pair, got others at index {i}; take a common "
                "grid, or pass layers as a dictionary"
            )
    pairs = np.stack([curve.distance for curve in curves])
    logs = np.log(pairs)
    mean = np.exp(logs.mean(axis=0))
    shared = {k: v for k, v in first.provenance.items() if all(c.provenance.get(k) == v for c in curves)}
    stderr = mean * logs.std(axis=0, ddof=1) / np.sqrt(len(curves))
    return _differing(Curve(first.t, mean, stderr, {**shared, "pairs": str(len(curves))}, pairs))


def _differing(curve: Curve) -> Curve:
    if curve.pairs is None:
        return curve
    logs = np.log(curve.pairs)
    if np.ptp(logs - logs[:, :1], axis=0).max() < SAME:
        raise ValueError(
            f"the pairs' curves must differ by more than factors, since these differences are the error, got the same "
            f"{len(curve.pairs)} times; pass one of them for an error from its scatter"
        )
    return curve


def deviations(curve: Curve) -> Array:
    """Return how each pair deviates from the mean in log D, shape (K, T); K = 0 for a lone curve."""
    return np.empty((0, len(curve))) if curve.pairs is None else np.log(curve.pairs) - np.log(curve.distance)


def pair_errors(curve: Curve, cells: Cells, functional: Array) -> Array:
    """Return standard errors (M,) of what is linear in the cells' log D, `functional` (K, M), from the pairs.

    The variance of n values, one a pair, over n: that of a bootstrap over whole pairs, which are blocks as long as
    the curve, in the limit of many draws and without its bias of (n-1)/n.  The error is stretched so that 1.96 of
    it are the interval of Student's t with n - 1 degrees of freedom.
    """
    values = np.stack([cells.mean(row) for row in deviations(curve)]) @ functional
    n = len(values)
    stretch = float(stdtrit(n - 1, 0.975)) / 1.96
    return np.asarray(stretch * np.sqrt(np.sum(values**2, axis=0) / (n * (n - 1))))
