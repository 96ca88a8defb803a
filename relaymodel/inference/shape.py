"""The relay model's curve for real parameters, many at once: fast and smooth enough for a fit."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from relaymodel.inference.cells import Array
from relaymodel.simulation.grid import LogGrid
from relaymodel.simulation.headgrid import HeadGrid

DEEPEST_FITTED = 64
"""Largest effective depth of a fit."""

STENCIL = 6
"""Depths, and single tokens, that an interpolation polynomial runs through."""


class Shape:
    r"""log D(t) of L equal layers with residual 1, at fixed prompt length and points t (THEORY sections 1, 7 and 10).

    The recursion is run on a grid in log t, for all sets of parameters at once: `relaymodel.simulation.grid` for
    recency 0, `relaymodel.simulation.headgrid` for others, which reaches t = 2^40.  At whole depths and tokens both
    are right to 1e-11 against `relaymodel.exact`; between tokens to 1e-7 from t = 10 on, but behind a recency, where D
    begins as a power of t, to 2e-2 between the first two.

    With a bias $\beta$, prompt keys weigh $v_t = (1 + t/P)^\beta$ times what they did.  A depth between two integers is
    the polynomial interpolation of log D/L over the six nearest depths, which comes close to the natural continuation,
    whose symbol is the real power of that of one layer, such as $f(z) = (1 + \lambda/z)^L$ (section 2).
    """

    def __init__(self, prompt: int, t: ArrayLike) -> None:
        self.prompt, self.at = prompt, np.asarray(t, dtype=float)
        self._between: dict[int, Array] = {}  # what reads between the first tokens of a grid

    @cached_property
    def grid(self) -> LogGrid:
        """Where heads of recency 0 are summed."""
        return LogGrid(max(float(self.at.max()), 2.0 * STENCIL))

    @cached_property
    def head_grid(self) -> HeadGrid:
        """Where heads of other recencies are."""
        return HeadGrid(self.prompt, max(float(self.at.max()), 2.0 * STENCIL))

    def log_influence(
        self,
        relay: ArrayLike,
        depth: ArrayLike,
        position: ArrayLike,
        bias: ArrayLike,
        recency: ArrayLike = 0,
        sink: ArrayLike = 0,
    ) -> Array:
        """Return log D, shape (T, M), for M sets of parameters, each of shape (M,)."""
        given = (relay, depth, position, bias, recency, sink)
        columns = np.stack([a.ravel() for a in np.broadcast_arrays(*(np.asarray(p, dtype=float) for p in given))])
        out = np.empty((self.at.size, columns.shape[1]))
        for other in (False, True):
            here = (columns[4] != 0) == other
            if here.any():
                out[:, here] = self._log_influence(columns[:, here], self.head_grid if other else self.grid)
        return out

    def _log_influence(self, columns: Array, grid: LogGrid | HeadGrid) -> Array:
        L = columns[1]
        if np.all(np.floor(L) == L):
            first, count = L.astype(int), 1
        else:
            first, count = np.clip(np.floor(L).astype(int) - STENCIL // 2 + 1, 1, None), STENCIL
        low = int(first.min())
        layers = self.layers(columns, grid, low, int(first.max()) + count - 1)
        total = np.zeros(layers.shape[1:])
        for j in range(count):
            weight = np.ones_like(L)
            for i in range(count):
                if i != j:
                    weight *= (L - first - i) / (j - i)
            total += weight * (layers[first - low + j, :, np.arange(L.size)].T - np.log(first + j))
        return np.asarray(self._read(total, grid) + np.log(L))

    def layers(self, columns: Array, grid: LogGrid | HeadGrid, low: int, depth: int) -> Array:
        """Return log D at t = 0 and at the nodes after each of the layers low..depth, shape (., 1 + K, M)."""
        lam, _, g, beta, gamma, sigma = columns
        t = grid.nodes[:, None]
        prompt, sums = self._plain(g) if isinstance(grid, LogGrid) else _attention(grid, g, gamma)
        biased = prompt * (1 + t / self.prompt) ** beta
        x = np.zeros((t.size, lam.size))
        total = biased + sums(x + 1)
        logs: Array = np.empty((depth - low + 1, 1 + t.size, lam.size))
        for l in range(1, depth + 1):
            # in units of the value on the prompt, which would overflow
            mean = (biased + sums(x)) / total
            x = (x + lam * mean + sigma) / (1 + lam + sigma)
            if l >= low:
                # before the first token all is relayed but the token's own residual
                logs[l - low, 0] = np.log(-np.expm1(-l * np.log1p(lam + sigma)))
                logs[l - low, 1:] = np.log(x)
                logs[l - low] += l * np.log1p(lam + sigma)
        return logs

    def _plain(self, g: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the prompt's weights, and what sums weight times value over the continuation, for recency 0."""
        P = float(self.prompt)
        weight = np.exp(_log_weight(P + self.grid.nodes[:, None], g) - _log_weight(P, g))
        # of all prompt keys, in units of the last one's weight
        return (P + g) / (1 + g), lambda x: self.grid.sums(weight * x)

    def _read(self, logs: Array, grid: LogGrid | HeadGrid) -> Array:
        """Return the values (T, M) at the points from those at t = 0 and the nodes (1 + K, M)."""
        whole = (self.at == np.floor(self.at)) & (self.at >= 1) | (self.at > grid.first)
        out = np.empty((self.at.size, logs.shape[1]))
        out[whole] = grid.read(logs[1:].T, self.at[whole]).T
        if not whole.all():  # between the first tokens
            if grid.first not in self._between:
                tokens = np.log(float(self.prompt) + np.arange(grid.first + 1))
                self._between[grid.first] = _interpolation(tokens, np.log(self.prompt + self.at[~whole]))
            out[~whole] = self._between[grid.first] @ logs[: grid.first + 1]
        return out


def _attention(grid: HeadGrid, g: Array, gamma: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return the same for any recency; sets of parameters that share their exponents share a matrix."""
    exponents, which = np.unique(np.stack([g, gamma]), axis=1, return_inverse=True)
    found = [(np.flatnonzero(which == k), *grid.attention(*pair)) for k, pair in enumerate(exponents.T.tolist())]
    prompt = np.empty((grid.nodes.size, g.size))
    for here, keys, _ in found:
        prompt[:, here] = keys[:, None]

    def sums(x: Array) -> Array:
        out = np.empty_like(x)
        for here, _, matrix in found:
            out[:, here] = matrix @ x[:, here]
        return out

    return prompt, sums


def _log_weight(n: ArrayLike, g: Array) -> Array:
    """Return log w_n = log Gamma(n+g)/Gamma(n); differences of large gammaln lose digits, a series does not."""
    n = np.asarray(n, dtype=float)
    near = np.minimum(n, 1e4)
    far = g * np.log(n) + g * (g - 1) / (2 * n) * (1 - (2 * g - 1) / (6 * n))
    return np.asarray(np.where(n < 1e4, gammaln(near + g) - gammaln(near), far))


def _interpolation(x: Array, at: Array) -> Array:
    """Return the matrix (A, K) that reads values at x (K,) at the points `at` (A,), by the STENCIL nearest."""
    first = np.clip(np.searchsorted(x, at) - STENCIL // 2, 0, x.size - STENCIL)
    near = x[first[:, None] + np.arange(STENCIL)]
    weights = np.ones_like(near)
    for j in range(STENCIL):
        for i in range(STENCIL):
            if i != j:
                weights[:, j] *= (at - near[:, i]) / (near[:, j] - near[:, i])
    matrix = np.zeros((at.size, x.size))
    np.put_along_axis(matrix, first[:, None] + np.arange(STENCIL), weights, axis=1)
    return matrix
