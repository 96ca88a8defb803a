"""The influence under a bias, at any t: against fractions, simulations and the exact influence."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from relaymodel import PromptBias, RelayModel, influence, simulate
from relaymodel.control import (
    bias_limit,
    biased_influence,
)
from relaymodel.simulation import (
    ConstantShare,
    plain_softmax,
)
from tests.control.cases import SIX, STACKS, UNEQUAL, uniform
from tests.strategies import models, signed_strengths

BIASES = [PromptBias(0), PromptBias(0.5), PromptBias(1, -2), PromptBias(1.3, 0.7), PromptBias(2), PromptBias(-0.5)]


signed = models(relay=signed_strengths, residual=signed_strengths, position=st.just(Fraction(0)))


def recursion(model, share, steps, source=lambda t: 0):
    """The recursion of THEORY section 7 in exact fractions: D(1..steps) for shares s_t."""
    X, x = Fraction(1), [Fraction(source(t)) for t in range(1, steps + 1)]
    for relay, residual, _ in model.rational:
        means = [total / t for t, total in enumerate(itertools.accumulate(x), start=1)]
        x = [
            residual * old + relay * (share(t) * X + (1 - share(t)) * mean)
            for t, (old, mean) in enumerate(zip(x, means, strict=True), start=1)
        ]
        X *= relay + residual
    return x


def test_plain_gap_makes_the_prompt_longer():
    t = [1, 10, 1000, 10**6, 1e100]
    double = RelayModel.uniform(prompt=128, depth=6, relay=Fraction(1, 2))
    scale = np.array(1.0)
    np.testing.assert_allclose(biased_influence(SIX, plain_softmax(math.log(2)), t), scale * influence(double, t), 1e-9)
    limit = bias_limit(SIX, plain_softmax(math.log(2)))
    assert (limit.exponent, limit.log_power) == (1, 5)
    assert limit.amplitude == pytest.approx(128 / 2**6 / math.factorial(5))


@given(signed, st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50))
def test_constant_share_stands_at_the_plateau_from_the_first_token(model, share):
    """As an equation between fractions, for strengths of any sign."""
    assume(any(layer.relay for layer in model.layers))
    limit = bias_limit(model, ConstantShare(share))
    assert limit.phase == "plateau"
    assert recursion(model, lambda t: share, 12) == [limit.limit] * 12


@given(uniform, st.integers(0, 2))
def test_biased_influence_is_the_exact_recursion(model, strength):
    exact = recursion(model, lambda t: v(t) / (v(t) + t), 20) if (v := _weight(model.prompt, strength)) else []
    value = biased_influence(model, PromptBias(strength), np.arange(1, 21))
    np.testing.assert_allclose(value, np.array([float(x) for x in exact]), rtol=1e-13)


def _weight(P, strength):
    return lambda t: P * (1 + Fraction(t, P)) ** strength


@pytest.mark.parametrize("model", STACKS, ids=["six", "unequal", "bare", "one"])
@pytest.mark.parametrize("bias", BIASES, ids=str)
def test_biased_influence_is_the_simulation_beyond_the_recursion(model, bias):
    curve = simulate(model, 300_000, bias=bias, samples=[2**14 - 1, 2**14, 2**14 + 1, 20_000, 50_000, 300_000])
    np.testing.assert_allclose(biased_influence(model, bias, curve.t), curve.distance, rtol=2e-10)


@pytest.mark.parametrize("model", [*STACKS, RelayModel.uniform(10**9, 64, 8), RelayModel.uniform(1, 3, 1e-9)])
def test_without_a_bias_it_is_the_exact_influence(model):
    t = [1, 100, 2**14, 2**14 + 1, 10**6, 1e20, 1e100]
    np.testing.assert_allclose(biased_influence(model, PromptBias(0), t), influence(model, t), rtol=1e-9)


def test_far_out_it_is_the_exact_influence():
    np.testing.assert_allclose(biased_influence(UNEQUAL, PromptBias(0), 1e290), influence(UNEQUAL, 1e290), rtol=1e-9)


def test_shapes():
    assert isinstance(biased_influence(SIX, PromptBias(1), 5), float)
    assert biased_influence(SIX, PromptBias(1), [[5, 3], [1, 5]]).shape == (2, 2)
    unsorted = biased_influence(SIX, PromptBias(0), [10**6, 3, 3])
    np.testing.assert_allclose(unsorted, influence(SIX, [10**6, 3, 3]), rtol=1e-9)
