"""The noise floor: what a block's own arithmetic adds, term by term, and what becomes of errors before it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel.certificate import noise
from relaymodel.certificate.attention import Heads, sensitivity
from relaymodel.certificate.rounding import UNIT, gamma
from relaymodel.certificate.weights import read
from relaymodel.networks.transformer import Architecture, Transformer


def block_of(rng, **settings):
    shape = Architecture(
        **{"depth": 1, "width": 4, "heads": 2, "vocabulary": 3, "positions": "none", "mlp_width": 3, "gated": True}
        | settings
    )
    network = Transformer.random(shape, rng, std=1.0)
    block = network.weights.blocks[0]
    more = {"query_bias": 4, "key_bias": 4, "value_bias": 4, "output_bias": 4, "up_bias": 3, "gate_bias": 3}
    more |= {"down_bias": 4, "attention_gain": 4, "attention_shift": 4, "mlp_gain": 4, "mlp_shift": 4}
    return shape, replace(block, **{name: rng.standard_normal(size) for name, size in more.items()})


@pytest.mark.parametrize("gated", [False, True])
def test_what_the_arithmetic_of_an_mlp_adds(rng, gated):
    _, block = block_of(rng, gated=gated)
    if not gated:
        block = replace(block, gate=None, gate_bias=None)
    y, low, error = rng.standard_normal((2, 5, 4)), rng.uniform(1, 2, (2, 5)), rng.uniform(0, 1e-9, (2, 5))
    gain = rng.uniform(1, 3, (2, 5))
    size = np.linalg.norm(y, axis=-1) / low * np.abs(block.mlp_gain).max() + np.linalg.norm(block.mlp_shift)
    inner = size * np.linalg.norm(block.up) + np.linalg.norm(block.up_bias)
    if gated:
        inner = inner * (size * np.linalg.norm(block.gate) + np.linalg.norm(block.gate_bias))
    down = np.linalg.norm(block.down)
    fresh = (16 * gamma(4) + gamma(3)) * down * inner
    fresh += gamma(4) * (np.linalg.norm(y, axis=-1) + down * inner + np.linalg.norm(block.down_bias))
    found = noise.after_mlp(block, gain, y, low, error)
    assert_allclose(found, 1.01 * (gain * error + fresh), rtol=1e-9)
    assert np.all(noise.after_mlp(block, gain, y, low, error + 2.5e-3) == np.inf)
    assert np.all(noise.after_mlp(replace(block, up=None), gain, y, low, error) == error)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_what_the_arithmetic_of_attention_adds(rng, rotary, biased):
    shape, block = block_of(rng, heads=1)
    norms = read(block, shape).attention
    q, k, v = (rng.standard_normal((2, 1, 5, 4)) for _ in range(3))
    heads = Heads(q, k, v, block.output.reshape(1, 4, 4), rng.standard_normal((5, 3)) if biased else None)
    x, low, error = rng.standard_normal((2, 5, 4)), rng.uniform(1, 2, (2, 5)), rng.uniform(0, 1e-9, (2, 5))
    norm = np.linalg.norm
    Q, K, V = (norm(z, axis=-1).max() for z in (q, k, v))
    size = (norm(x, axis=-1) / low).max() * np.abs(block.attention_gain).max() + norm(block.attention_shift)
    off = [
        4 * gamma(4) * (size * norm(matrix) + norm(bias)) + (8 * UNIT * 9 if rotary else 0) * z
        for matrix, bias, z in (
            (block.query, block.query_bias, Q),
            (block.key, block.key_bias, K),
            (block.value, block.value_bias, V),
        )
    ]
    logits = (off[0] * K + Q * off[1] + gamma(4) * Q * K) / np.sqrt(4)
    if biased:
        logits += 4 * UNIT * np.abs(heads.bias).max()
    outputs = sum(norm(w) for w in heads.output)
    fresh = outputs * (4 * logits * V + off[2] + gamma(14) * V) + gamma(4) * norm(x, axis=-1)
    fresh += gamma(4) * (outputs * V + norm(block.output_bias))
    own, relayed = sensitivity(heads, norms, error / low)
    found = noise.after_attention(block, norms, heads, x, low, error, rotary)
    assert_allclose(found, 1.01 * (error + error / low * own + relayed + fresh), rtol=1e-9)
    most = (Q * max(norms.key) + K * max(norms.query)) / np.sqrt(4)
    assert most > 1
    for share, finite in ((0.97, True), (1.03, False)):  # of the change of logits up to which first order is taken
        found = noise.after_attention(block, norms, heads, x, low, share * 1e-3 / most * low, rotary)
        assert np.all(np.isfinite(found)) == finite


def test_small_errors_become_at_most_what_is_said(rng):
    """Differences of a run from itself, moved a little at every position, in the attention alone."""
    shape, block = block_of(rng, norm="rms")
    block = replace(block, attention_shift=None, mlp_shift=None)
    network = Transformer(shape, replace(Transformer.random(shape, rng).weights, blocks=(block,)))
    norms = read(block, shape).attention
    x = rng.standard_normal((7, 4))
    q, k, v = network.projections(block, x)
    heads = Heads(*(np.stack([z, z]) for z in (q, k, v)), block.output.reshape(2, 2, 4), None)
    low = np.sqrt(np.mean(x**2, axis=-1) + shape.epsilon)
    worst = 0
    for _ in range(50):
        change = 1e-7 * rng.standard_normal(x.shape) * (rng.random((7, 1)) < 0.4)
        delta = np.linalg.norm(change, axis=-1)
        own, relayed = sensitivity(heads, norms, np.stack([delta / low] * 2))
        moved = np.linalg.norm(network.attention(block, x + change) - network.attention(block, x), axis=-1)
        allowed = (delta / low * own + relayed)[0]
        assert np.all(moved <= allowed * (1 + 1e-5) + 1e-13)
        worst = max(worst, np.max(moved[allowed > 0] / allowed[allowed > 0], initial=0))
    assert worst > 0.1


def test_embeddings_are_off_by_the_rounding_of_their_sum(rng):
    x = rng.standard_normal((2, 3, 4))
    network = Transformer.random(Architecture(depth=1, width=4, heads=1, vocabulary=3, context=5), rng)
    assert_allclose(noise.embedded(network, x), 2.0**-52 * np.linalg.norm(x, axis=-1))
    network = Transformer.random(Architecture(depth=1, width=4, heads=1, vocabulary=3, positions="none"), rng)
    assert np.all(noise.embedded(network, x) == 0)


def test_shifts_and_biases_that_are_not_there_add_nothing(rng):
    shape, block = block_of(rng)
    names = [name for name in vars(block) if name.endswith(("bias", "shift"))]
    without = replace(block, **dict.fromkeys(names))
    zeros = replace(block, **{name: 0 * getattr(block, name) for name in names})
    heads = Heads(*(rng.standard_normal((2, 2, 5, 2)) for _ in range(3)), block.output.reshape(2, 2, 4), None)
    x, low, error = rng.standard_normal((2, 5, 4)), rng.uniform(1, 2, (2, 5)), rng.uniform(0, 1e-9, (2, 5))
    norms = read(block, shape).attention
    found = [noise.after_attention(b, norms, heads, x, low, error, False) for b in (without, zeros)]
    assert np.array_equal(*found)
    assert np.array_equal(*(noise.after_mlp(b, 1 + low, x, low, error) for b in (without, zeros)))
