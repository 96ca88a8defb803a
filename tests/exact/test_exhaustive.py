"""Differential runs of nightly size: float, ball, Fraction and simulation on random models; nothing may differ.

    python -m pytest tests/exact/test_exhaustive.py -m exhaustive

takes some ten minutes.  RELAYMODEL_SEED chooses other models, RELAYMODEL_CASES their number.
"""

import os
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from relaymodel import (
    Head,
    Layer,
    RelayModel,
    influence,
    influence_ball,
    influence_fraction,
    local_exponent,
    token_influence,
)
from relaymodel.exact import PrecisionError, local_exponent_ball, token_influence_ball
from relaymodel.exact.spectrum import poles
from relaymodel.simulation import stream

CASES = int(os.environ.get("RELAYMODEL_CASES", "100000"))
TINY = float(np.finfo(float).tiny)

pytestmark = pytest.mark.exhaustive


def random_model(rng):
    """Any model of the promised domain, its corners drawn often."""
    depth = int(
        rng.choice([1, 2, 3, 4, 6, 8, 12, 16, 32, 64], p=[0.1, 0.15, 0.15, 0.15, 0.15, 0.1, 0.1, 0.05, 0.03, 0.02])
    )
    prompt = int(np.exp(rng.uniform(0, np.log(1e9))))
    kind = rng.choice(["equal", "uneven", "signed", "idle", "extreme"])
    relay = {
        "equal": np.full(depth, rng.uniform(0.01, 2)),
        "uneven": rng.uniform(0, 3, depth),
        "signed": rng.uniform(-3, 3, depth),
        "idle": rng.choice([0.0, 0.7, 1.5], depth),
        "extreme": rng.choice([1e-3, 1.0, 8.0], depth),
    }[kind]
    residual = rng.choice([0.0, 1.0, -1.0 if kind == "signed" else 0.5, rng.uniform(0, 2)], depth)
    where = rng.choice(["zero", "common", "mixed", "clustered", "edge"], p=[0.35, 0.25, 0.2, 0.1, 0.1])
    centre = rng.choice([rng.uniform(-0.99, 4), -0.999, -0.5, 1.0, 4.0])
    position = {
        "zero": np.zeros(depth),
        "common": np.full(depth, centre),
        "mixed": rng.uniform(-0.95, 4, depth),
        "clustered": centre + 1e-12 * rng.integers(0, 5, depth),
        "edge": np.full(depth, -1 + 10.0 ** -rng.integers(1, 10)),
    }[where]
    return RelayModel(prompt, [Layer(*map(float, row)) for row in zip(relay, residual, position, strict=True)])


def random_heads(rng):
    """Any model of several heads, recencies and sinks, its corners drawn often; and a t.

    Balls take seconds where t is far below P and not a small integer: deep models are not drawn there.
    """
    slow = rng.random() < 0.06
    depth = int(rng.choice([1, 2, 3, 4] if slow else [1, 2, 3, 4, 6, 8, 12, 64], p=None if slow else DEPTHS))
    prompt = int(np.exp(rng.uniform(0, np.log(1e9))))
    kind = rng.choice(["equal", "positive", "signed", "extreme"], p=[0.3, 0.4, 0.2, 0.1])
    where = rng.choice(["zero", "common", "mixed", "clustered", "edge"], p=[0.4, 0.2, 0.2, 0.1, 0.1])
    how = rng.choice(["common", "mixed", "edge", "clustered"], p=[0.35, 0.35, 0.15, 0.15])
    centre, recent = rng.choice([rng.uniform(-0.99, 4), -0.5, 1.0]), rng.choice([rng.uniform(-4, 0.99), 0.7, -1.0])

    def head(relay):
        position = {
            "zero": 0.0,
            "common": centre,
            "mixed": rng.uniform(-0.95, 4),
            "clustered": centre + 1e-12 * rng.integers(0, 4),
            "edge": -1 + 10.0 ** -rng.integers(1, 9),
        }[where]
        recency = {
            "common": recent,
            "mixed": rng.uniform(-4, 0.99),
            "edge": rng.choice([1e-12, -1e-12, 1 - 1e-9, 0.999, -4, 0, 1 - 1e-12]),
            "clustered": recent + 1e-12 * rng.integers(0, 4),
        }[how]
        return Head(float(relay), float(position), float(recency))

    def layer():
        count = 1 if kind == "equal" else int(rng.integers(1, 4))
        relay = {
            "equal": np.full(count, 0.5),
            "positive": rng.uniform(0, 2, count),
            "signed": rng.uniform(-2, 2, count),
            "extreme": rng.choice([1e-3, 1.0, 8.0], count),
        }[kind]
        residual = float(rng.choice([0.0, 1.0, rng.uniform(0, 2), -1.0 if kind == "signed" else 0.5]))
        sink = float(rng.choice([0.0, 0.0, 0.0, 0.2, -0.3 if kind == "signed" else 1e-6]))
        return Layer(heads=[head(x) for x in relay], residual=residual, sink=sink)

    first = layer()
    model = RelayModel(prompt, [first] * depth if kind == "equal" else [layer() for _ in range(depth)])
    if slow:
        return model, float(np.exp(rng.uniform(0, np.log(1e9))))
    if rng.random() < 0.5:
        return model, float(rng.integers(1, 40))
    return model, float(np.exp(rng.uniform(np.log(4 * prompt + 20), np.log(1e300))))


DEPTHS = [0.15, 0.2, 0.2, 0.15, 0.12, 0.1, 0.07, 0.01]


def check(value, exact, what, *, absolute=False):
    """Assert that a float is right to 1e-12, or correctly rounded where float64 has fewer digits."""
    size = abs(float(exact.mid()))
    error = float(abs(arb(value) - exact).upper())
    scale = max(1.0, size) if absolute else size
    assert error <= 1e-12 * scale or (not absolute and size < TINY and error <= 5e-324), what


def test_floats_against_balls(rng):
    for _ in range(CASES):
        model = random_model(rng)
        t = (
            float(np.exp(rng.uniform(np.log(0.01), np.log(1e300))))
            if rng.random() < 0.7
            else float(rng.integers(1, 1000))
        )
        if not poles(model):
            assert influence(model, t) == 0
            continue
        try:
            exact = influence_ball(model, t, 20)
        except PrecisionError:
            continue
        check(influence(model, t), exact, (model, t))
        if exact != 0:
            check(local_exponent(model, t), local_exponent_ball(model, t, 20), (model, t), absolute=True)


def test_tokens_against_balls(rng):
    for _ in range(CASES // 2):
        model = random_model(rng)
        n = int(np.exp(rng.uniform(0, np.log(1e15)))) + 1
        s = int(rng.choice([1, 2, n, n - 1, max(1, n // 2), rng.integers(1, n + 1)]))
        try:
            exact = token_influence_ball(model, max(s, 1), n, 20)
        except PrecisionError:
            continue
        check(token_influence(model, max(s, 1), n), exact, (model, s, n))


def test_heads_against_balls(rng):
    """Influence, local exponent (not where its ball is slow) and one weight."""
    for _ in range(CASES):
        model, t = random_heads(rng)
        try:
            exact = influence_ball(model, t, 20)
            check(influence(model, t), exact, (model, t))
            if exact != 0 and t >= 40:
                check(local_exponent(model, t), local_exponent_ball(model, t, 20), (model, t), absolute=True)
            source = int(rng.choice([1, 2, int(rng.integers(1, 10**6))]))
            target = source + int(rng.integers(0, 40) if rng.random() < 0.5 else rng.integers(4 * source, 10**12))
            exact = token_influence_ball(model, source, target, 20)
            check(token_influence(model, source, target), exact, (model, source, target))
        except PrecisionError:
            continue


def test_heads_against_the_recursion(rng):
    """Small models: Fraction, ball and float against the recursion itself."""
    for _ in range(max(1, CASES // 50)):
        model, _ = random_heads(rng)
        model = RelayModel(int(rng.integers(1, 8)), model.layers[: int(rng.integers(1, 4))])
        t = int(rng.integers(1, 7))
        exact = model.differences(model.prompt + t)[-1]
        assert influence_fraction(model, t) == exact, (model, t)
        assert abs(Fraction(influence(model, t)) - exact) <= Fraction(1, 10**12) * abs(exact), (model, t)


def test_arrays_against_scalars(rng):
    """A value must not depend on its neighbours in the array."""
    for _ in range(max(1, CASES // 2000)):
        model = random_model(rng)
        if model.depth > 12 or not poles(model):
            continue
        t = np.exp(rng.uniform(np.log(0.01), np.log(1e250), 50))
        together, alone = influence(model, t), np.array([influence(model, float(x)) for x in t])
        np.testing.assert_allclose(together, alone, rtol=2e-12, atol=1e-307)


def test_recursion_against_everything(rng):
    """Small models and t: Fraction, ball, float and simulation against the recursion itself."""
    for _ in range(max(1, CASES // 100)):
        model = random_model(rng)
        model = RelayModel(int(rng.integers(1, 12)), model.layers[: int(rng.integers(1, 5))])
        t = int(rng.integers(2, 25))
        exact = model.differences(model.prompt + t)[-1]
        assert influence_fraction(model, t) == exact, (model, t)
        value = influence(model, t)
        assert abs(Fraction(value) - exact) <= Fraction(1, 10**12) * abs(exact), (model, t)
        bound = RelayModel(model.prompt, [Layer(abs(l.relay), abs(l.residual), l.position) for l in model.layers])
        simulated = dict(stream(model, t, samples=[1, t]))[t]
        assert abs(simulated - float(exact)) <= 1e-13 * float(bound.saturation), (model, t)
