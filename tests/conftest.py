"""Hypothesis profiles, and the seed of random tests in the header of every run."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: small matrices, and workers side by side

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SEED = int(os.environ.get("RELAYMODEL_SEED", "20260101"))

settings.register_profile("dev", max_examples=40, deadline=None, print_blob=True)
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=600)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_report_header() -> str:
    profile = settings.get_current_profile_name()
    return f"relaymodel: seed of random tests {SEED} (RELAYMODEL_SEED), hypothesis profile {profile}"


@pytest.fixture
def rng(request):
    """A generator seeded for this test alone; the seed is printed when the test fails."""
    print(f"seed {SEED} of {request.node.nodeid}")
    return np.random.default_rng([SEED, sum(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def grown(tmp_path_factory):
    """The folder of a small experiment, trained once: two seeds, with and without the bias."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from relaymodel.cli import main

    out = tmp_path_factory.mktemp("training") / "grown"
    assert main(["train", "english", "--arms", "--seeds", "2", "--preset", "quick", "--out", str(out)]) == 0
    return out
