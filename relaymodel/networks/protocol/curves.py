"""The curve of several pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relaymodel.curve import Curve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def over_pairs(t: NDArray[np.int64], each: NDArray[np.float64], provenance: Mapping[str, str]) -> Curve:
    """Return the geometric mean of the positive values (K, T) of K pairs, with its standard error over them.

    >>> over_pairs(np.array([1, 2]), np.array([[1.0, 1.0], [4.0, 1.0]]), {}).distance
    array([2., 1.])
    """
    logs = np.log(each)
    mean = np.exp(logs.mean(axis=0))
    error = None if len(each) < 2 else mean * logs.std(axis=0, ddof=1) / np.sqrt(len(each))
    return Curve(t.astype(np.float64), mean, error, provenance, None if error is None else each)
