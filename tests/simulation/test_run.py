"""Runs: samples, memory, progress, signs, and values beyond float64."""

import io
import sys
import time
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Simulation, expected_seconds, simulate, stream
from relaymodel.simulation.inputs import sample_points
from tests.simulation.cases import MODEL, TINY, every, models, uneven


@given(models(depth=2), TINY, st.sets(st.integers(1, 50), min_size=1), st.integers(0, 2))
def test_which_samples_are_asked_for_changes_no_bit(model, layout, chosen, extra):
    points = sorted(chosen)
    _, D = Simulation(model, layout=layout).advance(points[-1] + extra, samples=points)
    _, full = Simulation(model, layout=layout).advance(50, samples=every(50))
    assert D.tolist() == full[np.array(points) - 1].tolist()


def test_unread_chunks_change_no_bit():
    model = RelayModel(3, [Layer(relay, residual=0.75) for relay in uneven(3)])
    t, D = Simulation(model).advance(3 * 10**6, samples=200)
    for at, value in list(zip(t, D, strict=True))[-20::4]:
        assert Simulation(model).advance(int(at), samples=[at])[1] == value


def test_memory_does_not_depend_on_the_number_of_steps():
    model = RelayModel(64, [Layer(0.5), Layer(1, position=0.5)])

    def peak(steps):
        tracemalloc.start()
        simulate(model, steps, samples=[1, steps])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10**5)  # whatever is loaded or cached on first use
    short, long = peak(10**6), peak(10**7)
    assert abs(long - short) < 10_000
    assert long < 20e6


@given(st.integers(1, 10**12), st.integers(1, 100))
def test_the_grid_is_even_in_log_t_and_does_not_depend_on_the_end(steps, per_decade):
    grid = sample_points(per_decade, steps)
    assert grid[0] == 1
    assert grid[-1] == steps
    assert np.all(np.diff(grid) > 0)
    longer = sample_points(per_decade, 7 * steps)
    assert set(grid[:-1].tolist()) <= set(longer.tolist())
    # no gap is wider than a step of the grid and the rounding at both its ends
    assert np.all(grid[1:] - 0.5 <= (grid[:-1] + 0.5) * 10 ** (1 / per_decade) * (1 + 1e-12))


@pytest.mark.parametrize("samples", [[1, 10, 100], np.array([1.0, 10.0, 100.0]), range(1, 101, 9)])
def test_points_are_sampled_where_asked(samples):
    curve = simulate(RelayModel.uniform(prompt=4, depth=1, relay=1), 100, samples=samples)
    assert curve.t.tolist() == list(samples)
    assert curve.distance == pytest.approx(4 / (4 + curve.t), rel=1e-15)


def test_signs_are_streamed_and_sizes_are_stored():
    model = RelayModel.uniform(prompt=1, depth=2, relay=-1)  # D(1) = -1/2 + 1/4, later positive
    exact = model.differences(101)[1:]
    signs = [np.sign(D) for _, D in stream(model, 100, samples=every(100))]
    assert signs == [np.sign(float(x)) for x in exact]
    assert set(signs) == {-1, 1}
    curve = simulate(model, 100, samples=every(100))
    assert np.all(curve.distance > 0)
    assert curve.provenance["negative"] == f"{signs.count(-1)} of 100 samples; the distance is |D|"


@pytest.mark.parametrize("layers", [[Layer(0), Layer(0)], [Layer(1), Layer(0, 0)]])
def test_a_stack_without_influence_is_refused_but_streamed(layers):
    model = RelayModel(3, layers)
    with pytest.raises(ValueError, match="relay must not be 0 in all layers, nor relay and residual both in one"):
        simulate(model, 10**12)
    assert {D for _, D in stream(model, 100)} == {0}


def test_a_zero_at_a_sample_is_refused():
    # one prompt token, x = 1 again at t = 1: x' = x - mean = 0 there
    model = RelayModel.uniform(prompt=1, depth=1, relay=-1)
    with pytest.raises(ValueError, match="influence is exactly 0 at the sample t = 1,"):
        simulate(model, 10, reminders=[(1, 1)])
    with pytest.raises(ValueError, match="influence is exactly 0 at the sample t = 1,"):
        simulate(RelayModel.uniform(prompt=1, depth=1, relay=0), 10, reminders=[(2, 2)])


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([Layer(1e200)] * 2, "between t = 1 and t = 16 they left it"),
        ([Layer(1e150)] * 4, "the value on the prompt before layer 4 must lie within the range of float64"),
        ([Layer(1e-200, 0)] * 2, "between t = 1 and t = 16 they left it"),
        ([Layer(Fraction(1, 10**400))], "relay of layer 1 must lie within the range of float64, got about 1e-400"),
        ([Layer(10**400)], "relay of layer 1 must lie within the range of float64, got about 1e400"),
        ([Layer(1, position=65)], "position must be at most 64 in a simulation, got 65 in layer 1"),
    ],
)
def test_values_beyond_float64_are_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        simulate(RelayModel(3, layers), 100)


def test_progress_reports_every_chunk():
    seen = []
    simulate(MODEL, 10**5, progress=lambda done, total: seen.append((done, total)))
    assert all(total == 10**5 for _, total in seen)
    assert all(a < b for (a, _), (b, _) in pairwise(seen))
    assert seen[-1] == (10**5, 10**5)
    with pytest.raises(TypeError, match="progress must be True, False or a function"):
        simulate(MODEL, 100, progress="yes")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    simulate(MODEL, 10**5, progress=True)
    if terminal:
        assert screen.getvalue().split("\r")[-1].startswith("[" + "#" * 32 + "] 100 %")
        assert screen.getvalue().endswith("\n")
    else:
        assert screen.getvalue() == ""


@pytest.mark.parametrize("recency", [0, 0.5])
def test_the_expected_time_is_about_right(recency):
    """Within a factor of ten, on a machine that does other things too."""
    model = RelayModel.uniform(16, 4, 0.5, 1, 0, recency)
    began = time.perf_counter()
    simulate(model, 10**6 if recency == 0 else 10**5)
    taken = time.perf_counter() - began
    expected = expected_seconds(model, 10**6 if recency == 0 else 10**5)
    assert taken / 10 < expected < 10 * taken
    assert expected_seconds(model, 10**12) > 100
    with pytest.raises(ValueError, match="steps must be at least 1"):
        expected_seconds(model, 0)
