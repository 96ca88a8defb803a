"""How fast a grid of models is: against single calls, against one model's vector call, and with two processes.

python -m pytest benchmarks/test_sweep_speed.py -s
"""

import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks.timing import lap, require, table
from relaymodel import RelayModel, influence, sweep

DEPTH = 12


def loop(grid, count):
    """Single calls at `count` points of a grid, each model made once for its points in a row."""
    for i in range(count):
        relay, prompt = grid["relay"][i % 100], grid["prompt"][i // 100 % 100]
        model = RelayModel.uniform(int(prompt), DEPTH, float(relay))
        influence(model, float(grid["t"][i % 100]))


def test_a_million_points():
    """The loop of single calls is timed at 2000 points of the first grid."""
    t = np.geomspace(1, 1e8, 100)
    grids = {
        "prompt 100, relay 100, t 100": {"prompt": np.arange(1, 101), "relay": np.linspace(0.1, 2, 100), "t": t},
        "relay 1000, t 1000": {"prompt": 64, "relay": np.linspace(0.1, 2, 1000), "t": np.geomspace(1, 1e8, 1000)},
        "prompt 1000, t 1000": {"prompt": np.arange(1, 1001), "relay": 0.5, "t": np.geomspace(1, 1e8, 1000)},
    }
    model, many = RelayModel.uniform(64, DEPTH, 0.5), np.geomspace(1, 1e8, 10**6)
    vector = min(lap(lambda: influence(model, many)) for _ in range(5)) / many.size
    rows, seconds = [], {}
    for name, grid in grids.items():
        calls = [lap(lambda g=grid: sweep(**g, depth=DEPTH, quantities=["influence"])) for _ in range(5)]
        seconds[name] = min(calls) / 10**6
        rows.append((f"sweep: {name}", seconds[name] * 1e9, seconds[name] / vector))
    first = next(iter(grids.values()))
    single = lap(lambda: loop(first, 2000)) / 2000
    rows += [("one model, vector call", vector * 1e9, 1.0), ("single calls", single * 1e9, single / vector)]
    table(f"D of a million (model, t), L = {DEPTH}", ("", "ns per point", "/ vector call"), rows)
    each = next(iter(seconds.values()))
    require(
        [("single calls / sweep", single / each, ">=", 50), ("sweep / vector call, per point", each / vector, "<=", 3)]
    )


def test_two_processes():
    """Wall time of models with a recency, each evaluated by contours, here and by two processes, in turn.

    Each round has recencies of its own, so that no process knows the contours already.
    """
    seconds = []
    with ProcessPoolExecutor(2) as executor:
        sweep(t=[1, 2], recency=0.5, executor=executor)
        for nudge in (0, 1e-3, 2e-3):
            grid = {"t": np.geomspace(1, 1e6, 64), "depth": 8, "recency": np.linspace(-1, 0.9, 240) + nudge}
            found, lasted = [], []
            for how in (None, executor):
                begun = time.perf_counter()
                found.append(sweep(**grid, executor=how))
                lasted.append(time.perf_counter() - begun)
            assert found[0].equals(found[1])
            seconds.append(lasted)
    one, two = np.min(seconds, axis=0)
    table("a sweep by processes, wall seconds", ("", "seconds"), [("one", one), ("two", two)])
    require([("one process / two", one / two, ">=", 1.7)])


MEMORY = """
import resource, sys
import numpy as np
from relaymodel import sweep
import relaymodel.many.models as models
blocks = int(sys.argv[1])
t, relay = np.geomspace(1, 1e6, 1000), np.linspace(.1, 2, 2000)
models.BLOCK = 2_000_000 // blocks
sweep(t=t[:10], relay=relay[:10])
sweep(t=t, relay=relay, quantities=["influence"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_number_of_blocks():
    """Two million points in 20 and in 500 blocks: the peaks of two processes."""

    def peak(blocks):
        command = [sys.executable, "-c", MEMORY, str(blocks)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    few, many = peak(20), peak(500)
    table("peak memory of two million points, MB", ("blocks", "MB"), [("20", few / 1e3), ("500", many / 1e3)])
    require([("500 blocks / 20", many / few, "<=", 1.1)])
