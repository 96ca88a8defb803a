"""What a network must offer to be measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

States = NDArray[np.floating]
Visit = Callable[[int, Any], object]


@runtime_checkable
class Network(Protocol):
    """A causal network that shows its residual stream layer by layer.

    `relaymodel.networks.transformer.Transformer` and the adapter of `relaymodel.networks.huggingface` satisfy it.
    """

    @property
    def depth(self) -> int:
        """Number of blocks."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        ...

    @property
    def context(self) -> int | None:
        """The longest text, in tokens; None if there is no limit."""
        ...

    @property
    def window(self) -> int | None:
        """How many keys a query sees, itself included, if all layers have a sliding window; otherwise None."""
        ...

    @property
    def precision(self) -> float:
        """Spacing at 1 of the numbers that the states are computed in: 2.2e-16 for float64, 7.8e-3 for bfloat16."""
        ...

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the network is: name, weights, number format, versions."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without any that mark its beginning or end."""
        ...

    def generate(self, prompt: Sequence[int], count: int, *, seed: int, temperature: float = 1.0) -> list[int]:
        """Return `count` tokens sampled from the network after the prompt."""
        ...

    def observe(
        self, tokens: ArrayLike, visit: Visit, *, bias: ArrayLike | None = None, final_norm: bool = False
    ) -> None:
        """Run on tokens, (B, n), and call visit(layer, states) with the residual stream, (B, n, width).

        Layer 0 is the embedding, layer l what block l gives, layer depth + 1, if `final_norm`, the last one after the
        final norm.  `bias`, (n, k), is added to the logits of the n queries for the first k keys, in every layer.
        """
        ...
