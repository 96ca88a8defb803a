"""Reminders: the prompt's text returned in the continuation, at which tokens (THEORY section 7)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.simulation.inputs import interval_table

Integers = NDArray[np.int64]

MOST_TOKENS = 3 * 10**7  # written out one by one
LATEST_TOKEN = 2**52  # float64 counts tokens up to there


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
        if every > LATEST_TOKEN:
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
class EvenReminders:
    r"""Reminders of one token each, as even as any density allows: a Beatty sequence (THEORY section 7).

    The first `block` tokens are reminders.  With them $P' = P + \text{block}$ sources stand at the beginning, and the
    k-th source, k > P', stands at position $\lfloor (k-1)/d \rfloor$: of the first s positions
    $\lceil d(s+1) \rceil$ are sources, or P' if that is more.

    Parameters
    ----------
    density
        d, the part of the continuation that is reminders, between 0 and 1, exclusive; taken exactly.
    prompt
        P.
    block
        Tokens reminded of at the beginning, so many that $P' \ge d/(1-d)$; by default the least number.

    Examples
    --------
    >>> EvenReminders(Fraction(2, 5), prompt=2).intervals(12)[:, 0]  # positions 5, 7, 10, 12
    array([ 3,  5,  8, 10])
    """

    density: Number
    prompt: int
    block: int | None = None

    def __post_init__(self) -> None:
        density, prompt = Fraction(real("density", self.density)), positive_integer("prompt", self.prompt)
        if not 0 < density < 1:
            raise ValueError(
                f"density must lie between 0 and 1, the ends excluded, got {show(self.density)}; Reminders(1, 1) "
                "reminds of every token"
            )
        least = max(0, math.ceil(density / (1 - density)) - prompt)
        block = least if self.block is None else positive_integer("block", self.block, least=0)
        if not least <= block <= LATEST_TOKEN:
            raise ValueError(
                f"block must be from {show(least)}, so that prompt + block is at least density/(1 - density), to 2^52, "
                f"got {show(block)}"
            )
        for name, value in (("density", density), ("prompt", prompt), ("block", block)):
            object.__setattr__(self, name, value)

    def intervals(self, steps: int) -> Integers:
        """Return the inclusive intervals that begin up to `steps`, shape (K, 2)."""
        last = positive_integer("steps", steps)
        assert self.block is not None
        first, end = self.prompt + self.block, self.prompt + last + 1
        count = math.ceil(self.density * end) - first  # sources at positions up to the last
        if count > MOST_TOKENS:
            raise ValueError(f"steps must hold at most {MOST_TOKENS:.0e} reminders, got {count}; ask for fewer steps")
        table = [np.array([[1, self.block]] if self.block else [], dtype=np.int64).reshape(-1, 2)]
        if count > 0:
            d = next_fraction(Fraction(self.density), end)
            k = np.arange(first, first + count, dtype=np.int64 if (first + count) * d.denominator < 2**63 else object)
            places = (k * d.denominator // d.numerator - self.prompt).astype(np.int64)
            table.append(np.stack([places, places], axis=1))
        return np.concatenate(table)


def next_fraction(x: Fraction, largest: int) -> Fraction:
    """Return the least fraction of at least x > 0 with a denominator of at most `largest`.

    Up to s = `largest` it has the same multiples rounded up as x: there is no fraction k/s between the two.

    >>> next_fraction(Fraction(314159, 100000), 10)
    Fraction(22, 7)
    """
    near = x.limit_denominator(largest)
    if near >= x:
        return near
    # the next of the Farey sequence: a/b with a q - b p = 1 and the largest b
    p, q = near.numerator, near.denominator
    b = largest - (largest + pow(p, -1, q)) % q if q > 1 else largest
    return Fraction(1 + b * p, q * b)


@dataclass(frozen=True)
class ReminderBlocks:
    """Reminders at given places: inclusive intervals (start, stop) of t, sorted and disjoint.

    >>> ReminderBlocks.at([9, 1, 2, 3]).blocks
    ((1, 3), (9, 9))
    """

    blocks: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        checked = interval_table(self.blocks, LATEST_TOKEN)
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
