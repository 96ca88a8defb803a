"""The distance between two runs' states, taken as they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.networks.protocol.network import as_array

if TYPE_CHECKING:
    from collections.abc import Callable

Array = NDArray[np.float64]

TOKENS_AT_ONCE = 256  # tokens whose differences are taken at once, in float64


class DistanceRecorder:
    """Takes distances and norms of the states it is shown, in one piece a layer or several, and keeps nothing else."""

    def __init__(self, layers: tuple[int, ...], prompt: int, steps: int, report: Callable[[int], object]) -> None:
        self.layers, self.prompt, self.steps, self.report = layers, prompt, steps, report
        self.values = np.full((4, len(layers), steps), np.nan)
        self.shown: dict[int, int] = {}  # tokens by layer

    def visit(self, layer: int, states: Any) -> None:
        """Record the next tokens of one layer; states (2, tokens, width), an array or a tensor on any device."""
        begin = self.shown.get(layer, 0)
        if states.ndim != 3 or states.shape[0] != 2 or begin + states.shape[1] > self.prompt + self.steps:
            raise self._error(f"{states.shape}", layer)
        end = self.shown[layer] = begin + states.shape[1]
        if layer in self.layers:
            m = self.layers.index(layer)
            for start in range(max(begin, self.prompt), end, TOKENS_AT_ONCE):
                stop = min(start + TOKENS_AT_ONCE, end)
                reduce = distances if isinstance(states, np.ndarray) else tensor_distances
                found = as_array(reduce(states[:, start - begin : stop - begin]))
                self.values[:, m, start - self.prompt : stop - self.prompt] = found
            seen = self.values[:, m, max(begin - self.prompt, 0) : max(end - self.prompt, 0)]
            if not np.all(np.isfinite(seen)):
                bad = int(np.argmin(np.isfinite(seen[0]))) + max(begin - self.prompt, 0) + 1
                raise ValueError(
                    f"the states of the network must be finite, got NaN or inf at layer {layer}, t = {bad}"
                )
        if end == self.prompt + self.steps:
            self.report(layer)

    def result(self) -> Array:
        """Return distance, both norms and the difference of their squares, (4, M, T)."""
        for layer in self.layers:
            if layer not in self.shown:
                raise ValueError(f"network must show every layer asked for, it did not show layer {layer}")
            if self.shown[layer] < self.prompt + self.steps:
                raise self._error(f"{self.shown[layer]} tokens", layer)
        return self.values

    def _error(self, got: str, layer: int) -> ValueError:
        return ValueError(
            f"network must show states of shape (2, {self.prompt + self.steps}, width), got {got} at layer {layer}"
        )


def distances(states: NDArray[np.floating]) -> Array:
    """Return distance, both norms and the difference of their squares, (4, tokens), of states (2, tokens, width)."""
    a, b = states.astype(np.float64)
    difference = a - b
    squares = np.stack([np.einsum("td,td->t", x, y) for x, y in ((difference, difference), (a, a), (b, b))])
    return np.stack([*np.sqrt(squares), np.einsum("td,td->t", difference, a + b)])


def tensor_distances(states: Any) -> Any:
    """Return the same of a tensor of torch, on its own device."""
    a, b = states.double()
    difference = a - b
    found = a.new_empty((4, a.shape[0]))
    for row, x in enumerate((difference, a, b)):
        found[row] = x.square().sum(-1).sqrt()
    found[3] = (difference * (a + b)).sum(-1)
    return found
