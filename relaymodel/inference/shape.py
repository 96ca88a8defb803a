"""The relay model's curve for real parameters, many at once: fast and smooth enough for a fit."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]

DEEPEST = 64
"""Largest effective depth of a fit."""

STENCIL = 6
"""Nodes that an interpolation polynomial runs through."""

FINEST, MOST = 0.05, 400
"""Spacing of the nodes in log(P + t), wider if there would be more than this many."""


class Shape:
    r"""log D(t) of L equal layers with residual 1, at fixed prompt length and points t (THEORY sections 1 and 7).

    The recursion is run on nodes spaced evenly in log(P + t).  Sums over the tokens between two nodes are those of the
    polynomial in log(P + t) through the six nearest nodes, so that a layer is one product with a fixed matrix; right to
    about 1e-7 against `relaymodel.exact`.

    With a bias $\beta$, prompt keys weigh $v_t = (1 + t/P)^\beta$ times what they did.  A depth between two integers is
    the polynomial interpolation of log D/L over the six nearest depths, which comes close to the natural continuation,
    whose symbol is the real power $f(z) = (1 + \lambda/z)^L$ of that of one layer (section 2).
    """

    def __init__(self, prompt: int, t: ArrayLike) -> None:
        self.prompt, at = float(prompt), np.asarray(t, dtype=float)
        last = max(np.ceil(at[-1]), float(STENCIL))
        width = np.log1p(last / self.prompt)
        step = max(FINEST, width / MOST)
        nodes = np.rint(self.prompt * np.expm1(step * np.arange(int(width / step) + 1)))
        nodes = np.unique(np.concatenate([np.arange(STENCIL), nodes[nodes < last], [last]]))
        self.nodes, x = nodes, np.log(self.prompt + nodes)
        self._sums = np.cumsum(_interval_sums(nodes, x, self.prompt), axis=0)
        self._read = _interpolation(x, np.log(self.prompt + at))

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
        return np.asarray(self._read @ total + np.log(L))

    def layers(self, lam: Array, g: Array, beta: Array, depth: int) -> Array:
        """Return log D at the nodes after each of the layers 1..depth, shape (depth, K, M)."""
        P, t = self.prompt, self.nodes[:, None]
        weight = np.exp(_log_weight(P + t, g) - _log_weight(P, g))
        biased = (P + g) / (1 + g) * (1 + t / P) ** beta  # of all prompt keys, in units of the last one's weight
        total = biased + self._sums @ weight
        x = np.zeros_like(weight)
        logs: Array = np.empty((depth, *weight.shape))
        for l in range(depth):
            # in units of the value on the prompt, which would overflow
            mean = (biased + self._sums @ (weight * x)) / total
            x = (x + lam * mean) / (1 + lam)
            logs[l] = np.log(x) + (l + 1) * np.log1p(lam)
        return np.asarray(logs)


def _log_weight(n: ArrayLike, g: Array) -> Array:
    """Return log w_n = log Gamma(n+g)/Gamma(n); differences of large gammaln lose digits, a series does not."""
    n = np.asarray(n, dtype=float)
    near = np.minimum(n, 1e4)
    far = g * np.log(n) + g * (g - 1) / (2 * n) * (1 - (2 * g - 1) / (6 * n))
    return np.asarray(np.where(n < 1e4, gammaln(near + g) - gammaln(near), far))


def _stencil(x: Array, at: Array) -> NDArray[np.intp]:
    """Return the first of the nodes (A,) that a polynomial at each of the points (A,) runs through."""
    return np.clip(np.searchsorted(x, at) - STENCIL // 2, 0, x.size - STENCIL)


def _lagrange(x: Array, first: NDArray[np.intp], at: Array) -> Array:
    """Return the weights (A, STENCIL) of the nodes from `first` (A,) on in the polynomial's value at `at` (A,)."""
    near = x[first[:, None] + np.arange(STENCIL)]
    weights = np.ones_like(near)
    for j in range(STENCIL):
        for i in range(STENCIL):
            if i != j:
                weights[:, j] *= (at - near[:, i]) / (near[:, j] - near[:, i])
    return np.asarray(weights)


def _interpolation(x: Array, at: Array) -> Array:
    """Return the matrix (A, K) that reads values at the nodes x (K,) at the points `at` (A,)."""
    first = _stencil(x, at)
    matrix = np.zeros((at.size, x.size))
    np.put_along_axis(matrix, first[:, None] + np.arange(STENCIL), _lagrange(x, first, at), axis=1)
    return matrix


def _interval_sums(nodes: Array, x: Array, prompt: float) -> Array:
    """Return the matrix (K, K) whose row k sums a smooth function over the tokens behind node k-1 up to node k."""
    gauss, shares = np.polynomial.legendre.leggauss(STENCIL)
    matrix = np.zeros((nodes.size, nodes.size))
    for k in range(1, nodes.size):
        a, b = nodes[k - 1], nodes[k]
        if b - a <= 64:
            u = np.arange(a + 1, b + 1)
            weights = np.ones_like(u)
        else:  # the midpoint rule, whose error is 1/(24 n^2) of the sum
            u, weights = (a + b + 1) / 2 + gauss * (b - a) / 2, shares * (b - a) / 2
        first = int(_stencil(x, np.array([(x[k - 1] + x[k]) / 2]))[0])
        rows = _lagrange(x, np.full(u.size, first), np.log(prompt + u))
        matrix[k, first : first + STENCIL] = weights @ rows
    return matrix
