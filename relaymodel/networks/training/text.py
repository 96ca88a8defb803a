"""The text: bytes to train on, held-out ones to measure on, and the tokenizer that makes tokens of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.checks import show
from relaymodel.networks.training.recipe import HELD_OUT

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


@dataclass(frozen=True)
class Corpus:
    """A text in two parts: `training` bytes, shape (n,), and the `held_out` end."""

    training: NDArray[np.uint8]
    held_out: str

    def batch(self, recipe: Recipe, seed: int, step: int) -> NDArray[np.int64]:
        """Return the texts of one update, shape (batch, context): they depend on the seed and the step alone."""
        rng = np.random.default_rng([seed, step])
        starts = rng.integers(0, self.training.size - recipe.context + 1, recipe.batch)
        return np.stack([self.training[s : s + recipe.context] for s in starts]).astype(np.int64)

    def windows(self, recipe: Recipe) -> NDArray[np.int64]:
        """Return held-out texts, shape (up to 16, context), for the loss."""
        stream = np.frombuffer(self.held_out.encode(), dtype=np.uint8)
        count = min(HELD_OUT_TEXTS, stream.size // recipe.context)
        return stream[: count * recipe.context].reshape(count, recipe.context).astype(np.int64)


def split(text: str, recipe: Recipe) -> Corpus:
    """Return the two parts of a text.

    Raises `ValueError` if one of them is too short for the recipe.
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {show(text)} of type {type(text).__name__}")
    cut = round(len(text) * (1 - HELD_OUT))
    training, held_out = np.frombuffer(text[:cut].encode(), dtype=np.uint8), text[cut:]
    need = recipe.pairs * (2 * recipe.prompt + recipe.continuation)
    if training.size < recipe.context or len(held_out.encode()) < need:
        least = max(need / HELD_OUT, recipe.context / (1 - HELD_OUT))
        raise ValueError(
            f"text must have about {least:.0f} bytes or more: {recipe.context} to train on, and {need} in its last "
            f"{HELD_OUT:.0%} for {recipe.pairs} pairs, got {training.size} and {len(held_out.encode())}; take a longer "
            "text, fewer pairs or a shorter context"
        )
    return Corpus(training, held_out)
