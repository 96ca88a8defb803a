"""Curves of independent pairs of prompts: their mean, and what the pairs say of its error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from relaymodel.checks import show
from relaymodel.curve import Curve
from relaymodel.inference.cells import Array, Cells


@dataclass(frozen=True, eq=False)
class Pairs:
    """The geometric mean of n curves, and how each deviates from it in log D, shape (n, T); n = 0 for a lone curve."""

    curve: Curve
    deviations: Array

    @property
    def count(self) -> int:
        """Number of pairs, 0 if they are not known one by one."""
        return len(self.deviations)

    def errors(self, used: Curve, cells: Cells, functional: Array) -> Array:
        """Return standard errors (M,) of what is linear in the cells' log D, `functional` (K, M), from the pairs.

        The variance of n values, one a pair, over n: that of a bootstrap over whole pairs, which are blocks as long as
        the curve, in the limit of many draws and without its bias of (n-1)/n.  The error is stretched so that 1.96 of
        it are the interval of Student's t with n - 1 degrees of freedom.
        """
        values = np.stack([cells.mean(row) for row in self.part(used)]) @ functional
        stretch = float(stdtrit(self.count - 1, 0.975)) / 1.96
        return np.asarray(stretch * np.sqrt(np.sum(values**2, axis=0) / (self.count * (self.count - 1))))

    def part(self, used: Curve) -> Array:
        """Return the deviations at the points of a part of the curve, shape (n, T')."""
        first = int(np.searchsorted(self.curve.t, used.t[0]))
        return self.deviations[:, first : first + len(used)]


def pool(curves: Curve | Sequence[Curve]) -> Pairs:
    """Return the geometric mean of curves of independent pairs, which must have the same t.

    Its stderr says how the pairs differ once each has been freed of a factor of its own.

    Raises `TypeError` for anything but curves and `ValueError` for curves whose t differ, for curves that are all the
    same, and for an empty list.
    """
    if isinstance(curves, Curve):
        return Pairs(curves, np.empty((0, len(curves))))
    if isinstance(curves, (str, bytes)) or not isinstance(curves, Sequence):
        raise TypeError(f"curves must be a Curve or a list of Curves, one for each pair, got {show(curves)}")
    for i, curve in enumerate(curves):
        if not isinstance(curve, Curve):
            raise TypeError(f"curves must be Curve objects, got {show(curve)} at index {i}")
    if not curves:
        raise ValueError("curves must hold at least one Curve, got none")
    first = curves[0]
    if len(curves) == 1:
        return Pairs(first, np.empty((0, len(first))))
    for i, curve in enumerate(curves):
        if not np.array_equal(curve.t, first.t):
            raise ValueError(
                f"curves must have the same t, one curve for each pair, got others at index {i}; take a common "
                "grid, or pass layers as a dictionary"
            )
    logs = np.log(np.stack([curve.distance for curve in curves]))
    if not np.any(np.ptp(logs, axis=0)):
        raise ValueError(
            f"curves must differ, since their differences are the error, got the same {len(curves)} times; pass one of "
            "them for an error from its scatter"
        )
    mean = logs.mean(axis=0)
    shared = {k: v for k, v in first.provenance.items() if all(c.provenance.get(k) == v for c in curves)}
    deviations = logs - mean
    # a factor that a pair has over all t is no noise of an exponent
    length = np.gradient(np.log(first.t))
    own = deviations - (deviations @ length / length.sum())[:, None]
    stderr = np.exp(mean) * np.sqrt(np.sum(own**2, axis=0) / (len(curves) * (len(curves) - 1)))
    return Pairs(Curve(first.t, np.exp(mean), stderr, {**shared, "pairs": str(len(curves))}), deviations)
