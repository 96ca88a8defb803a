"""The command reproduce."""

import json
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def claims(monkeypatch):
    """Replace the report by one with the given verdicts."""

    def verdicts(*passed):
        listed = tuple(
            SimpleNamespace(title=f"Claim ${i}$", finding=f"found $10^{{{i}.5}}$", passed=np.bool_(p))
            for i, p in enumerate(passed)
        )
        calls = []

        def reproduce(out, *, model=None, training=None, overwrite=False, progress=None):
            calls.append((str(out), overwrite, progress))
            return SimpleNamespace(
                claims=listed, passed=all(passed), verdicts=f"{sum(passed)} of {len(passed)} claims hold"
            )

        module = ModuleType("relaymodel.report")
        module.reproduce = reproduce
        monkeypatch.setitem(sys.modules, "relaymodel.report", module)
        return calls

    return verdicts


def test_reproduce_prints_verdicts(run, claims):
    calls = claims(True, True)
    code, out, err = run("reproduce --out here")
    assert code == 0
    assert re.search(r"holds +Claim 0\n +found 10\^0.5\nholds +Claim 1\n +found 10\^1.5\n2 of 2 claims hold\n$", out)
    assert "here" in err
    assert calls == [("here", False, None)]  # no progress but on a terminal


def test_a_failed_claim_is_exit_code_1(run, claims):
    claims(True, False)
    code, out, _ = run("reproduce")
    assert code == 1
    assert "FAILS" in out
    code, out, _ = run("reproduce --json")
    assert code == 1
    assert json.loads(out) == {
        "passed": False,
        "claims": [
            {"title": "Claim 0", "finding": "found 10^0.5", "passed": True},
            {"title": "Claim 1", "finding": "found 10^1.5", "passed": False},
        ],
    }


def test_reproduce_overwrites_only_when_asked(run, claims, tmp_path):
    calls = claims(True)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "mine").write_text("mine")
    assert run("reproduce")[0] == 2
    assert calls == []
    assert run("reproduce --force")[0] == 0
    assert calls == [("report", True, None)]
