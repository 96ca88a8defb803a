"""The prompt-key bias is softmax attention with heavier prompt keys."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Simulation, simulate, stream
from tests.simulation.cases import TINY, assert_close, every, models, sizes


def biased_recursion(model, weights, sources=()):
    """Softmax attention with weight v_t on prompt keys and 1 on the others, summed key by key, exactly."""
    P, T = model.prompt, len(weights)
    x = [Fraction(1)] * P + [Fraction(int(t in sources)) for t in range(1, T + 1)]
    for relay, residual, _ in model.rational:
        means = [x[0]] * P
        for t, v in enumerate(weights, start=1):
            means.append((v * sum(x[:P]) + sum(x[P : P + t])) / (P * v + t))
        x = [residual * value + relay * mean for value, mean in zip(x, means, strict=True)]
    return x[P:]


@given(models(depth=3, position=st.just(0)), st.lists(st.integers(-4, 6), min_size=1, max_size=30), TINY, st.booleans())
def test_bias_is_softmax_attention_with_heavier_prompt_keys(model, powers, layout, with_reminders):
    weights = [Fraction(2) ** k for k in powers]
    sources = {2, 3, 7, 8, 9} if with_reminders else set()
    extras = {"reminders": [(2, 3), (7, 9)]} if with_reminders else {}
    table = np.array(powers) * math.log(2)
    simulation = Simulation(model, bias=lambda t: table[t.astype(int) - 1], layout=layout, **extras)
    _, D = simulation.advance(len(powers), samples=every(len(powers)))
    assert_close(D, biased_recursion(model, weights, sources), biased_recursion(sizes(model), weights, sources))


def test_no_bias_is_bias_zero():
    model = RelayModel.uniform(prompt=16, depth=4, relay=0.5)
    plain, biased = simulate(model, 10**5), simulate(model, 10**5, bias=np.zeros_like)
    assert biased.distance == pytest.approx(plain.distance, rel=1e-14)


@pytest.mark.parametrize("c", [0.25, 0.5])
def test_a_constant_share_ends_on_the_plateau_of_theory(c):
    model = RelayModel.uniform(prompt=16, depth=3, relay=0.5)

    class ConstantShare:
        def log_bias(self, t, prompt):
            return math.log(c / (1 - c)) + np.log(t / prompt)

    curve = simulate(model, 10**6, bias=ConstantShare(), samples=[10**5, 10**6])
    assert curve.distance[-1] == pytest.approx(1.5**3 - (1 + 0.5 * (1 - c)) ** 3, rel=1e-12)


def test_extreme_biases_give_the_limits():
    model = RelayModel(16, [Layer(0.5), Layer(2), Layer(1)])
    all_prompt = simulate(model, 1000, bias=lambda t: np.full_like(t, 1e4))
    # the share is 1: every layer adds its relay times the value on the prompt, 0.5 + 2 * 1.5 + 1 * 4.5
    assert all_prompt.distance == pytest.approx(8.0, rel=1e-15)
    found = list(stream(model, 1000, bias=lambda t: np.full_like(t, -1e4)))
    assert all(D == 0 for _, D in found)
    # a prompt that fades out of sight leaves what the continuation has taken up; here, a bias of log 1 up to t = 1
    fading = simulate(RelayModel.uniform(prompt=1, depth=2, relay=1), 2000, bias=lambda t: 1 - t)
    assert 0 < fading.distance[-1] < fading.distance[0]
