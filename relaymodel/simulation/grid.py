r"""Sums over tokens on a grid in log t: what a recursion costs that has to reach t = 1e300, or to run a thousand times.

The first tokens are nodes of their own.  Behind them come panels of equal width in $\tau = \log t$ with Gauss-Legendre
nodes: what a layer gives is smooth there, so that a panel holds the polynomial through its nodes, and by
Euler-Maclaurin, with $\theta = d/d\tau$,

$$ \sum_{u \le t} f(u) = C + \int^t f\,du + \tfrac12 f + \frac{\theta f}{12\,t}
   - \frac{\theta(\theta-1)(\theta-2) f}{720\,t^3}
   + \dots - \frac{\theta\cdots(\theta-6) f}{1209600\,t^7}. $$

The constant comes from the first tokens.  All of it is a matrix for each panel, the same for all of one width.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIRST_NODES = 64
"""Tokens that are nodes of their own, if nothing varies faster than t; they are multiplied by the steepest power."""
ORDER = 20
"""Nodes of a panel."""
WIDTH = math.log(4.0)  # of a panel, in log t
FORGOTTEN = 46.0
"""Powers of t whose logarithm is beyond this are not worth a correction."""
CORRECTIONS = ((1, 1 / 12), (3, -1 / 720), (5, 1 / 30240), (7, -1 / 1209600))  # B_2j/(2j)!


_x, _gauss = np.polynomial.legendre.leggauss(ORDER)
NODES = (_x + 1) / 2
"""Nodes of a panel, in units of its width from its start."""
WEIGHTS = (-1.0) ** np.arange(ORDER) * np.sqrt((1 - _x * _x) * _gauss)
"""Barycentric weights of these nodes (Wang and Xiang 2012)."""


@dataclass(frozen=True, eq=False)
class Panel:
    """What acts on the values at the nodes of a panel of one width.

    `upto` integrates du from the start to each node and, in its last row, to the end, in units of the start's t;
    `corrections` are the terms of Euler and Maclaurin without their powers of t.
    """

    upto: Array
    corrections: tuple[Array, ...]


@lru_cache(maxsize=32)
def panel(width: float) -> Panel:
    """Return the panel of a width in log t."""
    fine, shares = np.polynomial.legendre.leggauss(ORDER + 12)
    upto = []
    for end in (*NODES, 1.0):
        s = end * (fine + 1) / 2
        upto.append((0.5 * end * width * shares * np.exp(width * s)) @ lagrange(s))
    derivative, corrections = np.eye(ORDER), []
    for k in range(CORRECTIONS[-1][0]):
        derivative = slopes() @ derivative / width - k * derivative  # theta (theta-1) ... (theta-k)
        corrections += [factor * derivative for power, factor in CORRECTIONS if power == k + 1]
    return Panel(np.array(upto), tuple(corrections))


@lru_cache(maxsize=1)
def slopes() -> Array:
    """Return the matrix of d/dtau at the nodes of a panel of width 1."""
    matrix = WEIGHTS / WEIGHTS[:, None] / (NODES[:, None] - NODES + np.eye(ORDER))
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def lagrange(at: Array) -> Array:
    """Return the matrix (A, ORDER) that reads a polynomial off its values at NODES, by the barycentric formula."""
    distance = at[:, None] - NODES
    hit = distance == 0
    rows: Array = WEIGHTS / np.where(hit, 1.0, distance)
    rows /= rows.sum(axis=1, keepdims=True)
    found = hit.any(axis=1)
    rows[found] = hit[found]
    return rows


class LogGrid:
    """Nodes t = 1, 2, ..., and then in panels of log t up to `last` or a little beyond, and sums between them.

    Parameters
    ----------
    last
        The largest t that will be asked for, up to 1e300.
    first
        Tokens that are nodes of their own: `FIRST_NODES` times the steepest power of t by which what is summed varies.
    rough
        Whether a function varies too fast between two tau for one panel, which is then halved; None: never.
    """

    def __init__(
        self, last: float, *, first: int = FIRST_NODES, rough: Callable[[float, float], bool] | None = None
    ) -> None:
        self.first = first if last > first else math.ceil(last)
        edges = [math.log(self.first)]
        while last > self.first and edges[-1] < math.log(last):
            edges += _halved(edges[-1], edges[-1] + WIDTH, rough)
        edges = edges[: 1 + bisect_left(edges, math.log(last))]
        self.edges = np.array(edges)
        tokens, widths = np.arange(1.0, self.first + 1), np.diff(self.edges)
        tau = self.edges[:-1, None] + NODES * widths[:, None]
        self.nodes = np.concatenate([tokens, np.exp(tau).ravel()])
        self._matrices, self._edge = self._rules(tau, widths)

    def _rules(self, tau: Array, widths: Array) -> tuple[Array, Array]:
        """Return what sums over a panel up to its nodes and its end, (panels, n + 1, n), and what it adds before, (n,).

        The last row of a matrix is the integral over the panel alone.
        """
        panels = [panel(width) for width in WIDTH / 2.0 ** np.rint(np.log2(WIDTH / widths))]
        matrices = np.array([one.upto for one in panels]).reshape(-1, ORDER + 1, ORDER) * np.exp(
            self.edges[:-1, None, None]
        )
        matrices[:, :-1] += 0.5 * np.eye(ORDER)
        edge = lagrange(np.zeros(1))[0]
        before = 0.5 * edge
        for j, (power, _) in enumerate(CORRECTIONS):
            for p, one in enumerate(panels):
                if power * tau[p, 0] > FORGOTTEN:
                    break
                matrices[p, :-1] += one.corrections[j] * np.exp(-power * tau[p, :, None])
            if panels:
                before += edge @ panels[0].corrections[j] * float(self.first) ** -power
        return matrices, before

    def sums(self, f: Array) -> Array:
        """Return the sums of f over the tokens 1..t at every node t, from f at the nodes; shape (K,) or (K, M) each.

        Between tokens it is the smooth function that sums at whole t.
        """
        out = np.empty_like(f)
        np.cumsum(f[: self.first], axis=0, out=out[: self.first])
        if self.first < len(f):
            values = f[self.first :].reshape(len(self._matrices), ORDER, -1)
            parts = self._matrices @ values
            parts[1:, :-1] += np.cumsum(parts[:-1, -1], axis=0)[:, None]
            constant = out[self.first - 1].ravel() - self._edge @ values[0]
            out[self.first :] = (parts[:, :-1] + constant).reshape(out[self.first :].shape)
        return out

    def read(self, f: Array, t: Array, *, slope: bool = False) -> Array:
        """Return f, or df/dlog t, at real t of at least `first` or whole ones (T,), from f at the nodes, last axis.

        At single tokens the slope is a central difference, at the first of all a forward one.
        """
        out: Array = np.empty((*f.shape[:-1], t.size))
        near = t <= self.first
        at = t[near].astype(np.intp) - 1
        if slope:
            above, below = np.minimum(at + 1, f.shape[-1] - 1), np.maximum(at - 1, 0)
            gap = np.maximum(self.nodes[above] - self.nodes[below], 1.0)
            out[..., near] = t[near] * (f[..., above] - f[..., below]) / gap
        else:
            out[..., near] = f[..., at]
        if not near.all():
            tau = np.log(t[~near])
            p = np.clip(np.searchsorted(self.edges, tau, side="right") - 1, 0, len(self._matrices) - 1)
            widths = np.diff(self.edges)[p]
            rows = lagrange((tau - self.edges[p]) / widths)
            if slope:
                rows = rows @ slopes() / widths[:, None]
            values = f[..., (self.first + p * ORDER)[:, None] + np.arange(ORDER)]
            out[..., ~near] = np.einsum("...tn,tn->...t", values, rows)
        return out


def _halved(start: float, end: float, rough: Callable[[float, float], bool] | None) -> list[float]:
    """Return the ends of the panels that a panel is made of."""
    if rough is None or not rough(start, end):
        return [end]
    middle = 0.5 * (start + end)
    return [*_halved(start, middle, rough), *_halved(middle, end, rough)]
