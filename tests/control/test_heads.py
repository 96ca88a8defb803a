"""A bias on heads of any kind (THEORY section 10): limits, leading terms, turns and phases against recursions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from relaymodel import Layer, PromptBias, RelayModel, Reminders, influence
from relaymodel.control import bias_limit, biased_influence, phase_diagram, reminder_limit, turning_point
from relaymodel.control.limits import density, limiting_share, moment
from relaymodel.model import Head
from relaymodel.simulation import Simulation

RECENT = RelayModel(8, [Layer(Fraction(1, 2), recency=Fraction(7, 10))] * 3)
FAR = RelayModel(8, [Layer(1, Fraction(1, 2), recency=Fraction(-3, 2)), Layer(2, 1, recency=Fraction(1, 2))])
MIXED = RelayModel(
    6,
    [
        Layer(heads=[Head(0.5), Head(0.5, recency=0.25)]),
        Layer(0, Fraction(3, 2), recency=0.5),
        Layer(heads=[Head(1, recency=-1), Head(0.25, recency=0.75)], residual=0.5),
    ],
)
LATE = RelayModel(5, [Layer(1, position=Fraction(1, 2)), Layer(heads=[Head(0.5, 0.5, 0.5), Head(1, 1)])])
SINKS = RelayModel(6, [Layer(0.5, recency=0.5, sink=0.25), Layer(1, 0.5, recency=0.25), Layer(1, sink=1)])
MODELS = {"recent": RECENT, "far": FAR, "mixed": MIXED, "late": LATE, "sinks": SINKS}


def least(model):
    return min(Fraction(head.position) for layer in model.layers for head in layer.heads if head.relay)


@pytest.mark.parametrize(
    "head", [Head(1, 0, 0.7), Head(1, 0, -1.5), Head(1, 0.5, 0.5), Head(1, -0.5, 0.25), Head(1, 2)]
)
@pytest.mark.parametrize("part", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_moments_are_integrals_over_the_beta_distribution(head, part):
    r, g, delta = part * (1 + Fraction(head.position)), float(head.position), 1 - float(head.recency)
    with mpmath.workdps(30):
        # with u = v^k the density at 0 is smooth enough for the quadrature
        k = 1 / (1 + g - mpmath.mpf(float(r)))
        total = mpmath.quad(lambda v: k * (1 - v**k) ** (delta - 1), [0, 0.5, 1])
        assert float(moment(head, r)) == pytest.approx(float(total / mpmath.beta(1 + g, delta)), rel=1e-7)
    assert float(density(head)) == pytest.approx(float(1 / (1 + g) / mpmath.beta(1 + g, delta)), rel=1e-13)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("part", [Fraction(1, 2), Fraction(3, 4)])
def test_decay_has_its_rate_and_amplitude(name, part):
    model = MODELS[name]
    bias = PromptBias(part * (1 + least(model)), -9)
    limit = bias_limit(model, bias)
    assert limit.phase == "decay"
    assert limit.limit == model.plateau
    assert limit.rate == (1 - part) * (1 + least(model))
    assert limit.exponent == (0 if model.plateau else limit.rate)
    t = np.array([2**10, 2**14, 2**18])
    D = biased_influence(model, bias, t) - float(limit.limit)
    errors = [abs(d / (limit.leading(x) - float(limit.limit)) - 1) for d, x in zip(D, t.tolist(), strict=True)]
    # the share is small from the beginning, so that what is left out is of the order of t^-strength
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.04


@pytest.mark.parametrize("name", ["recent", "far", "mixed"])
def test_strength_zero_decays_as_without_a_bias(name):
    """At strength 0 the constant is the product of densities; with several layers the logarithms hide it for long."""
    model = RelayModel(8, MODELS[name].layers[:1]) if name != "mixed" else MIXED
    limit = bias_limit(model, PromptBias(0, 1))
    t = np.array([2**10, 2**14, 2**18])
    ratios = biased_influence(model, PromptBias(0, 1), t) / np.array([limit.leading(float(x)) for x in t])
    if limit.log_power == 0:
        assert ratios[-1] == pytest.approx(1, abs=1e-3)
    else:  # the error falls as 1/log t
        errors = (ratios - 1) * np.log(t)
        assert limit.log_power == 1
        assert errors[2] == pytest.approx(errors[1], rel=0.02)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("offset", [0, -1])
def test_compensated_heads_hold_a_plateau(name, offset):
    model = MODELS[name]
    bias = PromptBias(1 + least(model), offset)
    limit = bias_limit(model, bias)
    assert limit.phase == "plateau"
    t = np.array([2**10, 2**14, 2**18])
    errors = np.abs(biased_influence(model, bias, t) / float(limit.limit) - 1)
    assert errors[2] < errors[1] < errors[0]
    # 1/t and logarithms, but t^-(1/2) where one head is behind
    assert errors[2] < (2e-2 if name == "late" else 1e-4)
    if name != "late":
        share = density(model.layers[0].heads[0]) * Fraction(math.exp(offset))
        assert float(limiting_share(model.prompt, model.layers[0].heads[0], bias)) == pytest.approx(
            float(share / (1 + share))
        )
    assert (limit.exponent, limit.rate, limit.log_power, limit.factor) == (0, 0, 0, None)
    with pytest.raises(ValueError, match="not derived"):
        limit.leading(100)
    with pytest.raises(ValueError, match="not derived"):
        _ = limit.amplitude
    assert "not derived" in limit._repr_html_()


@pytest.mark.parametrize("name", MODELS)
def test_reversal_returns_at_its_rate(name):
    model = MODELS[name]
    largest = max(Fraction(head.position) for layer in model.layers for head in layer.heads if head.relay)
    bias = PromptBias(1 + largest + Fraction(4, 5), 1)
    limit = bias_limit(model, bias)
    own = math.prod(Fraction(layer.residual) for layer in model.layers)
    assert (limit.phase, limit.limit, limit.rate) == ("reversal", model.saturation - own, Fraction(4, 5))
    t = np.array([2**10, 2**14, 2**18])
    gaps = float(limit.limit) - biased_influence(model, bias, t)
    errors = [abs(gap / (float(limit.limit) - limit.leading(x)) - 1) for gap, x in zip(gaps, t.tolist(), strict=True)]
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.02


def test_several_uniform_heads_are_one():
    split = RelayModel(64, [Layer(heads=[Head(Fraction(1, 4)), Head(Fraction(1, 4))])] * 6)
    one = RelayModel.uniform(64, 6, Fraction(1, 2))
    for bias in (PromptBias(0.5), PromptBias(1), PromptBias(1.5)):
        np.testing.assert_array_equal(biased_influence(split, bias, [1, 1e9]), biased_influence(one, bias, [1, 1e9]))
        a, b = bias_limit(split, bias), bias_limit(one, bias)
        assert (a.limit, a.factor, a.rate) == (b.limit, b.factor, b.rate)
    assert turning_point(split, PromptBias(1.5)).t == turning_point(one, PromptBias(1.5)).t


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("strength", "rtol"), [(-6, 1e-8), (-1, 1e-11), (0.5, 1e-11), (1, 1e-11), (3, 1e-11), (40, 1e-11)]
)
def test_the_grid_is_the_recursion_token_by_token(name, strength, rtol):
    t = np.unique(np.geomspace(1, 20_000, 40).astype(int))
    bias = PromptBias(strength, Fraction(1, 2))
    _, D = Simulation(MODELS[name], bias=bias).advance(20_000, samples=t)
    np.testing.assert_allclose(biased_influence(MODELS[name], bias, t), D, rtol=rtol)


def test_the_grid_without_a_bias_is_exact_far_away():
    t = [1, 10**6, 10**9, 2**40]
    for model in MODELS.values():
        np.testing.assert_allclose(biased_influence(model, PromptBias(0), t), influence(model, t), rtol=1e-11)
    with pytest.raises(ValueError, match=r"t must be at most 2\^40 for heads that are not uniform, got 1e\+13"):
        biased_influence(RECENT, PromptBias(1), 10**13)


@pytest.mark.parametrize("strength", [1.2, 2])
def test_the_turn_is_the_least_value(strength):
    turn = turning_point(RECENT, PromptBias(strength))
    _, D = Simulation(RECENT, bias=PromptBias(strength)).advance(20_000, samples=np.arange(1, 20_001))
    assert turn.t == np.argmin(D) + 1
    assert turn.influence == pytest.approx(D.min(), rel=1e-12)
    assert turning_point(RECENT, PromptBias(strength), steps=20_000).t == turn.t
    # near keys make the share small at first, so that the same bias raises it sooner than that of uniform heads
    assert turn.t < turning_point(RelayModel.uniform(8, 3, Fraction(1, 2)), PromptBias(strength)).t


def test_phases_over_recency():
    model, strengths, recencies = RelayModel.uniform(64, 12, Fraction(1, 5)), [0, 1, 2, 3], [0, 0.7, 0.9]
    diagram = phase_diagram(model, strengths, recencies=recencies, horizon=1000)
    assert diagram.recencies.tolist() == recencies
    for i, gamma in enumerate(recencies):
        row = RelayModel.uniform(64, 12, Fraction(1, 5), 1, 0, gamma)
        for j, strength in enumerate(strengths):
            _, D = Simulation(row, bias=PromptBias(strength)).advance(1020, samples=[980, 1020])
            slope = -math.log(D[1] / D[0]) / math.log(1020 / 980)
            assert diagram.exponents[i, j] == pytest.approx(slope, abs=2e-4)
            assert diagram.phases[i, j] == ("reversal" if slope < 0 else "plateau" if slope < 0.01 else "decay")
    assert diagram.limits.tolist() == ["decay", "plateau", "reversal", "reversal"]
    uniform = phase_diagram(model, strengths, horizon=1000)
    np.testing.assert_allclose(diagram.exponents[0], uniform.exponents[-1], atol=1e-6)
    deep = phase_diagram(RECENT, [0, 2], horizon=500)
    assert deep.exponents.shape == (3, 2)
    alone = phase_diagram(RelayModel(8, RECENT.layers[:2]), [0, 2], horizon=500)
    np.testing.assert_array_equal(deep.exponents[:2], alone.exponents)
    assert "recencies" in diagram._repr_html_()


@pytest.mark.parametrize("name", ["recent", "far", "sinks"])
def test_reminders_hold_their_part_and_sinks_theirs(name):
    model, schedule = MODELS[name], Reminders(10, 3)
    limit = reminder_limit(model, schedule)
    own = math.prod(Fraction(layer.residual) for layer in model.layers)
    assert limit.between == Fraction(3, 10) * (model.eigenvalue(1) - own) + model.plateau
    errors = []
    for steps in (10**3, 10**4, 10**5):  # averaged over a period: near keys see the pattern for long
        t = np.arange(steps - 9, steps + 1)
        _, D = Simulation(model, reminders=schedule).advance(steps, samples=t)
        inside = np.isin(t % 10, [8, 9, 0])
        mean = 0.7 * D[~inside].mean() + 0.3 * (D[inside].mean() - float(own))
        errors.append(abs(mean / float(limit.between) - 1))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.02
