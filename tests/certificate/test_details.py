"""Bounds by norms stay above what the matrices do, and one bad position is enough to void a noise floor."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel.certificate import attention, noise
from relaymodel.certificate.runs import _heads, follow
from relaymodel.certificate.subject import Subject
from relaymodel.certificate.weights import read
from relaymodel.networks.transformer import Architecture, Transformer
from tests.certificate.cases import example


@pytest.mark.parametrize("std", [0.15, 0.6])
def test_norms_are_above_secants_at_every_position(rng, std):
    """What is known by norms may only be larger than what the matrices do to the actual differences."""
    for settings in ({}, {"norm": "rms", "gated": True, "activation": "silu"}, {"mlp_width": 0, "heads": 1}):
        network, pairs = example(rng, std=std, **settings)
        subject, _ = Subject.of(network, pairs, None)
        norms = [read(block, network.architecture) for block in network.weights.blocks]
        runs = [run for _, run in follow(network, norms, subject.tokens, None) if run is not None]
        assert len(runs) == network.depth
        for run in runs:
            assert np.all(run.positions >= run.secants * (1 - 1e-12))


def test_attention_by_norms_is_above_attention_by_matrices(rng):
    network, pairs = example(rng, std=0.6, depth=1)
    block = network.weights.blocks[0]
    norms = read(block, network.architecture).attention
    subject, _ = Subject.of(network, pairs, None)
    x = np.stack([next(network.hidden_states([tokens]))[0] for tokens in subject.tokens])
    delta = np.linalg.norm(x[0] - x[1], axis=-1)
    found = attention.attend(_heads(network, block, x, None), norms, delta, delta)
    assert np.any(found.relayed_exact > 0)
    assert np.all(found.relayed >= found.relayed_exact * (1 - 1e-12))


def test_a_block_without_mlp_adds_its_attention_to_the_state(rng):
    network, pairs = example(rng, std=0.6, depth=1, mlp_width=0)
    block = network.weights.blocks[0]
    norms = read(block, network.architecture)
    subject, _ = Subject.of(network, pairs, None)
    x, run = next(iter(follow(network, [norms], subject.tokens, None)))
    delta = np.linalg.norm(x[0] - x[1], axis=-1)
    found = attention.attend(_heads(network, block, x, None), norms.attention, delta / run.floor, delta)
    assert np.max(found.own) > 0.01
    assert_allclose(run.positions, delta * (1 + found.own) + found.relayed, rtol=1e-8)


def test_values_of_heads_together_weigh_the_middle_and_the_spread_of_their_attention(rng):
    """With a_h from low to high, |sum a_h W_h| is at most the middle times |sum W_h| and half the spread times |W|."""
    A = rng.uniform(0, 1, (3, 2, 5))
    norms = SimpleNamespace(value=(9.0, 9.0, 9.0), key=(0.0, 0.0, 0.0), together=0.5, output_all=1.5, value_all=2.0)
    view = SimpleNamespace(_query_size=np.ones((3, 5)), query=np.ones((3, 5, 4)))
    low, high = A.min(axis=0), A.max(axis=0)
    found = attention.View.relayed(view, A, A, np.ones((3, 1, 1)), norms)
    assert_allclose(found, 0.5 * (high + low) / 2 + 3.0 * (high - low) / 2)


def test_one_position_with_a_large_error_voids_the_floor_of_all(rng):
    network = Transformer.random(
        Architecture(depth=1, width=4, heads=2, vocabulary=3, positions="none", mlp_width=3), rng, std=1.0
    )
    block, y = network.weights.blocks[0], rng.standard_normal((2, 5, 4))
    low, error = np.ones((2, 5)), np.full((2, 5), 1e-12)
    assert np.all(np.isfinite(noise.after_mlp(block, low, y, low, error)))
    error[1, 3] = 1.0
    assert np.all(noise.after_mlp(block, low, y, low, error) == np.inf)
