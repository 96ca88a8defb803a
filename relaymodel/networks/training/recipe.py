"""The recipe of a training: the network, the optimiser, the measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from relaymodel.checks import choice, positive, positive_integer, show

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES = 256
"""The smallest vocabulary: a token for each byte."""

LARGEST_VOCABULARY, PLACES = 2**16, ("learned", "rotary")  # tokens in two bytes

HELD_OUT = 0.1
"""Share of the text, its end, that is kept for measurements."""

WARMUP, LAST_RATE = 0.05, 0.1  # of the steps, and of the largest rate, where the cosine ends
MOST_THREADS, MOST_CHECKPOINTS = 1024, 10**4  # far beyond any use
BETAS, WEIGHT_DECAY, CLIP = (0.9, 0.95), 0.1, 1.0  # of AdamW, and the norm of gradients


@dataclass(frozen=True)
class Recipe:
    """A small GPT, how it is trained, and when and how it is measured.

    AdamW (betas 0.9 and 0.95, weight decay 0.1 on matrices, gradients clipped at norm 1); the learning rate rises
    linearly over the first 5 % of the steps and falls along a cosine to a tenth.  No dropout: all randomness is in the
    initial weights and in the choice of the stretches of text, and both follow from the seed.

    Attributes
    ----------
    depth, width, heads
        Blocks, size of the residual stream, attention heads of a block.
    context
        Tokens of a training text; also the length P + T of a measured one.
    prompt
        P: the first tokens of every text, whose keys a bias is added to.
    steps, batch, rate
        Updates, texts for each, and the largest learning rate.
    checkpoints
        How many times the network is measured after step 0, at steps equally spaced in their logarithm.
    vocabulary
        Tokens: 256 are the bytes; with more, pairs of tokens that often stand side by side in the training text become
        tokens too (byte-pair encoding).
    positions
        "learned" builds a GPT-2; "rotary" a Llama, with its norms and gated MLPs.
    pairs
        K: pairs of prompts in a measurement, with a continuation each, all from the end of the text, which is not
        trained on.
    threads
        Of torch.  The last digits depend on it.

    Raises `TypeError` or `ValueError` for values that make no network.

    >>> Recipe(steps=1000, checkpoints=4).measured
    (0, 8, 39, 198, 1000)
    >>> Recipe(context=32)
    Traceback (most recent call last):
    ValueError: prompt must be less than context - 1 = 31, so that a continuation follows, got 32
    """

    depth: int = 6
    width: int = 64
    heads: int = 4
    context: int = 512
    prompt: int = 32
    steps: int = 1600
    batch: int = 4
    rate: float = 3e-3
    checkpoints: int = 12
    pairs: int = 16
    threads: int = 1
    vocabulary: int = BYTES
    positions: str = "learned"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("rate", "positions"):
                object.__setattr__(self, field.name, positive_integer(field.name, value))
        object.__setattr__(self, "rate", positive("rate", self.rate))
        choice("positions", self.positions, PLACES)
        if not BYTES <= self.vocabulary <= LARGEST_VOCABULARY:
            raise ValueError(
                f"vocabulary must be from {BYTES}, the bytes, to {LARGEST_VOCABULARY}, got {show(self.vocabulary)}"
            )
        if self.positions == "rotary" and self.width // self.heads % 2:
            raise ValueError(f"width / heads must be even for rotary positions, got {self.width} / {self.heads}")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads = {self.heads}, got {self.width}")
        for name, most in (("threads", MOST_THREADS), ("checkpoints", MOST_CHECKPOINTS)):
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}, got {show(getattr(self, name))}")
        if self.prompt >= self.context - 1:
            raise ValueError(
                f"prompt must be less than context - 1 = {self.context - 1}, so that a continuation follows, "
                f"got {self.prompt}"
            )

    @property
    def continuation(self) -> int:
        """T, the tokens behind the prompt."""
        return self.context - self.prompt

    @property
    def layer(self) -> int:
        """The layer that is shown unless another is asked for: the last but one."""
        return max(1, self.depth - 1)

    @property
    def memory(self) -> float:
        """How many bytes a training takes, about: weights, gradients, two moments, a copy in float64; activations.

        The 40 numbers a token, layer and component are what torch was seen to keep for the backward pass (37 to 47).
        """
        parameters = (
            self.depth * self.width * (12 * self.width + 13) + (self.vocabulary + self.context + 2) * self.width
        )
        tokens = self.batch * self.context
        return 24.0 * parameters + 4.0 * tokens * (40 * self.depth * self.width + 3 * self.vocabulary)

    @property
    def measured(self) -> tuple[int, ...]:
        """The steps at which the network is measured; 0 and the last are among them."""
        first = max(1.0, self.steps / 128)
        marks = np.geomspace(first, self.steps, self.checkpoints) if self.checkpoints > 1 else np.array([self.steps])
        return tuple(sorted({0, *np.rint(marks).astype(int).tolist()}))

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of update `step`, counted from 0."""
        rise = min(1.0, (step + 1) / (WARMUP * self.steps))
        return self.rate * rise * (LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * step / self.steps)))

    def options(self) -> list[str]:
        """Return the options of `relaymodel train` that give this recipe.

        >>> Recipe(batch=8).options(), PRESETS["quick"].options()
        (['--set', 'batch=8'], ['--preset', 'quick'])
        """
        spellings = []
        for name, preset in PRESETS.items():
            words = [] if name == STANDARD else ["--preset", name]
            for field in fields(self):
                value = getattr(self, field.name)
                if value != getattr(preset, field.name):
                    words += ["--set", f"{field.name}={value:g}" if field.name == "rate" else f"{field.name}={value}"]
            spellings.append(words)
        return min(spellings, key=len)


STANDARD = "standard"
PRESETS: Mapping[str, Recipe] = {
    STANDARD: Recipe(),
    "units": Recipe(vocabulary=1024, positions="rotary"),
    "quick": Recipe(depth=2, width=32, heads=2, context=96, prompt=16, steps=24, checkpoints=3, pairs=3),
}
"""Recipes by name: "standard" takes some ten minutes a training on two cores, "units" reads longer units than bytes and
knows relative positions only, "quick" takes seconds, to see that it works."""


def preset(name: str) -> Recipe:
    """Return a recipe by its name."""
    return PRESETS[choice("preset", name, list(PRESETS))]
