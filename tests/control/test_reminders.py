"""Reminders: superposition, schedules and plateaus."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relaymodel as rm
from relaymodel import Layer, RelayModel, Reminders, influence, simulate
from relaymodel.control import (
    reminder_influence,
    reminder_limit,
)
from relaymodel.simulation import (
    EvenReminders,
    ReminderBlocks,
)
from relaymodel.simulation.reminders import next_fraction
from tests.control.cases import STACKS, every
from tests.strategies import models

blocks = st.lists(st.integers(1, 12), min_size=2, max_size=10).map(
    lambda gaps: [(int(a) + 1, int(b)) for a, b in np.cumsum([*gaps, 1])[: len(gaps) // 2 * 2].reshape(-1, 2) if b > a]
)


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


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=1, max_denominator=10**6), st.integers(1, 60))
def test_the_next_fraction_is_the_least_above(x, largest):
    assert next_fraction(x, largest) == min(Fraction(math.ceil(x * b), b) for b in range(1, largest + 1))


@given(
    st.one_of(
        st.fractions(min_value=Fraction(1, 99), max_value=Fraction(98, 99), max_denominator=99),
        st.floats(0.01, 0.99),
    ),
    st.integers(1, 20),
    st.integers(0, 3),
)
def test_even_reminders_are_the_beatty_sequence(density, prompt, more):
    least = EvenReminders(density, prompt)
    schedule, steps = EvenReminders(density, prompt, least.block + more), 400
    intervals, d = schedule.intervals(steps), Fraction(density)
    tokens = {t for start, stop in intervals for t in range(start, stop + 1)}
    count, first = prompt, prompt + schedule.block
    for n in range(prompt + 1, prompt + steps + 1):
        count += n - prompt in tokens
        assert count == (n if n <= first else max(first, math.ceil(d * (n + 1))))
    begin = schedule.intervals(100)
    np.testing.assert_array_equal(begin, intervals[: len(begin)])
    if least.block:
        with pytest.raises(ValueError, match="block must be from"):
            EvenReminders(density, prompt, least.block - 1)


def test_even_reminders_far_out_are_exact():
    """Where products leave 64 bits: every token is compared with the definition in whole numbers."""
    schedule = EvenReminders(Fraction(10**17 + 3, 10**26 + 7), prompt=5)
    tokens = schedule.intervals(2**50)[:2000, 0].tolist()
    d = schedule.density
    assert tokens == [math.floor((5 + k) / d) - 5 for k in range(len(tokens))]
