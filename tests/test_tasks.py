"""Many tasks by one mechanism: fits of curves, measurements over biases and lengths, killed and resumed."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor

import numpy as np
import pytest

from relaymodel import Curve, PromptBias, RelayModel, fit_power_law, influence, measure, tasks
from relaymodel.networks.transformer import Architecture, Transformer


def fitted(prompt, noise):
    """The exponent of a curve, for an executor to import."""
    t = np.geomspace(1, 1e4, 40)
    scatter = np.random.default_rng(noise).normal(0, 0.02, t.size)
    law = fit_power_law(Curve(t, influence(RelayModel.uniform(prompt, 2, 1), t) * np.exp(scatter)))
    return {"alpha": np.array([law.value, law.stderr])}


def measured(bias, steps):
    """Distances of a small random network under a bias, for a continuation of some length."""
    shape = Architecture(depth=2, width=16, heads=2, vocabulary=64, positions="none")
    network = Transformer.random(shape, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    pairs = (rng.integers(0, 64, 5), rng.integers(0, 64, 5), rng.integers(0, 64, steps))
    return {"euclidean": measure(network, pairs, bias=None if bias is None else PromptBias(bias)).euclidean}


def same(one, other):
    return all(x[name].tobytes() == y[name].tobytes() for x, y in zip(one, other, strict=True) for name in x)


CURVES = [(prompt, noise) for prompt in (8, 64) for noise in range(3)]
MEASUREMENTS = [(bias, steps) for bias in (None, 0.5, 1) for steps in (10, 30)]


@pytest.mark.parametrize(("function", "work"), [(fitted, CURVES), (measured, MEASUREMENTS)])
def test_processes_do_what_is_done_here(function, work, tmp_path):
    here = list(tasks.run(function, work))
    store = tasks.Store(tmp_path / "store", "work", writer="run", of="work (tasks)", name="task", holds=())
    with ProcessPoolExecutor(2) as executor:
        assert same(tasks.run(function, work, executor=executor, store=store), here)
    assert len(list((tmp_path / "store").iterdir())) == len(work)
    assert same(tasks.run(None, work, store=store), here)  # nothing is done again


class Lazy:
    """An executor that computes when it is asked, and tells how many tasks it holds."""

    def __init__(self):
        self.held, self.most, self.cancelled = 0, 0, 0

    def submit(self, function, *arguments):
        executor = self

        class Task(Future):
            def result(self):
                executor.held -= 1
                return function(*arguments)

            def cancel(self):
                executor.cancelled += 1

        self.held += 1
        self.most = max(self.most, self.held)
        return Task()


def test_few_tasks_are_under_way_and_the_rest_is_cancelled():
    executor = Lazy()
    done = tasks.run(lambda x: {"x": np.array(x)}, [(i,) for i in range(1000)], executor=executor)
    assert [int(next(done)["x"]) for _ in range(500)] == list(range(500))
    assert executor.most == tasks.IN_FLIGHT
    done.close()
    assert executor.cancelled == executor.held == tasks.IN_FLIGHT - 1


CHILD = """
import sys
import numpy as np
from relaymodel.networks.protocol import draw_pairs, measure
from relaymodel.networks.transformer import Architecture, Transformer
shape = Architecture(depth=2, width=32, heads=2, vocabulary=64, positions="none")
network = Transformer.random(shape, np.random.default_rng(0))
pairs = draw_pairs(network, pairs=60, prompt=8, steps=300)
measured = measure(network, pairs, resume=sys.argv[1] or None)
if sys.argv[2:]:
    np.save(sys.argv[2], measured.euclidean)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_measurement_killed_and_resumed_gives_the_same_bytes(tmp_path, rng):
    """Twenty times, at random."""

    def run(folder, *out):
        return subprocess.Popen([sys.executable, "-c", CHILD, str(folder), *map(str, out)])

    begun = time.monotonic()
    assert run("", tmp_path / "whole.npy").wait() == 0
    lasts = time.monotonic() - begun
    killed = 0
    for k in range(20):
        child = run(tmp_path / str(k))
        time.sleep(rng.uniform(0.3, 1.0) * lasts)
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        assert run(tmp_path / str(k), tmp_path / f"{k}.npy").wait() == 0
        assert (tmp_path / f"{k}.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert killed >= 10
