"""Norms of the weights of a block."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from relaymodel.certificate import sharp_network
from relaymodel.certificate.weights import LIPSCHITZ, floors, read
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.networks.transformer.layers import activate
from tests.certificate.cases import example, scrambled


def test_slopes_of_activations():
    x = np.linspace(-8, 8, 200_001)
    for kind, bound in LIPSCHITZ.items():
        slopes = np.abs(np.diff(activate(x, kind)) / np.diff(x))
        assert bound - 0.002 < slopes.max() <= bound


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_the_gain_of_an_mlp_is_above_its_secants_and_not_far(rng, gated, norm):
    """With one hidden unit directions can agree, so that the product of norms is nearly reached."""
    settings_ = {"width": 3, "heads": 1, "mlp_width": 1, "depth": 1, "activation": "silu", "epsilon": 0.1}
    network, *_ = example(rng, gated=gated, norm=norm, std=1.5, **settings_)
    network = scrambled(network, rng, 0.3)
    block = network.weights.blocks[0]
    gain = read(block, network.architecture).mlp.gain(1.0)
    y = rng.standard_normal((2, 40_000, 3)) * 2
    y[1] = y[0] + rng.standard_normal((40_000, 3)) * 10.0 ** rng.uniform(-3, 0.5, (40_000, 1))
    size = y - y.mean(axis=-1, keepdims=True) if norm == "layer" else y
    sigma = np.sqrt(np.mean(size**2, axis=-1) + 0.1).mean(axis=0)
    moved, change = (np.linalg.norm(z[0] - z[1], axis=-1) for z in ([network.mlp(block, x) for x in y], y))
    secant = (moved / change * sigma).max()
    assert gain / 10 < secant < gain


def test_floors_come_from_components_that_no_block_writes_to(rng):
    network, *_ = example(rng)
    assert floors(network) <= math.sqrt(1e-5)
    for norm in ("layer", "rms"):
        sharp = sharp_network(3, common=100.0, norm=norm)
        found = floors(sharp)
        assert 49.999 < found <= 50.0 * math.sqrt(1 + 1e-15)
        blocks = list(sharp.weights.blocks)
        blocks[1] = replace(blocks[1], output_bias=np.array([1.0, 0, 0, 0]))
        touched = Transformer(sharp.architecture, replace(sharp.weights, blocks=tuple(blocks)))
        assert floors(touched) < (50.0 if norm == "rms" else 1e-5)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_floors_lose_what_rounding_may_have_given(norm):
    """A sum with a position is rounded to a spread that it has not: the exact state is nearly constant, or nearly 0."""
    shape = Architecture(
        depth=1, width=2, heads=1, vocabulary=1, context=1, mlp_width=0, norm=norm, epsilon=1e-300, head_width=1
    )
    network = Transformer.random(shape, np.random.default_rng(0))
    blocks = tuple(replace(block, output=block.output * 0) for block in network.weights.blocks)
    row, place = {
        "layer": ([2.0**53, 2.0**53 + 2], [3.0, 1.0]),  # both sums are 2^53 + 3, and floats say 2^53 + 4 and 2^53 + 2
        "rms": ([1e16, -1e16], [-1e16, 1e16]),
    }[norm]
    weights = replace(network.weights, blocks=blocks, embedding=np.array([row]), positions=np.array([place]))
    network = Transformer(shape, weights)
    exact = [Fraction(x) + Fraction(y) for x, y in zip(row, place, strict=True)]
    mean = sum(exact) / 2 if norm == "layer" else 0
    square = sum((x - mean) ** 2 for x in exact) / 2 + Fraction(1e-300)
    assert Fraction(floors(network)) ** 2 <= square


def test_floors_count_what_is_certain():
    """And no more than rounding is taken away: a spread of 1 beside 1e6 is all but 1e-9 of it."""
    shape = Architecture(depth=1, width=4, heads=1, vocabulary=2, positions="none", mlp_width=0, epsilon=1e-12)
    network = Transformer.random(shape, np.random.default_rng(0))
    blocks = tuple(replace(block, output=block.output * 0) for block in network.weights.blocks)
    embedding = 1e6 + np.array([[1.0, -1.0, 1.0, -1.0], [2.0, -2.0, 2.0, -2.0]])
    network = Transformer(shape, replace(network.weights, blocks=blocks, embedding=embedding))
    assert 1 - 1e-7 < floors(network) <= 1
    assert 2 - 1e-7 < floors(network, np.array([1])) <= 2


def test_floors_of_tiny_embeddings_are_those_of_epsilon():
    """Squares of 1e-200 underflow: the floor is epsilon's, and no more."""
    shape = Architecture(
        depth=1, width=2, heads=1, vocabulary=2, positions="none", mlp_width=0, norm="rms", epsilon=1e-310
    )
    network = Transformer.random(shape, np.random.default_rng(0))
    blocks = tuple(replace(block, output=block.output * 0) for block in network.weights.blocks)
    embedding = np.array([[1e-200, 2e-200], [3e-200, -1e-200]])
    network = Transformer(shape, replace(network.weights, blocks=blocks, embedding=embedding))
    assert Fraction(floors(network)) ** 2 <= Fraction(1e-310) + Fraction(5e-200) ** 2
    assert floors(network) > 1e-156


@pytest.mark.parametrize("part", ["output", "down", "output_bias", "down_bias"])
def test_a_component_is_touched_by_a_single_entry(part):
    sharp = sharp_network(2, common=100.0)
    shape = replace(sharp.architecture, mlp_width=3)
    blocks = []
    for block in sharp.weights.blocks:
        zeros = {"mlp_gain": 4, "up": (4, 3), "down": (3, 4), "output_bias": 4, "down_bias": 4, "mlp_shift": 4}
        blocks.append(replace(block, **{name: np.zeros(size) for name, size in zeros.items()}))
    untouched = Transformer(shape, replace(sharp.weights, blocks=tuple(blocks)))
    assert floors(untouched) > 49
    for column in (0, 1):
        array = getattr(blocks[1], part).copy()
        array.reshape(-1, 4)[0, column] = 1e-3
        touched = (blocks[0], replace(blocks[1], **{part: array}))
        assert floors(Transformer(shape, replace(sharp.weights, blocks=touched))) < 1
