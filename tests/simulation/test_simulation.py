"""The simulation against the exact recursion, THEORY's formulas in 40 digits, and itself in stages."""

import io
import math
import sys
import tracemalloc
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Curve, Layer, RelayModel
from relaymodel.simulation import Layout, Simulation, SimulationState, simulate, stream
from relaymodel.simulation.inputs import sample_points
from relaymodel.simulation.recursion import carry
from tests import strategies

TINY = st.builds(Layout, rows=st.integers(1, 4), columns=st.sampled_from([1, 2, 4]))


def models(depth=4, position=strategies.position_exponents):
    return strategies.models(strategies.signed_strengths, strategies.signed_strengths, position, depth=depth, prompt=6)


def sizes(model):
    """The model whose values are the sums of the sizes of all terms: what rounding errors are relative to."""
    return RelayModel(model.prompt, [Layer(abs(l.relay), abs(l.residual), l.position) for l in model.layers])


def assert_close(values, exact, scale, tolerance=2e-14):
    for value, x, size in zip(values.tolist(), exact, scale, strict=True):
        assert abs(Fraction(value) - x) <= tolerance * size


def every(steps):
    return np.arange(1, steps + 1)


# --- the exact recursion -------------------------------------------------------------------------------------


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


# --- THEORY section 2, in 40 digits --------------------------------------------------------------------------


@cache
def uniform_influence(prompt, n, strengths):
    """D at position n by the positive form of THEORY section 2: all positions 0, all residuals 1."""
    with mpmath.workdps(40):
        P, N, L = mpmath.mpf(prompt), mpmath.mpf(n), len(strengths)
        e = [mpmath.mpf(1)] + [mpmath.mpf(0)] * L
        for relay in strengths:
            for k in range(L, 0, -1):
                e[k] += mpmath.mpf(relay) * e[k - 1]
        p = [mpmath.psi(0, N + 1) - mpmath.psi(0, P + 1)]
        p += [mpmath.zeta(i, P + 1) - mpmath.zeta(i, N + 1) for i in range(2, L)]
        h = [mpmath.mpf(1)]
        for k in range(1, L):
            h.append(mpmath.fsum(p[i] * h[k - 1 - i] for i in range(k)) / k)
        return P / N * mpmath.fsum(mpmath.fsum(e[k + 1 :]) * h[k] for k in range(L))


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


def relative_error(value, exact):
    return float(abs(mpmath.mpf(float(value)) / exact - 1))


def uneven(depth):
    return tuple(np.linspace(0.5, 1, depth).tolist())


@pytest.mark.parametrize("depth", range(1, 7))
def test_ten_million_steps_agree_with_the_exact_values(depth):
    model = RelayModel(64, [Layer(relay) for relay in uneven(depth)])
    curve = simulate(model, 10**7, samples=4)
    errors = [
        relative_error(D, uniform_influence(64, 64 + int(t), uneven(depth)))
        for t, D in zip(curve.t, curve.distance, strict=True)
    ]
    assert max(errors) < 1e-14


@pytest.mark.slow
def test_a_hundred_million_steps_through_twelve_layers():
    model = RelayModel(64, [Layer(relay) for relay in uneven(12)])
    curve = simulate(model, 10**8, samples=2)
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


# --- carries and chunks --------------------------------------------------------------------------------------


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


def squared(t):
    return 0.1 * np.log1p(t) ** 2


@given(
    models(), st.sets(st.integers(1, 80), min_size=1, max_size=6), TINY, st.sampled_from(["plain", "bias", "reminders"])
)
def test_going_on_repeats_every_bit(tmp_path_factory, model, stops, layout, kind):
    extras = {"plain": {}, "bias": {"bias": squared}, "reminders": {"reminders": [(2, 3), (9, 30), (31, 31)]}}[kind]
    if kind == "bias":
        model = RelayModel(model.prompt, [Layer(l.relay, l.residual) for l in model.layers])
    stops = sorted(stops)
    t, D = Simulation(model, layout=layout, **extras).advance(stops[-1], samples=every(stops[-1]))
    pieces, state = [], None
    file = tmp_path_factory.mktemp("state") / "state.npz"
    for first, stop in pairwise([0, *stops]):
        simulation = Simulation(model, state=state, layout=None if state else layout, **extras)
        pieces.append(simulation.advance(stop, samples=range(first + 1, stop + 1)))
        simulation.state.to_npz(file, overwrite=True)
        state = SimulationState.from_npz(file)
        assert state == simulation.state
        assert state.t == stop
    assert np.concatenate([t for t, _ in pieces]).tolist() == t.tolist()
    assert np.concatenate([D for _, D in pieces]).tolist() == D.tolist()


def test_stages_sample_the_grid_of_the_whole_run():
    model = RelayModel.uniform(prompt=8, depth=2, relay=1)
    whole = simulate(model, 10**5)
    simulation = Simulation(model)
    pieces = [simulation.advance(steps) for steps in (10**3, 10**5)]
    assert np.concatenate([t for t, _ in pieces]).tolist() == whole.t.tolist()
    assert np.concatenate([D for _, D in pieces]).tolist() == whole.distance.tolist()


def test_an_interrupted_stage_leaves_the_state_as_it_was():
    simulation = Simulation(RelayModel.uniform(prompt=8, depth=2, relay=1))
    simulation.advance(100)
    before = simulation.state

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulation.advance(10**6, progress=interrupt)
    assert simulation.state is before


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


# --- samples -------------------------------------------------------------------------------------------------


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


# --- the prompt-key bias -------------------------------------------------------------------------------------


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


# --- reminders -----------------------------------------------------------------------------------------------


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


# --- signs, zeros, the range of float64 ----------------------------------------------------------------------


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
        ([Layer(1e150)] * 4, "the value on the prompt before layer 3 must lie within the range of float64"),
        ([Layer(1e-200, 0)] * 2, "between t = 1 and t = 16 they left it"),
        ([Layer(Fraction(1, 10**400))], "relay of layer 0 must lie within the range of float64, got about 1e-400"),
        ([Layer(10**400)], "relay of layer 0 must lie within the range of float64, got about 1e400"),
        ([Layer(1, position=65)], "position must be at most 64 in a simulation, got 65 in layer 0"),
    ],
)
def test_values_beyond_float64_are_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        simulate(RelayModel(3, layers), 100)


# --- arguments -----------------------------------------------------------------------------------------------

MODEL = RelayModel.uniform(prompt=4, depth=2, relay=1)


@pytest.mark.parametrize("function", [simulate, stream, lambda model, steps: Simulation(model).advance(steps)])
@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        (0, ValueError, "steps must be at least 1, got 0"),
        (-3, ValueError, "steps must be at least 1, got -3"),
        (2.5, TypeError, "steps must be an integer, got 2.5"),
        (1e3, TypeError, "steps must be an integer, got 1000.0"),
        (True, TypeError, "steps must be an integer, got True"),
        (math.nan, TypeError, "steps must be an integer, got nan"),
        ("10", TypeError, "steps must be an integer, got '10'"),
        (10**400, ValueError, r"prompt \+ steps must be at most 2\^52"),
        (2**52, ValueError, r"prompt \+ steps must be at most 2\^52"),
    ],
)
def test_bad_steps(function, steps, error, message):
    with pytest.raises(error, match=message):
        function(MODEL, steps)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        (0, ValueError, "samples must be at least 1, got 0"),
        (True, TypeError, "samples must be an integer, got True"),
        (2.5, TypeError, "samples must be an integer, got 2.5"),
        (None, TypeError, "samples must be an integer, got None"),
        ([], ValueError, "samples must have at least 1 value, got 0|samples must be"),
        ([0, 5], ValueError, "samples must be from 1 to steps = 100, got 0.0 at index 0"),
        ([5, 101], ValueError, "samples must be from 1 to steps = 100, got 101.0 at index 1"),
        ([5, 4], ValueError, "samples must be strictly increasing, got 4.0 at index 1"),
        ([5, 5], ValueError, "samples must be strictly increasing, got 5.0 at index 1"),
        ([1, 2.5], ValueError, "samples must be whole numbers, got 2.5 at index 1"),
        ([1, math.nan], ValueError, "samples must be finite, got nan at index 1"),
        (["1", "2"], TypeError, "samples must be numbers"),
        ([[1, 2]], ValueError, "samples must be one-dimensional"),
        ([7], ValueError, "samples must be at least 2 points for a Curve, got 1; use stream"),
    ],
)
def test_bad_samples(samples, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, samples=samples)


@pytest.mark.parametrize(
    ("bias", "error", "message"),
    [
        (0.5, TypeError, "bias must be a function of t or have a method log_bias"),
        (lambda _: 0.5, ValueError, r"bias must return one value for each t, shape \(16,\), got shape \(\)"),
        (lambda t: t[1:], ValueError, r"got shape \(15,\)"),
        (lambda t: np.where(t == 3, np.nan, 0.0), ValueError, "bias must return finite values, got nan at t = 3"),
        (lambda t: np.where(t == 40, np.inf, 0.0), ValueError, "bias must return finite values, got inf at t = 40"),
        (lambda t: t * 1j, TypeError, "must be numbers"),
        (lambda t: t > 3, TypeError, "must be numbers"),
        (lambda t: t.astype(str), TypeError, "must be numbers"),
    ],
)
def test_bad_bias(bias, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, bias=bias)


def test_bias_needs_position_zero():
    model = RelayModel(4, [Layer(1), Layer(1, position=0.5)])
    with pytest.raises(ValueError, match=r"bias is defined for position 0 only, got position 0\.5 in layer 1"):
        simulate(model, 100, bias=np.zeros_like)


def test_bias_is_asked_for_the_continuation_only_and_may_write_to_its_argument():
    asked = []

    def bias(t):
        asked.append(t.copy())
        t *= 0
        return t

    curve = simulate(MODEL, 100, bias=bias)
    assert curve.distance == pytest.approx(simulate(MODEL, 100).distance, rel=1e-14)
    assert {t.dtype for t in asked} == {np.dtype(np.float64)}
    assert set(np.concatenate(asked).tolist()) == set(range(1, 101))


@pytest.mark.parametrize(
    ("reminders", "error", "message"),
    [
        (5, TypeError, r"reminders must be pairs \(start, stop\) or have a method intervals"),
        ("12", TypeError, "reminders must be pairs"),
        ([5], TypeError, "reminders must be pairs .* got 5 at index 0"),
        ([(1, 2, 3)], TypeError, "reminders must be pairs"),
        ([(0, 2)], ValueError, r"reminders\[0\] must be at least 1, got 0"),
        ([(1.0, 2)], TypeError, r"reminders\[0\] must be an integer, got 1.0"),
        ([(True, 2)], TypeError, r"reminders\[0\] must be an integer, got True"),
        ([(1, 2**63)], ValueError, r"reminders\[0\] must be below 2\^63"),
        ([(1, 2), (5, 4)], ValueError, r"reminders \(stop\) must be at least their start, got 4 at index 1"),
        ([(1, 4), (4, 6)], ValueError, "must not overlap, got start 4 at index 1 after stop 4"),
        ([(8, 9), (1, 2)], ValueError, "must be sorted"),
        (np.array([[1.0, 2.0]]), TypeError, "reminders must be intervals of integers, got dtype float64"),
        (np.array([1, 2]), ValueError, r"shape \(K, 2\), got shape \(2,\)"),
        (np.array([[0, 2]]), ValueError, r"reminders \(start\) must be at least 1"),
    ],
)
def test_bad_reminders(reminders, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, reminders=reminders)


def test_bad_model():
    with pytest.raises(TypeError, match="model must be a RelayModel, got 3 of type int"):
        simulate(3, 100)


def test_bad_states(tmp_path):
    simulation = Simulation(MODEL)
    simulation.advance(50)
    state = simulation.state
    with pytest.raises(ValueError, match="state must come from the same model"):
        Simulation(MODEL.with_prompt(5), state=state)
    with pytest.raises(ValueError, match=r"state must come from the same model.* with a bias$"):
        Simulation(MODEL, bias=np.zeros_like, state=state)
    with pytest.raises(ValueError, match="layout must be left out"):
        Simulation(MODEL, state=state, layout=Layout(2, 2))
    with pytest.raises(TypeError, match="state must be a SimulationState"):
        Simulation(MODEL, state=50)
    with pytest.raises(ValueError, match="steps must be beyond the 50 continuation tokens simulated so far, got 50"):
        simulation.advance(50)
    with pytest.raises(ValueError, match="samples must lie beyond the state's t = 50, got 50"):
        simulation.advance(100, samples=[50, 100])
    with pytest.raises(ValueError, match=r"carries must have shape \(2, 2\), got \(1, 2\)"):
        SimulationState(MODEL, 5, [[1.0, 0.0]], Layout())
    with pytest.raises(ValueError, match="t must be at least 0"):
        SimulationState(MODEL, -1, state.carries, Layout())
    with pytest.raises(ValueError, match="columns must be a power of 2, got 6"):
        Layout(2, 6)
    file = state.to_npz(tmp_path / "state.npz")
    with pytest.raises(FileExistsError):
        state.to_npz(file)
    with pytest.raises(FileNotFoundError):
        SimulationState.from_npz(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("t,distance\n")
    with pytest.raises(ValueError, match=r"text\.npz must be an NPZ file"):
        SimulationState.from_npz(tmp_path / "text.npz")
    curve = Curve([1, 2], [1.0, 0.5]).to_npz(tmp_path / "curve.npz")
    with pytest.raises(ValueError, match=r"curve\.npz must hold an array named state"):
        SimulationState.from_npz(curve)
    np.savez(tmp_path / "other.npz", state=np.array("{}"), carries=np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"other\.npz must hold a state written by"):
        SimulationState.from_npz(tmp_path / "other.npz")


# --- progress ------------------------------------------------------------------------------------------------


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
