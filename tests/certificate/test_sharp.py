"""The networks that attain the bound."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import RelayModel, certify, influence
from relaymodel.certificate import sharp_network
from relaymodel.networks.protocol import measure
from relaymodel.networks.transformer import Transformer


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(("depth", "relay"), [(1, 1.0), (3, 0.25), (8, 1.0), (4, 2.0)])
def test_the_sharp_network_attains_the_bound_at_every_t(depth, relay, norm):
    network = sharp_network(depth, relay, norm=norm)
    certificate = certify(network, ([1] * 4, [0] * 4, [0] * 300))
    assert certificate.applies
    assert certificate.holds
    for name in certificate.ladder.rungs:
        above = certificate.log10_ratio(name) * math.log(10)
        assert np.all(above >= 0)
        # 1e-6 is added to both strengths of each block; c^2/2S^2 for the norms
        assert np.all(above < depth * 2.1e-6 + depth * (1 + relay) ** (2 * depth) / 1e8)
    D = influence(RelayModel.uniform(prompt=4, depth=depth, relay=relay), certificate.t)
    assert_allclose(certificate.distance(), D, rtol=depth * (1 + relay) ** (2 * depth) / 1e8 + 1e-9)


def test_a_smaller_common_component_costs_a_constant_factor():
    ratios = []
    for common in (30.0, 100.0, 300.0):
        certificate = certify(sharp_network(4, common=common), ([1] * 4, [0] * 4, [0] * 300))
        above = certificate.log10_ratio("weights") * math.log(10)
        assert certificate.holds
        assert above[-1] < 2 * above[20]  # no growth with t
        ratios.append(above[-1])
    assert ratios[0] > 5 * ratios[1] > 20 * ratios[2] > 0  # about as 1/S^2


def test_a_sharp_network_with_more_in_it_exceeds_the_bound():
    """The bound leaves no room: one per mille more in one block shows."""
    network = sharp_network(3)
    texts = [1] * 4, [0] * 4, [0] * 50
    certificate = certify(network, texts)
    blocks = list(network.weights.blocks)
    blocks[1] = replace(blocks[1], output=blocks[1].output * 1.001)
    doctored = Transformer(network.architecture, replace(network.weights, blocks=tuple(blocks)))
    for name in certificate.ladder.rungs:
        assert certificate.check(measure(network, texts), name).passed
        check = certificate.check(measure(doctored, texts), name)
        assert "layer 2:" in check.failures[0]


@pytest.mark.parametrize(
    ("arguments", "words"), [({"depth": 0}, "depth"), ({"depth": 2, "relay": -1}, "relay must be positive, got -1")]
)
def test_sharp_networks_that_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        sharp_network(**arguments)
