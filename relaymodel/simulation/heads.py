"""The recursion of layers with several heads, recencies and sinks, or a bias behind position weights, chunk by chunk.

Each head is a convolution (`relaymodel.simulation.kernels`).  What lies within a chunk is taken by FFT, what lies
before it by exponentials and running sums, carried from chunk to chunk: the former for all layers at once, as matrix
products.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from relaymodel.checks import show
from relaymodel.model import Head, RelayModel
from relaymodel.simulation.inputs import Floats, Integers, reminded
from relaymodel.simulation.kernels import LONGEST_RUN, Kernel
from relaymodel.simulation.recursion import Layout, as_float
from relaymodel.simulation.share import ShareRule

LARGEST_HEAD_POSITION = 12
"""Of a head in this recursion, whose weights are numbers, not relative ones."""


class Tracks:
    """What is convolved with one kernel: a column of `states` (J, T) and of `sums` (m, T) for each sequence."""

    def __init__(self, kernel: Kernel, count: int) -> None:
        self.kernel, self.count = kernel, count
        found = kernel.exponentials
        self.rates, self.shares = (np.zeros(0), np.zeros(0)) if found is None else (found.rates, found.weights)
        self.size = kernel.size * count

    def open(self, carried: Floats, columns: int) -> None:
        """Read the carried numbers, shape (size,), before a chunk of so many positions."""
        J = self.rates.size * self.count
        self.states = carried[:J].reshape(-1, self.count)
        self.sums = carried[J:].reshape(-1, self.count).copy()
        self.inside = np.zeros((columns, self.count))
        if J:
            self.far = _decays(self.kernel, columns)[0] @ (self.shares[:, None] * self.states)

    def convolve(self, track: int, weighted: Floats | None) -> Floats:
        """Return the numerators of the mean over the chunk from the weighted values there, None if all are 0."""
        total = np.zeros(len(self.inside)) if weighted is None else weighted
        if weighted is not None:
            self.inside[:, track] = weighted
        if self.rates.size:
            total = self.far[:, track].copy()
            if weighted is not None:
                count = total.size
                total += irfft(rfft(weighted, 2 * count) * _transform(self.kernel, count), 2 * count)[:count]
        for i in range(len(self.sums)):
            total = np.cumsum(total)
            total += self.sums[i, track]
            self.sums[i, track] = total[-1]
        return total

    def close(self) -> Floats:
        """Return the carried numbers behind the chunk."""
        states = self.states
        if self.rates.size:
            _, onward, backwards = _decays(self.kernel, len(self.inside))
            states = onward[:, None] * states + backwards @ self.inside
        return np.concatenate([states.ravel(), self.sums.ravel()])


@lru_cache(maxsize=64)
def _transform(kernel: Kernel, count: int) -> NDArray[np.complex128]:
    return np.asarray(rfft(kernel.near(count), 2 * count))


@lru_cache(maxsize=64)
def _decays(kernel: Kernel, count: int) -> tuple[Floats, Floats, Floats]:
    """Return exp(-a i) for i = 1..count (count, J), for i = count (J,), and for i = count-1..0 (J, count)."""
    assert kernel.exponentials is not None
    with np.errstate(under="ignore"):
        decays = np.exp(-np.outer(np.arange(count + 1.0), kernel.exponentials.rates))
    return decays[1:], decays[-1], np.ascontiguousarray(decays[-2::-1].T)


class HeadRecursion:
    """A stack of layers of any heads, ready to be run in chunks; parameters as for `recursion.Recursion`."""

    def __init__(
        self,
        model: RelayModel,
        layout: Layout,
        bias: Callable[[Floats], Floats] | ShareRule | None,
        reminders: Integers,
        steps: int,
    ) -> None:
        self.prompt, self.layout, self.bias, self.reminders, self.steps = model.prompt, layout, bias, reminders, steps
        if model.prompt + steps > LONGEST_RUN:
            raise ValueError(
                f"prompt + steps must be at most 2^40 with a recency, or a bias behind a position exponent, got "
                f"{show(model.prompt + steps)}; use influence instead"
            )
        kernels = [[kernel_of(i, head) for head in l.heads] for i, l in enumerate(model.layers)]
        self.kernels = list(dict.fromkeys(kernel for layer in kernels for kernel in layer))
        counts = dict.fromkeys(self.kernels, 2 if bias is not None else 0)  # weights of prompt and of continuation
        self.layers = []
        X = Fraction(1)
        inputs: dict[Kernel, list[float]] = {kernel: [] for kernel in self.kernels}
        for i, (layer, used) in enumerate(zip(model.layers, kernels, strict=True)):
            value = as_float(f"the value on the prompt before layer {i + 1}", X)
            heads = []
            for kernel in dict.fromkeys(used):
                relay = sum(
                    (Fraction(h.relay) for h, k in zip(layer.heads, used, strict=True) if k == kernel), Fraction(0)
                )
                heads.append((as_float(f"relay of layer {i + 1}", relay), self.kernels.index(kernel), counts[kernel]))
                counts[kernel] += 1
                inputs[kernel].append(0.0 if bias is not None else value)
            residual, sink = Fraction(layer.residual), Fraction(layer.sink)
            self.layers.append(
                (
                    heads,
                    as_float(f"residual of layer {i + 1}", residual),
                    as_float(f"sink of layer {i + 1}", sink * X),
                    value,
                )
            )
            X *= residual + sink + sum(Fraction(head.relay) for head in layer.heads)
        self.tracks = [Tracks(kernel, counts[kernel]) for kernel in self.kernels]
        self.initial = self._initial(inputs, biased=bias is not None)

    def _initial(self, inputs: dict[Kernel, list[float]], *, biased: bool) -> Floats:
        """Return what is carried behind the prompt."""
        carried = []
        with np.errstate(over="ignore"):
            for kernel in self.kernels:
                states, sums = kernel.behind(self.prompt)
                values = np.array([*([1.0, 0.0] if biased else []), *inputs[kernel]])
                carried += [np.outer(states, values).ravel(), np.outer(sums, values).ravel()]
        initial = np.concatenate(carried)
        if not np.isfinite(initial).all():
            raise ValueError(
                "the sums over the prompt must lie within the range of float64; use influence_ball instead"
            )
        return initial

    def run(self, start: int, columns: int, carries: Floats, wanted: Integers) -> tuple[Floats, Floats]:
        """Run one chunk; return the carries behind it, and D at the `wanted` t in it, shape (K,)."""
        count = self.layout.rows * columns
        t = np.arange(start + 1.0, start + count + 1.0)
        source = reminded(self.reminders, start, count)
        x = None if source is None else source.astype(np.float64)
        ends = np.cumsum([track.size for track in self.tracks])
        try:
            with np.errstate(all="raise", under="ignore"):
                for track, part in zip(self.tracks, np.split(carries, ends[:-1]), strict=True):
                    track.open(part, count)
                attentions = [self._attention(track, t) for track in self.tracks]
                for heads, residual, sink, X in self.layers:
                    out = np.full(count, sink)
                    if x is not None:
                        out += residual * x
                    for relay, kind, column in heads:
                        weight, factor, share = attentions[kind]
                        weighted = x if x is None or weight is None else weight * x
                        mean = factor * self.tracks[kind].convolve(column, weighted)
                        out += relay * (mean if share is None else mean + share * X)
                    x = out
                assert x is not None
                if not np.isfinite(x).all():
                    raise FloatingPointError("overflow in a sum")
                behind = np.concatenate([track.close() for track in self.tracks])
        except FloatingPointError as error:
            raise ValueError(
                f"the values must stay within the range of float64, but between t = {start + 1} and "
                f"t = {start + count} they left it ({error}); use influence_ball instead"
            ) from None
        return behind, x[wanted - (start + 1)]

    def _attention(self, track: Tracks, t: Floats) -> tuple[Floats | None, Floats, Floats | None]:
        """Return weights of the keys, what turns a numerator into the mean, and the prompt's share (None: no bias)."""
        n = self.prompt + t
        weight = track.kernel.weights(n)
        if self.bias is None:
            return weight, 1 / track.kernel.total(n), None
        prompt = track.convolve(0, None)
        rest = track.convolve(1, np.ones_like(t) if weight is None else weight)
        if isinstance(self.bias, ShareRule):
            odds = np.log(prompt / rest)
            v = self.bias.share_odds(odds) - odds
        else:
            v = self.bias(np.minimum(t, self.steps))
        with np.errstate(all="ignore"):  # a share that rounds to 0 or 1 is right to the last digit
            np.exp(v, out=v)
            v *= prompt
            return weight, 1 / (v + rest), 1 / (1 + rest / v)


def kernel_of(layer: int, head: Head) -> Kernel:
    """Return the kernel of a head of a layer, or say what is too steep for a recursion of numbers."""
    g, order = Fraction(head.position), 1 - Fraction(head.recency)
    for name, value, most in (("position", g, LARGEST_HEAD_POSITION), ("-recency", order - 1, LARGEST_HEAD_POSITION)):
        if value > most:
            raise ValueError(
                f"{name} must be at most {most} in a simulation of heads with a recency or a bias, got "
                f"{float(min(value, Fraction(10**300))):g} in layer {layer + 1}; use influence instead"
            )
    return Kernel(g, order, float(head.decay))
