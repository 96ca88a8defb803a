"""Signs, roundings and refusals of the limits under a bias that a look at the large picture does not show."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit

from relaymodel import Layer, PromptBias, RelayModel
from relaymodel.control import bias_limit, biased_influence, turning_point
from tests.control.cases import SIX, every

TWO = RelayModel.uniform(64, 2, 1)


def test_a_reversal_comes_up_to_its_limit():
    limit = bias_limit(SIX, PromptBias(1.5))
    assert (limit.exponent, limit.log_power, limit.rate) == (0, 0, Fraction(1, 2))
    assert limit.amplitude < 0
    D = biased_influence(SIX, PromptBias(1.5), 1e14)
    assert limit.limit > D
    assert float(limit.limit) - limit.leading(1e14) == pytest.approx(float(limit.limit) - D, rel=1e-5)


def test_a_plateau_has_the_exponent_0():
    limit = bias_limit(SIX, PromptBias(1))
    assert (limit.phase, limit.exponent, limit.rate, limit.log_power) == ("plateau", 0, 1, 5)


def test_what_is_shown_has_the_sign_of_the_amplitude():
    huge = RelayModel.uniform(10**9, 64, 8)
    for bias, sign in ((PromptBias(40, -700), "-1e"), (PromptBias(Fraction(1, 10**6)), "1e")):
        shown = bias_limit(huge, bias)._repr_html_()
        row = shown[shown.index("distance from the limit") :]
        assert row[: row.index("/ t^")].split(">")[-1].startswith(sign)


def test_late_turns_state_an_error_in_proportion():
    found = turning_point(RelayModel.uniform(10**9, 2, 1), PromptBias(1.0001))
    assert found.t > 1e13
    assert 1e-11 < found.error / found.t < 1e-7


def test_a_turn_between_tokens_is_next_to_the_least_token():
    bias = PromptBias(1 + Fraction(1, 500))
    found = turning_point(TWO, bias)
    least = 1 + int(np.argmin(every(TWO, 100_000, bias=bias)))
    assert 2**14 < least < 90_000
    assert abs(found.t - least) <= 0.51


@pytest.mark.parametrize("height", [-45.0, 0.0, 33.0])
def test_the_least_of_a_searched_turn_is_not_lost_to_rounding(height):
    """Where D is all but 0, or all but what it can be at most, one of D and its gap is flat in float64, not both."""
    t = np.arange(1.0, 6001)

    def bias(at):
        return height + (np.log(at) - math.log(20)) ** 2 / 10

    odds = bias(t) + np.log(64 / t)
    found = turning_point(RelayModel(64, [Layer(2, 0)]), bias, steps=6000)
    assert found.t == t[np.argmin(odds)]
    assert found.influence == pytest.approx(2 * expit(odds.min()), rel=1e-12)


def test_values_below_the_float_range_are_refused_beside_layers_that_do_not_relay():
    for layers in ([Layer(1)], [Layer(1), Layer(0)]):
        with pytest.raises(ValueError, match="must lie within the range of float64, but at t = 1e"):
            biased_influence(RelayModel(4, layers), PromptBias(-0.5), 1e300)
