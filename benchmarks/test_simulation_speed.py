"""How fast the simulation is, against bare prefix sums, and how it scales.

    python -m pytest benchmarks/test_simulation_speed.py -s

takes about a minute; `-k "not simulation"` leaves it out of a run of all benchmarks.
"""

import time
import tracemalloc

import numpy as np
from scipy.signal import fftconvolve

from benchmarks.timing import lap, require, table
from relaymodel import Layer, RelayModel
from relaymodel.simulation import Layout, Simulation
from relaymodel.simulation.heads import kernel_of

PASSES = (
    5  # over a chunk, for each layer: column sums, prefix sums, times 1/n, times the relay strength, plus the input
)


def uneven(depth):
    return RelayModel(64, [Layer(relay) for relay in np.linspace(0.5, 1, depth).tolist()])


def test_a_hundred_million_steps_against_bare_cumsum(benchmark):
    """Stages of one run in turn with as many in-cache `np.cumsum`, so that both meet the same noise; wall time."""
    depth, stages, stage = 12, 10, 10**7
    size = Layout().rows * Layout().columns
    values, sums = np.random.default_rng(0).random(size), np.empty(size)
    simulation = Simulation(uneven(depth))
    times = {"bare cumsum": [], "arithmetic alone": [], "simulation": []}

    def measure(name, call, repeats=1):
        times[name].append(lap(call, repeats, time.perf_counter) * repeats)

    def rivals():
        measure("bare cumsum", lambda: np.cumsum(values, out=sums), depth * stage // size)
        measure("arithmetic alone", lambda: np.add(values, sums, out=sums), PASSES * depth * stage // size)

    def advance():
        measure("simulation", lambda: simulation.advance(simulation.state.t + stage))

    benchmark.pedantic(advance, setup=rivals, rounds=stages)
    assert simulation.state.t == stages * stage
    ratios = {how.__name__: how(times["simulation"]) / how(times["bare cumsum"]) for how in (sum, min)}
    benchmark.extra_info.update(ratios)
    table(
        f"{stages * stage:.0e} steps, L = {depth}; arithmetic alone: {PASSES} vector additions in cache for each layer",
        ("", "ns/(step layer), least", "seconds in all", "/ cumsum, least", "/ cumsum, in all"),
        [
            (
                name,
                min(laps) * 1e9 / (depth * stage),
                sum(laps),
                min(laps) / min(times["bare cumsum"]),
                sum(laps) / sum(times["bare cumsum"]),
            )
            for name, laps in times.items()
        ],
    )
    require(
        [
            ("simulation / bare cumsum, wall time in all", ratios["sum"], "<=", 0.7),
            ("simulation / bare cumsum, least", ratios["min"], "<=", 0.7),
        ]
    )


def seconds_and_peak(model, steps, repeats=3, **extras):
    """The least time of a run, and the peak of the memory it allocates, in MB."""
    least = min(lap(lambda: Simulation(model, **extras).advance(steps)) for _ in range(repeats))
    tracemalloc.start()
    Simulation(model, **extras).advance(steps)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return least, peak / 1e6


def print_runs(title, rows):
    table(
        title,
        ("", "seconds", "ns/(step layer)", "peak MB"),
        [(name, seconds, seconds / steps / depth * 1e9, peak) for name, steps, depth, (seconds, peak) in rows],
    )


def test_scaling_with_steps(benchmark):
    runs = {steps: seconds_and_peak(uneven(6), steps) for steps in (10**k for k in range(4, 9))}
    benchmark.pedantic(lambda: Simulation(uneven(6)).advance(10**6), rounds=5)
    print_runs(
        "simulation against steps", [(f"{steps:.0e} steps, L = 6", steps, 6, run) for steps, run in runs.items()]
    )
    (seconds, peak), (longer, higher) = runs[10**6], runs[10**8]
    require(
        [
            ("peak memory, 1e8 steps / 1e6 steps", higher / peak, "<=", 1.1),
            ("time per step, 1e8 steps / 1e6 steps", longer / seconds / 100, "<=", 1.2),
        ]
    )


def test_scaling_with_depth(benchmark):
    steps = 2 * 10**6
    rows = [
        (f"L = {depth}", steps, depth, seconds_and_peak(uneven(depth), steps)) for depth in (1, 2, 4, 8, 16, 32, 64)
    ]
    benchmark.pedantic(lambda: Simulation(uneven(64)).advance(10**5), rounds=5)
    print_runs("simulation against depth, 2e6 steps", rows)


def test_what_positions_bias_and_reminders_cost(benchmark):
    steps, depth = 2 * 10**6, 6
    positions = RelayModel(64, [Layer(0.5, position=g) for g in np.linspace(-0.5, 2, depth).tolist()])
    reminders = np.stack([np.arange(1000, steps, 1000), np.arange(1000, steps, 1000) + 63], axis=1)
    cases = {
        "plain": (uneven(depth), {}),
        "one position exponent": (RelayModel.uniform(64, depth, 0.5, position=0.5), {}),
        "six position exponents": (positions, {}),
        "bias log(1 + t/P)": (uneven(depth), {"bias": lambda t: np.log1p(t / 64)}),
        "reminders": (uneven(depth), {"reminders": reminders}),
    }
    rows = [(name, steps, depth, seconds_and_peak(model, steps, **extras)) for name, (model, extras) in cases.items()]
    benchmark.pedantic(lambda: Simulation(positions).advance(10**5), rounds=5)
    print_runs("what positions, bias and reminders cost, L = 6, 2e6 steps", rows)


def convolved(model, steps):
    """D(1..steps) of layers of one head with a recency, each layer as one convolution of the whole sequence by FFT."""
    n = np.arange(1.0, model.prompt + steps + 1)
    x = (n <= model.prompt).astype(float)
    for i, layer in enumerate(model.layers):
        kernel = kernel_of(i, layer.heads[0])
        mean = fftconvolve(x, kernel.near(n.size, kernel.order))[: n.size] / kernel.total(n)
        x = float(layer.residual) * x + float(layer.relay) * mean
    return x[model.prompt :]


def test_heads_against_a_convolution_and_uniform_attention(benchmark):
    """A million steps of 12 layers with recency .7: in constant memory, by FFT of all at once, and uniform."""
    steps, depth, rounds = 10**6, 12, 3
    heads, uniform = (RelayModel.uniform(64, depth, 0.5, recency=gamma) for gamma in (0.7, 0))
    calls = {
        "heads, constant memory": lambda: Simulation(heads).advance(steps),
        "heads, one FFT a layer": lambda: convolved(heads, steps),
        "uniform": lambda: Simulation(uniform).advance(steps),
    }
    least = dict.fromkeys(calls, np.inf)

    def all_in_turn():
        for name, call in calls.items():
            least[name] = min(least[name], lap(call))

    benchmark.pedantic(all_in_turn, rounds=rounds)
    first = least["heads, constant memory"]
    table(
        f"{steps:.0e} steps, L = {depth}, recency .7",
        ("", "seconds", "/ heads in constant memory"),
        [(name, seconds, seconds / first) for name, seconds in least.items()],
    )
    require([("heads / FFT", first / least["heads, one FFT a layer"], "<=", 1)])
