r"""The relay layers that enclose given distances: $\rho\,\delta_n + \lambda\,(C\delta)_n \ge T_n$ at every position."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.constants import MARGIN
from relaymodel.certificate.rounding import above
from relaymodel.model import Layer

Array = NDArray[np.float64]

KEPT_PAIRS = 400  # pairs kept for a layer
SWEEPS = 3  # over the layers at most: they end when none moves
DEEP = 64  # layers beyond which strengths stay where each layer alone is closest: sweeps take time as their square


@dataclass(frozen=True, eq=False)
class Frontier:
    """For one layer, the corners of the set of strengths that enclose its targets, (G,) each.

    A mean of logarithms of what is linear in the strengths is concave: corners are where it is least.  `start` is the
    pair closest to the targets, in the mean of logarithms over the continuation.
    """

    relay: Array
    residual: Array
    start: int


def enclose(targets: Array, low: Array, start: Array, prompt: int, sources: Array | None = None) -> tuple[Layer, ...]:
    r"""Return layers with $\rho_l\delta_n + \lambda_l(C\delta)_n \ge T_n$ at every position, T the targets, (L, N).

    Which of all such pairs is a matter of taste, not of rigour: strengths are moved along the frontiers, layer by
    layer, until the mean log bound behind the last layer falls no more.  With `sources`, (L + 1, P), the differences on
    the prompt are given, and only the continuation is enclosed.  `low`, (L + 1, N), bounds the distances below.
    """
    given = sources is not None
    frontiers = [_frontier(target, delta, prompt, given) for target, delta in zip(targets, low, strict=False)]
    size = np.array([np.min(f.relay + f.residual) for f in frontiers])
    size[size == 0] = 1
    before = np.concatenate(([1.0], np.exp(-np.cumsum(np.log(size)))))  # keeps all numbers near 1
    prompts = None if sources is None else sources * before[:, None]
    chosen = np.array([f.start for f in frontiers])
    n = np.arange(1, len(start) + 1)

    def onward(x: Array, l: int, fed: Array | None) -> Array:
        """Return what layers from l on make of x; the prompt's values are `fed`."""
        for k in range(l, len(frontiers)):
            f, i = frontiers[k], chosen[k]
            x = (f.residual[i] * x + f.relay[i] * np.cumsum(x) / n) / size[k]
            if given:
                x[:prompt] = 0 if fed is None else fed[k + 1]
        return x

    for _ in range(SWEEPS if len(frontiers) <= DEEP else 0):
        moved = False
        x = start.copy()
        if prompts is not None:
            x[:prompt] = prompts[0]
        for l, f in enumerate(frontiers):
            parts = [x / size[l], np.cumsum(x) / n / size[l], np.zeros_like(x)]
            if prompts is not None:
                for part in parts[:2]:
                    part[:prompt] = 0
                parts[2][:prompt] = prompts[l + 1]
            own, relayed, rest = (
                onward(part, l + 1, fed)[prompt:] for part, fed in zip(parts, (None, None, prompts), strict=True)
            )
            with np.errstate(divide="ignore"):
                last = np.log(f.residual[:, None] * own + f.relay[:, None] * relayed + rest).mean(axis=1)
            best = int(np.argmin(last))
            if last[best] < last[chosen[l]] - 1e-9:
                chosen[l], moved = best, True
            x = (f.residual[chosen[l]] * x + f.relay[chosen[l]] * np.cumsum(x) / n) / size[l]
            if prompts is not None:
                x[:prompt] = prompts[l + 1]
        if not moved:
            break
    return tuple(
        Layer(_above(f.relay[i]), _above(f.residual[i])) for f, i in zip(frontiers, chosen.tolist(), strict=True)
    )


def _frontier(target: Array, low: Array, prompt: int, given: bool) -> Frontier:
    keep = slice(prompt if given else 0, None)
    mean = (np.cumsum(low) / np.arange(1, len(low) + 1))[keep]
    delta, T = low[keep], target[keep]
    if np.any(T[mean == 0] > 0):
        n = int(np.argmax((mean == 0) & (T > 0))) + 1
        raise ValueError(f"the runs must be equal before their first differing token, and differ at position {n}")
    zero = delta == 0
    ratio = np.divide(T, mean, out=np.zeros_like(T), where=mean > 0)
    least = float(ratio[zero].max(initial=0.0))
    relays = np.array([least, *(x for x in _corners(T[~zero] / delta[~zero], mean[~zero] / delta[~zero]) if x > least)])
    relays = relays[:: -(-len(relays) // KEPT_PAIRS)]
    rest = np.divide(np.maximum(T - relays[:, None] * mean, 0), delta, out=np.zeros((len(relays), len(T))), where=~zero)
    residuals = rest.max(axis=1)
    behind = slice(0 if given else prompt, None)
    with np.errstate(divide="ignore"):
        excess = np.log(residuals[:, None] * delta[behind] + relays[:, None] * mean[behind]).mean(axis=1)
    return Frontier(relays, residuals, int(np.argmin(excess)))


def _corners(level: Array, slope: Array) -> list[float]:
    """Return where the largest of the lines level - slope * x and 0 changes, for x > 0, in rising order."""
    lines: list[tuple[float, float]] = [(0.0, 0.0)]  # from flat to steep: from the last in x to the first
    corners: list[float] = [np.inf]
    order = np.lexsort((level, slope))
    for p, s in zip(level[order].tolist(), slope[order].tolist(), strict=True):
        while lines:
            p0, s0 = lines[-1]
            x = (p - p0) / (s - s0) if s > s0 else np.inf if p > p0 else -np.inf
            if x < corners[-1]:
                break
            lines.pop(), corners.pop()
        if not lines:
            x = np.inf
        if x > 0:
            lines.append((p, s))
            corners.append(x)
    return corners[:0:-1]


def _above(value: float) -> float:
    return above(float(value) * (1 + MARGIN)) if value else 0.0
