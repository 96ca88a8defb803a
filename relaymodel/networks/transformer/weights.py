"""The weights of a transformer, and their random initialisation."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import real, show
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
        a = architecture
        deviation = float(real("std", std))
        if deviation <= 0:
            raise ValueError(f"std must be positive, got {show(std)}")
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy Generator, such as numpy.random.default_rng(0), got {show(rng)}")

        demand_memory("architecture", 8.0 * a.parameters, f"a network of {a.parameters:.3g} weights")

        def normal(rows: int, columns: int, scale: float = 1.0) -> Array:
            values = rng.standard_normal((rows, columns))
            values *= deviation * scale
            return values

        d, q, k, m = a.width, a.heads * a.head_size, a.key_value_heads * a.head_size, a.mlp_hidden
        residual = (2 * a.depth) ** -0.5
        layer = a.norm == "layer"
        blocks = []
        for _ in range(a.depth):
            shift = np.zeros(d) if layer else None
            mlp: dict[str, Any] = {}
            if m:
                mlp = {"mlp_gain": np.ones(d), "mlp_shift": shift, "up": normal(d, m), "down": normal(m, d, residual)}
                if a.gated:
                    mlp["gate"] = normal(d, m)
            attention = (normal(d, q), normal(d, k), normal(d, k), normal(q, d, residual))
            blocks.append(Block(np.ones(d), *attention, attention_shift=shift, **mlp))
        return cls(
            embedding=normal(a.vocabulary, d),
            blocks=tuple(blocks),
            final_gain=np.ones(d),
            final_shift=np.zeros(d) if layer else None,
            positions=normal(a.context or 0, d) if a.positions == "learned" else None,
        )

    def check(self, architecture: Architecture) -> None:
        """Raise `ValueError` naming the first array that is missing, superfluous, of another shape, or not finite."""
        a = architecture
        d, q, k, m = a.width, a.heads * a.head_size, a.key_value_heads * a.head_size, a.mlp_hidden
        if len(self.blocks) != a.depth:
            raise ValueError(f"weights must have depth = {a.depth} blocks, got {len(self.blocks)}")
        shapes: dict[str, tuple[int, ...]] = {"query": (d, q), "key": (d, k), "value": (d, k), "output": (q, d)}
        shapes |= {"query_bias": (q,), "key_bias": (k,), "value_bias": (k,), "output_bias": (d,)}
        shapes |= {"attention_gain": (d,), "attention_shift": (d,), "embedding": (a.vocabulary, d)}
        shapes |= {"unembedding": (a.vocabulary, d), "final_gain": (d,), "final_shift": (d,)}
        optional = {name for name in shapes if name.endswith(("bias", "shift"))} | {"unembedding"}
        if m:
            shapes |= {"mlp_gain": (d,), "mlp_shift": (d,), "up": (d, m), "up_bias": (m,)}
            shapes |= {"down": (m, d), "down_bias": (d,)}
            optional |= {"mlp_shift", "up_bias", "down_bias"}
            if a.gated:
                shapes |= {"gate": (d, m), "gate_bias": (m,)}
                optional |= {"gate_bias"}
        if a.positions == "learned":
            shapes["positions"] = (a.context or 0, d)
        if a.norm == "rms":
            for name in ("attention_shift", "mlp_shift", "final_shift"):
                shapes.pop(name, None)
        for name, array in self._arrays():
            short = name.rpartition(".")[2]
            if array is None:
                if short in shapes and short not in optional:
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
