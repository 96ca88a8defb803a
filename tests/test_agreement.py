"""All ways to the same number agree: recursion, Fraction, ball, float, SymPy, simulation; and the symmetries."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaymodel import (
    Layer,
    RelayModel,
    derive,
    influence,
    influence_ball,
    influence_fraction,
    simulate,
    token_influence,
)
from relaymodel.simulation import stream
from tests.strategies import models, position_exponents, signed, strengths


@settings(max_examples=15)
@given(signed, st.integers(2, 15))
def test_six_ways_to_one_number(model, t):
    recursion = model.differences(model.prompt + t)[-1]
    assert influence_fraction(model, t) == recursion
    assert Fraction(str(derive(model).evaluate(model.prompt, t))) == recursion
    if recursion == 0:
        assert influence(model, t) == 0
        return
    assert abs(float(influence_ball(model, t, 30) / recursion.numerator * recursion.denominator - 1)) < 1e-15
    assert influence(model, t) == pytest.approx(float(recursion), rel=1e-12)
    scale = float(
        RelayModel(model.prompt, [Layer(abs(l.relay), abs(l.residual), l.position) for l in model.layers]).saturation
    )
    simulated = dict(stream(model, t, samples=[1, t]))
    assert simulated[t] == pytest.approx(float(recursion), rel=1e-12, abs=1e-13 * scale)


@settings(max_examples=10)
@given(models(depth=4), st.integers(100, 3000))
def test_simulation_agrees_with_floats(model, steps):
    if any(layer.relay for layer in model.layers):
        curve = simulate(model, steps)
        np.testing.assert_allclose(curve.distance, influence(model, curve.t), rtol=1e-11)


@pytest.mark.slow
@given(signed, st.integers(1, 50), st.randoms(use_true_random=False))
def test_the_order_of_layers_does_not_matter(model, t, random):
    shuffled = list(model.layers)
    random.shuffle(shuffled)
    other = RelayModel(model.prompt, shuffled)
    assert influence_fraction(other, t) == influence_fraction(model, t)
    assert influence(other, t) == influence(model, t)


@given(signed, strengths, st.integers(1, 50))
def test_scaling_one_layer_scales_the_influence(model, factor, t):
    first, *rest = model.layers
    scaled = RelayModel(model.prompt, [Layer(factor * first.relay, factor * first.residual, first.position), *rest])
    assert influence_fraction(scaled, t) == factor * influence_fraction(model, t)


@given(models(prompt=8), st.integers(1, 30))
def test_linearity_in_the_prompt(model, t):
    """D is the sum over the prompt's tokens of their weights: K(n, p) - K(n, p-1) is the weight of token p."""
    N = model.prompt + t
    weights = token_influence(model, np.arange(1, model.prompt + 1), N)
    assert weights.sum() == pytest.approx(float(influence_fraction(model, t)), rel=1e-11, abs=0)


@given(models(), position_exponents, st.integers(1, 40))
def test_layers_that_do_not_relay_only_scale(model, g, t):
    idle = RelayModel(model.prompt, [*model.layers, Layer(0, Fraction(3, 2), g)])
    assert influence(idle, t) == pytest.approx(1.5 * influence(model, t), rel=1e-12, abs=0)


@given(models(prompt=5), st.integers(1, 20))
def test_weights_on_a_position_sum_to_the_saturation(model, n):
    """A stack of averages maps constants to constants: f(1) is the eigenvalue of the constant sequence."""
    assert token_influence(model, np.arange(1, n + 1), n).sum() == pytest.approx(float(model.saturation), rel=1e-11)
