r"""What two runs give, block by block: sizes, attention, and the parts of every difference (THEORY section 8).

At query n and head h the difference of the two runs' attention outputs is, exactly,

$$ \sum_s \hat A_{ns}\,dv_s
   + \sum_s m_{ns}(\hat v_s-\bar v_n)\,\bigl(dq_n\cdot\hat k_s + \hat q_n\cdot dk_s\bigr)/\sqrt{d_h}, $$

hats for the mean of the two runs, d for their difference, m the logarithmic mean of the two attention weights,
$m = (A-\tilde A)/(\log A-\log\tilde A) \le \hat A$, and $\bar v_n$ the mean of $\hat v$ under m.  For
$A-\tilde A = m\,(dl-d\,\mathrm{lse})$, and $\sum_s(A-\tilde A)_{ns} = 0$ makes d lse the mean under m of the logits'
differences dl: what remains is a covariance, in which a bias common to both runs cancels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import distances, gamma, root
from relaymodel.certificate.weights import BlockNorms
from relaymodel.networks.transformer import Block, Transformer
from relaymodel.networks.transformer.layers import activate, normalise

Array = NDArray[np.float64]

ROWS = 1 << 19  # entries of one head's attention held at once
AGREE = 1e-9


@dataclass(frozen=True, eq=False)
class BlockRun:
    r"""What the two runs do in one block; N positions, H heads.

    Attributes
    ----------
    floor, floor_mlp
        Shape (N,): bounds below on $(\sigma+\tilde\sigma)/2$ before the attention and before the MLP.
    least
        The smallest $\sigma$ of both norms.
    omega
        Shape (N,): bounds above on $\max_{s,h} n \max(A_{ns}, \tilde A_{ns})$.
    query, key, key_radius, value_radius
        Shape (H,): bounds above on $|q_n|$, $|k_s|$, and on the radii of keys and of values behind $W_O$ about their
        means.
    largest_up, largest_active
        Bounds above on the MLP's inner products and, if it is gated, on the activations.
    positions, secants
        Shape (N,): two bounds on the distance behind the block, from what every position does (see `Parts`).
    """

    floor: Array
    floor_mlp: Array
    least: float
    omega: Array
    query: Array
    key: Array
    key_radius: Array
    value_radius: Array
    largest_up: float
    largest_active: float
    positions: Array
    secants: Array


@dataclass(eq=False)
class Parts:
    """Sums over the keys for every query, (N,) each: own parts and relayed parts, from norms and from differences."""

    own: Array
    relayed: Array
    exact_query: Array  # (N, H * head): what the queries' difference does, before the output matrix
    relayed_exact: Array


def follow(
    network: Transformer, norms: list[BlockNorms], tokens: NDArray[np.int64], bias: Array | None
) -> Iterator[tuple[Array, BlockRun | None]]:
    """Yield the states, (2, N, width), of layer 0 to L, each with what the block behind it does (None at the end).

    The states are the network's own; the block is computed anew from its weights, and `ValueError` is raised where it
    does not give the next states.
    """
    states = network.hidden_states(tokens, bias=bias)
    x = next(states)
    for l, block in enumerate(network.weights.blocks):
        following = next(states)
        run, again = examine(network, block, norms[l], x, following, bias)
        size, off = np.linalg.norm(following, axis=-1).max(), np.abs(again - following).max()
        if not off <= AGREE * max(1.0, size):
            raise ValueError(
                "network must be a pre-LN transformer whose states follow from its weights, but those behind block "
                f"{l + 1} differ by {off:.2g}: the theorem's hypotheses cannot be established"
            )
        yield x, run
        x = following
    yield x, None


def examine(
    network: Transformer, block: Block, norms: BlockNorms, x: Array, following: Array, bias: Array | None
) -> tuple[BlockRun, Array]:
    """Return what the two runs do in a block, and its output, computed anew."""
    a = network.architecture
    d, heads, head = a.width, a.heads, a.head_size
    group = heads // a.key_value_heads
    projected = [network.projections(block, sequence) for sequence in x]
    q = np.stack([p[0] for p in projected])  # (2, H, N, head)
    k, v = (np.repeat(np.stack([p[i] for p in projected]), group, axis=1) for i in (1, 2))
    outputs = block.output.reshape(heads, head, d)
    factors = np.stack([root(w @ w.T) for w in outputs])
    sigma, low = deviations(x, a.norm, a.epsilon)
    floor = low.mean(axis=0)
    delta = np.linalg.norm(x[0] - x[1], axis=-1)
    mixed, omega, parts = attend(q, k, v, outputs, factors, norms, delta / floor, delta, bias)
    y = x + np.swapaxes(mixed, 1, 2).reshape(2, len(delta), -1) @ block.output
    if block.output_bias is not None:
        y = y + block.output_bias
    _, low_mlp = deviations(y, a.norm, a.epsilon)
    again, up, active, gain = _mlp(network, block, norms, y, low_mlp.mean(axis=0))
    dy, after = (np.linalg.norm(s[0] - s[1], axis=-1) for s in (y, following))
    secant = np.divide(after, dy, out=np.ones_like(dy), where=dy > 0)
    direct = np.linalg.norm(x[0] - x[1] + parts.exact_query @ block.output, axis=-1)
    noise = 16 * np.finfo(np.float64).eps * np.linalg.norm(following, axis=-1).max(axis=0)
    noise[np.cumsum(delta) == 0] = 0  # equal tokens, equal arithmetic
    # rounding of norms, queries and keys, in units of their bounds: Frobenius norms times the size of the input
    condition = float(np.max(np.linalg.norm(x, axis=-1) / np.sqrt(d) / sigma))
    slack = 8 * gamma(d + len(delta) + a.mlp_hidden) * (1 + condition)
    spread = slack * np.sqrt(d * head)
    w, mlp = norms.attention, norms.mlp

    def largest(points: Array, norm: tuple[float, ...], offset: tuple[float, ...]) -> Array:
        size = np.sqrt(np.einsum("rhnd,rhnd->rhn", points, points)).max(axis=(0, 2))
        return np.asarray(size * (1 + slack) + spread * np.array(norm) + slack * np.array(offset))

    query, key = largest(q, w.query, w.query_offset), largest(k, w.key, w.key_offset)
    logit = (spread + slack) * float(np.max((query + np.array(w.query)) * (key + np.array(w.key)))) / np.sqrt(head)
    value_radius = np.array([_radius(v[:, h] @ outputs[h]) for h in range(heads)])
    run = BlockRun(
        floor=floor,
        floor_mlp=low_mlp.mean(axis=0),
        least=float(min(low.min(), low_mlp.min() if block.up is not None else np.inf)),
        omega=omega * np.exp(2 * logit) * (1 + slack),
        query=query,
        key=key,
        key_radius=np.array([_radius(k[:, h]) for h in range(heads)]) * (1 + slack) + spread * np.array(w.key),
        value_radius=value_radius * (1 + slack) + spread * np.array(w.raw_value) * w.output_all,
        largest_up=up * (1 + slack) + slack * (mlp.largest_up if mlp else 0.0),
        largest_active=active * (1 + slack) + slack * (mlp.largest_gate if mlp else 0.0),
        positions=gain * (delta * (1 + parts.own) + parts.relayed) + noise,
        secants=secant * (direct + parts.relayed_exact) + noise,
    )
    return run, again


def deviations(x: Array, norm: str, epsilon: float) -> tuple[Array, Array]:
    """Return sigma of every state, (2, N), and a bound below on it."""
    size = np.linalg.norm(x, axis=-1)
    z = x - x.mean(axis=-1, keepdims=True) if norm == "layer" else x
    spread, d = np.linalg.norm(z, axis=-1), x.shape[-1]
    low = np.maximum(spread - 4 * gamma(d) * size, 0)
    sigma, low = (np.sqrt(s**2 / d + epsilon) for s in (spread, low))
    return np.asarray(sigma), np.asarray(low * (1 - gamma(d)))


def attend(
    q: Array,
    k: Array,
    v: Array,
    outputs: Array,
    factors: Array,
    norms: BlockNorms,
    moved: Array,
    delta: Array,
    bias: Array | None,
) -> tuple[Array, Array, Parts]:
    r"""Return the attention's outputs, (2, H, N, head), omega, (N,), and the parts of the outputs' difference.

    `moved`, (N,), bounds the difference of the normalised inputs, $|du_s| \le \delta_s\, 2/(\sigma_s+\tilde\sigma_s)$.
    """
    _, heads, N, head = q.shape
    w = norms.attention
    scale = np.sqrt(head)
    qh, kh, vh = (z.mean(axis=0) for z in (q, k, v))
    dq, dk, dv = (z[0] - z[1] for z in (q, k, v))
    vf = np.einsum("hnd,hde->hne", vh, factors)
    vf_square, kh_square = (np.einsum("hnd,hnd->hn", z, z) for z in (vf, kh))
    behind = np.einsum("hsd,hde->hse", dv, outputs)
    gram = np.einsum("hse,gse->hgs", behind, behind)
    query_norm, key_norm, value_norm = (np.array(t)[:, None, None] for t in (w.query, w.key, w.value))
    q_size = np.linalg.norm(qh, axis=-1)
    mixed, omega = np.empty((2, heads, N, head)), np.empty(N)
    parts = Parts(np.zeros(N), np.zeros(N), np.zeros((N, heads * head)), np.zeros(N))
    rows = max(1, ROWS // (N * heads))
    for start in range(0, N, rows):
        stop = min(start + rows, N)
        here = slice(start, stop)
        S = stop
        seen = np.arange(S)[None, :] <= np.arange(start, stop)[:, None]
        logits = q[:, :, here] @ np.swapaxes(k[:, :, :S], -1, -2) / scale
        if bias is not None:
            width = min(S, bias.shape[-1])
            logits[..., :width] += bias[..., here, :width]
        logits = np.where(seen, logits, -np.inf)
        logits -= logits.max(axis=-1, keepdims=True)
        A = np.exp(logits)
        total = A.sum(axis=-1, keepdims=True)
        A /= total
        mixed[:, :, here] = A @ v[:, :, :S]
        omega[here] = A.max(axis=(0, 1, 3)) * np.arange(start + 1, stop + 1)
        logs = np.where(seen, logits - np.log(total), 0)
        m = logarithmic_mean(A, logs[0] - logs[1])
        A_hat = A.mean(axis=0)
        mass = m.sum(axis=-1, keepdims=True)
        centre = m @ vf[:, :S] / mass
        radius = np.sqrt(
            np.maximum(
                vf_square[:, None, :S]
                - 2 * centre @ np.swapaxes(vf[:, :S], 1, 2)
                + np.einsum("hrd,hrd->hr", centre, centre)[..., None],
                0,
            )
        )
        # own part: the query's difference meets the covariance of keys and values
        spread_v = np.einsum("hrs,hrs->hr", m, radius**2)
        mean_k = m @ kh[:, :S]
        spread_k = (
            np.einsum("hrs,hs->hr", m, kh_square[:, :S]) - np.einsum("hrd,hrd->hr", mean_k, mean_k) / mass[..., 0]
        )
        deviation = np.sqrt(np.maximum(spread_k, 0) * spread_v)
        quotient = np.divide(moved[here], delta[here], out=np.zeros(stop - start), where=delta[here] > 0)
        parts.own[here] = quotient * np.einsum("h,hr->r", query_norm[:, 0, 0], deviation) / scale
        turned = m * (dq[:, here] @ np.swapaxes(kh[:, :S], 1, 2)) / scale
        exact = turned @ vh[:, :S] - turned.sum(axis=-1, keepdims=True) * (m @ vh[:, :S] / mass)
        parts.exact_query[here] = exact.transpose(1, 0, 2).reshape(stop - start, -1)
        # relayed parts: values, and keys
        low, high = A_hat.min(axis=0), A_hat.max(axis=0)
        side_by_side = (high + low) / 2 * w.together + (high - low) / 2 * w.output_all * w.value_all
        values = np.minimum((A_hat * value_norm).sum(axis=0), side_by_side)
        keys = (m * radius * key_norm * q_size[:, here, None]).sum(axis=0) / scale
        parts.relayed[here] = (values + keys) @ moved[:S]
        square = np.einsum("hrs,hrs->rs", A_hat, np.einsum("hgs,grs->hrs", gram[:, :, :S], A_hat, optimize=True))
        turned = m * np.abs(qh[:, here] @ np.swapaxes(dk[:, :S], 1, 2)) / scale
        parts.relayed_exact[here] = np.sqrt(np.maximum(square, 0)).sum(axis=-1) + (turned * radius).sum(axis=(0, 2))
    return mixed, omega, parts


def logarithmic_mean(A: Array, x: Array) -> Array:
    r"""Return $(a-b)/(\log a-\log b)$ of two arrays, A (2, ...), x the difference of their logarithms.

    >>> logarithmic_mean(np.array([[2.0], [1.0]]), np.log([2.0])) * np.log(2)
    array([1.])
    """
    near = np.abs(x) < 0.1
    series = np.sqrt(A[0] * A[1]) * (1 + x**2 / 24 * (1 + x**2 / 80 * (1 + x**2 / 168)))
    return np.asarray(np.where(near, series, (A[0] - A[1]) / np.where(near, 1.0, x)))


def _mlp(
    network: Transformer, block: Block, norms: BlockNorms, y: Array, floor: Array
) -> tuple[Array, float, float, Array]:
    """Return the block's output, the largest inner product and activation, and 1 + mu at every position."""
    if block.up is None or block.mlp_gain is None or norms.mlp is None:
        return y, 0.0, 0.0, np.ones(y.shape[1])
    a = network.architecture
    again = y + np.stack([network.mlp(block, sequence) for sequence in y])
    if block.gate is None:
        return again, 0.0, 0.0, 1 + norms.mlp.gain(1.0) / floor
    u = normalise(y, block.mlp_gain, block.mlp_shift, a.epsilon, centred=a.norm == "layer")
    up, gate = u @ block.up, u @ block.gate
    if block.up_bias is not None:
        up += block.up_bias
    if block.gate_bias is not None:
        gate += block.gate_bias
    up, active = np.abs(up).max(axis=(0, 2)), np.abs(activate(gate, a.activation)).max(axis=(0, 2))
    gains = [norms.mlp.gain(1.0, float(b), float(g)) for b, g in zip(up, active, strict=True)]
    return again, float(up.max()), float(active.max()), 1 + np.array(gains) / floor


def _radius(points: Array) -> float:
    """Return how far points (2, N, width) are from their mean at most."""
    away = points - points.mean(axis=(0, 1))
    return float(np.sqrt(np.einsum("rnd,rnd->rn", away, away)).max())


def spans(states: list[Array]) -> tuple[Array, Array]:
    """Return bounds below and above on the distances at all layers, (L + 1, N) each."""
    both = [distances(x) for x in states]
    return np.stack([low for low, _ in both]), np.stack([high for _, high in both])
