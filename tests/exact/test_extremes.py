"""Models far beyond the promised domain: the right value, or an error that says why not."""

from fractions import Fraction

import pytest

from relaymodel import Layer, RelayModel, influence, influence_ball, local_exponent, simulate, sweep, token_influence
from relaymodel.exact import influence_fraction


@pytest.mark.parametrize("power", [3, 17, 30, 80, 150])
def test_huge_positions(power):
    model = RelayModel.uniform(3, 2, 1, position=10**power)
    exact = influence_fraction(model, 1)
    assert influence(model, 1) == pytest.approx(float(exact), rel=1e-12)
    assert sweep(t=1, prompt=3, depth=2, position=10**power, quantities=["influence"]).influence == influence(model, 1)
    # one step on, a head reads only the position before: x' = x + x and a weight of about P / g for the last
    assert float(exact * 10**power) == pytest.approx(12, rel=0.01)


def test_positions_beyond_float64():
    model = RelayModel.uniform(3, 2, 1, position=10**400)
    ball = influence_ball(model, 1, digits=20)
    assert ball.str(5, radius=False) == "1.2000e-399"
    assert influence(model, 1) == 0
    assert local_exponent(model, 1) > 100


@pytest.mark.parametrize("sink", [1, 1e17, 0])
def test_subnormal_strengths(sink):
    model = RelayModel(20, [Layer(5e-324, 5e-324, 0, -1, sink), Layer(2, 3)])
    n = 27
    first = 5e-324 + 5e-324 + sink  # of a prompt token; of the others what the sink keeps
    assert token_influence(model, 1, n) >= 0
    kept = 3 * sink + 2 * (20 * first + 7 * sink) / n
    assert influence(model, 7) == pytest.approx(float(kept), rel=1e-12, abs=1e-320)


def test_what_lies_beyond_float64_is_said():
    for model in (RelayModel.uniform(8, 2, 1, sink=10**300), RelayModel.uniform(8, 1, 0, sink=10**400)):
        with pytest.raises(OverflowError, match="lies beyond the float range; influence_ball returns it"):
            influence(model, 3)
        with pytest.raises(OverflowError, match="lies beyond the float range; influence_ball returns it"):
            token_influence(model, 1, 3)
    assert influence(RelayModel.uniform(8, 1, 1, sink=10**300), 3) == 1e300
    with pytest.raises(OverflowError, match="lies beyond the float range"):
        sweep(t=3, depth=2, relay=10**400)


def test_grids_of_numbers_beyond_float64():
    found = sweep(t=2**70, prompt=2**65, depth=1, relay=Fraction(10**301))
    assert found.t.item() == 2**70
    assert found.influence.item() == pytest.approx(1e301 / 33, rel=1e-12)


def test_depths_beyond_the_promise_warn_of_nothing():
    """Sums in float64 are of no use for a guess there."""
    model = RelayModel.uniform(8, 200, 0.01, recency=0.5)
    D = float(influence_ball(model, 4, digits=15).mid())
    assert pytest.approx(simulate(model, 4).distance[-1], rel=1e-12) == D


def test_a_strength_that_underflows_beside_another():
    """1e-300 in units of 1e17 is subnormal; to first order both layers pass it on once, times 1e17."""
    layer = Layer(1e-300, 1e17, recency=-3.5)
    weight = token_influence(RelayModel(2, [Layer(1, 0, recency=-3.5)]), [1, 2], 9).sum()
    assert influence(RelayModel(2, [layer] * 2), 7) == pytest.approx(2 * 1e17 * 1e-300 * weight, rel=1e-12)
