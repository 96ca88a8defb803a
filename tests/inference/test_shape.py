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


@pytest.mark.parametrize(("prompt", "last"), [(1, 2048), (64, 2.0**40), (10**6, 50)])
def test_heads_of_any_recency_are_exact(rng, prompt, last):
    t = np.unique(np.rint(np.geomspace(1, last, 20)))
    relay, depth = np.exp(rng.uniform(np.log(1e-3), np.log(16), 5)), rng.integers(1, 13, 5)
    recency, position = np.array([-4, 0.99, 0.7, 1e-12, 0]), np.array([0, -0.98, 0.3, 4, 0])
    sink = np.array([0, 0.01, 2, 0, 1e-6])
    found = Shape(prompt, t).log_influence(relay, depth, position, 0, recency, sink)
    for column, lam, L, *rest in zip(found.T, relay, depth, position, recency, sink, strict=True):
        model = RelayModel.uniform(prompt, int(L), float(lam), 1, *map(float, rest))
        np.testing.assert_allclose(column, np.log(influence(model, t)), atol=2e-11)


def test_biases_on_heads_are_those_of_simulations(rng):
    t = np.unique(np.rint(np.geomspace(1, 4000, 30)))
    bias, recency, sink = rng.uniform(-1, 3, 4), rng.uniform(-2, 0.95, 4), np.array([0, 0.1, 0, 1e-3])
    found = Shape(16, t).log_influence(0.5, 5, 0.2, bias, recency, sink)
    for column, beta, *rest in zip(found.T, bias, recency, sink, strict=True):
        model = RelayModel.uniform(16, 5, 0.5, 1, 0.2, *map(float, rest))
        curve = simulate(model, 4000, bias=PromptBias(float(beta)), samples=t)
        np.testing.assert_allclose(column, np.log(curve.distance), atol=1e-11)


def test_a_recency_of_nearly_nothing_is_that_of_nothing():
    t = np.geomspace(1, 1e6, 20).round()
    found = Shape(64, t).log_influence(0.5, 4.4, [0.3, 0.3], 0.7, [0, 1e-15], 0.01)
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-11)


def test_times_between_tokens():
    t = np.array([0.5, 1.5, 10.25, 63.5, 64.5, 1000.5])
    model = RelayModel.uniform(16, 4, 0.5)
    found = Shape(16, t).log_influence(0.5, 4, 0, 0)[:, 0]
    np.testing.assert_allclose(found, np.log(influence(model, t)), atol=1e-8)
    recent = RelayModel.uniform(16, 4, 0.5, recency=0.7)  # between the first tokens it is a power of t
    found = Shape(16, t).log_influence(0.5, 4, 0, 0, 0.7)[:, 0]
    np.testing.assert_allclose(found[2:], np.log(influence(recent, t[2:])), atol=1e-7)
    np.testing.assert_allclose(found[:2], np.log(influence(recent, t[:2])), atol=2e-2)
