"""The texts of a measurement: pairs of prompts and what follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import as_text, numbers, positive, positive_integer, show
from relaymodel.memory import demand_memory

if TYPE_CHECKING:
    from relaymodel.networks.protocol.network import Network

Tokens = NDArray[np.int64]
Text = str | Sequence[int] | NDArray[np.integer]
Texts = Text | Sequence[Text]
"""A text or token ids, or several of them."""


@dataclass(frozen=True)
class RandomTokens:
    """A continuation of `count` tokens drawn uniformly from the vocabulary, another for each pair."""

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        positive_integer("count", self.count, least=2)
        positive_integer("seed", self.seed, least=0)


@dataclass(frozen=True)
class Generated:
    """A continuation of `count` tokens that the network itself writes after prompt A, another for each pair."""

    count: int
    seed: int = 0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        positive_integer("count", self.count, least=2)
        positive_integer("seed", self.seed, least=0)
        positive("temperature", self.temperature)


PlainPairs = tuple[Texts, Texts, Texts | RandomTokens | Generated]
"""(prompt_a, prompt_b, continuation), which stands for `Pairs` wherever these are taken."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The texts of a measurement: K pairs of prompts, and what follows both prompts of a pair (THEORY section 1).

    Parameters
    ----------
    prompt_a, prompt_b
        A text or token ids, (P,), or K of them, (K, P); equally many tokens in all.  Prompt A of pair k is compared
        with prompt B of pair k.
    continuation
        A text or token ids, (T,), the same for all pairs, or K of them; or `RandomTokens(count)`, or
        `Generated(count)`, written by the network (without a bias) after prompt A.
    prompt
        Cut prompts to this many tokens.
    provenance
        Facts about the texts, which every result made with them keeps.

    Notes
    -----
    Texts become tokens when they meet a network (`encode`), each by itself: a tokenizer would merge across the seam
    (THEORY section 9).  Whatever takes pairs takes a plain tuple (prompt_a, prompt_b, continuation) as well.

    Examples
    --------
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> pairs = Pairs("To be, or not", "All the world's", RandomTokens(50), prompt=13)
    >>> pairs
    Pairs('To be, or not', "All the world's", RandomTokens(count=50, seed=0), prompt=13)
    >>> encoded = pairs.encode(network)
    >>> encoded.count, encoded.prompt, encoded.steps
    (1, 13, 50)
    """

    prompt_a: Texts
    prompt_b: Texts
    continuation: Texts | RandomTokens | Generated
    prompt: int | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.prompt is not None:
            positive_integer("prompt", self.prompt)
        if not isinstance(self.provenance, Mapping):
            raise TypeError(f"provenance must be a mapping of facts to texts, got {show(self.provenance)}")

    @classmethod
    def of(cls, pairs: Pairs | PlainPairs) -> Pairs:
        """Return pairs as they are, and a tuple of three as the pairs that it describes.

        >>> Pairs.of("To be, or not")
        Traceback (most recent call last):
        TypeError: pairs must be Pairs(prompt_a, prompt_b, continuation) or a tuple of these three, got 'To be, or not'
        """
        if isinstance(pairs, Pairs):
            return pairs
        if not isinstance(pairs, tuple) or len(pairs) != 3:
            size = f" of {len(pairs)}" if isinstance(pairs, tuple) else ""
            raise TypeError(
                "pairs must be Pairs(prompt_a, prompt_b, continuation) or a tuple of these three, got "
                f"{show(pairs)}{size}"
            )
        return cls(*pairs)

    def encode(self, network: Network) -> EncodedPairs:
        """Return the pairs as tokens of a network, after checking that it can be measured on them.

        Raises `TypeError` for what is neither text nor token ids, `ValueError` for tokens outside the vocabulary, for
        prompts of unequal length or equal content, and for texts longer than the network's context.
        """
        a, b = self._prompts(network)
        after, description = self._follow(network, len(a))
        facts = {"prompt": str(a.shape[1]), "pairs": str(len(a)), "continuation": description}
        facts |= as_text(self.provenance)
        pairs = EncodedPairs(network, a, b, after, facts)
        total = pairs.prompt + pairs.steps
        if network.context is not None and total > network.context:
            raise ValueError(
                f"prompt and continuation must fit in the network's context of {network.context} tokens, got "
                f"{pairs.prompt} + {pairs.steps} = {total}"
            )
        return pairs

    def _prompts(self, network: Network) -> tuple[Tokens, Tokens]:
        a, b = _many(network, "prompt_a", self.prompt_a), _many(network, "prompt_b", self.prompt_b)
        if len(a) != len(b):
            raise ValueError(f"prompt_a and prompt_b must hold equally many prompts, got {len(a)} and {len(b)}")
        if self.prompt is not None:
            for name, texts in (("prompt_a", a), ("prompt_b", b)):
                for k, text in enumerate(texts):
                    if len(text) < self.prompt:
                        raise ValueError(
                            f"{name} must have at least prompt = {self.prompt} tokens, got {len(text)} in pair {k}"
                        )
            a, b = ([text[: self.prompt] for text in texts] for texts in (a, b))
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            if len(one) != len(other):
                raise ValueError(
                    f"prompt_a and prompt_b must have equally many tokens, got {len(one)} and {len(other)} in pair "
                    f"{k}; prompt = {min(len(one), len(other))} cuts both"
                )
            if len(one) != len(a[0]):
                raise ValueError(
                    f"all prompts must have equally many tokens, got {len(a[0])} in pair 0, {len(one)} in {k}"
                )
            if np.array_equal(one, other):
                raise ValueError(f"prompt_a and prompt_b must differ, got the same {len(one)} tokens in pair {k}")
        return np.stack(a), np.stack(b)

    def _follow(self, network: Network, count: int) -> tuple[Tokens | RandomTokens | Generated, str]:
        """Return the continuations of `count` pairs, or how to make them, and a description."""
        after = self.continuation
        if isinstance(after, (RandomTokens, Generated)):
            made = "random tokens" if isinstance(after, RandomTokens) else "generated from prompt A"
            return after, f"{made}, seed {after.seed}"
        texts = _many(network, "continuation", after)
        if len(texts) not in (1, count):
            raise ValueError(f"continuation must be one text, or one for each of {count} pairs, got {len(texts)}")
        if len({len(text) for text in texts}) > 1:
            raise ValueError(f"all continuations must have equally many tokens, got {[len(text) for text in texts]}")
        if len(texts[0]) < 2:
            raise ValueError(f"continuation must have at least 2 tokens, got {len(texts[0])}")
        if len(texts) == count:
            return np.stack(texts), "given"
        return np.stack(texts * count), f"given, the same for all {count} pairs"

    def __repr__(self) -> str:
        parts = [show(part) for part in (self.prompt_a, self.prompt_b, self.continuation)]
        return f"Pairs({', '.join(parts)}{'' if self.prompt is None else f', prompt={self.prompt}'})"


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """Pairs as tokens of one network.

    Attributes
    ----------
    network
        Whose tokens they are.
    prompt_a, prompt_b
        Shape (K, P).
    continuation
        Shape (K, T), or how each is made.
    provenance
        Number of pairs, length of the prompts, where the texts come from.
    """

    network: Network
    prompt_a: Tokens
    prompt_b: Tokens
    continuation: Tokens | RandomTokens | Generated
    provenance: Mapping[str, str]

    @property
    def count(self) -> int:
        """Number of pairs, K."""
        return len(self.prompt_a)

    @property
    def prompt(self) -> int:
        """Length of the prompts, P."""
        length: int = self.prompt_a.shape[1]
        return length

    @property
    def steps(self) -> int:
        """Length of the continuations, T."""
        after = self.continuation
        if isinstance(after, (RandomTokens, Generated)):
            return after.count
        length: int = after.shape[1]
        return length

    def tokens(self, k: int) -> Tokens:
        """Return the two texts of pair k, shape (2, P + T); a continuation to be generated is generated now."""
        after = self.continuation
        if isinstance(after, RandomTokens):
            follow = np.random.default_rng([after.seed, k]).integers(0, self.network.vocabulary, after.count)
        elif isinstance(after, Generated):
            prompt = self.prompt_a[k].tolist()
            seed = after.seed + 1000003 * k  # any two pairs have unrelated streams
            follow = np.array(self.network.generate(prompt, after.count, seed=seed, temperature=after.temperature))
        else:
            follow = after[k]
        return np.stack([np.concatenate((prompt[k], follow)) for prompt in (self.prompt_a, self.prompt_b)])


def _many(network: Network, name: str, value: Any) -> list[Tokens]:
    """Return texts as arrays of token ids: one text, or several."""
    if isinstance(value, str):
        return [_one(network, name, value)]
    several = isinstance(value, np.ndarray) and value.ndim == 2
    if isinstance(value, (list, tuple)):
        several = any(isinstance(item, (str, list, tuple, np.ndarray)) for item in value)
    if several:
        return [_one(network, f"{name}[{k}]", item) for k, item in enumerate(value)]
    return [_one(network, name, value)]


def _one(network: Network, name: str, value: Any) -> Tokens:
    if isinstance(value, str):
        ids = np.array(network.encode(value), dtype=np.int64)
    else:
        array = numbers(name, value)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(f"{name} must be a text or a sequence of token ids (integers), got {show(value)}")
        ids = array.astype(np.int64)
    if not ids.size:
        raise ValueError(f"{name} must have at least 1 token, got none")
    if ids.min() < 0 or ids.max() >= network.vocabulary:
        bad = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"{name} must have token ids from 0 to {network.vocabulary - 1}, got {bad}")
    return ids


def draw_pairs(
    network: Network,
    *,
    pairs: int = 8,
    prompt: int = 64,
    steps: int = 2048,
    text: str | None = None,
    seed: int = 0,
) -> Pairs:
    """Return pairs of prompts and a continuation for each: pieces of a text, or random tokens.

    Parameters
    ----------
    network
        For its tokens.
    pairs, prompt, steps
        K, P and T.
    text
        Cut into 2 K prompts and K continuations that share no token, dealt at random; None: random tokens.
    seed
        Of the dealing or the drawing.

    Raises `ValueError`, with the number of tokens needed, if the text is too short.

    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=1, width=8, heads=1, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> drawn = draw_pairs(network, pairs=2, prompt=4, steps=10, text="What is said thrice is true. " * 2)
    >>> bytes(drawn.encode(network).tokens(0)[0].tolist()).decode()
    ' saiice is tru'
    """
    pairs, prompt = positive_integer("pairs", pairs), positive_integer("prompt", prompt)
    steps = positive_integer("steps", steps, least=2)
    rng = np.random.default_rng(positive_integer("seed", seed, least=0))
    if network.context is not None and prompt + steps > network.context:
        raise ValueError(
            f"prompt + steps must be at most the network's context of {network.context} tokens, got {prompt + steps}"
        )
    if text is None:
        demand_memory("pairs, prompt or steps", 32.0 * pairs * (2 * prompt + steps), "so many tokens")
        ids = rng.integers(0, network.vocabulary, (pairs, 2 * prompt + steps))
        clash = np.all(ids[:, :prompt] == ids[:, prompt : 2 * prompt], axis=1)
        ids[clash, 0] = (ids[clash, prompt] + 1) % network.vocabulary  # one-token prompts may be drawn equal
        facts = {"continuation": f"random tokens, seed {seed}"}
        return Pairs(ids[:, :prompt], ids[:, prompt : 2 * prompt], ids[:, 2 * prompt :], provenance=facts)
    stream = np.array(network.encode(text), dtype=np.int64)
    need = pairs * (2 * prompt + steps)
    if stream.size < need:
        raise ValueError(
            f"text must have at least pairs * (2 * prompt + steps) = {need} tokens, got {stream.size}; "
            "take fewer pairs, fewer steps or a longer text"
        )
    spare = rng.multinomial(stream.size - need, np.full(pairs + 1, 1 / (pairs + 1)))
    starts = np.cumsum(spare)[:pairs] + np.arange(pairs) * (2 * prompt + steps)
    pieces = np.stack([stream[s : s + 2 * prompt + steps] for s in starts])
    # dealt anew, so that no continuation is the natural one of its prompt B
    prompts = rng.permutation(pieces[:, : 2 * prompt].reshape(2 * pairs, prompt))
    facts = {"continuation": f"pieces of a text of {stream.size} tokens, seed {seed}"}
    return Pairs(prompts[:pairs], prompts[pairs:], pieces[:, 2 * prompt :], provenance=facts)
