"""Whether a network does with a bias what it must, seen on texts of four tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import show
from relaymodel.networks.protocol.measurement import SINGLE, rounding

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaymodel.networks.protocol.network import Network

Array = NDArray[np.float64]


def check_bias(network: Network) -> None:
    """Raise `ValueError` unless the network's attention does with a bias what it must, in every layer.

    On texts of four tokens with a bias on the first key: one of 0 changes nothing; one of -10^4 hides the first token
    completely; one of 10^4 leaves nothing of the others; and what a very negative bias b leaves of the first token
    grows like e^b.  The last needs float32 or better.
    """
    one, other = network.vocabulary // 3, 2 * network.vocabulary // 3
    floor = rounding(network.precision, np.arange(1, network.depth + 1))

    def run(tokens: list[list[int]], strength: float | None) -> Array:
        shown: list[NDArray[Any]] = []
        bias = None if strength is None else np.array([[0.0]] + [[strength]] * 3)
        network.observe(tokens, lambda layer, states: shown.append(states.copy()) if layer else None, bias=bias)
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
                problem = f"one more on a very negative bias multiplies its effect by {growth:.3g} instead of e"
    except RuntimeError as error:
        problem = f"it fails on one ({show(error)})"
    if problem is not None:
        raise ValueError(
            f"network must add the bias to its attention logits, but {problem}; its attention ignores or misreads the "
            "mask (or part of it is not attention): measure it without bias"
        )
    if told <= 30:
        raise ValueError(
            "network must show what a bias does, but the first of four tokens changes its states by no more than "
            f"{told:.2g} times the rounding; load it in a wider number format"
        )


def _growth(run: Callable[[float], Array], hidden: Array, floor: Array) -> tuple[float, float]:
    """Return how far an effect of a negative bias b is above rounding, and what that of b + 1 is in its units.

    Of the lowest b at which a layer shows it, and of the layers that do, the one farthest from e.
    """
    told, growth = 0.0, float(np.e)

    def norm(x: Array) -> Array:
        return np.asarray(np.sqrt(np.sum(x**2, axis=(1, 2, 3))))

    for low in (-8.0, -6.0, -4.0, -2.0):
        less, more = norm(run(low) - hidden), norm(run(low + 1) - hidden)
        clear = less / (floor * norm(hidden))
        told = float(np.max(clear))
        if told > 30:
            each = (more / np.maximum(less, np.finfo(np.float64).tiny))[clear > 30]
            growth = float(each[np.argmax(np.abs(np.log(np.maximum(each, 1e-300)) - 1))])
            break
    return told, growth
