"""Files and JSON: whole, and only where asked."""

import os
from decimal import Decimal
from fractions import Fraction

import pytest

import relaymodel.exact
import relaymodel.simulation
from relaymodel.cli.output import print_json
from tests.cli.cases import write_power_law

WRITERS = {
    "influence --t 1,10,100": ["csv", "plot"],
    "bound --depth 3 --t 1,10,100": ["csv", "plot"],
    "simulate --t 1,10,100": ["csv", "plot"],
    "exponent curve.csv": ["csv", "plot"],
}


@pytest.mark.parametrize("command", WRITERS)
def test_nothing_is_overwritten_unless_asked(run, tmp_path, command):
    run("--version")
    write_power_law()
    for kind in ("csv", "plot"):
        path = tmp_path / f"mine.{'svg' if kind == 'plot' else kind}"
        path.write_text("mine")
        code, out, err = run(f"{command} --{kind} {path.name}")
        assert (code, out) == (2, "")
        assert err == f"relaymodel: {path.name} exists already; choose another path, or --force to overwrite it\n"
        assert path.read_text() == "mine"
        code, out, err = run(f"{command} --{kind} {path.name} --force")
        assert (code, err) == (0, f"wrote {path.name}\n")
        assert out
        assert len(path.read_text()) > 100
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curve.csv", "mine.csv", "mine.svg"]


def test_paths_are_checked_before_any_work(run, tmp_path, monkeypatch):
    def work(*_args, **_kwargs):
        raise AssertionError("worked first")

    monkeypatch.setattr(relaymodel.simulation, "simulate", work)
    (tmp_path / "folder").mkdir()
    for path in ("folder", "missing/curve.csv"):
        assert run(f"simulate --csv {path}")[0] == 2
    assert run("simulate --plot figure.jpg")[0] == 2
    assert run("simulate --csv same.svg --plot ./same.svg")[0] == 2
    monkeypatch.setattr(os, "access", lambda *_args, **_kwargs: False)
    code, _, err = run("simulate --csv curve.csv")
    assert code == 2
    assert "is not writable" in err
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_interrupt_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(relaymodel.simulation, "simulate", interrupt)
    assert run("simulate --csv curve.csv --plot curve.svg") == (130, "", "relaymodel: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_json_refuses_what_json_is_not(capsys):
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"value": [float("nan")]})
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        print_json({"value": object()})
    assert capsys.readouterr().out == ""
    print_json({"a": Decimal("1e-400"), "b": Fraction(1, 4), "c": 'quotes " and \\u0000'})
    assert capsys.readouterr().out == '{"a": 1E-400, "b": 0.25, "c": "quotes \\" and \\\\u0000"}\n'
