"""What a network must offer to be measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relaymodel.simulation.share import PromptShares

States = NDArray[np.floating]
Visit = Callable[[int, Any], object]
Rows = tuple[NDArray[np.int64], Callable[..., object]]
"""Positions of a text, counted from 0 and rising, and a function that takes what is read there."""


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
        self,
        tokens: ArrayLike,
        visit: Visit,
        *,
        bias: ArrayLike | PromptShares | None = None,
        final_norm: bool = False,
        attention: Rows | None = None,
        logits: Rows | None = None,
    ) -> None:
        """Run on tokens, (B, n), and call visit(layer, states) with the residual stream, (B, n, width).

        Layer 0 is the embedding, layer l what block l gives, layer depth + 1, if `final_norm`, the last one after the
        final norm.  A long text may be shown in pieces: visit(layer, states) once for each, in the order of the tokens.
        States are NumPy arrays, or tensors of torch on another device, where `measure` reduces them to distances.
        `bias`, (n, k), is added to the logits of the n queries for the first k keys, in every layer; with
        `PromptShares` these keys get, in every head, the share that its rule gives them.

        `attention`, (positions, take): take(layer, positions, weights) gets the softmax of these queries, (B, heads,
        positions, keys), for each block that has one; keys that an attention sink of the model's own takes weight from
        add up to less than 1.  `logits`, (positions, take): take(positions, logits) gets the logits of the token that
        follows each position, (B, positions, vocabulary), a NumPy array or a tensor of torch.  Both may be given in
        pieces.  A network that only states are measured on need not take them.

        To measure the response to single tokens it also needs respond(tokens, masks, take, bias=): with x the embedding
        of both texts, (2, n, width), and for each of the masks, (S, n), take(layer, row, derivative) gets the
        derivative of the states of the first text, (n, width), along (x[1] - x[0]) where the mask is true.
        """
        ...


def as_array(states: Any) -> States:
    """Return states that were shown as a NumPy array: tensors of torch come from their device."""
    return states if isinstance(states, np.ndarray) else np.asarray(states.cpu())
