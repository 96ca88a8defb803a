"""Reminders: the prompt's text returned in the continuation, at which tokens (THEORY section 7)."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import positive_integer, show
from relaymodel.simulation.inputs import interval_table

Integers = NDArray[np.int64]

MOST_TOKENS = 3 * 10**7
LARGEST = 2**52


@dataclass(frozen=True)
class Reminders:
    """Reminders of R tokens every M tokens: they begin at t = F, F + M, F + 2M, ...

    Parameters
    ----------
    every
        M, at least `length`.
    length
        R, at least 1.
    first
        F, from 1 to M - R + 1, which is the default: the last R of every M tokens of the continuation.

    Examples
    --------
    >>> Reminders(every=64, length=8).intervals(200).tolist()
    [[57, 64], [121, 128], [185, 192]]
    """

    every: int
    length: int
    first: int | None = None

    def __post_init__(self) -> None:
        every, length = positive_integer("every", self.every), positive_integer("length", self.length)
        if every > LARGEST:
            raise ValueError(f"every must be at most 2^52, got {show(every)}")
        if length > every:
            raise ValueError(f"length must be at most every = {every}, got {show(length)}")
        first = every - length + 1 if self.first is None else positive_integer("first", self.first)
        if first > every - length + 1:
            raise ValueError(
                f"first must be at most every - length + 1 = {every - length + 1}, got {show(first)}, so that "
                f"{length} in every {every} tokens are reminders"
            )
        for name, value in (("every", every), ("length", length), ("first", first)):
            object.__setattr__(self, name, value)

    @property
    def density(self) -> Fraction:
        """R/M, the part of the continuation that is reminders."""
        return Fraction(self.length, self.every)

    def intervals(self, steps: int) -> Integers:
        """Return the inclusive intervals that begin up to `steps`, shape (K, 2)."""
        last = positive_integer("steps", steps)
        assert self.first is not None
        count = max(0, (last - self.first) // self.every + 1)
        if count > MOST_TOKENS:
            raise ValueError(f"steps must hold at most {MOST_TOKENS:.0e} reminders, got {count}; ask for fewer steps")
        start = self.first + self.every * np.arange(count, dtype=np.int64)
        return np.stack([start, start + self.length - 1], axis=1)


@dataclass(frozen=True)
class ReminderBlocks:
    """Reminders at given places: inclusive intervals (start, stop) of t, sorted and disjoint.

    >>> ReminderBlocks.at([9, 1, 2, 3]).blocks
    ((1, 3), (9, 9))
    """

    blocks: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        checked = interval_table(self.blocks, LARGEST)
        object.__setattr__(self, "blocks", tuple((int(start), int(stop)) for start, stop in checked))

    @classmethod
    def at(cls, tokens: Iterable[int]) -> "ReminderBlocks":
        """Return the blocks that these continuation tokens make up, in any order."""
        places = sorted({positive_integer("tokens", t) for t in tokens})
        blocks: list[tuple[int, int]] = []
        for t in places:
            blocks[-1:] = [(blocks[-1][0], t)] if blocks and blocks[-1][1] == t - 1 else [*blocks[-1:], (t, t)]
        return cls(tuple(blocks))

    @property
    def count(self) -> int:
        """How many tokens they are."""
        return sum(stop - start + 1 for start, stop in self.blocks)

    def intervals(self, steps: int) -> Integers:
        """Return the intervals that begin up to `steps`, shape (K, 2)."""
        kept = [block for block in self.blocks if block[0] <= positive_integer("steps", steps)]
        return np.array(kept, dtype=np.int64).reshape(-1, 2)
