"""What a transformer is made of, without its weights."""

import math
from dataclasses import dataclass, fields

import numpy as np

from relaymodel.checks import choice, positive, positive_integer, show

NORMS = ("layer", "rms")
POSITIONS = ("learned", "rotary", "none")
ACTIVATIONS = ("gelu", "gelu_tanh", "silu", "relu")
NOT_IN_BLOCKS = ("embedding", "positions", "final_gain", "final_shift", "unembedding")  # arrays that no block has
QUERIES_AT_ONCE = 128  # queries, or tokens in the MLP, handled at once: what stays in a cache, and bounds the memory
LOGITS_AT_ONCE = 64  # positions, of networks of all kinds


@dataclass(frozen=True)
class Architecture:
    r"""The shape of a pre-LN transformer (THEORY section 8).

    A block is $y = x + \mathrm{attention}(\mathrm{norm}(x))$, $x' = y + \mathrm{MLP}(\mathrm{norm}(y))$, with causal
    softmax attention.  The defaults are GPT-2's.

    Parameters
    ----------
    depth, width, heads, vocabulary
        Number of blocks, of components of the residual stream, of attention heads and of tokens.
    context
        Number of positions; without learned positions it is only a limit, and None is none.
    key_heads
        Number of key and value heads, which divides `heads` (grouped queries); None: as many as `heads`.
    head_width
        Components of a head; None: width / heads.
    mlp_width
        Hidden units of the MLP; None: 4 * width; 0: no MLP.
    activation
        "gelu", "gelu_tanh" (GPT-2's approximation), "silu" or "relu".
    gated
        Whether the MLP is gated, down(activation(gate(u)) * up(u)), as in Llama.
    norm
        "layer" (mean removed, gain and shift) or "rms" (gain only).
    positions
        "learned" (added to the embedding), "rotary" (turning queries and keys; angles t * base^(-2i/head_width),
        halves paired as in Llama) or "none".
    rotary_base
        Base of the rotary angles.
    epsilon
        Added to the variance before its root is taken in a norm.

    Raises `TypeError` or `ValueError` for what cannot be built.

    >>> Architecture(depth=2, width=64, heads=4, vocabulary=256, positions="none").mlp_hidden
    256
    """

    depth: int
    width: int
    heads: int
    vocabulary: int
    context: int | None = None
    key_heads: int | None = None
    head_width: int | None = None
    mlp_width: int | None = None
    activation: str = "gelu_tanh"
    gated: bool = False
    norm: str = "layer"
    positions: str = "learned"
    rotary_base: float = 1e4
    epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("depth", "width", "heads", "vocabulary"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name, least in (("context", 1), ("key_heads", 1), ("head_width", 1), ("mlp_width", 0)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, positive_integer(name, value, least=least))
        choice("norm", self.norm, NORMS)
        choice("positions", self.positions, POSITIONS)
        choice("activation", self.activation, ACTIVATIONS)
        if not isinstance(self.gated, (bool, np.bool_)):
            raise TypeError(f"gated must be True or False, got {show(self.gated)}")
        for name in ("rotary_base", "epsilon"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.head_width is None and self.width % self.heads:
            raise ValueError(
                f"heads must divide width if head_width is not given, got heads = {self.heads} and width = {self.width}"
            )
        if self.heads % self.key_value_heads:
            raise ValueError(f"key_heads must divide heads = {self.heads}, got {self.key_heads}")
        if self.positions == "learned" and self.context is None:
            raise ValueError("context must be given for learned positions: it is the number of their embeddings")
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(f"head_width must be even for rotary positions, got {self.head_size}")

    @property
    def head_size(self) -> int:
        """Components of one head."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def key_value_heads(self) -> int:
        """Number of key and value heads."""
        return self.heads if self.key_heads is None else self.key_heads

    @property
    def mlp_hidden(self) -> int:
        """Number of hidden units of the MLP; 0 if there is none."""
        return 4 * self.width if self.mlp_width is None else self.mlp_width

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all arrays that `Weights` and, the same in each, its blocks may hold, by their names."""
        d, q, k, m = self.width, self.heads * self.head_size, self.key_value_heads * self.head_size, self.mlp_hidden
        arrays: dict[str, tuple[int, ...]] = dict.fromkeys(("embedding", "unembedding"), (self.vocabulary, d))
        norms, matrices = ["final", "attention"], {"query": (d, q), "key": (d, k), "value": (d, k), "output": (q, d)}
        if self.positions == "learned":
            arrays["positions"] = (self.context or 0, d)
        if m:
            norms.append("mlp")
            matrices |= {"up": (d, m), "down": (m, d)} | ({"gate": (d, m)} if self.gated else {})
        for name, shape in matrices.items():
            arrays |= {name: shape, f"{name}_bias": shape[1:]}
        for name in norms:
            arrays |= {f"{name}_gain": (d,)} | ({f"{name}_shift": (d,)} if self.norm == "layer" else {})
        return arrays

    @property
    def parameters(self) -> int:
        """Number of weights, biases left out.

        >>> Architecture(depth=12, width=768, heads=12, vocabulary=50257, context=1024).parameters  # GPT-2
        124356864
        """
        sizes = {name: math.prod(shape) for name, shape in self.shapes.items() if not name.endswith("_bias")}
        return sum(
            size * (1 if name in NOT_IN_BLOCKS else self.depth) for name, size in sizes.items() if name != "unembedding"
        )

    def memory(self, n: int, texts: int = 2) -> float:
        """Return how many bytes a run on `texts` of n tokens takes beside the weights, about."""
        inner = self.heads * self.head_size
        rows = min(n, QUERIES_AT_ONCE)
        # states before and behind a block and while they are stacked; queries, keys, values and what is made of them
        return 8.0 * (
            3 * texts * n * self.width + 6 * n * max(inner, self.width) + rows * (3 * n + 3 * self.mlp_hidden)
        )

    def operations(self, n: int, texts: int = 2) -> float:
        """Return how many floating-point operations a run on `texts` of n tokens takes, about."""
        inner, k = self.heads * self.head_size, self.key_value_heads * self.head_size
        products = 2 * self.width * (2 * inner + 2 * k + (3 if self.gated else 2) * self.mlp_hidden)
        return float(texts) * self.depth * n * (products + 2.0 * n * inner)

    def describe(self) -> str:
        """Return what differs from the defaults, in one line.

        >>> Architecture(depth=2, width=64, heads=4, vocabulary=256, context=100).describe()
        'depth 2, width 64, heads 4, vocabulary 256, context 100'
        """
        parts = [(field.name, getattr(self, field.name), field.default) for field in fields(self)]
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value, default in parts if value != default)
