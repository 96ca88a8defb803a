"""What two runs give."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import certify
from relaymodel.certificate.runs import _capped, deviations, follow
from relaymodel.certificate.subject import Subject
from relaymodel.certificate.weights import read
from relaymodel.networks.transformer import Architecture
from tests.certificate import exact
from tests.certificate.cases import example, scrambled


def test_omega_is_the_largest_attention(rng):
    network, (a, b, after) = example(rng, positions="rotary", heads=2, depth=1)
    certificate = certify(network, (a, b, after))
    expected = np.zeros(45)
    for prompt in (a, b):
        x = next(network.hidden_states([np.concatenate((prompt, after))]))[0]
        q, k, _ = network.projections(network.weights.blocks[0], x)
        weights = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(12)) * np.tri(45)
        weights /= weights.sum(axis=-1, keepdims=True)
        expected = np.maximum(expected, weights.max(axis=(0, 2)) * np.arange(1, 46))
    assert np.all(certificate.omega[0] >= expected)
    assert_allclose(certificate.omega[0], expected, rtol=1e-9)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_sizes_are_above_the_exact_ones_and_close(rng, gated, norm):
    """Of states given as floats, in fifty digits: what is measured on the runs holds for them in exact arithmetic."""
    network, pairs = example(rng, depth=1, width=5, heads=2, head_width=2, mlp_width=3, gated=gated, norm=norm, steps=4)
    network = scrambled(network, rng, 0.3)
    a, block = network.architecture, network.weights.blocks[0]
    subject, _ = Subject.of(network, pairs, None)
    norms = [read(block, a)]
    x, run = next(iter(follow(network, norms, subject.tokens, None)))
    floor, sizes = exact.sizes(network, block, x)
    for n in range(x.shape[1]):
        assert floor[n] * (1 - mp.mpf(10) ** -9) < run.floor[n] <= floor[n]
    for h in range(2):
        for name in ("query", "key", "key_radius", "value_radius"):
            true, found = sizes[name][h], getattr(run, name)[h]
            assert true <= found < true * (1 + mp.mpf(10) ** -9), name
    for n, true in enumerate(sizes["omega"]):
        assert true <= run.omega[n] < true * (1 + mp.mpf(10) ** -9)
    if gated:
        for name in ("largest_up", "largest_active"):
            assert sizes[name] <= getattr(run, name) < sizes[name] * (1 + mp.mpf(10) ** -9)
    for n, true in enumerate(sizes["floor_mlp"]):  # states behind the attention are rounded themselves
        assert true * (1 - mp.mpf(10) ** -9) < run.floor_mlp[n] <= true * (1 + mp.mpf(10) ** -12)
    assert run.least <= min(*floor, *sizes["floor_mlp"])


def test_rounding_never_makes_a_weight_larger_than_1():
    assert _capped(np.array([1.5, 3.0, np.inf, 8.1, 9.9])).tolist() == [1.5, 3.0, 3.0, 4.0, 9.9]


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_deviations_lose_what_rounding_may_have_given(norm):
    """A common 1e15 leaves a spread of little but rounding; states of 1e-200 one that underflows."""
    shape = Architecture(depth=1, width=3, heads=1, vocabulary=2, positions="none", norm=norm, epsilon=1e-310)
    x = np.array([[[1e15, 1e15 + 0.125, 1e15], [1e-200, 2e-200, -1e-200]]] * 2)
    sigma, low = deviations(x, shape)
    for n in range(2):
        row = [Fraction(value) for value in x[0, n]]
        mean = sum(row) / 3 if norm == "layer" else 0
        square = sum((value - mean) ** 2 for value in row) / 3 + Fraction(1e-310)
        assert Fraction(low[0, n]) ** 2 <= square
    assert low[0, 1] > 0.99e-155
    assert low[0, 0] < 3 if norm == "layer" else low[0, 0] > 0.999e15
    assert sigma.shape == low.shape == (2, 2)
