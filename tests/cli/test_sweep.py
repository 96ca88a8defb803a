"""The command `sweep`: every combination once, each row what the recursion gives, in a table that any program reads."""

import csv
import json
import shlex
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from relaymodel import RelayModel, influence_ball
from relaymodel.cli import main

COLUMNS = ("prompt", "depth", "relay", "residual", "position", "t", "influence", "local_exponent")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(command):
        code = main(shlex.split(command))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_every_combination_is_the_recursion(run, tmp_path):
    code, _, err = run(
        "sweep --prompt 2,5 --depth 1,3 --relay 1/3,2 --residual 1,1/2 --position 0,1 --t 1,10 --csv sweep.csv"
    )
    assert (code, err) == (0, "wrote sweep.csv\n")
    found = rows(tmp_path / "sweep.csv")
    assert tuple(found[0]) == COLUMNS
    wanted = list(product((2, 5), (1, 3), (Fraction(1, 3), 2), (1, Fraction(1, 2)), (0, 1), (1, 10)))
    assert len(found) == len(wanted) == 64
    for row, (prompt, depth, relay, residual, position, t) in zip(found, wanted, strict=True):
        assert (int(row["prompt"]), int(row["depth"]), int(row["t"])) == (prompt, depth, t)
        given = [float(row[name]) for name in ("relay", "residual", "position")]
        assert given == [float(relay), float(residual), float(position)]
        x = RelayModel.uniform(prompt, depth, relay, residual, position).differences(prompt + t + 1)
        D, before, after = (float(x[prompt + t + shift]) for shift in (-1, -2, 0))
        assert abs(float(row["influence"]) / D - 1) < 1e-12
        if t == 10:  # central difference in t, whose error is of the order 1/t^2
            assert abs(float(row["local_exponent"]) - t * (before - after) / 2 / D) < 0.03


def test_the_table_is_plain_csv(run, tmp_path):
    run("sweep --depth 1 --relay 1/2 --t-max 1e3 --points 4 --csv sweep.csv")
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[1].startswith("64,1,0.5,1,0,1,0.49230769230769")  # 32/65
    assert lines[1].split(",")[-1].startswith("0.01538461538461")  # 1/65
    assert len(lines) == 5


def test_it_does_something_good_alone(run):
    code, out, err = run("sweep")
    assert (code, err) == (0, "")
    assert "local exponent" in out.splitlines()[0]
    assert "of 250 points" in out.splitlines()[-1]  # 5 depths, 2 strengths, 25 t


def test_json_is_one_object_with_equal_columns(run):
    code, out, err = run("sweep --depth 2,3 --relay 1 --t 1,1e3 --json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert tuple(found) == COLUMNS
    assert {len(values) for values in found.values()} == {4}
    assert found["depth"] == [2, 2, 3, 3]
    assert found["t"] == [1, 1000, 1, 1000]


def test_values_beyond_floats_are_decimal_numbers(run, tmp_path):
    run("sweep --depth 2 --relay 1 --t 10,1e400 --csv sweep.csv")
    (row,) = (row for row in rows(tmp_path / "sweep.csv") if len(row["t"]) > 100)
    exact = influence_ball(RelayModel.uniform(64, 2, 1), 10**400, digits=20)
    assert abs(Decimal(row["influence"]) / Decimal(exact.str(20, radius=False)) - 1) < Decimal("1e-15")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep --depth 2,0", "--depth must be at least 1, got '0'"),
        ("sweep --depth 2,many", "--depth must be a number such as"),
        ("sweep --depth 1001", "--depth must be at most 1000"),
        ("sweep --prompt 1.5", "--prompt must be a whole number"),
        ("sweep --relay 1,0", "--relay must not be 0"),
        ("sweep --position=-1", "position must be greater than -1"),
        ("sweep --t 0", "--t must be positive"),
        ("sweep --prompt 1,2,3 --points 1e6", "at most 1000000 rows"),
    ],
)
def test_unusable_input_is_named_in_one_line_and_nothing_is_written(run, tmp_path, command, message):
    code, out, err = run(f"{command} --csv sweep.csv")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "sweep.csv").exists()


def test_files_are_overwritten_only_when_asked(run, tmp_path):
    (tmp_path / "sweep.csv").write_text("precious")
    assert run("sweep --depth 1 --csv sweep.csv")[0] == 2
    assert (tmp_path / "sweep.csv").read_text() == "precious"
    assert run("sweep --depth 1 --csv sweep.csv --force")[0] == 0
    assert len(rows(tmp_path / "sweep.csv")) == 50
