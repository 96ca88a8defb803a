"""How fast the simulation is, as ratios within one run.

    pytest tests/benchmarks/test_simulation_speed.py --benchmark-only -s

takes about a minute and a half and prints its tables; without `--benchmark-only` everything here is skipped.
"""

import platform
import time
import tracemalloc

import numpy as np
import pytest

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Layout, Simulation

pytest.importorskip("pytest_benchmark")


@pytest.fixture(autouse=True)
def _only_when_asked(request):
    if not request.config.getoption("--benchmark-only"):
        pytest.skip("run with --benchmark-only")


def uneven(depth):
    return RelayModel(64, [Layer(relay) for relay in np.linspace(0.5, 1, depth).tolist()])


def test_a_hundred_million_steps_against_bare_cumsum(benchmark):
    """Stages of one run in turn with as many in-cache `np.cumsum`, so that both meet the same noise."""
    depth, stages, stage = 12, 10, 10**7
    size = Layout().rows * Layout().columns
    values, sums = np.random.default_rng(0).random(size), np.empty(size)
    simulation = Simulation(uneven(depth))
    bare, own = [], []

    def cumsum():
        begin = time.perf_counter()
        for _ in range(depth * stage // size):
            np.cumsum(values, out=sums)
        bare.append(time.perf_counter() - begin)
        return ((simulation.state.t + stage,), {})

    def advance(steps):
        begin = time.perf_counter()
        simulation.advance(steps)
        own.append(time.perf_counter() - begin)

    benchmark.pedantic(advance, setup=cumsum, rounds=stages)
    assert simulation.state.t == stages * stage
    per = 1e9 / (depth * stage)
    ratios = {"of the totals": sum(own) / sum(bare), "of the minima": min(own) / min(bare)}
    benchmark.extra_info.update(ratios)
    print(f"\n{platform.machine()}, NumPy {np.__version__}: {stages * stage:.0e} steps, L = {depth}")
    print(f"  bare cumsum   {min(bare) * per:6.2f} ns per layer and step (minimum), {sum(bare):6.1f} s in all")
    print(f"  simulation    {min(own) * per:6.2f} ns per layer and step (minimum), {sum(own):6.1f} s in all")
    print("  ratio         " + ", ".join(f"{ratio:.2f} {name}" for name, ratio in ratios.items()))
    assert ratios["of the minima"] <= 0.7


def seconds_and_peak(model, steps, repeats=3, **extras):
    """The least wall time of a run, and the peak of the memory it allocates, in MB."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        Simulation(model, **extras).advance(steps)
        times.append(time.perf_counter() - begin)
    tracemalloc.start()
    Simulation(model, **extras).advance(steps)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return min(times), peak / 1e6


def table(title, rows):
    print(f"\n{title:24} {'seconds':>8} {'ns/(step layer)':>16} {'peak MB':>8}")
    for name, steps, depth, (seconds, peak) in rows:
        print(f"{name:24} {seconds:8.3f} {seconds / steps / depth * 1e9:16.2f} {peak:8.2f}")


def test_scaling_with_steps(benchmark):
    runs = [10**k for k in range(4, 9)]
    rows = [(f"{steps:.0e} steps, L = 6", steps, 6, seconds_and_peak(uneven(6), steps)) for steps in runs]
    benchmark.pedantic(lambda: Simulation(uneven(6)).advance(10**6), rounds=5)
    table("against steps", rows)


def test_scaling_with_depth(benchmark):
    steps = 2 * 10**6
    rows = [
        (f"L = {depth}", steps, depth, seconds_and_peak(uneven(depth), steps)) for depth in (1, 2, 4, 8, 16, 32, 64)
    ]
    benchmark.pedantic(lambda: Simulation(uneven(64)).advance(10**5), rounds=5)
    table("against depth", rows)


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
    table("L = 6, 2e6 steps", rows)
