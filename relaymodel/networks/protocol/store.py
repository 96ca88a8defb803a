"""The folder that an interrupted measurement goes on from: what tells it from others, and what it holds of a pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import tasks
from relaymodel.networks.protocol.pairs import Generated, RandomTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaymodel import files
    from relaymodel.networks.protocol.pairs import EncodedPairs
    from relaymodel.simulation.share import PromptShares

Array = NDArray[np.float64]
Shapes = Mapping[str, tuple[int | None, ...]]
"""Of what is kept for a pair, by name; None stands for any number."""


def store(
    folder: files.PathLike, pairs: EncodedPairs, bias: Array | PromptShares | None, kept: Sequence[Any], shapes: Shapes
) -> tasks.Store:
    """Return the folder of a measurement, which depends on network, texts, bias, and what is kept of them."""
    after: Any = pairs.continuation
    if isinstance(after, (RandomTokens, Generated)):
        after = repr(after)
    added = bias[:, 0] if isinstance(bias, np.ndarray) else repr(bias)
    known = tasks.fingerprint(dict(pairs.network.provenance), list(kept), pairs.prompt_a, pairs.prompt_b, after, added)
    of = "measurement (network, texts, bias, layers, instruments or their number)"
    return tasks.Store(folder, known, writer="measure", of=of, name="pair", holds=tuple(shapes))


def read(kept: tasks.Store, k: int, shapes: Shapes) -> Mapping[str, Array] | None:
    """Return what is kept of pair k, None if it has not been measured; `ValueError`, naming the file, if damaged."""
    arrays = kept.read(k)
    if arrays is None:
        return None
    for name, shape in shapes.items():
        values = arrays[name]
        fits = values.ndim == len(shape) and all(n in (m, None) for m, n in zip(values.shape, shape, strict=True))
        if not fits or values.dtype != np.float64 or not np.all(np.isfinite(values)):
            raise ValueError(f"{kept.path(k)} must hold {shape} finite numbers, it is damaged; delete it and go on")
    return arrays
