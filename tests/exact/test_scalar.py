"""Single values in plain Python: as exact as arrays, by their own account of what they cannot promise."""

from fractions import Fraction

import numpy as np
import pytest

from relaymodel import Layer, RelayModel, influence, influence_ball
from relaymodel.exact import scalar


def random_model(rng):
    depth, g = int(rng.integers(1, 65)), rng.choice([0, 0, Fraction(1, 3), -0.7, 3.9])
    signs = rng.choice([1, 1, 1, -1], depth)
    layers = [Layer(float(s * rng.uniform(0.01, 8)), float(rng.uniform(0, 2)), g) for s in signs]
    if rng.random() < 0.5:
        layers = [layers[0]] * depth
    return RelayModel(int(10 ** rng.uniform(0, 9)), layers)


@pytest.mark.parametrize("count", [120, pytest.param(3000, marks=pytest.mark.exhaustive)])
def test_right_to_1e_12_where_it_does_not_decline(count, rng):
    served = 0
    for _ in range(count):
        model, t = random_model(rng), float(10 ** rng.uniform(-2, rng.choice([4, 40, 300])))
        value = scalar.influence(model, t)
        if value is not None:
            ball = influence_ball(model, t, 20)
            assert abs(value / float(ball.mid()) - 1) < 1e-12, (model, t)
            served += 1
    assert served > count / 2


def test_it_declines_what_cancels_and_what_is_near():
    cancelling = RelayModel.uniform(64, 24, -1.7)
    assert scalar.influence(cancelling, 1e4) is None
    assert scalar.influence(RelayModel.uniform(1, 12, 1), 1.0) is None
    assert scalar.influence(RelayModel.uniform(64, 12, 1), 1.0) is not None
    for t in (1, 1e4):
        for model in (cancelling, RelayModel.uniform(1, 12, 1)):
            assert influence(model, t) == pytest.approx(float(influence_ball(model, t, 20).mid()), rel=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        RelayModel.uniform(64, 2, 1, recency=0.5),
        RelayModel.uniform(64, 2, 1, sink=0.5),
        RelayModel(64, [Layer(1), Layer(1, position=1)]),
        RelayModel(64, [Layer(1), Layer(0)]),
        RelayModel.uniform(64, 65, 1),
        RelayModel.uniform(10**9 + 1, 2, 1),
        RelayModel.uniform(64, 2, 10**400),
        RelayModel.uniform(64, 2, 1, residual=1e200),
    ],
)
def test_it_leaves_other_models_to_others(model):
    assert scalar.influence(model, 1000.0) is None


def test_a_model_in_the_place_of_another_is_told_apart():
    """Models are known by identity, and an identity may return once its model is gone."""
    values = [influence(RelayModel.uniform(64, 4, 1 / n), 1e3) for n in range(1, 600)]
    arrays = [influence(RelayModel.uniform(64, 4, 1 / n), [1e3])[0] for n in range(1, 600)]
    np.testing.assert_allclose(values, arrays, rtol=1e-14)
    assert len(scalar._points) <= scalar.MOST_KEPT


@pytest.mark.parametrize("t", [0, -1, float("nan"), float("inf"), True, "1"])
def test_unusable_t_is_refused_as_before(t):
    with pytest.raises((TypeError, ValueError), match="t must be"):
        influence(RelayModel.uniform(64, 2, 1), t)
