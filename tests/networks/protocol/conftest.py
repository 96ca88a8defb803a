"""A small network, and what is measured on it."""

import numpy as np
import pytest

from relaymodel.networks.protocol import draw_pairs, measure
from relaymodel.networks.transformer import Architecture, Transformer

SHAPE = Architecture(depth=3, width=48, heads=4, vocabulary=256, context=400)


@pytest.fixture(scope="module")
def network():
    return Transformer.random(SHAPE, np.random.default_rng(1), std=0.1)


@pytest.fixture(scope="module")
def measured(network):
    pairs = draw_pairs(network, pairs=4, prompt=10, steps=300, seed=3)
    return measure(network, pairs, final_norm=True)
