"""The relay model's curve for real parameters, many at once: fast and smooth enough for a fit."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from relaymodel.simulation.grid import LogGrid

Array = NDArray[np.float64]

DEEPEST_FITTED = 64
"""Largest effective depth of a fit."""

STENCIL = 6
"""Depths, and single tokens, that an interpolation polynomial runs through."""


class Shape:
    r"""log D(t) of L equal layers with residual 1, at fixed prompt length and points t (THEORY sections 1 and 7).

    The recursion is run on a grid in log t (`relaymodel.simulation.grid`), for all sets of parameters at once; at whole
    depths it is right to 1e-11 against `relaymodel.exact`.

    With a bias $\beta$, prompt keys weigh $v_t = (1 + t/P)^\beta$ times what they did.  A depth between two integers is
    the polynomial interpolation of log D/L over the six nearest depths, which comes close to the natural continuation,
    whose symbol is the real power $f(z) = (1 + \lambda/z)^L$ of that of one layer (section 2).
    """

    def __init__(self, prompt: int, t: ArrayLike) -> None:
        self.prompt, self.at = float(prompt), np.asarray(t, dtype=float)
        self.grid = LogGrid(max(float(self.at.max()), 2.0 * STENCIL))

    def log_influence(self, relay: ArrayLike, depth: ArrayLike, position: ArrayLike, bias: ArrayLike) -> Array:
        """Return log D, shape (T, M), for M sets of parameters, each of shape (M,)."""
        lam, L, g, beta = (
            a.ravel()
            for a in np.broadcast_arrays(*(np.asarray(p, dtype=float) for p in (relay, depth, position, bias)))
        )
        first = np.clip(np.floor(L).astype(int) - STENCIL // 2 + 1, 1, None)
        layers = self.layers(lam, g, beta, int(first.max()) + STENCIL - 1)
        total = np.zeros(layers.shape[1:])
        for j in range(STENCIL):
            weight = np.ones_like(L)
            for i in range(STENCIL):
                if i != j:
                    weight *= (L - first - i) / (j - i)
            total += weight * (layers[first + j - 1, :, np.arange(L.size)].T - np.log(first + j))
        return np.asarray(self._read(total) + np.log(L))

    def layers(self, lam: Array, g: Array, beta: Array, depth: int) -> Array:
        """Return log D at t = 0 and at the nodes after each of the layers 1..depth, shape (depth, 1 + K, M)."""
        P, t = self.prompt, self.grid.nodes[:, None]
        weight = np.exp(_log_weight(P + t, g) - _log_weight(P, g))
        biased = (P + g) / (1 + g) * (1 + t / P) ** beta  # of all prompt keys, in units of the last one's weight
        total = biased + self.grid.sums(weight)
        x = np.zeros_like(weight)
        logs: Array = np.empty((depth, 1 + len(x), weight.shape[1]))
        for l in range(depth):
            # in units of the value on the prompt, which would overflow
            mean = (biased + self.grid.sums(weight * x)) / total
            x = (x + lam * mean) / (1 + lam)
            # before the first token all is relayed but the token's own residual
            logs[l, 0] = np.log(-np.expm1(-(l + 1) * np.log1p(lam)))
            logs[l, 1:] = np.log(x)
            logs[l] += (l + 1) * np.log1p(lam)
        return logs

    def _read(self, logs: Array) -> Array:
        """Return the values (T, M) at the points from those at t = 0 and the nodes (1 + K, M)."""
        whole = (self.at == np.floor(self.at)) & (self.at >= 1) | (self.at > self.grid.first)
        out = np.empty((self.at.size, logs.shape[1]))
        out[whole] = self.grid.read(logs[1:].T, self.at[whole]).T
        if not whole.all():  # between the first tokens
            tokens = self.prompt + np.arange(self.grid.first + 1)
            out[~whole] = _interpolation(np.log(tokens), np.log(self.prompt + self.at[~whole])) @ logs[: tokens.size]
        return out


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
