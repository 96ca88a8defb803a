"""What two runs give, block by block: sizes, attention, and bounds on every distance (THEORY section 8)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.attention import Heads, attend
from relaymodel.certificate.noise import after_attention, after_mlp, embedded
from relaymodel.certificate.rounding import SMALLEST_SAFE, gamma
from relaymodel.certificate.weights import BlockNorms, MLPNorms
from relaymodel.networks.transformer import Architecture, Block, Transformer
from relaymodel.networks.transformer.layers import activate, normalise

Array = NDArray[np.float64]

AGREE = 1e-9  # of the states' size: what they may be off when a block is computed anew
UNKNOWN = "the theorem's hypotheses cannot be established"


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
        Shape (N,): two bounds on the distance behind the block, from what every position does: by norms, and by what
        the actual differences become.
    error
        Shape (2, N): bounds on the errors of the states behind the block (module `noise`).
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
    error: Array


def follow(
    network: Transformer, norms: Sequence[BlockNorms], tokens: NDArray[np.int64], bias: Array | None
) -> Iterator[tuple[Array, BlockRun | None]]:
    """Yield the states, (2, N, width), of layer 0 to L, each with what the block behind it does (None at the end).

    The states are the network's own; the block is computed anew from its weights, and `ValueError` is raised where it
    does not give the next states.
    """
    states = network.hidden_states(tokens, bias=bias)
    x = next(states)
    _demand_finite(x, 0)
    error = embedded(network, x)
    for l, (block, known) in enumerate(zip(network.weights.blocks, norms, strict=True)):
        following = next(states)
        _demand_finite(following, l + 1)
        run, again = _examine(network, block, known, (x, following), bias, error)
        size, off = np.linalg.norm(following, axis=-1).max(), np.abs(again - following).max()
        if not off <= AGREE * max(1.0, size):
            raise ValueError(
                "network must be a pre-LN transformer whose states follow from its weights, but those behind block "
                f"{l + 1} differ by {off:.2g}: {UNKNOWN}"
            )
        yield x, run
        x, error = following, run.error
    yield x, None


def _demand_finite(x: Array, layer: int) -> None:
    if not np.all(np.isfinite(np.einsum("rnd,rnd->rn", x, x))):
        raise ValueError(
            f"network must have states whose squares float64 can hold, and those at layer {layer} reach "
            f"{np.max(np.abs(x)):.3g}: {UNKNOWN}"
        )


def _examine(
    network: Transformer,
    block: Block,
    norms: BlockNorms,
    states: tuple[Array, Array],
    bias: Array | None,
    error: Array,
) -> tuple[BlockRun, Array]:
    """Return what the two runs do in a block, from the states before and behind it, and its output, computed anew."""
    a, (x, following) = network.architecture, states
    heads = _heads(network, block, x, bias)
    sigma, low = deviations(x, a)
    floor = low.mean(axis=0)
    delta = np.linalg.norm(x[0] - x[1], axis=-1)
    attention = attend(heads, norms.attention, delta / floor, delta)
    y = x + np.swapaxes(attention.mixed, 1, 2).reshape(2, len(delta), -1) @ block.output
    if block.output_bias is not None:
        y = y + block.output_bias
    _, low_mlp = deviations(y, a)
    floor_mlp = low_mlp.mean(axis=0)
    again = y if block.up is None else y + np.stack([network.mlp(block, sequence) for sequence in y])
    up, active = _inner_products(block, a, y)
    dy, after = (np.linalg.norm(s[0] - s[1], axis=-1) for s in (y, following))
    secant = np.divide(after, dy, out=np.ones_like(dy), where=dy > 0)
    direct = np.linalg.norm(x[0] - x[1] + attention.own_exact @ block.output, axis=-1)
    noise = 16 * np.finfo(np.float64).eps * np.linalg.norm(following, axis=-1).max(axis=0)
    noise[np.cumsum(delta) == 0] = 0  # equal tokens, equal arithmetic
    # rounding of norms, queries and keys, in units of their bounds: Frobenius norms times the size of the input
    condition = float(np.max(np.linalg.norm(x, axis=-1) / np.sqrt(a.width) / sigma))
    slack = 8 * gamma(a.width + len(delta) + a.mlp_hidden) * (1 + condition)
    spread = slack * np.sqrt(a.width * a.head_size)
    w, mlp = norms.attention, norms.mlp

    def largest(points: Array, norm: tuple[float, ...], offset: tuple[float, ...]) -> Array:
        size = np.sqrt(np.einsum("rhnd,rhnd->rhn", points, points)).max(axis=(0, 2))
        return np.asarray(size * (1 + slack) + spread * np.array(norm) + slack * np.array(offset))

    query, key = largest(heads.query, w.query, w.query_offset), largest(heads.key, w.key, w.key_offset)
    logit = (
        (spread + slack) * float(np.max((query + np.array(w.query)) * (key + np.array(w.key)))) / np.sqrt(a.head_size)
    )
    values = (heads.value[:, h] @ heads.output[h] for h in range(a.heads))
    rotary = a.positions == "rotary"
    error = after_attention(block, norms.attention, heads, x, low, error, rotary)
    gains = np.stack([_gains(mlp, side, up, active) for side in low_mlp])
    run = BlockRun(
        floor=floor,
        floor_mlp=floor_mlp,
        least=float(min(low.min(), low_mlp.min() if block.up is not None else np.inf)),
        omega=_capped(attention.omega * np.exp(2 * logit) * (1 + slack)),
        query=query,
        key=key,
        key_radius=_radii(np.swapaxes(heads.key, 0, 1)) * (1 + slack) + spread * np.array(w.key),
        value_radius=_radii(values) * (1 + slack) + spread * np.array(w.raw_value) * w.output_all,
        largest_up=float(up.max()) * (1 + slack) + slack * (mlp.largest_up if mlp else 0.0),
        largest_active=float(active.max()) * (1 + slack) + slack * (mlp.largest_gate if mlp else 0.0),
        positions=_gains(mlp, floor_mlp, up, active) * (delta * (1 + attention.own) + attention.relayed) + noise,
        secants=secant * (direct + attention.relayed_exact) + noise,
        error=after_mlp(block, gains, y, low_mlp, error),
    )
    return run, again


def _capped(omega: Array) -> Array:
    """Return n where rounding would leave more than 2n: no weight is above 1."""
    n = np.arange(1.0, len(omega) + 1)
    return np.where(omega <= 2 * n, omega, n)


def _heads(network: Transformer, block: Block, x: Array, bias: Array | None) -> Heads:
    a = network.architecture
    query, key, value = (np.stack(both) for both in zip(*(network.projections(block, run) for run in x), strict=True))
    key, value = (np.repeat(z, a.heads // a.key_value_heads, axis=1) for z in (key, value))
    return Heads(query, key, value, block.output.reshape(a.heads, a.head_size, a.width), bias)


def deviations(x: Array, architecture: Architecture) -> tuple[Array, Array]:
    """Return sigma of every state, (2, N), and a bound below on it."""
    size = np.linalg.norm(x, axis=-1)
    z = x - x.mean(axis=-1, keepdims=True) if architecture.norm == "layer" else x
    spread, d = np.linalg.norm(z, axis=-1), x.shape[-1]
    low = np.maximum(spread - 4 * gamma(d) * size - SMALLEST_SAFE, 0)
    sigma, low = (np.sqrt(s**2 / d + architecture.epsilon) for s in (spread, low))
    return np.asarray(sigma), np.asarray(low * (1 - gamma(d)))


def _inner_products(block: Block, a: Architecture, y: Array) -> tuple[Array, Array]:
    """Return the largest inner product and activation of a gated MLP at every position, (N,) each; otherwise 0."""
    if block.up is None or block.gate is None or block.mlp_gain is None:
        return np.zeros(y.shape[1]), np.zeros(y.shape[1])
    u = normalise(y, block.mlp_gain, block.mlp_shift, a.epsilon, centred=a.norm == "layer")
    up, gate = u @ block.up, u @ block.gate
    if block.up_bias is not None:
        up += block.up_bias
    if block.gate_bias is not None:
        gate += block.gate_bias
    return np.abs(up).max(axis=(0, 2)), np.abs(activate(gate, a.activation)).max(axis=(0, 2))


def _gains(norms: MLPNorms | None, floor: Array, up: Array, active: Array) -> Array:
    """Return 1 + mu at every position, (N,)."""
    if norms is None:
        return np.ones(len(floor))
    return 1 + np.array([norms.gain(1.0, float(b), float(g)) for b, g in zip(up, active, strict=True)]) / floor


def _radii(heads: Iterable[Array]) -> Array:
    """Return, for the points of each head, (2, N, width), how far they are from their mean at most."""
    away = [points - points.mean(axis=(0, 1)) for points in heads]
    return np.array([float(np.sqrt(np.einsum("rnd,rnd->rn", z, z)).max()) for z in away])
