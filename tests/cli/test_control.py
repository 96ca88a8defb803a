"""The command control."""

import json
import shlex

import numpy as np
import pytest

import relaymodel as rm
from relaymodel import PromptBias, Reminders, influence, simulate
from relaymodel.cli import main
from relaymodel.control import (
    bias_limit,
    biased_influence,
    plan_reminders,
    reminder_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.simulation import (
    ConstantShare,
)
from tests.control.cases import SIX


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(command):
        code = main(shlex.split(f"control {command}"))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_command_shows_limits(run):
    code, out, _ = run("--relay 1/2 --bias 1.5 --t 1,1000 --json")
    found, limit, turn = json.loads(out), bias_limit(SIX, PromptBias(1.5)), turning_point(SIX, PromptBias(1.5))
    assert code == 0
    assert (found["phase"], found["limit"], found["turn"]["t"]) == ("reversal", float(limit.limit), turn.t)
    np.testing.assert_allclose(found["influence"], biased_influence(SIX, PromptBias(1.5), [1, 1000]))
    np.testing.assert_allclose(found["uncontrolled"], influence(SIX, [1, 1000]))
    found = json.loads(run("--relay 1/2 --share 1/4 --t 5,9 --json")[1])
    np.testing.assert_allclose(found["influence"], float(bias_limit(SIX, ConstantShare(0.25)).limit), rtol=1e-12)
    assert "plateau" in run("--points 3")[1]
    assert json.loads(run("--depth 64 --bias 1e-6 --points 2 --json")[1], parse_float=str)["amplitude"].endswith(
        "E+379"
    )


def test_command_shows_reminders_and_plans(run):
    found = json.loads(run("--relay 1/2 --every 64 --length 8 --t 100,1000 --json")[1])
    assert found["plateau"] == float(reminder_limit(SIX, Reminders(64, 8)).between)
    np.testing.assert_allclose(found["influence"], reminder_influence(SIX, Reminders(64, 8), [100, 1000]))
    found = json.loads(run("--relay 1/2 --hold 5 --horizon 1000 --t-max 1000 --points 4 --json")[1])
    plan = plan_reminders(SIX, 5, 1000)
    assert (found["tokens"], found["blocks"], found["optimal"]) == (plan.tokens, [[1, plan.tokens]], True)
    assert min(found["influence"]) >= 5
    found = json.loads(run("--relay 1/2 --hold 1 --length 8 --points 3 --json")[1])
    assert found["length"] == 8
    both = json.loads(run("--relay 1/2 --bias 1 --every 64 --length 8 --t 100,1000 --json")[1])
    curve = simulate(SIX, 1000, bias=PromptBias(1), reminders=Reminders(64, 8), samples=[100, 1000])
    np.testing.assert_allclose(both["influence"], curve.distance)


@pytest.mark.slow
def test_command_writes_files(run, tmp_path):
    for options in ("--bias 0.5", "--every 64 --length 8", "--hold 5 --horizon 1e4"):
        code, _, err = run(f"--depth 3 {options} --points 4 --csv a.csv --plot a.png --force")
        assert code == 0, err
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
        curve = rm.Curve.from_csv(tmp_path / "a.csv")
        assert curve.provenance["prompt"] == "64"
    assert run("--points 4 --csv a.csv")[0] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--bias 1 --share 1/2", "--bias must not be given together with --share"),
        ("--every 3", "--every and --length must be given together"),
        ("--hold 1 --bias 1", "--hold plans reminders by itself"),
        ("--horizon 9", "--horizon must be given with --hold"),
        ("--t 1.5", "--t must be whole numbers"),
        ("--hold 1e9", "--hold must be positive and at most f(1)"),
        ("--relay 0", "relaying layer"),
        ("--bias x", "--bias must be a number"),
        ("--bias 1 --every 64 --length 8 --t-max 1e15", "--t-max must be smaller: simulating 1e+15 tokens would take"),
        ("--hold 1 --horizon 9 --t-max 10 --plot a.png", "--plot must be left out where there is no control to draw"),
        ("--t 5 --plot a.png", "at least two different t"),
    ],
)
def test_command_refuses_in_one_line(run, tmp_path, options, message):
    code, out, err = run(options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
