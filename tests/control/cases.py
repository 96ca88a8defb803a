"""Models, biases and the recursion in fractions that the tests of control share."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import (
    Simulation,
)
from tests.strategies import models

SIX = RelayModel.uniform(prompt=64, depth=6, relay=Fraction(1, 2))


UNEQUAL = RelayModel(16, [Layer(1, Fraction(1, 2)), Layer(Fraction(1, 3)), Layer(0, 2), Layer(2, Fraction(3, 4))])


BARE = RelayModel.uniform(prompt=5, depth=4, relay=1, residual=0)


ONE = RelayModel(64, [Layer(2)])


STACKS = [SIX, UNEQUAL, BARE, ONE]


uniform = models(position=st.just(Fraction(0)))


def every(model, steps, **options):
    """D at every t up to `steps`, simulated."""
    return Simulation(model, **options).advance(steps, samples=np.arange(1, steps + 1))[1]
