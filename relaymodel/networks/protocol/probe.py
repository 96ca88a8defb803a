"""Whether a network does with a bias what it must, seen on texts of four tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import show
from relaymodel.networks.protocol.network import as_array
from relaymodel.networks.protocol.rounding import SINGLE, rounding
from relaymodel.simulation.share import Lifted, PromptShares

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaymodel.networks.protocol.network import Network

Array = NDArray[np.float64]

CLEAR = 30.0  # times the rounding: what an effect must be above
STRIDE, LARGEST_BIAS = 4.0, 4096.0  # of the biases tried: the logits of sharp heads differ by tens to thousands


def check_bias(network: Network, *, rule: bool = False) -> None:
    """Raise `ValueError` unless the network's attention does with a bias what it must, in every layer.

    On texts of four tokens with a bias on the first key: one of 0 changes nothing; one of -10^4 hides the first token
    completely; one of 10^4 leaves nothing of the others; and as long as a bias b leaves little of the first token, what
    it leaves grows like e^b.  The last needs float32 or better.  With `rule`, the bias is one of the first key's
    share, which must do the same.
    """
    one, other = network.vocabulary // 3, 2 * network.vocabulary // 3
    floor = rounding(network.precision, np.arange(1, network.depth + 1))

    def run(tokens: list[list[int]], strength: float | None) -> Array:
        shown: list[NDArray[Any]] = []
        bias: Array | PromptShares | None = None if strength is None else np.array([[0.0]] + [[strength]] * 3)
        if rule and strength is not None:
            bias = PromptShares(Lifted(strength), 1)
        network.observe(
            tokens, lambda layer, states: shown.append(as_array(states).copy()) if layer else None, bias=bias
        )
        return np.stack(shown).astype(np.float64)  # (depth, 2, 4, width)

    def gap(x: Array, y: Array) -> float:
        """Return the largest difference of states, (depth, ..., width), in units of the rounding."""
        distance, size = np.linalg.norm(x - y, axis=-1), np.linalg.norm(x, axis=-1)
        return float(np.max(distance.T / (size.T * floor)))

    first, rest = [[one, other, one, other], [other, other, one, other]], [[one] * 4, [one, other, other, one]]
    problem = None
    try:
        plain, zero, hidden = (run(first, strength)[:, :, 1:] for strength in (None, 0.0, -1e4))
        free, alone = (run(rest, strength)[:, :, 3:] for strength in (None, 1e4))
        told = min(gap(x[:, 0], x[:, 1]) for x in (plain, free))
        if gap(plain, zero) > 10:
            problem = "a bias of 0 changes its states"
        elif gap(hidden[:, 0], hidden[:, 1]) > 10:
            problem = "a prompt whose keys are hidden by a bias of -1e4 still reaches the continuation"
        elif gap(alone[:, 0], alone[:, 1]) > 10:
            problem = "keys beside one with a bias of 1e4 still count"
        elif network.precision <= SINGLE:
            told, growth = _growth(lambda strength: run(first, strength)[:, :, 1:], hidden, floor)
            if not 2 < growth < 3.5:
                problem = (
                    f"one more on a bias that leaves little of a key multiplies its effect by {growth:.3g} instead of e"
                )
    except RuntimeError as error:
        problem = f"it fails on one ({show(error)})"
    if problem is not None:
        raise ValueError(
            f"network must add the bias to its attention logits, but {problem}; its attention ignores or misreads the "
            "mask (or part of it is not attention): measure it without bias"
        )
    if told <= CLEAR:
        raise ValueError(
            "network must show what a bias does, but the first of four tokens changes its states by no more than "
            f"{told:.2g} times the rounding; load it in a wider number format"
        )


def _growth(run: Callable[[float], Array], hidden: Array, floor: Array) -> tuple[float, float]:
    """Return how far an effect of a bias b is above rounding, and what that of b + 1 is in its units.

    The share of a key of logit gap c is 1/(1 + e^-(b+c)): e^(b+c) as long as it is small, whatever the others' gaps.
    So b is the lowest at which any layer shows the first token, wherever that is: far below 0 for a head that sees
    little else (a sink), above 0 for heads that do not look at it.  Of the layers that show it, the one farthest
    from e.
    """
    seen: dict[float, Array] = {}

    def effect(strength: float) -> Array:
        if strength not in seen:
            seen[strength] = np.sqrt(np.sum((run(strength) - hidden) ** 2, axis=(1, 2, 3)))
        return seen[strength]

    unit = floor * np.sqrt(np.sum(hidden**2, axis=(1, 2, 3)))

    def clear(strength: float) -> bool:
        return bool(np.max(effect(strength) / unit) > CLEAR)

    step = STRIDE
    while step < LARGEST_BIAS and clear(-step if clear(0.0) else step) is clear(0.0):
        step *= 2
    low, lowest = (-step, -step / 2) if clear(0.0) else (step / 2, step)
    if step == STRIDE:  # the other end has been tried: 0
        low, lowest = min(low, 0.0), max(lowest, 0.0)
    while lowest - low > 1:
        middle = (low + lowest) // 2
        low, lowest = (low, middle) if clear(middle) else (middle, lowest)
    less, more = effect(lowest), effect(lowest + 1)
    told = float(np.max(less / unit))
    each = (more / np.maximum(less, np.finfo(np.float64).tiny))[less > CLEAR * unit]
    return told, float(each[np.argmax(np.abs(np.log(np.maximum(each, 1e-300)) - 1))]) if each.size else float(np.e)
