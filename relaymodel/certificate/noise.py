r"""The noise floor: how far the two float64 runs may be from the network in exact arithmetic (THEORY section 8).

A run in float64 and the exact one are two runs of one network, and what holds for any two holds for them: the errors
$E_n$ of the states before a block, as small differences, become behind it at most

$$ (1+\mu_n)\Bigl(E_n + c_n \frac{E_n}{\sigma_n} + \sum_{s\le n} r_{ns}\frac{E_s}{\sigma_s} + \epsilon\Bigr)
   + \epsilon'_n, $$

with c and r as in `attention.View`, $\mu$ as in `weights.MLPNorms.gain`, both at the run itself.  $\epsilon$ and
$\epsilon'$ are what the block's own arithmetic adds, by the standard model of `rounding`: $\gamma_m$ times the product
of the sizes of what is multiplied, matrices by their Frobenius norms.  First order in the errors; where these are no
longer small the floor is infinite.  Every step is a worst case, so that the floor is far above the errors one meets.
"""

import math

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.attention import Heads, sensitivity
from relaymodel.certificate.rounding import SMALLEST_SAFE, UNIT, frobenius, gamma
from relaymodel.certificate.weights import AttentionNorms
from relaymodel.networks.transformer import Block, Transformer

Array = NDArray[np.float64]

SMALL_CHANGE = 1e-3  # of normalised inputs and of logits, below which first order is taken to be enough
HIGHER = 1.01  # for the orders above the first


def embedded(network: Transformer, x: Array) -> Array:
    """Return bounds on the errors of the embeddings x, (2, N, width): tokens are exact, sums with positions rounded."""
    if network.weights.positions is None:
        return np.zeros(x.shape[:2])
    return np.asarray(2 * UNIT * np.linalg.norm(x, axis=-1))


def after_attention(
    block: Block, norms: AttentionNorms, heads: Heads, x: Array, low: Array, error: Array, rotary: bool
) -> Array:
    """Return bounds on the errors behind the attention, (2, N), from those before it, `error`, and floors `low`."""
    moved = error / low
    own, relayed = sensitivity(heads, norms, moved)
    N, d = x.shape[1:]
    largest = [float(np.sqrt(np.einsum("rhnd,rhnd->rhn", z, z)).max()) for z in (heads.query, heads.key, heads.value)]
    Q, K, V = largest
    size = float(np.max(np.linalg.norm(x, axis=-1) / low)) * float(np.max(np.abs(block.attention_gain)))
    size += frobenius(block.attention_shift)
    turned = 8 * UNIT * (N + 4) if rotary else 0.0  # angles are products of positions and frequencies
    off = [
        4 * gamma(d) * (size * frobenius(matrix) + frobenius(bias)) + turned * z
        for matrix, bias, z in zip(
            (block.query, block.key, block.value),
            (block.query_bias, block.key_bias, block.value_bias),
            largest,
            strict=True,
        )
    ]
    added = 0.0 if heads.bias is None else 4 * UNIT * float(np.max(np.abs(heads.bias)))
    logits = (off[0] * K + Q * off[1] + gamma(heads.query.shape[-1]) * Q * K) / heads.scale + added
    outputs = sum(frobenius(w) for w in heads.output)
    mixing = gamma(2 * N + block.output.shape[0]) * V
    fresh = outputs * (4 * logits * V + off[2] + mixing) + gamma(4) * np.linalg.norm(x, axis=-1)
    fresh = fresh + SMALLEST_SAFE * (1 + outputs)  # for what underflows
    change = float(moved.max()) * max(1.0, (Q * max(norms.key) + K * max(norms.query)) / heads.scale) + logits
    if not change < SMALL_CHANGE:
        return np.full_like(error, math.inf)
    bias = gamma(4) * (outputs * V + frobenius(block.output_bias))
    return np.asarray(HIGHER * (error + moved * own + relayed + fresh * (1 + gamma(4)) + bias))


def after_mlp(block: Block, gain: Array, y: Array, low: Array, error: Array) -> Array:
    """Return bounds on the errors behind the MLP, (2, N), from those before it; `gain`, (2, N), is 1 + mu."""
    if block.up is None or block.down is None or block.mlp_gain is None:
        return error
    size = np.linalg.norm(y, axis=-1) / low * float(np.max(np.abs(block.mlp_gain)))
    size = size + frobenius(block.mlp_shift)
    inner = np.ones_like(size)
    for matrix, bias in ((block.up, block.up_bias), (block.gate, block.gate_bias)):
        if matrix is not None:
            inner = inner * (size * frobenius(matrix) + frobenius(bias))
    down = frobenius(block.down)
    fresh = (16 * gamma(len(block.mlp_gain)) + gamma(len(block.down))) * down * inner
    fresh = fresh + gamma(4) * (np.linalg.norm(y, axis=-1) + down * inner + frobenius(block.down_bias))
    fresh = fresh + SMALLEST_SAFE * (1 + down)
    if not float(np.max(error / low)) < SMALL_CHANGE:
        return np.full_like(error, math.inf)
    return np.asarray(HIGHER * (gain * error + fresh))
