"""The parts of a block, as functions of arrays."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expit

from relaymodel.networks.transformer.architecture import QUERIES_AT_ONCE
from relaymodel.simulation.share import PromptShares

Array = NDArray[np.float64]


def normalise(x: Array, gain: Array, shift: Array | None, epsilon: float, *, centred: bool) -> Array:
    """Return LayerNorm (centred) or RMSNorm of x, (..., width)."""
    u: Array = x - x.mean(axis=-1, keepdims=True) if centred else x.copy()
    u /= np.sqrt(np.einsum("...i,...i->...", u, u) / x.shape[-1] + epsilon)[..., None]
    u *= gain
    if shift is not None:
        u += shift
    return u


def activate(x: Array, kind: str) -> Array:
    """Return gelu, its tanh approximation, silu or relu, of every entry."""
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "silu":
        return np.asarray(x * expit(x))
    if kind == "gelu":
        return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))
    inner = x * x  # in place: these arrays are the largest of all
    inner *= 0.044715
    inner += 1
    inner *= x
    inner *= np.sqrt(2 / np.pi)
    np.tanh(inner, out=inner)
    inner += 1
    inner *= x
    inner *= 0.5
    return inner


def rotary_angles(positions: NDArray[np.int64], head: int, base: float) -> tuple[Array, Array]:
    """Return cosine and sine of the rotary angles, (len(positions), head/2)."""
    angles = np.multiply.outer(positions.astype(np.float64), base ** (-np.arange(0, head, 2) / head))
    return np.cos(angles), np.sin(angles)


def rotate(x: Array, cosine: Array, sine: Array) -> Array:
    """Turn the pairs (x_i, x_{i+head/2}) of x, (..., n, head), by the angles of its n positions."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)


Wanted = tuple[NDArray[np.int64], Array]
"""Which queries' softmax is wanted, and where it goes, (heads, queries, keys)."""


def attend(
    query: Array, key: Array, value: Array, bias: Array | PromptShares | None, rows: Wanted | None = None
) -> Array:
    r"""Return causal softmax attention of one sequence, (heads, n, head).

    Queries (heads, n, head) stand at the last n of the positions of keys and values, (key_heads, m, head); each
    key head serves heads/key_heads queries.  `bias`, (n, k) or (heads, n, k), is added to the logits of the first k
    keys; `PromptShares` set their share.  Never more than 128 rows of the attention matrix are held; those of the
    queries in `rows` are written there.
    """
    heads, n, head = query.shape
    m = key.shape[1]
    group = heads // key.shape[0]
    result = np.empty((heads, n, value.shape[2]))
    for start in range(0, n, QUERIES_AT_ONCE):
        stop = min(start + QUERIES_AT_ONCE, n)
        seen = m - n + stop  # keys that the last of these queries sees
        hidden = np.arange(seen)[None, :] > np.arange(m - n + start, seen)[:, None]
        future = slice(m - n + start, seen)
        for h in range(heads):
            logits = (query[h, start:stop] / np.sqrt(head)) @ key[h // group, :seen].T
            if isinstance(bias, np.ndarray):
                row = bias[h, start:stop] if bias.ndim == 3 else bias[start:stop]
                k = min(seen, row.shape[1])
                logits[:, :k] += row[:, :k]
            logits[:, future][hidden[:, future]] = -np.inf
            logits -= logits.max(axis=1, keepdims=True)
            np.exp(logits, out=logits)
            if isinstance(bias, PromptShares):
                behind = logits[max(0, bias.prompt - start - (m - n)) :]
                inside, outside = behind[:, : bias.prompt], behind[:, bias.prompt :]
                first, other = bias.factors(inside.sum(axis=1), outside.sum(axis=1))
                inside *= first[:, None]
                outside *= other[:, None]
            total = logits.sum(axis=1, keepdims=True)
            result[h, start:stop] = (logits @ value[h // group, :seen]) / total
            if rows is not None:
                here = np.flatnonzero((rows[0] >= start) & (rows[0] < stop))
                chosen = rows[0][here] - start
                rows[1][h, here, :seen] = logits[chosen] / total[chosen]
    return result
