"""The arithmetic of one chunk: prefix sums by rows, layer after layer, and the sums carried from chunk to chunk."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import positive_integer, show
from relaymodel.model import RelayModel
from relaymodel.simulation.inputs import Floats, Integers, reminded

LARGEST_POSITION = 64
"""Position exponents beyond this would let the weights within one chunk leave the range of float64."""


@dataclass(frozen=True)
class Layout:
    """How continuation positions are laid out in a chunk: position `column * rows + row` at [row, column].

    Consecutive positions run down a column, so that a prefix sum within all columns at once is `rows`
    additions of contiguous rows; only the column totals need a sequential scan.  Chunks have 1, 2, 4, ...
    columns until the full number is reached, so that position weights never grow much within a chunk.
    Where a chunk begins depends on t alone, not on where a run ended: resumed runs repeat every rounding.

    >>> [Layout(rows=2, columns=4).chunk(t) for t in (0, 1, 2, 6, 13, 14, 22)]
    [(0, 1), (0, 1), (2, 2), (6, 4), (6, 4), (14, 4), (22, 4)]
    """

    rows: int = 16
    columns: int = 2048

    def __post_init__(self) -> None:
        positive_integer("rows", self.rows)
        if positive_integer("columns", self.columns).bit_count() != 1:
            raise ValueError(f"columns must be a power of 2, got {self.columns}")

    def chunk(self, t: int) -> tuple[int, int]:
        """Return (start, columns) of the chunk that holds continuation tokens start+1 to start+rows*columns, t+1 too.

        `start` is at most t.
        """
        columns = 1 << ((t // self.rows + 1).bit_length() - 1)
        if columns < self.columns:
            return self.rows * (columns - 1), columns
        ramp, size = self.rows * (self.columns - 1), self.rows * self.columns
        return ramp + (t - ramp) // size * size, self.columns


def aligned(*shape: int) -> Floats:
    """Return an uninitialised array that begins on a cache line: vector loads that straddle two take twice as long."""
    size = math.prod(shape)
    raw = np.empty(size + 8)
    begin = -raw.ctypes.data % 64 // 8
    return raw[begin : begin + size].reshape(shape)


class Scratch:
    """The arrays for chunks of shape (rows, columns), in float64; `kinds` counts the different attentions."""

    def __init__(self, rows: int, columns: int, kinds: int) -> None:
        self.shape = (rows, columns)
        self.index = np.arange(float(rows))[:, None] + rows * np.arange(float(columns))
        self.position, self.values, self.sums, self.spare = (aligned(rows, columns) for _ in range(4))
        self.factors = [aligned(rows, columns) for _ in range(kinds)]
        self.weights = [aligned(rows, columns) for _ in range(kinds)]
        self.totals, self.offsets = aligned(columns), aligned(columns + 1)
        self.offsets[0] = 0
        self.rows_of_values, self.rows_of_sums = list(self.values), list(self.sums)

    def natural(self, sequence: NDArray[np.generic], out: Floats) -> None:
        """Lay a sequence in the order of positions, shape (rows * columns,), out as a chunk."""
        out[:] = sequence.reshape(self.shape[::-1]).T

    def total(self, array: Floats) -> float:
        """Return the sum of `array`; leave the sums of its columns, added up, in `offsets[1:]`."""
        np.add.reduce(array, axis=0, out=self.totals)
        np.add.accumulate(self.totals, out=self.offsets[1:])
        return float(self.offsets[-1])

    def prefix_sums(self, array: Floats, before: float) -> float:
        """Fill `sums` with the prefix sums of `array` (`values`, or `sums` itself) plus `before`; return the total.

        `before` is not part of the total.
        """
        # two passes over the chunk, both made of vector additions; only the column totals are summed one by one
        total = self.total(array)
        above = np.add(self.offsets[:-1], before, out=self.totals)
        rows = self.rows_of_values if array is self.values else self.rows_of_sums
        for row, out in zip(rows, self.rows_of_sums, strict=True):
            above = np.add(above, row, out)
        return total


@dataclass(frozen=True)
class ChunkAttention:
    r"""What turns the carried sum and the values of a chunk into the attention's mean, at its positions n.

    mean_n = factor_n (sum before the chunk + sum of weight_s x_s over the chunk up to n) + share_n X, where X
    is the value on the prompt.  Behind the chunk the sum is divided by e^growth.
    """

    factor: Floats
    weight: Floats | None = None  # None: 1
    growth: float = 0.0
    share: Floats | None = None  # None: 0


class Recursion:
    """A stack of relay layers ready to be run in chunks (THEORY sections 1 and 7).

    Parameters
    ----------
    model
        The model.
    layout
        Shape of the chunks.
    bias
        b_t as a function of t, or None.
    reminders
        Intervals of t at which the source is 1, shape (K, 2).
    steps
        Number of continuation tokens; `bias` is not evaluated beyond it.
    """

    def __init__(
        self,
        model: RelayModel,
        layout: Layout,
        bias: Callable[[Floats], Floats] | None,
        reminders: Integers,
        steps: int,
    ) -> None:
        self.prompt, self.layout, self.bias, self.reminders, self.steps = model.prompt, layout, bias, reminders, steps
        length = model.prompt + steps
        if length > 2**52:
            raise ValueError(
                f"prompt + steps must be at most 2^52 so that float64 counts positions, got {show(length)}"
            )
        self.positions = list(dict.fromkeys(g for _, _, g in model.rational))
        self.layers = []
        self.initial = np.zeros((model.depth, 2))
        self.saturation = []
        X = Fraction(1)
        for i, (relay, residual, g) in enumerate(model.rational):
            if g > LARGEST_POSITION:
                raise ValueError(
                    f"position must be at most {LARGEST_POSITION} in a simulation, got "
                    f"{show(model.layers[i].position)} in layer {i + 1}; use influence instead"
                )
            strengths = as_float(f"relay of layer {i + 1}", relay), as_float(f"residual of layer {i + 1}", residual)
            self.layers.append((*strengths, self.positions.index(g)))
            self.saturation.append(as_float(f"the value on the prompt before layer {i + 1}", X))
            if bias is None:
                self.initial[i, 0] = as_float(f"the sum over the prompt before layer {i + 1}", model.prompt * X)
            X *= relay + residual
        self._scratch: Scratch | None = None

    def run(self, start: int, columns: int, carries: Floats, wanted: Integers) -> tuple[Floats, Floats]:
        """Run one chunk; return the carries behind it, shape (L, 2), and D at the `wanted` t in it, shape (K,).

        `carries` are the sums before the chunk, one for each layer, as unevaluated pairs high + low.  A sum is
        n times the mean of layer l's input over positions 1..n (with a bias: over the continuation only).
        """
        if self._scratch is None or self._scratch.shape[1] != columns:
            self._scratch = None  # let the old arrays go before there are new ones
            self._scratch = Scratch(self.layout.rows, columns, len(self.positions))
        chunk = self._scratch
        np.add(chunk.index, float(self.prompt + start + 1), out=chunk.position)
        attentions = [self._attention(chunk, start, kind) for kind in range(len(self.positions))]
        source = reminded(self.reminders, start, chunk.index.size)
        if source is not None:
            chunk.natural(source, out=chunk.values)
        try:
            with np.errstate(all="raise"):
                behind = self._apply(chunk, attentions, carries, silent=source is None, read=wanted.size > 0)
        except FloatingPointError as error:
            raise ValueError(
                f"the values must stay within the range of float64, but between t = {start + 1} and "
                f"t = {start + chunk.index.size} they left it ({error}); use influence_ball instead"
            ) from None
        place = wanted - (start + 1)
        return behind, chunk.values[place % self.layout.rows, place // self.layout.rows]

    def _apply(
        self, chunk: Scratch, attentions: list[ChunkAttention], carries: Floats, *, silent: bool, read: bool
    ) -> Floats:
        """Send `chunk.values` through all layers in place; return the carries behind the chunk.

        `silent` says that the values are 0 all over the chunk; unless they will be `read`, the last layer is only
        summed.
        """
        x, sums = chunk.values, chunk.sums
        behind = carries.copy()
        for l, (relay, residual, kind) in enumerate(self.layers):
            attention = attentions[kind]
            unread = l == len(self.layers) - 1 and not read
            before, total = float(carries[l, 0]), 0.0
            if silent:
                sums.fill(before)
            else:
                weighted = x if attention.weight is None else np.multiply(x, attention.weight, out=sums)
                total = chunk.total(weighted) if unread else chunk.prefix_sums(weighted, before)
            behind[l] = carry(before, float(carries[l, 1]), total, attention.growth)
            if unread:
                break
            sums *= attention.factor
            if attention.share is not None:
                with np.errstate(under="ignore"):  # a share far below the rest may vanish beside it
                    sums += np.multiply(attention.share, self.saturation[l], out=chunk.spare)
            if relay != 1:
                sums *= relay
            if silent:
                x[:] = sums
                silent = False
            else:
                if residual != 1:
                    x *= residual
                x += sums
        return behind

    def _attention(self, chunk: Scratch, start: int, kind: int) -> ChunkAttention:
        """Return the attention of all layers with the position exponent `positions[kind]` over the chunk."""
        n, factor, weight = chunk.position, chunk.factors[kind], chunk.weights[kind]
        if self.bias is not None:
            share = weight
            # beyond the last step the values are never read; always asking for a full chunk keeps vectorised
            # functions from rounding differently at another length
            t = np.minimum(np.arange(start + 1.0, start + n.size + 1.0), self.steps)
            prompt_weight = self.bias(t)
            with np.errstate(all="ignore"):  # a share that rounds to 0 or 1 is right to the last digit
                np.exp(prompt_weight, out=prompt_weight)
                prompt_weight *= self.prompt  # P v_t
                chunk.natural(1 / (prompt_weight + t), out=factor)
                chunk.natural(1 / (1 + t / prompt_weight), out=share)
            return ChunkAttention(factor, share=share)
        if self.positions[kind] == 0:
            return ChunkAttention(np.divide(1.0, n, out=factor))
        # With e_n = prod_{s<=n} (1 + g/s) from the chunk's first position on, the weights are proportional to
        # w_s = e_{s-1} and their sum up to n to e_n n/(1+g), so that nothing here grows with n or is a small
        # difference of large numbers: mean_n = (n_0 mean_{n_0} + (1+g) sum w_s x_s) / (n e_n).
        g, scale = float(self.positions[kind]), float(1 + self.positions[kind])
        np.divide(g, n, out=chunk.sums)
        np.log1p(chunk.sums, out=chunk.sums)
        growth = chunk.prefix_sums(chunk.sums, 0.0)
        e = np.exp(chunk.sums, out=chunk.sums)
        np.add(n, g, out=weight)
        np.divide(n, weight, out=weight)
        weight *= e
        weight *= scale
        np.multiply(n, e, out=factor)
        np.divide(1.0, factor, out=factor)
        return ChunkAttention(factor, weight, growth)


def carry(high: float, low: float, total: float, growth: float) -> tuple[float, float]:
    """Return (high + low + total) e^-growth as an unevaluated pair: the rounding of `high` is kept in `low`."""
    high, lost = two_sum(high, total)
    low += lost
    if growth > 0.5:  # only in chunks that are not small against what lies before them
        return two_sum(high * math.exp(-growth), low * math.exp(-growth))
    # e^-growth differs little from 1: only the difference is rounded, so that errors do not add up over the chunks
    change = math.expm1(-growth)
    high, lost = two_sum(high, high * change)
    return two_sum(high, low + low * change + lost)


def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b rounded, and what the rounding lost, exactly (Knuth).

    >>> two_sum(1.0, 2.0**-60)
    (1.0, 8.673617379884035e-19)
    """
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def as_float(name: str, value: Fraction) -> float:
    """Return a float64 within half an ulp of `value`, or say that there is none.

    >>> as_float("relay", Fraction(1, 10**400))
    Traceback (most recent call last):
    ValueError: relay must lie within the range of float64, got about 1e-400; use influence_ball instead
    """
    try:
        rounded = float(value)
    except OverflowError:
        rounded = float("inf")
    if abs(rounded) == float("inf") or (value and abs(rounded) < np.finfo(np.float64).tiny):
        power = round(math.log10(abs(value.numerator)) - math.log10(value.denominator))
        raise ValueError(
            f"{name} must lie within the range of float64, got about 1e{power}; use influence_ball instead"
        )
    return rounded
