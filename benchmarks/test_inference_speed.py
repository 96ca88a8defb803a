"""What estimates cost: beside reading the curve, and beside other processes.

python -m pytest benchmarks/test_inference_speed.py -s
"""

import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

from benchmarks.timing import lap, require, table
from relaymodel import Curve, RelayModel, estimate_exponent, influence

BUSY = 2  # processes beside the one that is timed


def noisy(t):
    """A relay curve with 2 % noise."""
    rng = np.random.default_rng(5)
    return Curve(t, influence(RelayModel.uniform(64, 6, 1), t) * np.exp(rng.normal(0, 0.02, t.size)))


def test_a_million_rows(tmp_path):
    """The processor's seconds of reading a CSV file, and of the exponent of what was read."""
    path = noisy(np.arange(1.0, 10**6 + 1)).to_csv(tmp_path / "long.csv")
    curve = Curve.from_csv(path)
    estimate_exponent(curve)
    reading = min(lap(lambda: Curve.from_csv(path)) for _ in range(3))
    estimating = min(lap(lambda: estimate_exponent(curve)) for _ in range(3))
    table(
        "10^6 rows, seconds",
        ("", "seconds"),
        [("reading", reading), ("its exponent", estimating)],
    )
    require([("reading and exponent / reading", (reading + estimating) / reading, "<=", 2)])


@contextmanager
def others(count):
    """Processes that do nothing but add, while the block runs."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_beside_busy_processes(tmp_path):
    """Wall seconds of the command on 319 points, alone and beside as many busy processes as there are cores here."""
    path = noisy(np.unique(np.rint(np.geomspace(1, 1e5, 400)))[:319]).to_csv(tmp_path / "curve.csv")
    command = [sys.executable, "-m", "relaymodel", "exponent", str(path)]
    seconds = {0: [], BUSY: []}
    for _ in range(3):
        for count, found in seconds.items():
            with others(count):
                begun = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                found.append(time.perf_counter() - begun)
    alone, beside = (min(found) for found in seconds.values())
    table(
        "relaymodel exponent on 319 points, wall seconds", ("", "seconds"), [("alone", alone), ("beside two", beside)]
    )
    require([("beside / alone", beside / alone, "<=", 3)])
