"""Plans hold their level with the least number of reminder tokens."""

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import relaymodel as rm
from relaymodel import RelayModel, Reminders, influence
from relaymodel.control import (
    plan_reminders,
    reminder_influence,
)
from tests.control.cases import SIX, every, uniform
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


@given(uniform, st.fractions(min_value=Fraction(1, 60), max_value=Fraction(59, 60), max_denominator=60))
def test_a_plan_for_ever_holds_its_floor(model, part):
    gain = model.saturation - math.prod(residual for _, residual, _ in model.rational)
    assume(gain > 0)
    plan = plan_reminders(model, part * gain)
    D = every(model, 2000, reminders=plan.reminders)
    assert plan.floor >= float(part * gain) * (1 - 1e-15)
    assert D.min() >= plan.floor * (1 - 1e-12)
    assert plan.at_least == part <= plan.tokens == plan.reminders.density
    d, first = plan.tokens, plan.reminders.first
    assert d == 1 or model.prompt * (1 - d) - d * (first - 1) >= d  # what the proof asks for
    if part.numerator <= min(model.prompt, 64) and part <= Fraction(model.prompt, model.prompt + 1):
        assert plan.optimal


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
