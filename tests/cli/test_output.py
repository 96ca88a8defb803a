"""Files and JSON: whole, and only where asked."""

import io
import json
import os
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import relaymodel
from relaymodel import Curve, RelayModel
from relaymodel.cli.output import print_json
from tests.cli.cases import exact, near, write_power_law

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

    monkeypatch.setattr(relaymodel, "simulate", work)
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

    monkeypatch.setattr(relaymodel, "simulate", interrupt)
    assert run("simulate --csv curve.csv --plot curve.svg") == (130, "", "relaymodel: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_json_refuses_what_json_is_not(capsys):
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"value": [float("nan")]})
    with pytest.raises(TypeError, match="not JSON serializable"):
        print_json({"value": object()})
    assert capsys.readouterr().out == ""
    print_json({"a": Decimal("1e-400"), "b": Fraction(1, 4), "c": 'quotes " and \\u0000'})
    assert capsys.readouterr().out == '{"a": 1E-400, "b": 0.25, "c": "quotes \\" and \\\\u0000"}\n'
    print_json({"a": Decimal("1e-400"), "b": 10**400, "c": 2**60}, strings=True)
    assert json.loads(capsys.readouterr().out) == {"a": "1E-400", "b": "1" + "0" * 400, "c": 2**60}


@pytest.mark.slow
def test_several_depths_are_laid_over_each_other(run, result, tmp_path):
    code, _, err = run("influence --relay 0.5 --depth 1,4 --t-max 1e8 --plot a.svg --csv a.csv")
    assert (code, err) == (0, "wrote a.svg\nwrote a.csv\n")
    assert re.findall("<!-- [$](.*)[$] -->", (tmp_path / "a.svg").read_text())[-1] == "L = 4"
    found = result("influence --depth 1,2 --t 1,10")
    assert (found["depth"], found["t"]) == ([1, 1, 2, 2], [1, 10, 1, 10])
    assert found["influence"][2:] == result("influence --depth 2 --t 1,10")["influence"]
    assert near(Curve.from_csv("a.csv", layer=4, columns={"layer": "depth"}).distance[0], found_at(4))


def found_at(depth):
    return exact(RelayModel.uniform(64, depth, Fraction(1, 2)), 1)


def test_title_size_and_format_of_figures(run, tmp_path):
    assert run("influence --t 1,9 --plot a.figure --format svg --size 5,4 --title '$D$ of 64'")[0] == 0
    text = (tmp_path / "a.figure").read_text()
    assert 'width="360pt" height="288pt"' in text
    assert "<!-- $D$ of 64 -->" in text


def test_a_figure_on_standard_output_is_the_file_alone(run, tmp_path):
    assert run("bound --t 1,9 --plot a.svg")[0] == 0
    assert run("bound --t 1,9 --plot - --format svg") == (0, (tmp_path / "a.svg").read_text(), "")


def test_tables_for_handouts(run):
    assert run("influence --t 1,1e20 --depth 1 --prompt 3 --table markdown")[1].splitlines() == [
        "| t | influence | local exponent |",
        "| ---: | ---: | ---: |",
        "| 1 | 0.750000 | 0.250000 |",
        "| 1e+20 | 3.00000e-20 | 1.00000 |",
    ]
    lines = run("influence --t 1,1e20 --depth 1 --prompt 3 --table latex")[1].splitlines()
    assert lines[0] == r"\begin{tabular}{rrr}"
    assert lines[4] == r"$1\times 10^{20}$ & $3.00000\times 10^{-20}$ & 1.00000 \\"
    assert lines[-1] == r"\end{tabular}"


@pytest.mark.parametrize("suffix", ["csv", "tsv", "npz", "parquet"])
def test_tables_in_every_format_are_curves(run, result, suffix, tmp_path):
    assert run(f"influence --t-max 1e5 --csv curve.{suffix}")[0] == 0
    assert run("influence --t-max 1e5 --csv plain.csv")[0] == 0
    assert result(f"exponent curve.{suffix}") == result("exponent plain.csv")


def test_standard_input_is_a_file(run, monkeypatch):
    run("--version")
    write_power_law()
    raw = Path("curve.csv").read_bytes()
    expected = run("exponent curve.csv --json")[1]
    for command in ("exponent - --json", "exponent --json -"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert run(command) == (0, expected, "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert (
        run("fit -")[2]
        == "relaymodel: - must hold a header with t and distance and rows of numbers, got an empty file\n"
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    code, out, err = run("explore - --out -")
    assert (code, err) == (0, "")
    assert out.startswith("<!DOCTYPE html>")
    assert "standard input can be read once" in run("measure untrained-numpy --prompt-a - --prompt-b -")[2]
