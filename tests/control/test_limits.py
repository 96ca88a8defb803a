"""Limits under a bias, how they are approached, and the time at which D turns."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, PromptBias, RelayModel, simulate
from relaymodel.bounds import rate
from relaymodel.control import (
    bias_limit,
    biased_influence,
    turning_point,
)
from tests.control.cases import BARE, ONE, SIX, STACKS, UNEQUAL, every, uniform


@pytest.mark.parametrize("model", STACKS, ids=["six", "unequal", "bare", "one"])
@pytest.mark.parametrize("bias", [PromptBias(Fraction(1, 3)), PromptBias(0.5, 1.5), PromptBias(0.8, -1)], ids=str)
def test_decay_is_a_power_with_the_amplitude(model, bias):
    limit = bias_limit(model, bias)
    assert limit.phase == "decay"
    assert limit.exponent == limit.rate == 1 - Fraction(bias.strength)
    values = biased_influence(model, bias, [1e100, 1e101])
    assert values[0] / limit.leading(1e100) == pytest.approx(1, abs=1e-9)
    assert limit.amplitude * 1e100 ** -float(limit.rate) == pytest.approx(limit.leading(1e100), rel=1e-12)
    assert math.log10(values[0] / values[1]) == pytest.approx(1 - float(bias.strength), abs=1e-9)


@pytest.mark.parametrize("model", [SIX, BARE, RelayModel(3, [Layer(2, 3), Layer(0, 5), Layer(1, 0)])])
def test_strength_zero_is_the_plain_decay(model):
    limit, leading = bias_limit(model, PromptBias(0)), rate(model)
    assert (limit.rate, limit.log_power) == (leading.exponent, leading.log_power)
    assert limit.leading(1e50) == pytest.approx(float(leading.ball(10**50, 20)), rel=1e-12)


@pytest.mark.parametrize("model", STACKS, ids=["six", "unequal", "bare", "one"])
@pytest.mark.parametrize("offset", [0, -3, 2])
def test_strength_one_reaches_the_plateau_from_above(model, offset):
    limit = bias_limit(model, PromptBias(1, offset))
    assert limit.phase == "plateau"
    assert biased_influence(model, PromptBias(1, offset), 1e60) == pytest.approx(float(limit.limit), rel=1e-9)
    share = 1 / (1 + math.exp(-offset))
    gap = math.prod(float(residual) + float(relay) * (1 - share) for relay, residual, _ in model.rational)
    assert float(limit.limit) == pytest.approx(float(model.saturation) - gap, rel=1e-12)
    assert limit.factor > 0


def test_approach_to_the_plateau_has_its_amplitude():
    """One layer: (D - limit) t; two: that grows by amplitude log 10 with every decade."""
    for model, power in ((ONE, 0), (RelayModel(64, [Layer(2, 3), Layer(1, 2)]), 1)):
        limit = bias_limit(model, PromptBias(1))
        scaled = [
            t * (simulate(model, t, bias=PromptBias(1), samples=1).distance[-1] - limit.limit) for t in (10**4, 10**5)
        ]
        found = scaled[1] if power == 0 else (scaled[1] - scaled[0]) / math.log(10)
        assert limit.log_power == power
        # what is left out is smaller by P log t / t at t = 1e4
        assert found == pytest.approx(limit.amplitude, rel=0.1 if power else 0.01)


@pytest.mark.parametrize("model", STACKS, ids=["six", "unequal", "bare", "one"])
def test_reversal_returns_to_all_but_the_own_residual(model):
    bias = PromptBias(1.3, 0.5)
    limit = bias_limit(model, bias)
    own = math.prod(residual for _, residual, _ in model.rational)
    assert limit.phase == "reversal"
    assert limit.limit == model.saturation - own
    assert biased_influence(model, bias, 1e100) == pytest.approx(float(limit.limit), rel=1e-9)
    if limit.factor == 0:
        return  # without residual connections the return is faster
    gaps = [float(limit.limit) - biased_influence(model, bias, t) for t in (1e6, 1e10)]
    errors = [abs(gap / (-limit.amplitude * t**-0.3) - 1) for gap, t in zip(gaps, (1e6, 1e10), strict=True)]
    assert errors[1] < 0.2 * errors[0] + 1e-6  # the next term is smaller by t^-0.3: 0.063 over four decades


@given(uniform, st.floats(0, 1), st.floats(-3, 3))
def test_up_to_strength_one_the_influence_never_rises(model, strength, offset):
    D = every(model, 300, bias=PromptBias(strength, offset))
    assert np.all(np.diff(D) <= 1e-14 * D[:-1])


def test_one_layer_turns_in_closed_form():
    model = RelayModel(64, [Layer(0, 2), Layer(3, 1), Layer(0, 1)])
    turn = turning_point(model, PromptBias(1.25, -1))
    D = every(model, 2000, bias=PromptBias(1.25, -1))
    assert (turn.t, turn.method) == (256, "closed form")
    assert np.argmin(D) + 1 == 256
    assert turn.influence == pytest.approx(D.min(), rel=1e-13)


@pytest.mark.parametrize("model", [SIX, UNEQUAL, BARE, RelayModel.uniform(1, 3, 1), RelayModel.uniform(300, 20, 1)])
@pytest.mark.parametrize("strength", [1.2, 1.5, 3, 50])
def test_turn_is_the_least_value_of_a_simulation(model, strength):
    turn = turning_point(model, PromptBias(strength))
    steps = int(4 * turn.t) + 100
    D = every(model, steps, bias=PromptBias(strength))
    assert turn.influence == pytest.approx(D.min(), rel=1e-9)
    assert turn.t >= turn.earliest - 1
    gap = float(model.saturation) - D.min()
    if gap > 1e-9 * D.min():  # otherwise the simulation cannot tell where it is least
        flat = math.sqrt(1e-13 * D.min() / gap) * turn.t  # rounding, where D is flat
        assert abs(np.argmin(D) + 1 - turn.t) <= max(turn.error, flat) + 0.5
    searched = turning_point(model, PromptBias(strength), steps=steps)
    assert abs(searched.t - turn.t) <= turn.error + 0.5
    assert searched.earliest == turn.earliest


def test_late_turns_scale_with_the_prompt():
    """For a long prompt the turn is proportional to it."""
    short = turning_point(RelayModel.uniform(4000, 6, 1), PromptBias(1.5))
    long = turning_point(RelayModel.uniform(4 * 10**8, 6, 1), PromptBias(1.5))
    assert short.error == 0
    assert long.error > 0
    assert long.t / 1e5 == pytest.approx(short.t, abs=2)
    assert abs(long.influence - short.influence) < 1e-3


def test_turn_under_a_function_of_t():
    def bump(t):
        return np.where(t < 100, 0.0, 3 * np.log(t / 100))

    turn = turning_point(SIX, bump, steps=5000)
    D = every(SIX, 5000, bias=bump)
    assert turn.t == np.argmin(D) + 1
    assert turn.influence == pytest.approx(D.min(), rel=1e-13)
    with pytest.raises(ValueError, match="steps must reach beyond the turn"):
        turning_point(SIX, lambda t: 0.0 * t, steps=100)


@pytest.mark.parametrize("prompt", [1, 10**9])
@pytest.mark.parametrize("strength", [0, 1e-6, 1, 1 + 1e-9, 50])
@pytest.mark.parametrize(
    "layers", [[Layer(1)] * 6, [Layer(1), Layer(1e-12), Layer(0, 1), Layer(1, 0)]], ids=["plain", "mixed"]
)
def test_extremes(prompt, strength, layers):
    model, bias = RelayModel(prompt, layers), PromptBias(strength)
    D = biased_influence(model, bias, [1, 1000, 1e9, 1e60])
    assert np.all(np.isfinite(D))
    assert np.all(D >= 0)
    limit = bias_limit(model, bias)
    assert limit.phase == ("decay" if strength < 1 else "plateau" if strength == 1 else "reversal")
    assert limit.leading(1e300) >= 0
    assert "phase" in limit._repr_html_()
    if strength > 1:
        turn = turning_point(model, bias)
        assert turn.t >= turn.earliest - 1
        assert turn.influence <= D[0] * (1 + 1e-12)
    else:
        assert np.all(np.diff(D) <= 1e-9 * D[:-1])


def test_extremes_of_depth():
    """The gap X - D is below 1e-307 at first, and what rounding does to it must not pass for a turn."""
    model = RelayModel.uniform(prompt=10**9, depth=64, relay=1, residual=0)
    turn = turning_point(model, PromptBias(50))
    assert turn.t > turn.earliest == pytest.approx(10**9 / 49)
    assert abs(turn.influence - 1) < 1e-14  # 1 but for 1e-100 or so


@pytest.mark.parametrize("model", [SIX, ONE.with_prompt(1), RelayModel.uniform(100, 20, 1, Fraction(1, 3))])
@pytest.mark.parametrize("excess", [1e-6, 1e-3])
def test_a_turn_is_found_where_the_influence_is_flat_to_rounding(model, excess):
    """With a share of 1 - 1e-13 only what one layer lets through counts: the closed form, though D hardly moves."""
    turn = turning_point(model, PromptBias(1 + excess, 30))
    assert turn.t == pytest.approx(turn.earliest, rel=1e-5, abs=1)
    assert turn.t >= turn.earliest * (1 - 1e-6) - 1


def test_amplitudes_beyond_the_float_range():
    limit = bias_limit(RelayModel.uniform(64, 64, 1), PromptBias(Fraction(1, 10**6)))
    with pytest.raises(OverflowError, match="about 1e38"):
        _ = limit.amplitude
    assert limit.leading(1e300) > 0
