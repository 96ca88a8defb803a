"""The text: tokens to train on, a held-out end to measure on, and the tokenizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.checks import show
from relaymodel.networks.huggingface.libraries import heavy
from relaymodel.networks.training.recipe import BYTES, HELD_OUT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from relaymodel.networks.training.recipe import Recipe

HELD_OUT_TEXTS = 16
"""Held-out texts for the loss."""


class Bytes:
    """A tokenizer whose tokens are the bytes of a text in UTF-8.

    >>> Bytes().encode("relay")
    [114, 101, 108, 97, 121]
    """

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return the bytes; what transformers' own tokenizers are asked besides is ignored."""
        return list(text.encode())


class BytePairs:
    """A tokenizer whose tokens are the bytes, and units of them learned on a text (byte-pair encoding).

    Of all pairs of tokens side by side the most frequent becomes a token, and so on; a unit reaches over no blank but
    at its beginning.
    """

    def __init__(self, text: str, vocabulary: int) -> None:
        library = heavy("tokenizers")
        self._units = library.Tokenizer(library.models.BPE())
        self._units.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        self._units.train_from_iterator(
            [text],
            library.trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False),
        )

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return the tokens of a text."""
        return list(self._units.encode(text).ids)


@dataclass(frozen=True)
class Corpus:
    """A text in two parts: `training` tokens, shape (n,), and the `held_out` end; and what makes tokens of it."""

    training: NDArray[np.int64]
    held_out: str
    tokenizer: Bytes | BytePairs

    def batch(self, recipe: Recipe, seed: int, step: int) -> NDArray[np.int64]:
        """Return the texts of one update, shape (batch, context): they depend on the seed and the step alone."""
        rng = np.random.default_rng([seed, step])
        starts = rng.integers(0, self.training.size - recipe.context + 1, recipe.batch)
        return np.stack([self.training[s : s + recipe.context] for s in starts])

    def windows(self, recipe: Recipe) -> NDArray[np.int64]:
        """Return held-out texts, shape (up to 16, context), for the loss."""
        stream = np.array(self.tokenizer.encode(self.held_out), dtype=np.int64)
        count = min(HELD_OUT_TEXTS, stream.size // recipe.context)
        return stream[: count * recipe.context].reshape(count, recipe.context)


def split(text: str, recipe: Recipe) -> Corpus:
    """Return the two parts of a text.

    Raises `ValueError` if one of them is too short for the recipe.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {show(text)} of type {type(text).__name__}")
    cut = round(len(text) * (1 - HELD_OUT))
    tokenizer = Bytes() if recipe.vocabulary == BYTES else BytePairs(text[:cut], recipe.vocabulary)
    training, held_out = np.array(tokenizer.encode(text[:cut]), dtype=np.int64), text[cut:]
    end = len(tokenizer.encode(held_out))
    need = recipe.pairs * (2 * recipe.prompt + recipe.continuation)
    if training.size < recipe.context or end < need:
        least = max(need / HELD_OUT, recipe.context / (1 - HELD_OUT))
        unit = "bytes" if recipe.vocabulary == BYTES else "tokens"
        raise ValueError(
            f"text must have about {least:.0f} {unit} or more: {recipe.context} to train on, and {need} in its last "
            f"{HELD_OUT:.0%} for {recipe.pairs} pairs, got {training.size} and {end}; take a longer text, fewer pairs "
            "or a shorter context"
        )
    return Corpus(training, held_out, tokenizer)
