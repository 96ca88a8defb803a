"""The command exponent, and the files it reads."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tests.cli.cases import near, write_power_law


def test_exponent_of_a_power_law(run, result):
    run("--version")  # enters the folder
    write_power_law(ripple=1e-3)
    found = result("exponent curve.csv --t-min 10 --t-max 1e4")
    assert list(found) == ["alpha", "stderr", "window", "adequate", "local", "limit", "caveats"]
    assert abs(found["alpha"] - Decimal("0.5")) < 3 * found["stderr"]
    assert 10 <= found["window"][0] < 13
    assert 7800 < found["window"][1] <= 10000
    assert found["adequate"] is True
    local = found["local"]
    assert list(local) == ["t", "alpha", "stderr"]
    assert len(local["t"]) == len(local["alpha"]) == len(local["stderr"]) > 20
    assert all(abs(a - Decimal("0.5")) < 4 * e for a, e in zip(local["alpha"], local["stderr"], strict=True))
    assert set(found["limit"]) == {"value", "stderr"}
    code, out, err = run("exponent curve.csv")
    assert (code, err) == (0, "")
    assert "alpha = 0.500" in out
    assert "note" not in out
    assert found["caveats"] == []


def test_what_a_curve_could_not_tell_is_printed_once(run, result, tmp_path):
    rng, t = np.random.default_rng(1), np.unique(np.rint(np.geomspace(1, 1e6, 100)))
    wave = t**-0.5 * np.exp(0.1 * np.cos(6 * np.log(t)) + 0.01 * rng.standard_normal(t.size))
    flat = (t**-0.5 + 0.02) * np.exp(0.05 * rng.standard_normal(t.size))
    rows = [f"{a:.0f},{b!r},{c!r}" for a, b, c in zip(t, wave.tolist(), flat.tolist(), strict=True)]
    run("--version")
    (tmp_path / "curves.csv").write_text("\n".join(["t,wave,flat", *rows]) + "\n")
    for column, said in (("wave", "log D waves in log t, once in each factor of 2.8"), ("flat", "flat at its end")):
        options = f"exponent curves.csv --columns t=t,distance={column}"
        found = result(options)["caveats"]
        assert len(found) == 1
        assert said in found[0]
        assert f"note         {found[0]}\n" in run(options)[1]


def test_exponent_without_a_limit_says_why(run, result):
    run("--version")
    write_power_law(t=range(100, 140))
    found = result("exponent curve.csv")
    assert found["limit"] is None
    assert "decade" in found["limit_reason"]
    assert found["limit_reason"] in run("exponent curve.csv")[1]


def test_exponent_of_one_layer_among_several(run, result, tmp_path):
    lines = ["t,layer,distance"]
    for layer, alpha in ((1, 1.0), (7, 0.25)):
        lines += [f"{t},{layer},{t**-alpha!r}" for t in range(1, 40)]
    (tmp_path / "layers.csv").write_text("\n".join(lines) + "\n")
    assert near(result("exponent layers.csv --layer 7")["alpha"], Fraction(1, 4), rel=1e-6)
    code, out, err = run("exponent layers.csv --layer 3")
    assert (code, out) == (2, "")
    assert "layer must be one of those in layers.csv: 1, 7; got 3" in err


def test_simulated_curve_has_the_limit_one(run, result):
    run("simulate --prompt 10 --depth 3 --t-max 1e5 --points 40 --csv curve.csv")
    limit = result("exponent curve.csv")["limit"]
    assert abs(limit["value"] - 1) < 3 * limit["stderr"] < Decimal("0.3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty file"),
        ("1,2\n2,1\n", "line 1: the header must name the column t once"),
        ("t,distance\n1,2\n2,many\n", "line 3: distance must be a number, got '2,many'"),
        ("t,distance\r\n1,2\r\n3,1\r\n2,0.5\r\n", "line 4: t must be strictly increasing"),
        ("# a: b\nt;distance\n1;2\n2\n", "line 4: expected 2 columns, found 1"),
        ("t,distance\n1,2\n2,nan\n", "line 3: distance must be finite and positive"),
        ("t,distance\n1,2\n", "t must have at least 2 values"),
        ("t,distance\n1,2\n2,1\n3,0.5\n", "must hold at least 6 points"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(run, tmp_path, content, message):
    (tmp_path / "bad.csv").write_bytes(content.encode())
    code, out, err = run("exponent bad.csv --json")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    if "line" in message:
        assert "bad.csv, line" in err


def test_windows_files_are_read(run, result, tmp_path):
    rows = "".join(f"{t};{1 / t!r}\r\n" for t in range(1, 40))
    (tmp_path / "windows.csv").write_bytes(b"\xef\xbb\xbft;distance\r\n" + rows.encode())
    assert near(result("exponent windows.csv")["alpha"], 1, rel=1e-9)
