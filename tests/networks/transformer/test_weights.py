"""Random weights, and weights that do not fit."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from relaymodel.networks.transformer import Block, Transformer, Weights
from tests.networks.transformer.shapes import BARE, GPT2, LLAMA, everything_random


def test_random_weights_have_gpt2_deviations():
    """Deviations of 10^4 or more normal numbers: right to 5 / sqrt(2 * 10^4)."""
    shape = replace(GPT2, depth=2, width=128, gated=True, heads=4)
    weights = Weights.random(shape, np.random.default_rng(5), std=0.1)
    for block in weights.blocks:
        for name in ("query", "key", "value", "up", "gate"):
            assert getattr(block, name).std() == pytest.approx(0.1, rel=0.036)
        for name in ("output", "down"):
            assert getattr(block, name).std() == pytest.approx(0.1 / np.sqrt(2 * 2), rel=0.036)
        assert np.all(block.attention_gain == 1)
        assert np.all(block.mlp_shift == 0)
    assert weights.embedding.std() == pytest.approx(0.1, rel=0.036)
    assert weights.unembedding is None
    assert_array_equal(weights.embedding, Weights.random(shape, np.random.default_rng(5), std=0.1).embedding)


def spoiled(weights, name, value):
    """Weights with one array replaced: of the first block, if it is a block's."""
    if name in {field.name for field in fields(Weights)}:
        return replace(weights, **{name: value})
    return replace(weights, blocks=(replace(weights.blocks[0], **{name: value}), *weights.blocks[1:]))


ARRAYS = [
    (GPT2, name)
    for name in sorted({f.name for c in (Block, Weights) for f in fields(c)} - {"blocks", "gate", "gate_bias"})
]
ARRAYS += [(LLAMA, "gate"), (LLAMA, "gate_bias")]


@pytest.mark.parametrize(("shape", "name"), ARRAYS, ids=[name for _, name in ARRAYS])
def test_every_array_is_checked(shape, name, rng):
    network = everything_random(shape, rng)
    weights = network.weights
    right = getattr(weights, name) if hasattr(weights, name) else getattr(weights.blocks[0], name)
    label = name if hasattr(weights, name) else rf"blocks\[0\].{name}"
    for array, error, words in (
        (np.zeros((*right.shape, 1)), ValueError, "must have shape"),
        (right[:-1], ValueError, "must have shape"),
        (right.astype(np.float32), TypeError, "must be float64, got float32"),
        (np.full_like(right, np.nan), ValueError, "must be finite"),
    ):
        with pytest.raises(error, match=f"{label} {words}"):
            Transformer(shape, spoiled(weights, name, array))
    if name.endswith(("bias", "shift")) or name == "unembedding":
        Transformer(shape, spoiled(weights, name, None))
    else:
        with pytest.raises(ValueError, match=f"weights must have {label}, shape .*, got None"):
            Transformer(shape, spoiled(weights, name, None))


@pytest.mark.parametrize(
    ("shape", "name", "size"),
    [
        (GPT2, "gate", (24, 96)),
        (LLAMA, "mlp_shift", (24,)),
        (LLAMA, "attention_shift", (24,)),
        (LLAMA, "final_shift", (24,)),
        (LLAMA, "positions", (40, 24)),
        (BARE, "up", (12, 48)),
    ],
)
def test_superfluous_arrays_are_refused(shape, name, size, rng):
    network = everything_random(shape, rng)
    with pytest.raises(ValueError, match=f"weights must have no .*{name} in this architecture"):
        Transformer(shape, spoiled(network.weights, name, np.zeros(size)))


def test_other_refusals(rng):
    network = everything_random(GPT2, rng)
    with pytest.raises(ValueError, match="weights must have depth = 2 blocks, got 3"):
        Transformer(replace(GPT2, depth=2), network.weights)
    with pytest.raises(TypeError, match="rng must be a numpy Generator"):
        Weights.random(GPT2, 0)
    with pytest.raises(ValueError, match="std must be positive"):
        Weights.random(GPT2, rng, std=0)
    with pytest.raises(ValueError, match="block must have an MLP"):
        bare = everything_random(BARE, rng)
        bare.mlp(bare.weights.blocks[0], np.zeros((1, 12)))


@pytest.mark.parametrize("draw", [Weights.random, lambda a, rng: Transformer.random(a, rng).weights])
def test_the_deviation_is_gpt2s_unless_another_is_given(draw, rng):
    matrices = draw(replace(GPT2, width=96, vocabulary=4000), rng)
    # 384 000 numbers: their deviation is known to 0.12 %
    assert np.std(matrices.embedding) == pytest.approx(0.02, rel=0.01)
    assert np.std(matrices.blocks[0].up) == pytest.approx(0.02, rel=0.02)


def test_networks_that_do_not_fit_into_memory_are_refused(monkeypatch, rng):
    monkeypatch.setattr("relaymodel.memory.free_memory", lambda: 10**6)
    with pytest.raises(ValueError, match=r"architecture must be smaller: a network of \S+ weights takes"):
        Weights.random(replace(GPT2, width=96, vocabulary=4000), rng)
