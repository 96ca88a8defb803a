"""The recursion: against fractions, 40-digit values far out, and its own carries."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Layout, Simulation, simulate, stream
from relaymodel.simulation.recursion import carry
from tests.simulation.cases import TINY, assert_close, every, models, relative_error, sizes, uneven, uniform_influence


@given(models(), st.integers(1, 40), TINY)
def test_is_the_recursion_of_the_model(model, steps, layout):
    _, D = Simulation(model, layout=layout).advance(steps, samples=every(steps))
    length = model.prompt + steps
    assert_close(D, model.differences(length)[model.prompt :], sizes(model).differences(length)[model.prompt :])


@given(models(depth=2), st.integers(1, 30))
def test_the_public_functions_agree_with_the_exact_recursion(model, steps):
    exact = model.differences(model.prompt + steps)[model.prompt :]
    scale = sizes(model).differences(model.prompt + steps)[model.prompt :]
    found = list(stream(model, steps, samples=every(steps)))
    assert [t for t, _ in found] == list(range(1, steps + 1))
    assert_close(np.array([D for _, D in found]), exact, scale)
    if steps > 1 and all(D for _, D in found):
        curve = simulate(model, steps, samples=every(steps))
        assert curve.distance.tolist() == [abs(D) for _, D in found]
        assert ("negative" in curve.provenance) == any(D < 0 for _, D in found)


def position_influence(model, t):
    """D(t) as the sum of the residues at simple poles (THEORY section 2): all positions different."""
    with mpmath.workdps(60):
        P, N = mpmath.mpf(model.prompt), mpmath.mpf(model.prompt + t)
        layers = [[mpmath.mpf(x.numerator) / x.denominator for x in layer] for layer in model.rational]
        total = mpmath.mpf(0)
        for i, (relay, _, g) in enumerate(layers):
            others = [r + l * (1 + h) / (h - g) for j, (l, r, h) in enumerate(layers) if j != i]
            log_phi = mpmath.loggamma(P + 1 + g) - mpmath.loggamma(P) + mpmath.loggamma(N) - mpmath.loggamma(N + 1 + g)
            total += relay * mpmath.fprod(others) * mpmath.exp(log_phi)
        return total


@pytest.mark.parametrize("depth", range(1, 7))
def test_ten_million_steps_agree_with_the_exact_values(depth):
    model = RelayModel(64, [Layer(relay) for relay in uneven(depth)])
    curve = simulate(model, 10**7, samples=4)
    errors = [
        relative_error(D, uniform_influence(64, 64 + int(t), uneven(depth)))
        for t, D in zip(curve.t, curve.distance, strict=True)
    ]
    assert max(errors) < 1e-14


@pytest.mark.parametrize("steps", [10**7, pytest.param(10**9, marks=pytest.mark.exhaustive)])
def test_millions_of_steps_through_twelve_layers(steps):
    model = RelayModel(64, [Layer(relay) for relay in uneven(12)])
    curve = simulate(model, steps, samples=2)
    errors = [
        relative_error(D, uniform_influence(64, 64 + int(t), uneven(12)))
        for t, D in zip(curve.t, curve.distance, strict=True)
    ]
    assert max(errors) < 1e-13


def test_a_long_prompt_costs_nothing():
    model = RelayModel(10**9, [Layer(relay) for relay in uneven(3)])
    curve = simulate(model, 10**4, samples=[1, 10**4])
    for t, D in zip(curve.t, curve.distance, strict=True):
        assert relative_error(D, uniform_influence(10**9, 10**9 + int(t), uneven(3))) < 1e-14


@pytest.mark.parametrize("prompt", [1, 64, 10**6])
@pytest.mark.parametrize(
    "positions", [(-0.999,), (-0.9, 0.5, 4.0), (4.0,), (-0.25, 0.0, 0.75), (64.0,)], ids=lambda p: ",".join(map(str, p))
)
def test_positions_agree_with_the_residues_far_out(prompt, positions):
    model = RelayModel(prompt, [Layer(0.5, position=g) for g in positions])
    curve = simulate(model, 10**6, samples=2)
    for t, D in zip(curve.t, curve.distance, strict=True):
        assert relative_error(D, position_influence(model, int(t))) < (5e-13 if max(positions) > 4 else 5e-14)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=200), st.sampled_from([0.0, 1e-9, -1e-9, 1e-3, -0.5]))
def test_carries_lose_nothing_that_matters(totals, growth):
    high, low, exact = 1e15, 0.0, Fraction(10**15)
    for total in totals:
        high, low = carry(high, low, total, growth)
        exact += Fraction(total)
        if growth:
            exact *= (
                Fraction(str(mpmath.exp(-mpmath.mpf(growth)))) if growth > 0.5 else 1 + Fraction(math.expm1(-growth))
            )
            exact = Fraction(exact.numerator * 2**200 // exact.denominator, 2**200)
    assert high + low == high
    # what is rounded is the change by the growth only
    assert abs(Fraction(high) + Fraction(low) - exact) <= exact * (1e-29 + 1.2e-16 * abs(growth)) * len(totals)


@pytest.mark.slow
def test_many_chunks_add_no_error():
    # two positions a chunk: without the low parts the error grows to 1e-14 here
    model = RelayModel(3, [Layer(relay) for relay in uneven(3)])
    steps = 40_000
    t, D = Simulation(model, layout=Layout(rows=2, columns=1)).advance(steps, samples=[100, steps])
    for at, value in zip(t, D, strict=True):
        assert relative_error(value, uniform_influence(3, 3 + int(at), uneven(3))) < 1e-15


@given(TINY, st.integers(0, 10**12))
def test_chunks_follow_each_other_without_gap_or_overlap(layout, t):
    start, columns = layout.chunk(t)
    stop = start + layout.rows * columns
    assert start <= t < stop
    assert columns <= layout.columns
    assert layout.chunk(start) == layout.chunk(stop - 1) == (start, columns)
    assert layout.chunk(stop)[0] == stop
