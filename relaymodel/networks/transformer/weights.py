"""The weights of a transformer, and their random initialisation."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import positive, show
from relaymodel.memory import demand_memory
from relaymodel.networks.transformer.architecture import Architecture

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block:
    """The weights of one block; matrices act from the right, `u @ query`, None stands for zero biases.

    `query` (width, heads*head), `key` and `value` (width, key_heads*head), `output` (heads*head, width), `up` and
    `gate` (width, hidden), `down` (hidden, width), gains and shifts (width,).
    """

    attention_gain: Array
    query: Array
    key: Array
    value: Array
    output: Array
    attention_shift: Array | None = None
    query_bias: Array | None = None
    key_bias: Array | None = None
    value_bias: Array | None = None
    output_bias: Array | None = None
    mlp_gain: Array | None = None
    mlp_shift: Array | None = None
    up: Array | None = None
    up_bias: Array | None = None
    gate: Array | None = None
    gate_bias: Array | None = None
    down: Array | None = None
    down_bias: Array | None = None


@dataclass(frozen=True, eq=False)
class Weights:
    """All weights: `embedding` (vocabulary, width), `positions` (context, width), the blocks, the final norm.

    `unembedding` (vocabulary, width) is None where it is the embedding.
    """

    embedding: Array
    blocks: tuple[Block, ...]
    final_gain: Array
    final_shift: Array | None = None
    positions: Array | None = None
    unembedding: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))

    @classmethod
    def random(cls, architecture: Architecture, rng: np.random.Generator, *, std: float = 0.02) -> "Weights":
        """Draw weights as GPT-2's are drawn.

        Normal with deviation `std`, that of the projections onto the residual stream (attention output, MLP down)
        divided by the root of twice the depth; gains 1, biases and shifts zero.

        Source: Radford et al. (2019), as implemented in transformers.
        """
        deviation, shapes = positive("std", std), architecture.shapes
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), got {show(rng)}")
        size = architecture.parameters
        demand_memory("architecture", 8.0 * size, f"a network of {size:.3g} weights")
        residual = (2 * architecture.depth) ** -0.5

        def made(*names: str) -> dict[str, Array]:
            arrays = {}
            for name in names:
                if name.endswith(("gain", "shift")) and name in shapes:
                    arrays[name] = np.full(shapes[name], float(name.endswith("gain")))
                elif name in shapes:
                    arrays[name] = rng.standard_normal(shapes[name])
                    arrays[name] *= deviation * (residual if name in ("output", "down") else 1)
            return arrays

        norms = ("attention_gain", "attention_shift", "mlp_gain", "mlp_shift")
        blocks = tuple(
            Block(**made("up", "down", "gate", "query", "key", "value", "output", *norms))
            for _ in range(architecture.depth)
        )
        return cls(blocks=blocks, **made("embedding", "positions", "final_gain", "final_shift"))

    def check(self, architecture: Architecture) -> None:
        """Raise `ValueError` naming the first array that is missing, superfluous, of another shape, or not finite."""
        a, shapes = architecture, architecture.shapes
        if len(self.blocks) != a.depth:
            raise ValueError(f"weights must have depth = {a.depth} blocks, got {len(self.blocks)}")
        for name, array in self._arrays():
            short = name.rpartition(".")[2]
            if array is None:
                if short in shapes and not short.endswith(("bias", "shift", "unembedding")):
                    raise ValueError(f"weights must have {name}, shape {shapes[short]}, got None")
            elif short not in shapes:
                raise ValueError(f"weights must have no {name} in this architecture ({a.describe()})")
            elif array.shape != shapes[short]:
                raise ValueError(f"{name} must have shape {shapes[short]}, got {array.shape}")
            elif array.dtype != np.float64:
                raise TypeError(f"{name} must be float64, got {array.dtype}; convert it with astype")
            elif not np.all(np.isfinite(array)):
                raise ValueError(f"{name} must be finite, got NaN or infinite entries")

    def _arrays(self) -> Iterator[tuple[str, Array | None]]:
        for field in fields(self):
            if field.name != "blocks":
                yield field.name, getattr(self, field.name)
        for i, block in enumerate(self.blocks):
            for field in fields(block):
                yield f"blocks[{i}].{field.name}", getattr(block, field.name)
