"""Reminders superpose."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Simulation, simulate
from tests.simulation.cases import TINY, assert_close, every, models, relative_error, sizes, uneven, uniform_influence


@st.composite
def reminder_intervals(draw, last=60):
    edges = sorted(draw(st.sets(st.integers(1, last), max_size=10)))
    ends = edges[: len(edges) // 2 * 2]
    singles = [(edges[-1], edges[-1])] if len(edges) % 2 else []
    return [*zip(ends[::2], ends[1::2], strict=True), *singles]


@given(models(depth=3), reminder_intervals(), st.integers(2, 40), TINY)
def test_reminders_superpose(model, intervals, steps, layout):
    _, D = Simulation(model, reminders=intervals, layout=layout).advance(steps, samples=every(steps))
    length = model.prompt + steps

    def superposed(model):
        prompts = [model.prompt] + [model.prompt + t for start, stop in intervals for t in (stop, start - 1)]
        table = {p: model.with_prompt(p).differences(length)[model.prompt :] for p in set(prompts)}
        total = list(table[model.prompt])
        for start, stop in intervals:
            gained, known = table[model.prompt + stop], table[model.prompt + start - 1]
            total = [x + a - b for x, a, b in zip(total, gained, known, strict=True)]
        return total

    assert_close(D, superposed(model), superposed(sizes(model)), tolerance=1e-13)


def test_a_million_steps_with_reminders_superpose():
    class Every:
        def intervals(self, steps):
            starts = np.arange(5000, steps + 1, 20_000)
            return np.stack([starts, starts + 99], axis=1)

    model, steps = RelayModel(64, [Layer(relay) for relay in uneven(3)]), 10**6
    curve = simulate(model, steps, reminders=Every(), samples=[steps // 2, steps])
    for t, D in zip(curve.t, curve.distance, strict=True):
        N = 64 + int(t)
        exact = uniform_influence(64, N, uneven(3))
        for start, stop in Every().intervals(int(t)).tolist():
            exact += uniform_influence(64 + stop, N, uneven(3)) - uniform_influence(64 + start - 1, N, uneven(3))
        assert relative_error(D, exact) < 1e-13


def test_reminders_as_a_schedule_a_list_or_an_array_are_the_same():
    intervals = [(3, 5), (6, 6), (900, 10**6)]

    class Schedule:
        def intervals(self, steps):
            return [(a, b) for a, b in intervals if a <= steps]

    model = RelayModel.uniform(prompt=4, depth=2, relay=1)
    first, second, third = (
        simulate(model, 1000, reminders=given).distance.tolist()
        for given in (intervals, np.array(intervals), Schedule())
    )
    assert first == second == third
