"""`sweep`: every point is what a single call gives, wherever it was computed and however often it was interrupted."""

import itertools
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from relaymodel import PromptBias, RelayModel, influence, influence_ball, local_exponent, sweep
from relaymodel.control import biased_influence
from relaymodel.exact import local_exponent_ball, many
from relaymodel.many import Dataset, grid_of
from relaymodel.many.models import AXES

DEFAULTS = {"prompt": 64, "depth": 6, "relay": 1, "residual": 1, "position": 0, "recency": 0, "sink": 0, "bias": 0}
GRID = {
    "prompt": [1, 40],
    "depth": [1, 3],
    "relay": [Fraction(1, 3), -0.3],
    "residual": [1, 0.5],
    "position": [0, 0.5],
    "t": [1, 100],
}


def whole(**axes):
    return grid_of(DEFAULTS | axes)


@pytest.mark.parametrize("axes", [GRID, {"recency": [0, 0.3], "sink": [0, 0.1], "t": [1, 100]}])
def test_every_point_is_that_of_a_single_call(axes):
    found = whole(**axes)
    assert found.dims == tuple(name for name in AXES if name in axes)
    for index in itertools.product(*map(range, found["influence"].shape)):
        *_, t = point = [axes[name][i] for name, i in zip(found.dims, index, strict=True)]
        given = DEFAULTS | dict(zip(found.dims, point, strict=True))
        model = RelayModel.uniform(*(given[name] for name in AXES[:7]))
        assert abs(found["influence"][index] / influence(model, t) - 1) < 1e-13
        alpha = local_exponent(model, t)
        assert abs(found["local_exponent"][index] - alpha) < 1e-13 * max(1, abs(alpha))


def test_random_models_are_right_to_1e_12_of_balls(rng):
    depths, relays = rng.integers(1, 65, 4), [*rng.uniform(0, 8, 3), -0.01]
    positions, prompts = rng.uniform(-0.99, 4, 3), (10 ** rng.uniform(0, 9, 3)).astype(int)
    t = 10 ** rng.uniform(-1, 60, 3)
    found = whole(t=t, depth=depths, relay=relays, position=positions, prompt=prompts)
    points = list(zip(*(column.tolist() for column in found.columns().values()), strict=True))
    for k in rng.choice(len(points), 40, replace=False):
        prompt, depth, relay, position, at, *_, value, alpha = points[k]
        model = RelayModel.uniform(prompt, depth, relay, position=position)
        assert abs(value / float(influence_ball(model, at, 20).mid()) - 1) < 1e-12
        assert abs(alpha - float(local_exponent_ball(model, at, 20).mid())) < 1e-12


def test_what_the_shared_sums_cannot_promise_is_handed_over():
    """Relays of both signs cancel: E_k of 24 layers of relay -1.7 lose nine digits."""
    t, strengths = np.array([1e2, 1e4]), [(24, -1.7, 1)]
    shared = many.influence(np.array([64.0]), 0, strengths, t, exponent=True)
    assert not shared.sure.any()
    exact = influence(RelayModel.uniform(64, 24, -1.7), t)
    assert np.all(np.abs(shared.value[0, 0] / exact - 1) > 1e-12)  # rightly unsure
    np.testing.assert_allclose(whole(t=t, depth=24, relay=-1.7)["influence"], exact, rtol=1e-14)


def test_values_beyond_the_promised_domain():
    found = whole(t=[10**305, 5], depth=[2, 70])
    for q, depth in enumerate((2, 70)):
        model = RelayModel.uniform(64, depth, 1)
        np.testing.assert_allclose(found["influence"][q], influence(model, [10**305, 5]), rtol=1e-14)


def test_a_bias_is_that_of_biased_influence():
    t = [1, 7, 1000, 10**9]
    found = whole(t=t, depth=[1, 4], relay=[0.3, 2], bias=[0, 0.5, 1.5], residual=0.5)
    for (q, depth), (r, relay), (b, beta) in itertools.product(*map(enumerate, ([1, 4], [0.3, 2], [0, 0.5, 1.5]))):
        model = RelayModel.uniform(64, depth, relay, 0.5)
        wanted = biased_influence(model, PromptBias(beta), t)
        np.testing.assert_allclose(found["influence"][q, r, b], wanted, rtol=1e-11)
    x = [999, 1001]
    D = whole(t=x, bias=1.5)["influence"]
    slope = whole(t=1000, bias=1.5)["local_exponent"]
    assert abs(slope + np.diff(np.log(D)) / np.diff(np.log(x))) < 1e-5


def test_a_bias_beside_a_position_is_that_of_a_single_call():
    found = sweep(t=[10, 50], position=0.5, bias=0.7, depth=2, quantities=["influence"])
    wanted = biased_influence(RelayModel.uniform(64, 2, 1, position=0.5), PromptBias(0.7), [10, 50])
    np.testing.assert_array_equal(found.influence, wanted)
    with pytest.raises(ValueError, match="local_exponent must not be asked for"):
        sweep(t=[10, 50], position=0.5, bias=0.7, depth=2)


def test_xarray_has_the_labels_and_what_is_the_same_everywhere():
    found = sweep(t=[1, 10], depth=[2, 3], prompt=8)
    assert found["influence"].dims == ("depth", "t")
    wanted = float(influence(RelayModel.uniform(8, 3, 1), 10))
    assert float(found["influence"].sel(depth=3, t=10)) == pytest.approx(wanted, rel=1e-14)
    assert int(found.prompt) == 8
    assert found.attrs["source"].startswith("relaymodel")


def test_without_xarray_there_is_a_dataset(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    found = sweep(t=[1, 10], depth=[2, 3], prompt=8)
    assert isinstance(found, Dataset)
    assert found.columns()["depth"].tolist() == [2, 2, 3, 3]
    with pytest.raises(ImportError, match="xarray is needed to label a sweep"):
        found.to_xarray()
    assert "depth" in found._repr_html_()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"relay": 0}, "relay must not be 0"),
        ({"depth": [[2]]}, r"depth must be a number or one-dimensional, got shape \(1, 1\)"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"position": [-1]}, "position must be greater than -1"),
        ({"prompt": []}, "prompt must have at least one value"),
        ({"bias": 1, "t": [1.5]}, "t must be whole numbers"),
        ({"quantities": ["size"]}, "quantities must be one of"),
        ({"quantities": []}, "quantities must name"),
        ({"executor": 2}, "executor must have the submit of concurrent.futures"),
        ({"relay": np.ones(10**5), "prompt": np.arange(1, 10**5)}, "the grid must be smaller"),
    ],
)
def test_unusable_arguments_are_named(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        sweep(**{"t": [1, 2]} | given)


LARGE = {"t": np.geomspace(1, 1e6, 300), "relay": np.linspace(0.1, 2, 60), "prompt": [1, 64, 1000], "depth": [1, 12]}


def same(one, other):
    return all(one[name].values.tobytes() == other[name].values.tobytes() for name in ("influence", "local_exponent"))


def test_processes_and_threads_give_the_same_bytes():
    here = sweep(**LARGE)
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(2) as threads:
        assert all(same(sweep(**LARGE, executor=executor), here) for executor in (processes, threads))


@pytest.mark.exhaustive
def test_a_cluster_of_dask_gives_the_same_bytes():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert len(client.scheduler_info()["workers"]) == 2
        assert same(sweep(**LARGE, executor=client), sweep(**LARGE))


def test_interrupted_it_goes_on(tmp_path):
    """Stopped after the second of its blocks, it does the other ones only."""

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(**LARGE, resume=tmp_path / "store", progress=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert len(kept) == 2
    assert same(sweep(**LARGE, resume=tmp_path / "store"), sweep(**LARGE))
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_folder_of_another_sweep_is_refused_and_progress_is_told(tmp_path):
    seen = []
    sweep(t=[1, 2], resume=tmp_path / "store", progress=lambda *at: seen.append(at))
    assert seen == [(1, 1)]
    with pytest.raises(ValueError, match="resume must be a folder of the same sweep"):
        sweep(t=[1, 3], resume=tmp_path / "store")


CHILD = """
import sys
import numpy as np
from relaymodel import sweep
sweep(t=np.geomspace(1, 1e6, 2000), relay=np.linspace(.1, 2, 300), prompt=[1, 64], resume=sys.argv[1], depth=12)
"""


def killed(code, folder, after):
    """Run a program that works on a folder; kill it after some seconds; return whether it was still at work."""
    child = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_killed_and_resumed_gives_the_same_bytes(tmp_path, rng):
    """Twenty times, at random: in the middle of a block, of a file, of the import."""
    grid = {"t": np.geomspace(1, 1e6, 2000), "relay": np.linspace(0.1, 2, 300), "prompt": [1, 64], "depth": 12}
    undisturbed = sweep(**grid)
    for k in range(20):
        folder = tmp_path / str(k)
        assert killed(CHILD, folder, rng.uniform(0.2, 0.9))
        resumed = sweep(**grid, resume=folder)
        assert same(resumed, undisturbed)


@pytest.mark.parametrize("name", ["prompt", "depth", "relay", "residual", "position", "recency", "sink", "bias", "t"])
def test_a_folder_of_any_other_parameter_is_refused(tmp_path, name):
    given = {"t": 3, "prompt": 8, "depth": 2, "relay": 1, "residual": 1, "position": 0, "recency": 0, "sink": 0}
    given |= {"bias": 0, "quantities": ["influence"], "resume": tmp_path / "store"}
    sweep(**given)
    with pytest.raises(ValueError, match="resume must be a folder of the same sweep"):
        sweep(**{**given, name: given[name] + (1 if name in ("prompt", "depth", "t") else 0.5)})
