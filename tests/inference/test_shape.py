"""The curve that a fit compares with: against exact values and simulations, for many parameters at once."""

import numpy as np
import pytest

from relaymodel import PromptBias, RelayModel, influence, simulate
from relaymodel.inference.shape import Shape


@pytest.mark.parametrize("prompt", [1, 64, 10**6])
@pytest.mark.parametrize("last", [50, 2048, 1e14])
def test_whole_depths_are_exact(rng, prompt, last):
    t = np.unique(np.rint(np.geomspace(1, last, 30)))
    relay, depth = np.exp(rng.uniform(np.log(1e-3), np.log(16), 12)), rng.integers(1, 13, 12)
    position = rng.choice([0, -0.98, 4, 0.3, -0.5], 12)
    found = Shape(prompt, t).log_influence(relay, depth, position, 0)
    for column, lam, L, g in zip(found.T, relay, depth, position, strict=True):
        model = RelayModel.uniform(prompt, int(L), float(lam), 1, float(g))
        np.testing.assert_allclose(column, np.log(influence(model, t)), atol=2e-11)


def test_biases_are_those_of_simulations(rng):
    t = np.unique(np.rint(np.geomspace(1, 20_000, 30)))
    relay, depth, bias = rng.uniform(0.1, 2, 8), rng.integers(1, 9, 8), rng.uniform(-1, 3, 8)
    found = Shape(16, t).log_influence(relay, depth, 0, bias)
    for column, lam, L, beta in zip(found.T, relay, depth, bias, strict=True):
        model = RelayModel.uniform(16, int(L), float(lam))
        curve = simulate(model, 20_000, bias=PromptBias(float(beta)), samples=t)
        np.testing.assert_allclose(column, np.log(curve.distance), atol=1e-12)


def test_times_between_tokens():
    t = np.array([0.5, 1.5, 10.25, 63.5, 64.5, 1000.5])
    model = RelayModel.uniform(16, 4, 0.5)
    found = Shape(16, t).log_influence(0.5, 4, 0, 0)[:, 0]
    np.testing.assert_allclose(found, np.log(influence(model, t)), atol=1e-8)
