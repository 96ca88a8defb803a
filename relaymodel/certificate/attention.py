r"""What attention does in two runs: the parts of the difference of its outputs (THEORY section 8).

At query n and head h the difference of the two runs' attention outputs is, exactly,

$$ \sum_s \hat A_{ns}\,dv_s
   + \sum_s m_{ns}(\hat v_s-\bar v_n)\,\bigl(dq_n\cdot\hat k_s + \hat q_n\cdot dk_s\bigr)/\sqrt{d_h}, $$

hats for the mean of the two runs, d for their difference, m the logarithmic mean of the two attention weights,
$m = (A-\tilde A)/(\log A-\log\tilde A) \le \hat A$, and $\bar v_n$ the mean of $\hat v$ under m.  For
$A-\tilde A = m\,(dl-d\,\mathrm{lse})$, and $\sum_s(A-\tilde A)_{ns} = 0$ makes d lse the mean under m of the logits'
differences dl: what remains is a covariance, in which a bias common to both runs cancels.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import root
from relaymodel.certificate.weights import AttentionNorms

Array = NDArray[np.float64]

ENTRIES_AT_ONCE = 1 << 19  # entries of one head's attention held at once


@dataclass(frozen=True, eq=False)
class Heads:
    """Queries, keys and values of two runs, (2, H, N, head) each, a key head for each query head.

    `output`, (H, head, width), is what each head's outcome meets; `bias`, (N, k), is added to the logits.
    """

    query: Array
    key: Array
    value: Array
    output: Array
    bias: Array | None

    @cached_property
    def factors(self) -> Array:
        """(H, head, head): a value times its head's factor is as long as the value behind the output matrix."""
        return np.stack([root(w @ w.T) for w in self.output])

    def softmax(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return the weights of some queries, (2, H, stop - start, stop), and their logarithms, 0 where hidden."""
        seen = np.arange(stop)[None, :] <= np.arange(start, stop)[:, None]
        logits = self.query[:, :, start:stop] @ np.swapaxes(self.key[:, :, :stop], -1, -2) / self.scale
        if self.bias is not None:
            width = min(stop, self.bias.shape[-1])
            logits[..., :width] += self.bias[start:stop, :width]
        logits = np.where(seen, logits, -np.inf)
        logits -= logits.max(axis=-1, keepdims=True)
        A = np.exp(logits)
        total = A.sum(axis=-1, keepdims=True)
        A /= total
        return A, np.where(seen, logits - np.log(total), 0)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield the bounds of queries that are handled at once."""
        _, H, N, _ = self.query.shape
        rows = max(1, ENTRIES_AT_ONCE // (N * H))
        yield from ((start, min(start + rows, N)) for start in range(0, N, rows))

    @property
    def scale(self) -> float:
        """By which logits are divided."""
        return math.sqrt(self.query.shape[-1])


@dataclass(frozen=True, eq=False)
class View:
    """Where differences are taken: queries, keys and values, (H, N, head), the values times their heads' factors."""

    query: Array
    key: Array
    value: Array

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        value, key = (np.einsum("hnd,hnd->hn", z, z) for z in (self.value, self.key))
        return value, key

    @cached_property
    def _query_size(self) -> Array:
        return np.asarray(np.linalg.norm(self.query, axis=-1))

    def radii(self, m: Array) -> Array:
        """Return how far the values are from their mean under m, (H, R, S)."""
        value = self.value[:, : m.shape[-1]]
        centre = m @ value / m.sum(axis=-1, keepdims=True)
        square = np.einsum("hrd,hrd->hr", centre, centre)[..., None]
        square = self._squares[0][:, None, : m.shape[-1]] - 2 * centre @ np.swapaxes(value, 1, 2) + square
        return np.asarray(np.sqrt(np.maximum(square, 0)))

    def own(self, m: Array, radii: Array, norms: AttentionNorms) -> Array:
        """Return what a unit change of the query's input does at most, (R,): it meets the spread of keys and values."""
        S = m.shape[-1]
        mean = m @ self.key[:, :S]
        of_keys = np.einsum("hrs,hs->hr", m, self._squares[1][:, :S])
        of_keys = of_keys - np.einsum("hrd,hrd->hr", mean, mean) / m.sum(axis=-1)
        deviation = np.sqrt(np.maximum(of_keys, 0) * np.einsum("hrs,hrs->hr", m, radii**2))
        return np.asarray(np.einsum("h,hr->r", np.array(norms.query), deviation))

    def relayed(self, m: Array, A: Array, radii: Array, norms: AttentionNorms) -> Array:
        """Return what unit changes of the inputs of values and keys do at most, (R, S), by the norms."""
        value, key = (np.array(t)[:, None, None] for t in (norms.value, norms.key))
        low, high = A.min(axis=0), A.max(axis=0)
        side_by_side = (high + low) / 2 * norms.together + (high - low) / 2 * norms.output_all * norms.value_all
        values = np.minimum((A * value).sum(axis=0), side_by_side)
        size = self._query_size[:, m.shape[-1] - m.shape[1] : m.shape[-1], None]
        scale = math.sqrt(self.query.shape[-1])
        return np.asarray(values + (m * radii * key * size).sum(axis=0) / scale)


@dataclass(frozen=True, eq=False)
class AttentionRun:
    r"""What the attention of a block does in two runs, N positions, H heads.

    Attributes
    ----------
    mixed
        Shape (2, H, N, head): its outcome before the output matrix.
    omega
        Shape (N,): $\max_{s,h} n\max(A_{ns}, \tilde A_{ns})$.
    own, relayed
        Shape (N,): bounds by the norms: on what the query's difference does, per difference, and on all the rest.
    own_exact, relayed_exact
        Shapes (N, H head) and (N,): what the query's difference does, before the output matrix; a bound on the rest.
    """

    mixed: Array
    omega: Array
    own: Array
    relayed: Array
    own_exact: Array
    relayed_exact: Array


def attend(heads: Heads, norms: AttentionNorms, moved: Array, delta: Array) -> AttentionRun:
    r"""Return what the attention does in the two runs.

    `delta`, (N,), holds the distances of the states; `moved`, (N,), bounds those of the normalised inputs,
    $|du_s| \le \delta_s\, 2/(\sigma_s+\tilde\sigma_s)$.
    """
    _, H, N, head = heads.query.shape
    vh, dq, dk, dv = (
        heads.value.mean(axis=0),
        *(z[0] - z[1] for z in (heads.query, heads.key, heads.value)),
    )
    factored = np.einsum("hnd,hde->hne", vh, heads.factors)
    between = View(heads.query.mean(axis=0), heads.key.mean(axis=0), factored)
    behind = np.einsum("hsd,hde->hse", dv, heads.output)
    gram = np.einsum("hse,gse->hgs", behind, behind)
    quotient = np.divide(moved, delta, out=np.zeros(N), where=delta > 0)
    run = AttentionRun(
        np.empty((2, H, N, head)), np.empty(N), np.zeros(N), np.zeros(N), np.zeros((N, H * head)), np.zeros(N)
    )
    for start, stop in heads.chunks():
        here, S = slice(start, stop), stop
        A, logs = heads.softmax(start, stop)
        run.mixed[:, :, here] = A @ heads.value[:, :, :S]
        run.omega[here] = A.max(axis=(0, 1, 3)) * np.arange(start + 1, stop + 1)
        m, A_hat = logarithmic_mean(A, logs[0] - logs[1]), A.mean(axis=0)
        radii = between.radii(m)
        run.own[here] = quotient[here] * between.own(m, radii, norms) / heads.scale
        run.relayed[here] = between.relayed(m, A_hat, radii, norms) @ moved[:S]
        turned = m * (dq[:, here] @ np.swapaxes(between.key[:, :S], 1, 2)) / heads.scale
        centre = m @ vh[:, :S] / m.sum(axis=-1, keepdims=True)
        exact = turned @ vh[:, :S] - turned.sum(axis=-1, keepdims=True) * centre
        run.own_exact[here] = exact.transpose(1, 0, 2).reshape(stop - start, -1)
        square = np.einsum("hrs,hrs->rs", A_hat, np.einsum("hgs,grs->hrs", gram[:, :, :S], A_hat, optimize=True))
        turned = m * np.abs(between.query[:, here] @ np.swapaxes(dk[:, :S], 1, 2)) / heads.scale
        run.relayed_exact[here] = np.sqrt(np.maximum(square, 0)).sum(axis=-1) + (turned * radii).sum(axis=(0, 2))
    return run


def sensitivity(heads: Heads, norms: AttentionNorms, moved: Array) -> tuple[Array, Array]:
    """Return what small changes of each run's inputs do, (2, N) each, by the norms.

    First what a unit change of the query's input does, then what changes `moved`, (2, N), of the others do.
    """
    N = heads.query.shape[2]
    own, relayed = np.zeros((2, N)), np.zeros((2, N))
    for r in range(2):
        run = slice(r, r + 1)
        alone = replace(heads, query=heads.query[run], key=heads.key[run], value=heads.value[run])
        at = View(heads.query[r], heads.key[r], np.einsum("hnd,hde->hne", heads.value[r], heads.factors))
        for start, stop in heads.chunks():
            A = alone.softmax(start, stop)[0][0]
            radii = at.radii(A)
            own[r, start:stop] = at.own(A, radii, norms) / heads.scale
            relayed[r, start:stop] = at.relayed(A, A, radii, norms) @ moved[r, :stop]
    return own, relayed


def logarithmic_mean(A: Array, x: Array) -> Array:
    r"""Return $(a-b)/(\log a-\log b)$ of two arrays, A (2, ...), x the difference of their logarithms.

    >>> logarithmic_mean(np.array([[2.0], [1.0]]), np.log([2.0])) * np.log(2)
    array([1.])
    """
    near = np.abs(x) < 0.1
    series = np.sqrt(A[0] * A[1]) * (1 + x**2 / 24 * (1 + x**2 / 80 * (1 + x**2 / 168)))
    return np.asarray(np.where(near, series, (A[0] - A[1]) / np.where(near, 1.0, x)))
