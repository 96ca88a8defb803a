r"""The influence of many models of equal layers under many biases at once (THEORY section 7).

All share the sums over one grid in log t; a depth is what the recursion has after so many layers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from relaymodel.checks import Number
from relaymodel.control.response import biased_grid
from relaymodel.simulation.bias import PromptBias

Array = NDArray[np.float64]
AT_ONCE = 1 << 20  # nodes times recursions


def biased_influence(
    prompt: int, biases: Sequence[Number], strengths: Sequence[tuple[int, Number, Number]], t: Array
) -> tuple[Array, Array]:
    """Return D and its local exponent, shapes (biases, strengths, T), as `relaymodel.control.biased_influence`.

    A strength is (depth, relay, residual) of equal layers of uniform heads; t are whole numbers.  Values beyond the
    range of float64 are not finite.
    """
    order, inverse = np.unique(t, return_inverse=True)
    value, alpha = np.empty((2, len(biases), len(strengths), t.size))
    recursions: dict[tuple[float, float], dict[int, list[int]]] = {}
    for q, (depth, relay, residual) in enumerate(strengths):
        recursions.setdefault((float(relay), float(residual)), {}).setdefault(depth, []).append(q)
    for b, strength in enumerate(biases):
        bias = PromptBias(strength)
        grid = biased_grid(prompt, bias, float(order[-1]))
        odds = bias.log_odds(grid.nodes, prompt)[:, None]
        share, rest = expit(odds), expit(-odds)
        pairs = list(recursions)
        step = max(1, AT_ONCE // grid.nodes.size)
        for part in (pairs[i : i + step] for i in range(0, len(pairs), step)):
            relay, residual = np.array(part).T
            size = np.abs(relay) + np.abs(residual)
            lam, rho = relay / size, residual / size
            x, X, scale = np.zeros((grid.nodes.size, len(part))), np.ones(len(part)), np.ones(len(part))
            for depth in range(1, 1 + max(max(recursions[pair]) for pair in part)):
                x = rho * x + lam * (share * X + rest * (grid.sums(x) / grid.nodes[:, None]))
                with np.errstate(over="ignore"):
                    X, scale = (rho + lam) * X, scale * size
                kept = [i for i, pair in enumerate(part) if depth in recursions[pair]]
                if kept:
                    read = grid.read(x.T[kept], order)
                    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                        found = scale[kept, None] * read, -grid.read(x.T[kept], order, slope=True) / read
                    for row, i in enumerate(kept):
                        for q in recursions[part[i]][depth]:
                            value[b, q], alpha[b, q] = found[0][row][inverse], found[1][row][inverse]
    return value, alpha
