"""The command line: what it prints, what it writes, how it refuses, how it ends."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import relaymodel.exact
import relaymodel.simulation
from relaymodel import Curve, Layer, RelayModel
from relaymodel.cli import main
from relaymodel.cli.app import WELCOME
from relaymodel.cli.numbers import LARGEST_EXPONENT, log_grid, number, outward, text
from relaymodel.cli.output import print_json

PROGRAM = [sys.executable, "-m", "relaymodel"]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(command):
        code = main(shlex.split(command))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def result(run):
    """Run a command with --json; return the object it prints, with decimal numbers of any size."""

    def call(command):
        code, out, err = run(f"{command} --json")
        assert code == 0, err
        assert out.count("\n") == 1
        assert re.search(r"NaN|Infinity", out) is None
        return json.loads(out, parse_float=Decimal)

    return call


def exact(model, t):
    """D(t) by the exact recursion."""
    return model.differences(model.prompt + t)[-1]


def near(value, expected, rel=1e-12):
    return abs(Fraction(value) - Fraction(expected)) <= Fraction(rel) * abs(Fraction(expected))


# what comes out


def test_newcomers_are_told_what_to_try_and_it_works(run):
    code, out, err = run("")
    assert (code, out, err) == (0, WELCOME, "")
    examples = re.findall(r"^  relaymodel (.*?)   ", WELCOME, flags=re.MULTILINE)
    assert 3 <= len(examples) <= 5
    for example in examples:
        if not example.startswith("reproduce"):
            code, out, err = run(example)
            assert (code, len(out) > 100) == (0, True), err
    assert run("exponent curve.csv --t-min 1e5")[0] == 0


@pytest.mark.parametrize("command", ["influence", "bound", "derive", "simulate"])
def test_commands_do_something_good_alone(run, command):
    code, out, err = run(command)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 20
    assert out.isascii()


def test_version_and_help(run):
    assert run("--version") == (0, f"relaymodel {relaymodel.__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    commands = [
        "derive",
        "influence",
        "sweep",
        "simulate",
        "exponent",
        "fit",
        "bound",
        "control",
        "measure",
        "certify",
        "train",
        "reproduce",
    ]
    for command in commands:
        assert command in out
        assert run(f"{command} -h")[0] == 0


def test_influence_is_the_recursion(result):
    found = result("influence --prompt 5 --relay 1/2,1,0.1 --residual 1,1/3,1 --position 0,-1/2,2 --t 1,7,20")
    layers = [
        Layer(Fraction(1, 2)),
        Layer(1, Fraction(1, 3), Fraction(-1, 2)),
        Layer(Fraction(1, 10), 1, 2),
    ]
    model = RelayModel(5, layers)
    assert list(found) == ["t", "influence", "local_exponent"]
    assert found["t"] == [1, 7, 20]
    for t, D in zip(found["t"], found["influence"], strict=True):
        assert near(D, exact(model, t))
    # central difference in t
    slope = -20 * (exact(model, 21) - exact(model, 19)) / 2 / exact(model, 20)
    assert near(found["local_exponent"][2], slope, rel=1e-2)


def test_one_number_is_for_all_layers_and_lists_set_the_depth(result):
    assert near(result("influence --prompt 3 --relay 2 --depth 2 --t 4")["influence"][0], exact(twice(3), 4))
    assert near(result("influence --prompt 3 --relay 2,2 --t 4")["influence"][0], exact(twice(3), 4))


def twice(prompt):
    return RelayModel.uniform(prompt=prompt, depth=2, relay=2)


@pytest.mark.parametrize("written", ["1e400", "1" + "0" * 400, "10e399"])
def test_t_of_any_size_is_taken_exactly(result, written):
    found = result(f"influence --prompt 3 --depth 1 --relay 1/7 --t 1e3,{written}")
    assert found["t"] == [1000, 10**400]
    D = found["influence"][1]  # below the float range, and still a JSON number
    assert near(D, Fraction(3, 7 * (3 + 10**400)), rel=1e-15)
    assert near(found["local_exponent"][1], 1)


def test_values_above_the_float_range_are_numbers_too(result, run):
    found = result("influence --prompt 1 --depth 2 --residual 0 --relay 1e200 --t 1")
    assert near(found["influence"][0], exact(RelayModel.uniform(1, 2, 10**200, 0), 1), rel=1e-15)
    assert "e+399" in run("influence --prompt 1 --depth 2 --residual 0 --relay 1e200 --t 1")[1]


def test_real_t(result):
    found = result("influence --prompt 3 --depth 1 --t 1/2,0.1,2.5")
    assert [float(t) for t in found["t"]] == [0.5, 0.1, 2.5]
    for t, D in zip((Fraction(1, 2), Fraction(1, 10), Fraction(5, 2)), found["influence"], strict=True):
        assert near(D, 3 / (3 + t))


def test_default_grid(result):
    t = result("influence --t-max 1e4 --points 9")["t"]
    assert t == [1, 3, 10, 32, 100, 316, 1000, 3162, 10000]
    assert result("influence --t-max 1e400 --points 3")["t"] == [1, 10**200, 10**400]


def test_bound_brackets_the_value(result):
    found = result("bound --prompt 4 --relay 1/2,1,2 --t 1,10,50")
    assert list(found) == ["t", "lower", "value", "upper", "tightness"]
    model = RelayModel(4, [Layer(Fraction(1, 2)), Layer(1), Layer(2)])
    for t, low, D, high, tightness in zip(*found.values(), strict=True):
        assert Fraction(low) < exact(model, t) < Fraction(high)
        assert near(D, exact(model, t))
        assert near(tightness, Fraction(high) / Fraction(low), rel=1e-14)


def test_bound_at_astronomical_t(result):
    found = result("bound --depth 3 --t 1e300,1e4000")
    assert found["lower"][1] < found["value"][1] < found["upper"][1] < Decimal("1e-3000")
    assert 1 < found["tightness"][1] < found["tightness"][0] < Decimal("1.0001")


def test_bound_of_two_layers_is_an_equality(result):
    found = result("bound --depth 2 --t 5")
    assert found["tightness"] == [1]
    assert found["lower"][0] < found["value"][0] < found["upper"][0]


def test_simulation_agrees_with_the_recursion(result):
    found = result("simulate --prompt 4 --depth 3 --relay 1/2 --t 1,9,30")
    model = RelayModel.uniform(4, 3, Fraction(1, 2))
    assert list(found) == ["t", "distance", "exact", "relative_difference"]
    assert found["t"] == [1, 9, 30]
    for t, distance, value in zip(found["t"], found["distance"], found["exact"], strict=True):
        assert near(distance, exact(model, t), rel=1e-14)
        assert near(value, exact(model, t))
    assert all(0 <= difference < 1e-14 for difference in found["relative_difference"])


def test_derive_prints_what_sympy_reads(result):
    found = result("derive --depth 2 --relay different --order 2")
    P, t = sympy.symbols("P t", positive=True)
    values = {"P": 2, "t": 2, "lambda_1": 1, "lambda_2": 3}
    expected = exact(RelayModel(2, [Layer(1), Layer(3)]), 2)
    for form in ("closed_form", "harmonic_form"):
        expression = sympy.sympify(found[form])
        assert sympy.simplify(expression.subs(values)) == sympy.Rational(expected)
    assert found["limit"]["log_power"] == 1
    series = sympy.sympify(found["exponent_series"]["expression"], {"t": t, "P": P})
    assert sympy.simplify(series - (1 - 1 / sympy.log(t))) == 0
    assert "steps" not in found


def test_derive_takes_decimals_exactly(result):
    assert result("derive --depth 2 --relay 0.1,1/3")["relay"] == ["1/10", "1/3"]


def test_derive_steps_and_latex(run, result):
    code, out, _ = run("derive --depth 2 --steps")
    assert code == 0
    assert "1. One layer" in out
    assert len(result("derive --depth 2 --steps --latex")["steps"]) > 5
    code, out, _ = run("derive --depth 2 --latex")
    assert out.startswith("\\begin{align*}\n& D")
    assert "\\end{align*}" in out
    assert "\\psi" in out
    assert "\\paragraph{One layer.}" in run("derive --depth 2 --latex --steps")[1]


def test_derive_of_many_layers_stays_readable(run):
    code, out, _ = run("derive --depth 40")
    assert code == 0
    assert "h_39" in out
    assert max(map(len, out.splitlines())) < 3000


def write_power_law(path="curve.csv", alpha=0.5, t=None, ripple=0.0):
    t = np.unique(np.geomspace(1, 1e5, 50).round()) if t is None else np.asarray(t, dtype=float)
    Curve(t, 3 * t**-alpha * np.exp(ripple * np.sin(t))).to_csv(path)


def test_exponent_of_a_power_law(run, result):
    run("--version")  # enters the folder
    write_power_law(ripple=1e-3)
    found = result("exponent curve.csv --t-min 10 --t-max 1e4")
    assert list(found) == ["alpha", "stderr", "window", "adequate", "local", "limit"]
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


# files


def test_csv_of_influence_is_a_curve(run, tmp_path):
    code, _, err = run("influence --prompt 5 --depth 2 --t 1,10,1e20 --csv out.csv")
    assert (code, err) == (0, "wrote out.csv\n")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1:4] == ["# prompt: 5", "# layers: 2 x (relay 1, residual 1, position 0)", "t,distance,local_exponent"]
    assert lines[-1].startswith("100000000000000000000,")
    curve = Curve.from_csv(tmp_path / "out.csv")
    assert near(curve.distance[1], exact(RelayModel.uniform(5, 2, 1), 10))


def test_csv_of_negative_influence_holds_its_size(run, tmp_path, result):
    assert near(result("influence --prompt 1 --depth 1 --relay -1 --t 1,3")["influence"][1], Fraction(-1, 4))
    run("influence --prompt 1 --depth 1 --relay -1 --t 1,3 --csv out.csv")
    curve = Curve.from_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(curve.distance, [1 / 2, 1 / 4], rtol=1e-12)
    assert "changes sign" in curve.provenance["negative"]


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


# unusable input

REFUSED = {
    "influence --prompt 0": "--prompt must be at least 1, got '0'",
    "influence --prompt -1": "--prompt must be at least 1, got '-1'",
    "influence --prompt 2.5": "--prompt must be a whole number such as 64 or 1e6, got '2.5'",
    "influence --prompt true": "--prompt must be a number such as 64, 0.5, 1/2 or 1e6, got 'true'",
    "influence --t 0": "--t must be positive",
    "influence --t 10,-1": "--t must be positive, since it counts the tokens after the prompt, got '-1'",
    "influence --t nan": "--t must be a number such as 64, 0.5, 1/2 or 1e6, got 'nan'",
    "influence --t inf": "--t must be a number such as 64, 0.5, 1/2 or 1e6, got 'inf'",
    "influence --t 1,,2": "--t must be a number such as 64, 0.5, 1/2 or 1e6, got ''",
    "influence --t 1e4001": "--t must have a power of ten of at most 4000",
    "influence --t 1e999999999999": "--t must have a power of ten of at most 4000",
    "influence --position -1": "position must be greater than -1, got -1",
    "influence --position 0,-1.5": "position must be greater than -1, got -1.5",
    "influence --depth 0": "--depth must be at least 1, got '0'",
    "influence --depth 1e9": "--depth must be at most 1000",
    "influence --depth 3 --relay 1,2": "--relay must have one value, or one for each of the 3 layers, got 2",
    "influence --relay 1,2 --residual 1,2,3": "--residual must have one value, or one for each of the 2 layers, got 3",
    "influence --relay nan": "--relay must be a number such as 64, 0.5, 1/2 or 1e6, got 'nan'",
    "influence --relay 1/0": "--relay must be a number",
    "influence --relay 0": "must have an influence other than 0",
    "influence --t 5 --points 3": "--t must not be given together with --points; choose one",
    "influence --t 5 --t-max 10": "--t must not be given together with --t-max; choose one",
    "influence --t-max 1": "--t-max must be at least 2",
    "influence --points 1": "--points must be at least 2",
    "influence --points 1e9": "--points must be at most 1000000",
    "influence --t 5 --plot x.svg": "--plot must have at least two different t",
    "influence --t 5,1e301 --plot x.svg": "none above 1e300",
    "influence --plot x.jpg": "must be one of '.png', '.svg', '.pdf', got '.jpg'",
    "influence --csv missing/x.csv": "cannot write missing/x.csv: the folder",
    "influence --nonsense": "No such option",
    "influence --t": "requires an argument",
    "influence extra": "unexpected extra argument",
    "nonsense": "No such command 'nonsense'",
    "bound --relay -1": "model must have position 0 and no negative strength",
    "bound --position 1/2": "model must have position 0 and no negative strength",
    "simulate --t 5": "--t must be at least two different whole numbers for a simulation, got 5",
    "simulate --t 1/2,3": "--t must be at least two different whole numbers for a simulation, got 1/2,3",
    "simulate --t-max 1e17": "must be at most 2^52",
    "simulate --relay 0": "relay must not be 0 in all layers",
    "derive --depth 2.5": "--depth must be a whole number",
    "derive --relay same": "--relay must be a number",
    "derive --position -1": "position must be greater than -1, got -1",
    "derive --relay 0": "must not all vanish",
    "derive --order 0": "--order must be at least 1",
    "exponent": "Missing argument 'FILE'",
    "exponent missing.csv": "FILE must be a CSV file with columns t and distance, and there is none at missing.csv",
    "exponent .": "FILE must be a CSV file",
    "exponent curve.csv --layer one": "--layer must be a number",
    "exponent curve.csv --layer 3": "layer must be one of those in curve.csv: (no layer column); got 3",
    "exponent curve.csv --t-min nan": "--t-min must be a number",
    "exponent curve.csv --t-max 0": "--t-max must be positive",
    "exponent curve.csv --t-min 100 --t-max 10": "must hold at least 2 points",
    "exponent curve.csv --t-min 9e4": "must hold at least",
    "reproduce --out missing/report": "cannot write missing/report: the folder",
}


@pytest.mark.parametrize("command", REFUSED)
def test_unusable_input_is_named_in_one_line(run, tmp_path, command):
    run("--version")
    write_power_law()
    code, out, err = run(command)
    assert code == 2
    assert out == ""
    assert err.startswith("relaymodel: ")
    assert err.count("\n") == 1
    assert REFUSED[command] in err
    assert [p.name for p in tmp_path.iterdir()] == ["curve.csv"]


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


# claims


@pytest.fixture
def claims(monkeypatch):
    """Replace the report by one with the given verdicts."""

    def verdicts(*passed):
        listed = tuple(
            SimpleNamespace(title=f"Claim {i}", finding=f"found {i}", passed=np.bool_(p)) for i, p in enumerate(passed)
        )
        calls = []

        def reproduce(out, *, model=None, training=None, overwrite=False, progress=None):
            calls.append((str(out), overwrite, progress))
            return SimpleNamespace(claims=listed, passed=all(passed))

        module = ModuleType("relaymodel.report")
        module.reproduce = reproduce
        monkeypatch.setitem(sys.modules, "relaymodel.report", module)
        return calls

    return verdicts


def test_reproduce_prints_verdicts(run, claims):
    calls = claims(True, True)
    code, out, err = run("reproduce --out here")
    assert code == 0
    assert re.search(r"holds +Claim 0\n +found 0\nholds +Claim 1\n +found 1\n", out)
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
            {"title": "Claim 0", "finding": "found 0", "passed": True},
            {"title": "Claim 1", "finding": "found 1", "passed": False},
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


# as a program


def program(*arguments, **settings):
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= settings.pop("environment", {})
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, env=environment, timeout=60, **settings)


def test_one_json_object_on_standard_output_and_nothing_else(tmp_path):
    done = program("simulate", "--json", "--csv", "curve.csv", "--t-max", "1e4", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == b"wrote curve.csv\n"
    assert set(json.loads(done.stdout)) == {"t", "distance", "exact", "relative_difference"}


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}])
def test_no_colours_in_files(environment):
    done = program("influence", "--prompt", "0", environment=environment)
    assert done.returncode == 2
    assert done.stderr == b"relaymodel: --prompt must be at least 1, got '0'\n"
    assert b"\x1b" not in program("--help", environment=environment).stdout


def test_imports_are_light():
    code = (
        "import sys; from relaymodel.cli import main; main([]);"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'sympy', 'scipy', 'matplotlib', 'flint', 'rich'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == WELCOME + "[]\n"


def test_a_reader_that_goes_away_is_no_error():
    with subprocess.Popen(
        [*PROGRAM, "influence", "--points", "20000", "--t-max", "1e300"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")  # noqa: PTH110
def test_full_disk_is_one_line():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run([*PROGRAM, "influence", "--json"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"relaymodel: cannot write: No space left on device\n"


def test_interrupt_from_the_keyboard(tmp_path):
    code = """if True:
        import signal
        import sys
        import relaymodel.simulation
        from relaymodel.cli import main

        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background

        def announced(*arguments, **options):
            print("working", flush=True)
            return simulate(*arguments, **options)

        simulate, relaymodel.simulation.simulate = relaymodel.simulation.simulate, announced
        sys.exit(main(["simulate", "--t-max", "1e12", "--csv", "curve.csv"]))  # it would take hours
    """
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout.readline() == b"working\n"
        process.send_signal(signal.SIGINT)
        try:
            assert process.communicate(timeout=60) == (b"", b"relaymodel: interrupted\n")
        finally:
            process.kill()
        assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


# numbers


@given(st.fractions(max_denominator=10**9))
def test_fractions_are_read_exactly(value):
    read = number("--x", f"{value.numerator}/{value.denominator}")
    assert Fraction(read) == value
    assert isinstance(read, int) == (value.denominator == 1)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_decimals_are_read_exactly(value):
    if abs(value.as_tuple().exponent) <= LARGEST_EXPONENT:
        assert Fraction(number("--x", str(value))) == Fraction(value)


@given(st.integers(2, 10**6), st.integers(2, 60))
def test_grid_is_the_rounded_geometric_one(last, points):
    expected = sorted({round(x) for x in np.geomspace(1, last, points)})
    found = log_grid(last, points)
    assert (found[0], found[-1]) == (1, last)
    assert len(found) == len(expected)
    # a point may fall exactly between two whole numbers
    assert all(abs(a - b) <= 1 for a, b in zip(found, expected, strict=True))


@given(st.integers(100, 4000), st.integers(3, 40))
def test_grid_of_any_size(decades, points):
    found = log_grid(10**decades, points)
    assert (found[0], found[-1]) == (1, 10**decades)
    assert found == sorted(set(found))
    k = points // 2
    length = len(str(found[k])) if len(found) == points else None
    assert length is None or abs(length - 1 - k * decades / (points - 1)) <= 1


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9), st.sampled_from([0, 400, -400, -310]))
def test_outward_rounding_encloses(value, power):
    from flint import arb, ctx, fmpq

    exact_value = value * Fraction(10) ** power
    before, ctx.prec = ctx.prec, 200
    try:
        ball = arb(fmpq(exact_value.numerator, exact_value.denominator))
    finally:
        ctx.prec = before
    low, high = outward(ball, up=False), outward(ball, up=True)
    assert Fraction(low) < exact_value < Fraction(high)
    assert near(low, high, rel=1e-14)


def test_numbers_in_tables():
    assert [text(x) for x in (0, 0.0, 7, 123456789, 1.5, 1e-20)] == [
        "0",
        "0",
        "7",
        "123456789",
        "1.50000",
        "1.00000e-20",
    ]
    assert [text(x) for x in (1234567890, 10**400, Decimal("-2.5e-999"))] == ["1.23457e+9", "1e+400", "-2.50000e-999"]


def test_json_refuses_what_json_is_not(capsys):
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"value": [float("nan")]})
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        print_json({"value": object()})
    assert capsys.readouterr().out == ""
    print_json({"a": Decimal("1e-400"), "b": Fraction(1, 4), "c": 'quotes " and \\u0000'})
    assert capsys.readouterr().out == '{"a": 1E-400, "b": 0.25, "c": "quotes \\" and \\\\u0000"}\n'
