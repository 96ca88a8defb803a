"""The transformer itself: hidden states layer by layer, and the text it would write."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from immutabledict import immutabledict
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import as_text, positive_integer, sampling, show, token_ids
from relaymodel.memory import demand_memory
from relaymodel.networks.transformer.architecture import LOGITS_AT_ONCE, QUERIES_AT_ONCE, Architecture
from relaymodel.networks.transformer.layers import Wanted, activate, attend, normalise, rotary_angles, rotate
from relaymodel.networks.transformer.weights import Block, Weights
from relaymodel.simulation.share import PromptShares

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]
Reading = tuple[Tokens, Callable[..., object]]
"""Positions, and a function that takes what is read there."""

STEP_SHARE = 6e-6  # of differences: the cube root of the rounding, where rounding and curvature are equal


@dataclass(frozen=True, eq=False)
class Transformer:
    r"""A pre-LN transformer in float64 (THEORY section 8).

    A block is $y = x + \mathrm{attention}(\mathrm{norm}(x))$, $x' = y + \mathrm{MLP}(\mathrm{norm}(y))$.
    It is a `Network` of `relaymodel.networks.protocol`, so that `measure` runs on it.

    Parameters
    ----------
    architecture, weights
        What it is made of; checked against each other.
    provenance
        Where the weights come from: any keys and values.

    Examples
    --------
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, context=64)
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> [states.shape for states in network.hidden_states([[1, 2, 3]])]
    [(1, 3, 32), (1, 3, 32), (1, 3, 32)]
    """

    architecture: Architecture
    weights: Weights
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights.check(self.architecture)
        facts = {"network": f"NumPy transformer ({self.architecture.describe()})", "dtype": "float64"}
        facts |= as_text(self.provenance)
        object.__setattr__(self, "provenance", immutabledict(facts))

    def __repr__(self) -> str:
        return f"Transformer({self.architecture.describe()})"

    @classmethod
    def random(cls, architecture: Architecture, rng: np.random.Generator, *, std: float = 0.02) -> "Transformer":
        """Return an untrained network, initialised as GPT-2 is; see `Weights.random`."""
        return cls(architecture, Weights.random(architecture, rng, std=std), {"weights": f"random, deviation {std:g}"})

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return self.architecture.depth

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return self.architecture.vocabulary

    @property
    def context(self) -> int | None:
        """The longest text, in tokens; None if there is no limit."""
        return self.architecture.context

    @property
    def window(self) -> int | None:
        """None: every key is seen."""
        return None

    @property
    def precision(self) -> float:
        """Spacing of the states' numbers at 1."""
        return float(np.finfo(np.float64).eps)

    def encode(self, text: str) -> list[int]:
        """Return the bytes of the text as tokens; `ValueError` if the vocabulary is smaller than 256.

        >>> shape = Architecture(depth=1, width=4, heads=1, vocabulary=256, positions="none")
        >>> Transformer.random(shape, np.random.default_rng(0)).encode("Zeno")
        [90, 101, 110, 111]
        """
        if self.vocabulary < 256:
            raise ValueError(f"a text needs a vocabulary of at least 256 tokens, its bytes, got {self.vocabulary}")
        try:
            return list(text.encode())
        except UnicodeEncodeError as error:
            raise ValueError(f"text must have bytes in UTF-8, got {show(text)}: {error.reason}") from None

    def hidden_states(
        self,
        tokens: ArrayLike,
        *,
        bias: ArrayLike | PromptShares | None = None,
        final_norm: bool = False,
        attention: Reading | None = None,
        offset: Array | None = None,
    ) -> Iterator[Array]:
        """Yield the residual stream, (B, n, width): of the embedding, then behind each block.

        Parameters
        ----------
        tokens
            Shape (B, n): token ids.
        bias
            Shape (n, k) or (heads, n, k): added to the logits of the n queries for the first k keys; or
            `PromptShares`, a rule of their share.
        final_norm
            Whether to yield, at the end, what the final norm makes of the last one.
        attention
            (positions, take): before the states behind block l, take(l, positions, weights) gets the softmax of the
            queries at these positions, (B, heads, positions, n).
        offset
            Added to the embedding, (B, n, width).

        Only the current states are held: memory does not grow with depth, and grows with n only, not with its square.
        """
        ids = token_ids(tokens, self.vocabulary)
        n = ids.shape[1]
        if self.context is not None and n > self.context:
            raise ValueError(f"tokens must have at most context = {self.context} positions, got {n}")
        added = self._bias(bias, n)
        demand_memory("tokens", self.architecture.memory(n, len(ids)), f"a run on {len(ids)} x {n} tokens")

        def run() -> Iterator[Array]:
            w = self.weights
            x = w.embedding[ids]
            if w.positions is not None:
                x += w.positions[:n]
            if offset is not None:
                x = x + offset
            yield x
            positions, take = attention or (np.arange(0), None)
            for layer, block in enumerate(w.blocks, start=1):
                shown = np.zeros((len(ids), self.architecture.heads, positions.size, n))
                pairs = zip(x, shown, strict=True)
                x = np.stack([self._block(block, sequence, added, rows=(positions, kept)) for sequence, kept in pairs])
                if take is not None:
                    take(layer, positions, shown)
                yield x
            if final_norm:
                yield self._norm(x, w.final_gain, w.final_shift)

        return run()

    def observe(
        self,
        tokens: ArrayLike,
        visit: Callable[[int, Array], object],
        *,
        bias: ArrayLike | PromptShares | None = None,
        final_norm: bool = False,
        attention: Reading | None = None,
        logits: Reading | None = None,
    ) -> None:
        """Call visit(layer, states) for the embedding (0), each block (1..depth) and, if asked, the final norm.

        `attention` and `logits` are (positions, take), as in `relaymodel.networks.protocol.Network.observe`.
        """
        states = self.hidden_states(tokens, bias=bias, final_norm=True, attention=attention)
        for layer, x in zip(range(self.depth + 1), states, strict=False):
            visit(layer, x)
        if final_norm or logits is not None:
            last = next(states)
            if final_norm:
                visit(self.depth + 1, last)
            if logits is not None:
                positions, take = logits
                for start in range(0, positions.size, LOGITS_AT_ONCE):
                    some = positions[start : start + LOGITS_AT_ONCE]
                    take(some, last[:, some] @ self._head.T)

    def respond(
        self,
        tokens: ArrayLike,
        masks: NDArray[np.bool_],
        take: Callable[[int, int, Array], object],
        *,
        bias: ArrayLike | None = None,
    ) -> None:
        """Call take(layer, row, derivative) as `relaymodel.networks.protocol.Network` says, by central differences."""
        ids = token_ids(tokens, self.vocabulary)
        x, other = next(self.hidden_states(ids))
        for row, mask in enumerate(masks):
            step = STEP_SHARE * (other - x) * mask[:, None]
            ahead, behind = (self.hidden_states(ids[:1], bias=bias, offset=s[None]) for s in (step, -step))
            for layer, (a, b) in enumerate(zip(ahead, behind, strict=True)):
                take(layer, row, (a[0] - b[0]) / (2 * STEP_SHARE))

    @property
    def _head(self) -> Array:
        return self.weights.embedding if self.weights.unembedding is None else self.weights.unembedding

    def generate(self, prompt: Sequence[int], count: int, *, seed: int, temperature: float = 1.0) -> list[int]:
        """Return `count` tokens that the network writes after the prompt, sampled from its softmax.

        >>> shape = Architecture(depth=1, width=8, heads=2, vocabulary=10, context=9)
        >>> network = Transformer.random(shape, np.random.default_rng(0))
        >>> network.generate([1, 2], 3, seed=1) == network.generate([1, 2], 3, seed=1)
        True
        """
        ids = token_ids([prompt], self.vocabulary)[0]
        count, warmth = sampling(self.context, ids.size, count, temperature)
        total = ids.size + count
        rng = np.random.default_rng(positive_integer("seed", seed, least=0))
        w, a = self.weights, self.architecture
        shape = (a.depth, 2, a.key_value_heads, total, a.head_size)
        cache = np.empty(shape)
        written: list[int] = []
        new = ids
        for start in [0, *range(ids.size, total - 1)]:
            x = w.embedding[new]
            if w.positions is not None:
                x += w.positions[start : start + new.size]
            for block, stored in zip(w.blocks, cache, strict=True):
                x = self._block(block, x, None, stored, start)
            logits = self._head @ self._norm(x[-1], w.final_gain, w.final_shift)
            with np.errstate(over="ignore"):  # the limit of low temperatures takes the likeliest token
                chances = np.exp((logits - logits.max()) / warmth)
            written.append(int(rng.choice(a.vocabulary, p=chances / chances.sum())))
            new = np.array(written[-1:])
        return written

    def _bias(self, bias: ArrayLike | PromptShares | None, n: int) -> Array | PromptShares | None:
        if bias is None or isinstance(bias, PromptShares):
            return bias
        added = np.asarray(bias, dtype=np.float64)
        heads = self.architecture.heads
        fits = added.ndim >= 2 and added.shape[:-2] in ((), (heads,)) and added.shape[-2] == n >= added.shape[-1]
        if not fits:
            raise ValueError(
                f"bias must have shape (n, k) or (heads, n, k) with n = {n}, k <= n, heads = {heads}, got {added.shape}"
            )
        if not np.all(np.isfinite(added)):
            raise ValueError("bias must be finite, got NaN or infinite entries; -1e9 hides a key for good")
        return added

    def _norm(self, x: Array, gain: Array, shift: Array | None) -> Array:
        return normalise(x, gain, shift, self.architecture.epsilon, centred=self.architecture.norm == "layer")

    def _block(
        self,
        block: Block,
        x: Array,
        bias: Array | PromptShares | None,
        cache: Array | None = None,
        start: int = 0,
        rows: Wanted | None = None,
    ) -> Array:
        """Return what one block makes of one sequence, (n, width), whose first position is `start`.

        `cache`, (2, key_heads, total, head), holds the keys and values of the positions before and takes the new ones.
        """
        y = x + self.attention(block, x, bias, cache, start, rows)
        for first in range(0, len(y) if block.up is not None else 0, QUERIES_AT_ONCE):
            y[first : first + QUERIES_AT_ONCE] += self.mlp(block, y[first : first + QUERIES_AT_ONCE])
        return y

    def attention(
        self,
        block: Block,
        x: Array,
        bias: Array | PromptShares | None = None,
        cache: Array | None = None,
        start: int = 0,
        rows: Wanted | None = None,
    ) -> Array:
        """Return what the attention of a block adds to the residual stream x, (n, width)."""
        query, key, value = self.projections(block, x, start)
        if cache is not None:
            stop = start + len(x)
            cache[0, :, start:stop], cache[1, :, start:stop] = key, value
            key, value = cache[:, :, :stop]
        mixed = attend(query, key, value, bias, rows)
        return _affine(mixed.transpose(1, 0, 2).reshape(len(x), -1), block.output, block.output_bias)

    def projections(self, block: Block, x: Array, start: int = 0) -> tuple[Array, Array, Array]:
        """Return queries (heads, n, head), keys and values (key_heads, n, head) of a residual stream x, (n, width)."""
        a = self.architecture
        u = self._norm(x, block.attention_gain, block.attention_shift)

        def split(matrix: Array, shift: Array | None) -> Array:
            flat = _affine(u, matrix, shift)
            return np.ascontiguousarray(flat.reshape(len(x), -1, a.head_size).transpose(1, 0, 2))

        query, key = split(block.query, block.query_bias), split(block.key, block.key_bias)
        if a.positions == "rotary":
            angles = rotary_angles(np.arange(start, start + len(x)), a.head_size, a.rotary_base)
            query, key = rotate(query, *angles), rotate(key, *angles)
        return query, key, split(block.value, block.value_bias)

    def mlp(self, block: Block, y: Array) -> Array:
        """Return what the MLP of a block adds to the residual stream y, (n, width), behind its attention."""
        if block.up is None or block.down is None or block.mlp_gain is None:
            raise ValueError("block must have an MLP, got one without")
        u = self._norm(y, block.mlp_gain, block.mlp_shift)
        hidden = _affine(u, block.up, block.up_bias)
        if block.gate is None:
            hidden = activate(hidden, self.architecture.activation)
        else:
            hidden *= activate(_affine(u, block.gate, block.gate_bias), self.architecture.activation)
        return _affine(hidden, block.down, block.down_bias)


def _affine(x: Array, matrix: Array, shift: Array | None) -> Array:
    result: Any = x @ matrix
    if shift is not None:
        result += shift
    return np.asarray(result)
