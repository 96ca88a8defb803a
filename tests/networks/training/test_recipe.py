"""Recipes and their learning rates."""

import numpy as np
import pytest

from relaymodel.networks.training import Recipe


def test_learning_rate_rises_and_falls():
    recipe = Recipe(steps=1000, rate=1.0)
    rates = [recipe.learning_rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 50)
    assert max(rates) == rates[49] == pytest.approx(1, abs=0.01)
    assert np.all(np.diff(rates[49:]) < 0)
    assert rates[-1] == pytest.approx(0.1, abs=0.001)
