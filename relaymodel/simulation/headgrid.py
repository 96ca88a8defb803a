r"""Sums over tokens for heads of any recency, on a grid in log t: what a recursion costs that is run a thousand times.

As in `relaymodel.simulation.grid` the first tokens are nodes of their own and panels in log t follow, here with nodes
on whole tokens: behind a weight of distance there is no smooth sum between them.  A sum over a panel is taken in pieces
no longer than their distances from token 0 and from the last.  On each the weights are smooth, so that a few points
give the sum over all of its tokens, by the Gauss rule of a sum (Gram's polynomials).  All of it is one matrix, the same
for all values and quick to make for other exponents.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from relaymodel.exact.gauss import sum_rule
from relaymodel.exact.powersums import SHIFT
from relaymodel.simulation.grid import FIRST_NODES, NODES, ORDER, WIDTH

Array = NDArray[np.float64]

GAUSS = 12
"""Points of a piece: its ends are as far from any singularity as it is long, which gives a digit and a half each."""
LARGEST_GRID = 2**40
"""Last t of a grid, whose matrices grow as the square of log t."""


def pieces(start: int, end: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last token of the pieces of start..end, no longer than their distances from 0 and `last`."""
    while start <= end:
        stop = min(end, max(start + GAUSS - 1, min(2 * start - 1, (start + last - 1) // 2)))
        yield start, stop
        start = stop + 1


class Sum:
    """Points for the sums over start..min(end, last) for each of the numbers `last` (K,), of which it holds `rows`."""

    def __init__(self, start: int, end: int, last: NDArray[np.int64]) -> None:
        self.rows = np.flatnonzero(last >= start)
        tokens, distances, weights, counts = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)], [0]
        for n in last[self.rows].tolist():
            rules = [(a, *sum_rule(b - a + 1, GAUSS)) for a, b in pieces(start, min(end, n), n)]
            tokens += [a + x for a, x, _ in rules]
            distances += [(n - a) - x for a, x, _ in rules]  # which has its digits where it is small
            weights += [w for _, _, w in rules]
            counts.append(sum(x.size for _, x, _ in rules))
        self.token, self.distance, self.weight = map(np.concatenate, (tokens, distances, weights))
        self.starts = np.cumsum(counts[:-1])


class HeadGrid:
    """Nodes t = 1, 2, ..., and then in panels up to `last` or beyond, behind a prompt, and what heads sum over them.

    `first` is the number of tokens that are nodes of their own, as of a `LogGrid`.
    """

    def __init__(self, prompt: int, last: float, *, first: int = FIRST_NODES) -> None:
        if last > LARGEST_GRID:
            raise ValueError(f"t must be at most 2^40 for heads that are not uniform, got {last:g}")
        self.first = first if last > first else math.ceil(last)
        edges = [float(self.first)]
        while edges[-1] < last:
            edges.append(edges[-1] * math.exp(WIDTH))
        self.edges = np.log(edges)
        tau = self.edges[:-1, None] + NODES * WIDTH
        inner = np.rint(np.exp(tau)).astype(np.int64)
        self.nodes = np.concatenate([np.arange(1, self.first + 1), inner.ravel()])
        self._x = (np.log(inner) - self.edges[:-1, None]) / WIDTH
        gaps = self._x[:, :, None] - self._x[:, None] + np.eye(ORDER)
        self._weights = 1 / (4 * gaps).prod(axis=2)
        whole = np.rint(edges).astype(np.int64)
        self._panels = [Sum(int(a) + 1, int(b), self.nodes) for a, b in pairwise(whole)]
        self._rows = [self._lagrange(p, np.log(panel.token)) for p, panel in enumerate(self._panels)]
        self._prompt = Sum(1, prompt, prompt + self.nodes)
        self.prompt = prompt

    @lru_cache(maxsize=8)  # noqa: B019  (as long as the grid lives)
    def attention(self, position: float, recency: float) -> tuple[Array, Array]:
        """Return what a head does at the nodes, up to a common factor of each row.

        The sums over the prompt's weights, shape (K,), and the matrix (K, K) that sums weight times value over the
        continuation from values at the nodes.
        """
        P, first = self.prompt, self.first
        begin = np.arange(1, first + 1)
        gap = self.nodes[:, None] - begin
        matrix = np.zeros((self.nodes.size, self.nodes.size))
        matrix[:, :first] = np.where(gap >= 0, rising(np.maximum(gap, 0) + 1.0, -recency), 0.0)
        matrix[:, :first] *= rising(P + begin.astype(float), position)
        for p, (panel, rows) in enumerate(zip(self._panels, self._rows, strict=True)):
            if panel.token.size:
                weight = panel.weight * rising(P + panel.token, position) * rising(panel.distance + 1, -recency)
                columns = slice(first + p * ORDER, first + (p + 1) * ORDER)
                matrix[panel.rows, columns] = np.add.reduceat(weight[:, None] * rows, panel.starts)
        keys = self._prompt
        weight = keys.weight * rising(keys.token, position) * rising(keys.distance + 1, -recency)
        return np.add.reduceat(weight, keys.starts), matrix

    def read(self, f: Array, t: Array) -> Array:
        """Return f at real t of at least `first` or whole ones (T,), from f at the nodes, last axis."""
        out: Array = np.empty((*f.shape[:-1], t.size))
        near = t <= self.first
        out[..., near] = f[..., t[near].astype(np.intp) - 1]
        tau = np.log(t)
        panel = np.clip(np.searchsorted(self.edges, tau) - 1, 0, max(0, self.edges.size - 2))
        for p in np.unique(panel[~near]):
            here = ~near & (panel == p)
            start = self.first + p * ORDER
            out[..., here] = f[..., start : start + ORDER] @ self._lagrange(p, tau[here]).T
        return out

    def _lagrange(self, p: int, tau: Array) -> Array:
        """Return the matrix (A, ORDER) that reads panel p at log t, by the barycentric formula."""
        gap = ((tau - self.edges[p]) / WIDTH)[:, None] - self._x[p]
        hit = gap == 0
        rows = self._weights[p] / np.where(hit, 1.0, gap)
        rows /= rows.sum(axis=1, keepdims=True)
        found = hit.any(axis=1)
        rows[found] = hit[found]
        return np.asarray(rows)


def rising(x: Array, a: float) -> Array:
    r"""Return $\Gamma(x+a)/\Gamma(x)$ for x >= 1 and -1 < a < 12, to 1e-13.

    With $w = x + (a-1)/2$ its logarithm is $a \log w - \sum_{n = 2, 4, \dots} \frac{2 B_{n+1}((1+a)/2)}{n(n+1) w^n}$.
    """
    if a == 0:
        return np.ones_like(x)
    small = x < SHIFT
    w = np.where(small, x + SHIFT, x) + (a - 1) / 2
    square, series = 1 / w**2, np.zeros_like(w)
    for c in reversed(_coefficients(a)):
        series = (series + c) * square
    value: Array = np.exp(a * np.log(w) + series)
    low = x[small][:, None] + np.arange(SHIFT)
    value[small] *= np.exp(-np.log1p(a / low).sum(axis=1))
    return value


@lru_cache(maxsize=64)
def _coefficients(a: float) -> tuple[float, ...]:
    from scipy.special import bernoulli, comb

    numbers, s = bernoulli(11), (1 + a) / 2
    return tuple(
        -2 * float(sum(comb(m, k) * numbers[k] * s ** (m - k) for k in range(m + 1))) / (m * (m - 1))
        for m in range(3, 12, 2)
    )
