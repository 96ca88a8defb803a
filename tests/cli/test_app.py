"""The program: what newcomers see, how it refuses, how it ends."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import relaymodel.exact
import relaymodel.simulation
from relaymodel.cli.app import WELCOME
from tests.cli.cases import write_power_law

PROGRAM = [sys.executable, "-m", "relaymodel"]


def test_newcomers_are_told_what_to_try_and_it_works(run):
    code, out, err = run("")
    assert (code, out, err) == (0, WELCOME, "")
    examples = re.findall(r"^  relaymodel (.*?)   ", WELCOME, flags=re.MULTILINE)
    assert 3 <= len(examples) <= 6
    for example in examples:
        if not example.startswith(("measure", "reproduce")):
            code, out, err = run(example)
            assert (code, len(out) > 100 or example.startswith("explore")) == (0, True), err
    assert run("exponent curve.csv --t-min 1e5")[0] == 0


@pytest.mark.parametrize("less", ["--t-max 64 --pairs 2", pytest.param("", marks=pytest.mark.exhaustive)])
def test_newcomers_measure_a_network(run, less):
    (example,) = re.findall(r"^  relaymodel (measure .*?)   ", WELCOME, flags=re.MULTILINE)
    code, out, err = run(f"{example} {less}")
    assert (code, len(out) > 100) == (0, True), err


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
    "influence --position -1": "--position must be greater than -1, got -1",
    "influence --position 0,-1.5": "--position must be greater than -1, got -1.5",
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
    "bound --depth 2,4": "--depth must be one number here, got 2,4; relaymodel influence draws several",
    "simulate --depth 2,4": "--depth must be one number here, got 2,4; relaymodel influence draws several",
    "influence --prompt 8,64": "--prompt must be one number, got '8,64'; relaymodel sweep takes several",
    "influence --depth 2,x": "--depth must be a number",
    "influence --title a": "--title must be given with --plot FILE",
    "influence --plot a.png --size 3": "--size must be width and height in inches, such as 12,4.8, got '3'",
    "influence --plot a.png --size 3,-1": "--size must be a width and a height of at most 47 inches",
    "influence --plot a.png --title '$\\no$'": "--title must be text with formulas that matplotlib can set",
    "influence --plot a.png --format jpg": "--format must be one of 'png', 'svg', 'pdf'",
    "influence --plot - --csv -": "--csv and --plot must be different files",
    "influence --plot - --json": "--plot - must not be given together with --json",
    "influence --table html": "--table must be one of 'text', 'markdown', 'latex', got 'html'",
    "exponent curve.csv --columns tokens": "--columns must be NAME=COLUMN with names among t, layer,",
    "exponent curve.csv --columns t=tokens": "--columns must name those of curve.csv, t, distance, got 'tokens'",
    "nonsense": "No such command 'nonsense'; see relaymodel --help",
    "inflence": "did you mean influence?",
    "sweep --title a": "No such option --title; it is one of influence, simulate,",
    "influence --dept 3": "No such option --dept; did you mean --depth?",
    "influence curve.csv": "extra argument curve.csv; curves in files are for exponent, fit and explore",
    "bound --relay -1": "the model must have position 0 and no negative strength",
    "bound --position 1/2": "the model must have position 0 and no negative strength",
    "simulate --t 5": "--t must be at least two different whole numbers for a simulation, got 5",
    "simulate --t 1/2,3": "--t must be at least two different whole numbers for a simulation, got 1/2,3",
    "simulate --t-max 1e17": "--prompt + --t-max must be at most 2^52",
    "bound --sink 1/3": "got (relay 1, residual 1, position 0, sink 1/3) in layer 1",
    "bound --relay 0": "(--relay, --residual, --sink or --heads) must have an influence other than 0 for the two",
    "exponent curve.csv --columns t=t,t=distance": "--columns must give each name once, got 't=t,t=distance'",
    "measure untrained-numpy --depth 1 --t-max 24 --layers 5": "2, after the final norm, needs --final-norm\n",
    "simulate --heads 1:decay=1e-300 --t-max 9": "and a curve holds positive distances; choose other samples\n",
    "control --relay 1e300 --depth 2 --t 1,9": "must lie within the range of float64",
    "influence --table latex --json": "--table must not be given together with --json, got latex; choose one",
    "influence --strings": "--strings must be given with --json",
    "train english --out x --strings": "--strings must be given with --json",
    "influence ''": "unexpected extra argument ''",
    "influence --t 3,9 --plot a.png --size 1,2": "--size must leave room for the axes and their labels, got (1.0, 2.0)",
    f"influence --plot a.png --title {'a' * 1001}": "--title must be at most 1000 characters, got 1001",
    "influence --t 1e400 --csv a.npz": "a table of arrays must hold finite numbers within the range of float64",
    "measure untrained-numpy --continuation ''": "--continuation must name a file, got an empty name",
    "measure untrained-numpy --depth 1 --t-max 9 --t-min 1e6": "to leave a window, got 1e6\n",
    "influence --recency 1e17": "--recency must be less than 1, got 1e17",
    "influence --recency 0,+3": "--recency must be less than 1, got +3",
    "influence --plot a.png --size 1e400,1": "--size must be within the range of float64, at most 1.8e308 in size",
    "influence --plot - --format=": "--format must be one of 'png', 'svg', 'pdf', got ''",
    "influence --heads 1e400": "--heads: relay must be within the range of float64, got '1e400'",
    "simulate --relay 1e400": "relay of layer 1 must lie within the range of float64, got about 1e400; relaymodel",
    "simulate --relay 1e300 --depth 2 --t 1,2": "left it (overflow encountered in multiply); relaymodel",
    "simulate --recency 0.5 --position 1e400": "position must be at most 12 in a simulation of heads",
    "simulate --t 1e400": "--t must be at least two different whole numbers for a simulation, got 1e400",
    "simulate --prompt 1e400": "so that float64 counts positions, got 1e400",
    "sweep --relay 1e300": "lies beyond the float range; relaymodel influence has such values",
    "sweep --relay 0,1": "leave 0 out, got 0,1\n",
    "fit curve.csv --prompt 64 --relay=-0": "--relay must be fit or 0.001 to 16, got -0\n",
    "fit curve.csv --prompt 64 --depth 1e400": "--depth must be within the range of float64",
    "control --hold 1e-300": "--hold must need more than a reminder every 1e+12 tokens, got 1e-300\n",
    "control --share 2 --t 1,9": "got 2; --bias 0 lets the share fall to 0, --bias 2 lets it rise to 1",
    "derive --relay 1e4000": "--relay must be 0 or from 1e-300 to 1e300 in size in a formula, got '1e4000'",
    "simulate --relay 0": "relay must not be 0 in all layers",
    "derive --depth 2.5": "--depth must be a whole number",
    "derive --relay 2b": "--relay must be a number",
    "derive --relay P": "--relay must be other symbols than P, t",
    "derive --position -1": "--position must be greater than -1, got -1",
    "derive --relay 0": "--relay must not be 0 in every layer",
    "derive --order 0": "--order must be at least 1",
    "exponent": "Missing argument 'FILE'",
    "exponent missing.csv": "FILE must be a table with columns t and distance, and there is none at missing.csv",
    "exponent .": "FILE must be a table",
    "exponent curve.csv --layer one": "--layer must be a number",
    "exponent curve.csv --layer 3": "--layer must be one of those in curve.csv: (no layer column); got 3",
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


def program(*arguments, **settings):
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= settings.pop("environment", {})
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, env=environment, timeout=60, **settings)


def test_one_json_object_on_standard_output_and_nothing_else(tmp_path):
    done = program("simulate", "--json", "--csv", "curve.csv", "--t-max", "1e4", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == b"wrote curve.csv\n"
    assert set(json.loads(done.stdout)) == {"t", "distance", "influence", "relative_difference"}


def test_no_colours_in_files():
    environment = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
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
        sys.exit(main(["simulate", "--t-max", "1e9", "--csv", "curve.csv"]))  # it would take minutes
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


@pytest.mark.parametrize("odd", ["1_000", "٣", "１２", "0x10", "infinity", "1e9_999_999", "9" * 5000, "1/0", "1__2"])
def test_odd_numbers_are_refused(run, odd):
    code, out, err = run(f"influence --t {odd}")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("relaymodel: --t must")


def test_nothing_reaches_the_terminal_but_text(run, tmp_path):
    name = "\x1b[31mred.csv"
    assert run(["exponent", name])[2].count("\x1b") == 0
    (tmp_path / name).write_text("t,distance\n" + "".join(f"{t},{t**-0.5}\n" for t in range(1, 60)))
    code, out, err = run(["exponent", name, "--csv", "a\nb.csv"])
    assert (code, "\x1b" in out + err) == (0, False)
    assert err == "wrote a b.csv\n"
    lines = (tmp_path / "a\nb.csv").read_text().splitlines()
    assert lines[0] == "# source: local exponents of \\x1b[31mred.csv"
    assert lines[1] == "t,alpha,stderr"


def test_what_is_no_fault_of_the_input_is_no_failed_claim(run, monkeypatch):
    for error, words in (
        (MemoryError(), "the memory does not suffice"),
        (RecursionError("deep"), "nested too deeply"),
        (RuntimeError("of a library"), "unexpected RuntimeError: of a library"),
        (OSError(28, "No space left on device"), "cannot write: No space left on device"),
    ):

        def fail(*_args, error=error, **_kwargs):
            raise error

        monkeypatch.setattr(relaymodel, "influence", fail)
        code, out, err = run("influence --t 3")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err


def test_of_an_option_given_twice_the_last_counts(result):
    assert result("influence --t 3 --t 5")["t"] == [5]


def test_closed_streams_are_named(tmp_path):
    """Nothing is read from, written to or mixed into a stream that the shell has closed."""

    def closed(words, *ends):
        shell = " ".join([*PROGRAM, *words, *ends])
        done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    assert closed(["influence", "--t", "3", "--csv", "-"], ">&-") == (
        2,
        "",
        "relaymodel: - must not stand for a file where standard output is closed\n",
    )
    assert closed(["exponent", "-"], "<&-")[2] == (
        "relaymodel: - must not stand for a file where standard input is closed\n"
    )
    assert closed(["influence", "--t", "x"], "2>&-") == (2, "", "")
    code, out, _ = closed(["influence", "--t", "3", "--csv", "a.csv", "--json"], "2>&-")
    assert (code, list(json.loads(out))) == (0, ["t", "influence", "local_exponent"])


def test_help_that_nobody_reads_is_no_failed_claim():
    reader = subprocess.run(
        ["bash", "-c", f"{' '.join(PROGRAM)} influence --help | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (reader.stdout, reader.stderr) == ("141\n", "")


def test_a_long_certificate_is_announced(run, monkeypatch):
    import relaymodel as rm

    def certify(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr(rm, "certify", certify)
    code, _, err = run("certify --depth 3 --t-max 5e3")
    assert (code, err) == (2, "relaymodel: this takes about 50 minutes\nrelaymodel: enough\n")
