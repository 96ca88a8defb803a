"""The folder that an interrupted measurement goes on from: what tells it from others, and what it holds of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import tasks
from relaymodel.networks.protocol.pairs import Generated, RandomTokens

if TYPE_CHECKING:
    from relaymodel import files
    from relaymodel.networks.protocol.pairs import EncodedPairs

Array = NDArray[np.float64]


def store(folder: files.PathLike, pairs: EncodedPairs, bias: Array | None, layers: tuple[int, ...]) -> tasks.Store:
    """Return the folder of a measurement, which depends on network, texts, bias, layers."""
    after: Any = pairs.continuation
    if isinstance(after, (RandomTokens, Generated)):
        after = repr(after)
    added = None if bias is None else bias[:, 0]
    known = tasks.fingerprint(
        dict(pairs.network.provenance), list(layers), pairs.prompt_a, pairs.prompt_b, after, added
    )
    of = "measurement (network, texts, bias, layers or their number)"
    return tasks.Store(folder, known, writer="measure", of=of, name="pair", holds=("values",))


def read(kept: tasks.Store, k: int, shape: tuple[int, ...]) -> Array | None:
    """Return the values of pair k, None if it has not been measured; `ValueError`, naming the file, if damaged."""
    arrays = kept.read(k)
    if arrays is None:
        return None
    values = arrays["values"]
    if values.shape != shape or values.dtype != np.float64 or not np.all(np.isfinite(values)):
        raise ValueError(f"{kept.path(k)} must hold {shape} finite numbers, it is damaged; delete it and go on")
    return values
