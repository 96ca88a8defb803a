"""What stops the decay: biases, their limits, reminders, plans, phases; their figures, command and report."""

import itertools
import json
import math
import shlex
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.text import Text

import relaymodel as rm
from relaymodel import Layer, PromptBias, RelayModel, Reminders, influence, plotting, simulate
from relaymodel.bounds import rate
from relaymodel.cli import main
from relaymodel.control import (
    bias_limit,
    biased_influence,
    phase_diagram,
    plan_reminders,
    reminder_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.report.claim import Workspace
from relaymodel.report.claims import control as claims
from relaymodel.simulation import (
    ConstantShare,
    LogBias,
    ReminderBlocks,
    ReminderSchedule,
    Simulation,
    plain_softmax,
    scalable_softmax,
)
from tests.strategies import models, signed_strengths

SIX = RelayModel.uniform(prompt=64, depth=6, relay=Fraction(1, 2))
UNEQUAL = RelayModel(16, [Layer(1, Fraction(1, 2)), Layer(Fraction(1, 3)), Layer(0, 2), Layer(2, Fraction(3, 4))])
BARE = RelayModel.uniform(prompt=5, depth=4, relay=1, residual=0)
ONE = RelayModel(64, [Layer(2)])
STACKS = [SIX, UNEQUAL, BARE, ONE]
BIASES = [PromptBias(0), PromptBias(0.5), PromptBias(1, -2), PromptBias(1.3, 0.7), PromptBias(2), PromptBias(-0.5)]

uniform = models(position=st.just(Fraction(0)))
signed = models(relay=signed_strengths, residual=signed_strengths, position=st.just(Fraction(0)))
blocks = st.lists(st.integers(1, 12), min_size=2, max_size=10).map(
    lambda gaps: [(int(a) + 1, int(b)) for a, b in np.cumsum([*gaps, 1])[: len(gaps) // 2 * 2].reshape(-1, 2) if b > a]
)


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


def every(model, steps, **options):
    """D at every t up to `steps`, simulated."""
    return Simulation(model, **options).advance(steps, samples=np.arange(1, steps + 1))[1]


# biases


def test_public_names_keep_the_protocols():
    assert rm.PromptBias is PromptBias
    assert rm.Reminders is Reminders
    assert isinstance(PromptBias(1), LogBias)
    assert isinstance(ConstantShare(0.5), LogBias)
    assert isinstance(Reminders(64, 8), ReminderSchedule)
    assert isinstance(ReminderBlocks(((1, 2),)), ReminderSchedule)
    curve = simulate(SIX, 1000, bias=PromptBias(1), reminders=Reminders(every=64, length=8))
    assert curve.provenance["bias"] == "PromptBias(strength=1, offset=0)"


def test_bias_is_its_formula():
    t = np.array([0.0, 1.0, 64.0, 1e6])
    np.testing.assert_allclose(PromptBias(Fraction(3, 2), 0.25).log_bias(t, 64), 0.25 + 1.5 * np.log1p(t / 64))
    share = 1 / (1 + t[1:] / (64 * np.exp(ConstantShare(0.3).log_bias(t[1:], 64))))
    np.testing.assert_allclose(share, 0.3, rtol=1e-14)


def test_scalable_softmax_is_a_strength():
    """Attention to a prompt whose logits, times s log n, are higher by the gap, written out."""
    s, gap, P, t = 0.4, 3.0, 64, 100
    logits = s * np.log(P + t) * np.concatenate([np.full(P, gap), np.zeros(t)])
    share = np.exp(logits[:P]).sum() / np.exp(logits).sum()
    bias = scalable_softmax(s, gap, P)
    v = np.exp(bias.log_bias([t], P))[0]
    assert P * v / (P * v + t) == pytest.approx(share, rel=1e-13)
    assert bias.strength == pytest.approx(1.2)
    assert bias_limit(SIX, bias).phase == "reversal"


def test_plain_gap_makes_the_prompt_longer():
    t = [1, 10, 1000, 10**6, 1e100]
    double = RelayModel.uniform(prompt=128, depth=6, relay=Fraction(1, 2))
    scale = np.array(1.0)
    np.testing.assert_allclose(biased_influence(SIX, plain_softmax(math.log(2)), t), scale * influence(double, t), 1e-9)
    limit = bias_limit(SIX, plain_softmax(math.log(2)))
    assert (limit.exponent, limit.log_power) == (1, 5)
    assert limit.amplitude == pytest.approx(128 / 2**6 / math.factorial(5))


# the values


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


# the limits


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


# the turn


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


def test_late_turns_come_from_the_differential_equations():
    """For a long prompt the turn is proportional to it; the recursion finds it behind a shorter one."""
    short = turning_point(RelayModel.uniform(4000, 6, 1), PromptBias(1.5))
    long = turning_point(RelayModel.uniform(4 * 10**8, 6, 1), PromptBias(1.5))
    assert short.method == "recursion"
    assert long.method == "differential equations"
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


# phases


def test_phases_are_those_of_simulations():
    strengths = np.array([0.2, 0.9, 1.0, 1.1, 1.6])
    diagram = phase_diagram(SIX, strengths, horizon=50_000)
    for i, strength in enumerate(strengths):
        for depth in (1, 3, 6):
            model = RelayModel(64, SIX.layers[:depth])
            curve = simulate(model, 51_000, bias=PromptBias(strength), samples=[49_000, 51_000])
            slope = -np.diff(np.log(curve.distance))[0] / math.log(51 / 49)
            assert diagram.exponents[depth - 1, i] == pytest.approx(slope, abs=1e-5)
            expected = "reversal" if slope < 0 else "plateau" if slope < 0.01 else "decay"
            assert diagram.phases[depth - 1, i] == expected
    assert diagram.limits.tolist() == ["decay", "decay", "plateau", "reversal", "reversal"]
    early = phase_diagram(SIX, [1.1], horizon=200)
    assert early.phases[-1, 0] != "reversal"  # too early for it to be seen: the turn is at t = 1.1e3 or so
    assert turning_point(SIX, PromptBias(1.1)).t > 200


# reminders


@given(models(depth=4), blocks, st.integers(1, 120))
def test_superposition_is_the_recursion(model, intervals, t):
    x = [Fraction(int(n <= model.prompt)) for n in range(1, model.prompt + t + 1)]
    for start, stop in intervals:
        for s in range(start, min(stop, t) + 1):
            x[model.prompt + s - 1] = Fraction(1)
    for layer in model.layers:
        x = list(layer.apply(x))
    assert reminder_influence(model, intervals, t) == pytest.approx(float(x[-1]), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(
    "schedule",
    [
        Reminders(64, 8),
        Reminders(5000, 3000),
        Reminders(7, 7),
        Reminders(10, 2, first=1),
        ReminderBlocks.at([5, 6, 99]),
    ],
    ids=str,
)
@pytest.mark.parametrize("position", [0, Fraction(1, 2), Fraction(-1, 2)])
def test_superposition_is_the_simulation(schedule, position):
    model = RelayModel(20, [Layer(1, Fraction(1, 2), position), Layer(Fraction(1, 3), 1, 0), Layer(2)])
    curve = simulate(model, 30_000, reminders=schedule, samples=5)
    np.testing.assert_allclose(reminder_influence(model, schedule, curve.t), curve.distance, rtol=1e-11)


def test_intervals():
    assert Reminders(10, 3).intervals(20).tolist() == [[8, 10], [18, 20]]
    assert Reminders(10, 3).intervals(7).tolist() == []
    assert Reminders(10, 3, first=2).intervals(12).tolist() == [[2, 4], [12, 14]]
    assert ReminderBlocks.at([9, 2, 3, 3]).blocks == ((2, 3), (9, 9))
    assert ReminderBlocks.at([9, 2, 3]).count == 3
    assert ReminderBlocks(((2, 3), (9, 9))).intervals(8).tolist() == [[2, 3]]


@pytest.mark.parametrize("model", STACKS, ids=["six", "unequal", "bare", "one"])
@pytest.mark.parametrize("schedule", [Reminders(50, 5), Reminders(9, 4, first=2), ReminderBlocks(((3, 40),))], ids=str)
def test_plateau_of_reminders(model, schedule):
    """Summation by parts says how far from it D may be at each t, and that goes to 0."""
    steps, limit = 20_000, reminder_limit(model, schedule)
    D = every(model, steps, reminders=schedule)
    source = np.zeros(steps, dtype=bool)
    for start, stop in schedule.intervals(steps):
        source[start - 1 : stop] = True
    t = np.arange(1, steps + 1)
    d = float(schedule.density) if isinstance(schedule, Reminders) else 0.0
    most = np.abs(np.cumsum(source) - d * t).max() + 1e-9
    own, f1 = float(model.eigenvalue(10**30)), float(model.saturation)
    n = model.prompt + t
    self_weight = np.prod([float(residual) + float(relay) / n for relay, residual, _ in model.rational], axis=0)
    centre = d * (f1 - self_weight) + (1 - d) * influence(model, t) + source * self_weight
    allowed = most * rm.token_influence(model, model.prompt + 1, n) + 1e-12
    assert np.all(np.abs(D - centre)[1:] <= allowed[1:])
    assert float(limit.between) == pytest.approx(d * (f1 - own), rel=1e-12)
    assert float(limit.on_reminder) == pytest.approx(d * (f1 - own) + own, rel=1e-12, abs=1e-15)
    assert most * rm.token_influence(model, model.prompt + 1, 10**12) < 1e-6 * f1


# plans


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


# what is refused, and what is extreme

BAD = [
    (lambda: PromptBias("1"), TypeError, "strength must be an int, float"),
    (lambda: PromptBias(float("nan")), ValueError, "strength must be finite"),
    (lambda: PromptBias(1, 1e4), ValueError, "offset must be at most 1000 in size"),
    (lambda: PromptBias(1).log_bias([-1], 4), ValueError, "t must be at least 0"),
    (lambda: PromptBias(1).log_bias([1], 0), ValueError, "prompt must be at least 1"),
    (lambda: ConstantShare(1), ValueError, "share must lie between 0 and 1"),
    (lambda: ConstantShare(Fraction(1, 10**400)), ValueError, "share must lie between"),
    (lambda: Reminders(8, 9), ValueError, "length must be at most every = 8"),
    (lambda: Reminders(8.0, 1), TypeError, "every must be an integer"),
    (lambda: Reminders(8, 3, first=7), ValueError, "first must be at most every - length"),
    (lambda: Reminders(1, 1).intervals(10**9), ValueError, "ask for fewer steps"),
    (lambda: ReminderBlocks(((3, 2),)), ValueError, "at least their start"),
    (lambda: ReminderBlocks.at([0]), ValueError, "tokens must be at least 1"),
    (lambda: biased_influence(SIX, lambda t: t, 1), TypeError, "simulate takes any function"),
    (lambda: biased_influence(SIX, PromptBias(1), 1.5), ValueError, "t must be whole numbers from 1"),
    (lambda: biased_influence(SIX, PromptBias(1), float("inf")), ValueError, "t must be whole numbers"),
    (lambda: biased_influence(RelayModel(1, [Layer(1, 1, 0.5)]), PromptBias(1), 1), ValueError, "position 0"),
    (lambda: biased_influence("model", PromptBias(1), 1), TypeError, "model must be a RelayModel"),
    (lambda: biased_influence(SIX, PromptBias(1), [10**400]), ValueError, "t must be whole numbers from 1 to 1e300"),
    (lambda: biased_influence(RelayModel(10**400, [Layer(1)]), PromptBias(1), 1), ValueError, "prompt must be at most"),
    (lambda: turning_point(SIX, PromptBias(1.5, -1000)), ValueError, "influence must lie within the range of float64"),
    (lambda: turning_point(SIX, PromptBias(1 + Fraction(1, 10**310))), ValueError, "before t = 1e300"),
    (lambda: turning_point(SIX, PromptBias(1 + Fraction(1, 10**299))), ValueError, "before t = 1e300"),
    (lambda: bias_limit(SIX, PromptBias(-0.1)), ValueError, "strength of at least 0"),
    (lambda: bias_limit(RelayModel(1, [Layer(0)]), PromptBias(1)), ValueError, "relaying layer"),
    (lambda: bias_limit(RelayModel(1, [Layer(1), Layer(0, 0)]), PromptBias(0.5)), ValueError, "leading term other"),
    (lambda: bias_limit(SIX, PromptBias(0.5)).leading(1), ValueError, "t must be greater than 1"),
    (lambda: turning_point(SIX, PromptBias(1)), ValueError, "strength above 1"),
    (lambda: turning_point(SIX, ConstantShare(0.5)), TypeError, "PromptBias where steps is not given"),
    (lambda: turning_point(SIX, PromptBias(2), steps=2**23), ValueError, "at most 2\\^22"),
    (lambda: turning_point(RelayModel(1, [Layer(-1)]), PromptBias(2)), ValueError, "no negative strength"),
    (lambda: phase_diagram(SIX, [1, 1]), ValueError, "strengths must be increasing"),
    (lambda: phase_diagram(SIX, [-1]), ValueError, "strengths must be from 0"),
    (lambda: phase_diagram(SIX, [1], horizon=1), ValueError, "horizon must be a whole number"),
    (lambda: phase_diagram(SIX, [1], tolerance=0), ValueError, "tolerance must be positive"),
    (lambda: phase_diagram(RelayModel(1, [Layer(0), Layer(1)]), [1]), ValueError, "relay in its first layer"),
    (lambda: reminder_influence(SIX, [(1, 2)], 0), ValueError, "t must be whole numbers from 1 to 2\\^52"),
    (lambda: reminder_influence(SIX, Reminders(100, 90), 4 * 10**7), ValueError, "use simulate"),
    (lambda: reminder_influence(SIX, 3, 1), TypeError, "reminders must be pairs"),
    (lambda: reminder_limit(SIX, [(1, 2)]), TypeError, "Reminders or ReminderBlocks"),
    (lambda: plan_reminders(SIX, 0), ValueError, "level must be positive"),
    (lambda: plan_reminders(SIX, 12), ValueError, "at most f\\(1\\) = 11.390625"),
    (lambda: plan_reminders(SIX, 1, 0), ValueError, "horizon must be at least 1"),
    (lambda: plan_reminders(SIX, 1, 10, length=3), ValueError, "length must be left out"),
    (lambda: plan_reminders(SIX, Fraction(1, 10**14)), ValueError, "level must need more"),
    (lambda: plan_reminders(RelayModel(1, [Layer(1, -1)]), 1), ValueError, "no negative strength"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:40] for _, _, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


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
    assert turn.influence == 1  # but for 1e-100 or so


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


def test_results_show_themselves_in_a_notebook():
    results = [
        bias_limit(SIX, PromptBias(0.5)),
        turning_point(SIX, PromptBias(1.5)),
        phase_diagram(SIX, [0, 1]),
        reminder_limit(SIX, Reminders(8, 2)),
        plan_reminders(SIX, 1),
        plan_reminders(SIX, 1, 10**5),
    ]
    for result in results:
        page = result._repr_html_()
        assert page.startswith("<table>")
        assert "method" in page or "reasons" in page


# figures

DIAGRAM = phase_diagram(SIX, np.linspace(0, 2, 9), horizon=1000)
PLOTS = {
    "bias": lambda ax=None: plotting.plot_bias(SIX, {"a": PromptBias(0), "b": PromptBias(1.5)}, [1, 1e3, 1e5], ax=ax),
    "reminders": lambda ax=None: plotting.plot_reminders(SIX, Reminders(64, 8), [1, 60, 1e3, 1e4], level=2, ax=ax),
    "phases": lambda ax=None: plotting.plot_phase_diagram(DIAGRAM, ax=ax),
}


@pytest.mark.parametrize("draw", PLOTS.values(), ids=PLOTS.keys())
def test_figures_are_labelled_and_legible(draw):
    ax = draw()
    assert isinstance(ax, Axes)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert min(text.get_fontsize() for text in ax.figure.findobj(Text) if text.get_text()) >= 11
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 3
    other = plotting.panels().axes[0]
    assert draw(other) is other


def test_figures_show_the_values():
    curves = {line.get_label(): line.get_data() for line in PLOTS["bias"]().get_lines()}
    np.testing.assert_allclose(curves["b"][1], biased_influence(SIX, PromptBias(1.5), [1, 1e3, 1e5]))
    ax = PLOTS["reminders"]()
    t, D = ax.get_lines()[0].get_data()
    assert t.tolist() == [1, 1000, 10000]  # t = 60 is a reminder
    np.testing.assert_allclose(D, reminder_influence(SIX, Reminders(64, 8), t))
    plateau = float(reminder_limit(SIX, Reminders(64, 8)).between)
    assert [2, plateau] == sorted(line.get_ydata()[0] for line in ax.get_lines() if len(set(line.get_ydata())) == 1)[
        ::-1
    ]
    mesh = PLOTS["phases"]().collections[0].get_array()
    names = np.array(["decay", "plateau", "reversal"])[np.asarray(mesh, dtype=int)]
    assert names.tolist() == DIAGRAM.phases.tolist()
    with pytest.raises(TypeError, match="biases must be"):
        plotting.plot_bias(SIX, 1, [1, 2])
    with pytest.raises(ValueError, match="at least two strengths"):
        plotting.plot_phase_diagram(phase_diagram(SIX, [1]))


# the command


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(command):
        code = main(shlex.split(f"control {command}"))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_command_shows_limits(run):
    code, out, _ = run("--relay 1/2 --bias 1.5 --t 1,1000 --json")
    found, limit, turn = json.loads(out), bias_limit(SIX, PromptBias(1.5)), turning_point(SIX, PromptBias(1.5))
    assert code == 0
    assert (found["phase"], found["limit"], found["turn"]["t"]) == ("reversal", float(limit.limit), turn.t)
    np.testing.assert_allclose(found["influence"], biased_influence(SIX, PromptBias(1.5), [1, 1000]))
    np.testing.assert_allclose(found["uncontrolled"], influence(SIX, [1, 1000]))
    found = json.loads(run("--relay 1/2 --share 1/4 --t 5,9 --json")[1])
    np.testing.assert_allclose(found["influence"], float(bias_limit(SIX, ConstantShare(0.25)).limit), rtol=1e-12)
    assert "plateau" in run("--points 3")[1]
    assert json.loads(run("--depth 64 --bias 1e-6 --points 2 --json")[1], parse_float=str)["amplitude"].endswith(
        "E+379"
    )


def test_command_shows_reminders_and_plans(run):
    found = json.loads(run("--relay 1/2 --every 64 --length 8 --t 100,1000 --json")[1])
    assert found["plateau"] == float(reminder_limit(SIX, Reminders(64, 8)).between)
    np.testing.assert_allclose(found["influence"], reminder_influence(SIX, Reminders(64, 8), [100, 1000]))
    found = json.loads(run("--relay 1/2 --hold 5 --horizon 1000 --t-max 1000 --points 4 --json")[1])
    plan = plan_reminders(SIX, 5, 1000)
    assert (found["tokens"], found["blocks"], found["optimal"]) == (plan.tokens, [[1, plan.tokens]], True)
    assert min(found["influence"]) >= 5
    found = json.loads(run("--relay 1/2 --hold 1 --length 8 --points 3 --json")[1])
    assert found["length"] == 8
    both = json.loads(run("--relay 1/2 --bias 1 --every 64 --length 8 --t 100,1000 --json")[1])
    curve = simulate(SIX, 1000, bias=PromptBias(1), reminders=Reminders(64, 8), samples=[100, 1000])
    np.testing.assert_allclose(both["influence"], curve.distance)


def test_command_writes_files(run, tmp_path):
    for options in ("--bias 0.5", "--every 64 --length 8", "--hold 5 --horizon 1e4"):
        code, _, err = run(f"--depth 3 {options} --points 4 --csv a.csv --plot a.png --force")
        assert code == 0, err
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
        curve = rm.Curve.from_csv(tmp_path / "a.csv")
        assert curve.provenance["prompt"] == "64"
    assert run("--points 4 --csv a.csv")[0] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--bias 1 --share 1/2", "--bias must not be given together with --share"),
        ("--every 3", "--every and --length must be given together"),
        ("--hold 1 --bias 1", "--hold plans reminders by itself"),
        ("--horizon 9", "--horizon must be given with --hold"),
        ("--t 1.5", "--t must be whole numbers"),
        ("--hold 1e9", "level must be positive and at most f(1)"),
        ("--relay 0", "relaying layer"),
        ("--bias x", "--bias must be a number"),
        ("--bias 1 --every 64 --length 8 --points 3 --plot a.png", "not with both"),
        ("--t 5 --plot a.png", "at least two different t"),
    ],
)
def test_command_refuses_in_one_line(run, tmp_path, options, message):
    code, out, err = run(options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# the report


class TestWrongFormulasFail:
    """Each claim is fed a wrong value once: none of them can pass by itself."""

    def verdict(self, check, tmp_path):
        return check(Workspace(tmp_path)).passed

    @pytest.fixture(autouse=True)
    def no_figures(self, monkeypatch):
        monkeypatch.setattr(Workspace, "image", lambda *arguments: None)

    def test_plateau(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "simulate", lambda *a, **o: _scaled(simulate(*a, **o), 1 + 1e-10))
        assert not self.verdict(claims.plateau, tmp_path)

    def test_exponent(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "biased_influence", lambda m, b, t: biased_influence(m, b, t) * (1 + 1e-7))
        assert not self.verdict(claims.exponent, tmp_path)

    def test_reversal(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "turning_point", lambda m, b: turning_point(m, PromptBias(b.strength * 1.02)))
        assert not self.verdict(claims.reversal, tmp_path)

    def test_reminders(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "reminder_limit", lambda m, r: reminder_limit(m.with_prompt(1), _denser(r)))
        assert not self.verdict(claims.reminders, tmp_path)


def _scaled(curve, factor):
    return rm.Curve(curve.t, curve.distance * factor)


def _denser(schedule):
    return Reminders(schedule.every - 1, schedule.length) if isinstance(schedule, Reminders) else schedule
