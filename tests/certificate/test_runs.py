"""What two runs give."""

import numpy as np
from numpy.testing import assert_allclose

from relaymodel import certify
from tests.certificate.cases import example


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
