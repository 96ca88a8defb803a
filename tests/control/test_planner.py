"""Plans hold their level with the least number of reminder tokens."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import relaymodel as rm
from relaymodel import Layer, RelayModel, Reminders, influence, influence_fraction
from relaymodel.control import (
    plan_reminders,
    reminder_influence,
)
from tests.control.cases import SIX, STACKS, every, uniform
from tests.strategies import models


@given(
    models(depth=3, prompt=3, position=st.just(Fraction(0))),
    st.integers(2, 9),
    st.fractions(min_value=Fraction(1, 20), max_value=1, max_denominator=20),
)
def test_no_plan_for_a_horizon_has_fewer_tokens(model, horizon, part):
    """Every set of reminder tokens is tried out."""
    assume(model.saturation > 0 and any(layer.relay for layer in model.layers))
    level = part * model.saturation
    plan = plan_reminders(model, level, horizon)
    t = np.arange(1, horizon + 1)
    weights = np.array([rm.token_influence(model, model.prompt + s, model.prompt + t) for s in t])
    alone, need = influence(model, t), float(level) * (1 - 1e-9)
    sizes = (
        size
        for size in range(horizon + 1)
        if any(
            np.all(alone + weights[list(s)].sum(axis=0) >= need) for s in itertools.combinations(range(horizon), size)
        )
    )
    assert next(sizes) == plan.tokens == plan.at_least
    D = alone if plan.reminders is None else reminder_influence(model, plan.reminders, t)
    assert np.all(need <= D)
    assert plan.floor <= D.min() * (1 + 1e-9)


@given(uniform, st.fractions(min_value=Fraction(1, 60), max_value=Fraction(59, 60), max_denominator=997))
def test_a_plan_for_ever_holds_every_level_exactly(model, part):
    """In fractions, and to t = 2000 in a simulation, at the least density that is possible."""
    gain = model.saturation - math.prod(residual for _, residual, _ in model.rational)
    assume(gain > 0)
    plan = plan_reminders(model, part * gain)
    assert plan.optimal
    assert plan.at_least == part == plan.tokens == plan.reminders.density
    P, steps = model.prompt, 60
    sources = [Fraction(1)] * P + [Fraction(0)] * steps
    for start, stop in plan.reminders.intervals(steps):
        for t in range(start, min(stop, steps) + 1):
            sources[P + t - 1] = Fraction(1)
    x = sources
    for layer in model.layers:
        x = list(layer.apply(x))
    assert min(x) >= part * gain
    assert every(model, 2000, reminders=plan.reminders).min() >= float(part * gain) * (1 - 1e-12)


def test_plans_for_ever_hold_random_levels_far_out(rng):
    """200 levels and models, to t = 20000: D/level comes close to 1, and never below."""
    least = np.inf
    for _ in range(200):
        depth, prompt = int(rng.integers(1, 7)), int(2 ** rng.uniform(0, 9))
        layers = [
            Layer(float(rng.uniform(0.05, 3)), float(rng.choice([0, 1, rng.uniform(0, 2)]))) for _ in range(depth)
        ]
        model = RelayModel(prompt, layers)
        gain = float(model.saturation) - math.prod(float(layer.residual) for layer in layers)
        level = float(rng.choice([rng.uniform(0.001, 0.999), rng.uniform(0.98, 0.9999)])) * gain
        plan = plan_reminders(model, level)
        assert plan.optimal
        D = every(model, 20_000, reminders=plan.reminders)
        least = min(least, D.min() / level)
    assert 1 <= least < 1.01


@given(
    uniform, st.fractions(min_value=Fraction(1, 60), max_value=Fraction(59, 60), max_denominator=60), st.integers(1, 9)
)
def test_reminders_of_a_length_hold_their_floor(model, part, length):
    gain = model.saturation - math.prod(residual for _, residual, _ in model.rational)
    assume(gain > 0)
    plan = plan_reminders(model, part * gain, length=length)
    D = every(model, 2000, reminders=plan.reminders)
    assert plan.floor >= float(part * gain) * (1 - 1e-15)
    assert D.min() >= plan.floor * (1 - 1e-12)
    assert plan.at_least == part <= plan.tokens == plan.reminders.density
    d, first = plan.tokens, plan.reminders.first
    assert d == 1 or model.prompt * (1 - d) - d * (first - 1) >= d  # what the proof asks for
    if d < 1:
        assert plan.reminders.length == length
        assert Fraction(length, plan.reminders.every + 1) < part


@pytest.mark.parametrize("model", [*STACKS, RelayModel.uniform(3, 5, Fraction(1, 3))])
def test_a_level_that_is_met_exactly_counts_as_held(model):
    """Rounding must not ask for a token more, nor a level just above be taken for met."""
    horizon = 40
    for k in range(1, horizon):
        level = influence_fraction(model.with_prompt(model.prompt + k), horizon - k)
        assert plan_reminders(model, level, horizon).tokens == k
        assert plan_reminders(model, level * (1 + Fraction(1, 10**30)), horizon).tokens == k + 1
        assert plan_reminders(model, level * (1 - Fraction(1, 10**30)), horizon).tokens == k


@pytest.mark.parametrize("relay", [Fraction(1, 3), Fraction(1, 7), 0.1, 0.3, Fraction(2, 3)])
@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_the_float_of_the_highest_level_stands_for_it(relay, depth):
    model = RelayModel.uniform(4, depth, relay)
    for horizon in (None, 10):
        plan = plan_reminders(model, float(model.saturation), horizon)
        assert plan.tokens == (1 if horizon is None else horizon)
        assert plan.level == model.saturation
    with pytest.raises(ValueError, match="at most f"):
        plan_reminders(model, float(np.nextafter(float(model.saturation), np.inf)))


def test_a_smaller_density_does_not_hold_the_level():
    model = RelayModel.uniform(prompt=4, depth=2, relay=1, residual=1)
    plan = plan_reminders(model, Fraction(3, 2))  # density 1/2
    assert plan.tokens == Fraction(1, 2)
    fewer = Reminders(20, 9)
    assert every(model, 20_000, reminders=fewer).min() < 1.5 <= every(model, 20_000, reminders=plan.reminders).min()


def test_high_levels_need_every_token():
    for level in (3, 3.5, 4):  # f(1) = 4, f(1) - 1 = 3
        plan = plan_reminders(RelayModel.uniform(prompt=9, depth=2, relay=1), level)
        assert plan.reminders == Reminders(1, 1)
        assert plan.tokens == plan.at_least == 1
    assert plan_reminders(SIX, 11, length=5).reminders == Reminders(1, 1)
    assert plan_reminders(SIX, 1, length=8).reminders.length == 8
    near = plan_reminders(SIX, (SIX.saturation - 1) * (1 - Fraction(1, 10**13)))
    assert (near.reminders, near.optimal) == (Reminders(1, 1), False)
