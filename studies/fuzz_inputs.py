"""Files and command lines that nobody meant: read rightly or refused in one line.

    python -m studies fuzz --kinds tables archives commands --seconds 60 --seed 1

CSV tables of odd dialects and broken numbers, NPZ files with damaged bytes, and command lines through `main` in this
process.  Whatever is read must be what is written there, whatever is refused must be one line that names what is wrong.
"""

import contextlib
import io
import json
import math
import re
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

import relaymodel as rm
from relaymodel.cli import main as program
from relaymodel.curve import read_curves

FOLDER = Path(tempfile.gettempdir())
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ODD = (
    *("", " ", "nan", "inf", "-inf", "Infinity", "1_000", "0x10", "1e400", "1e-400", "-1", "0", "-0.0", "1,5", "1.5.2"),
    *("\u0661\u0662", "\uff15", "1e", "e5", "--1", "+3", ".5", "5.", "1E3", "1d3", "true", "None", '"', '"2"', "\x00"),
    *("\x1b[31m", "9" * 400, "1" * 200_000, "2\u00a0", "\u22125", "1/2", "$x$", "\\input{x}"),
)


class RefusedError(ValueError):
    """A command line that ended in one line and exit code 2, as it should."""


def choose(rng, items):
    return items[int(rng.integers(len(items)))]


def table(rng):
    """Read a table; demand that every number is that of its field."""
    separator = choose(rng, (",", ",", ";", "\t"))
    names = ["t", choose(rng, ("distance", "influence", "Distance", " distance"))]
    names += [name for name in ("stderr", "layer", "note") if rng.random() < 0.3]
    names += [name for name in ("distance", "t", "pair_1", "stderr") if rng.random() < 0.03]
    rng.shuffle(names)
    count = int(rng.choice([0, 1, 2, 5, 30]))
    rows = [[field(rng, name.strip().lower(), i) for name in names] for i in range(count)]
    lines = [separator.join(names), *(separator.join(row) for row in rows)]
    if rng.random() < 0.1:
        lines.insert(int(rng.integers(len(lines) + 1)), choose(rng, ("", "# a: b", "#", "\x00", "1,2,3,4,5,6", '"')))
    text = choose(rng, ("\n", "\n", "\r\n")).join(lines) + choose(rng, ("", "\n"))
    data = choose(rng, ("", "", "\ufeff")).encode() + text.encode()
    if rng.random() < 0.05:
        data = damaged(rng, data)
    path = FOLDER / "fuzzed.csv"
    path.write_bytes(data)
    curves = read_curves(path)  # refused: a ValueError of the package
    read = sorted(float(value) for curve in curves.values() for value in curve.t)
    if data == text.encode() and '"' not in text and "\n#" not in text:
        times = [row[i] for row in rows for i, name in enumerate(names) if name == "t"]
        assert read == sorted(map(float, times)), (text, read)
        for row in rows:
            for name, entry in zip(names, row, strict=True):
                assert name == "note" or not entry.strip() or NUMBER.fullmatch(entry.strip()), (name, entry)


def field(rng, name, i):
    """Return what stands in a row: mostly a number, sometimes not."""
    if rng.random() < 0.004:
        return choose(rng, ODD)
    if name == "t":
        return choose(rng, (str(i + 1), f"{(i + 1) * 1.5!r}", f"{i + 1}.0", f"{i + 1}e0"))
    return "3" if name == "layer" else f"{float(rng.uniform(0.1, 9))!r}"


def damaged(rng, data):
    """Return bytes with some of them changed, cut off or doubled."""
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(found) + 1))
        kind = rng.random()
        if kind < 0.6 and at < len(found):
            found[at] = int(rng.integers(256))
        elif kind < 0.8:
            del found[at:]
        else:
            found[at:at] = bytes(rng.integers(0, 256, int(rng.integers(1, 40)), dtype=np.uint8))
    return bytes(found)


def archive(rng):
    """Read a damaged NPZ file: what it held, or a refusal that names it."""
    path = FOLDER / "fuzzed.npz"
    curve = rm.Curve([1, 2, 4], [3, 2, 1], [0.1, 0.2, 0.3], {"network": "tiny"})
    curve.to_npz(path, overwrite=True)
    path.write_bytes(damaged(rng, path.read_bytes()))
    try:
        back = rm.Curve.from_npz(path)
    except ValueError as error:
        if str(path) not in str(error):
            raise AssertionError(f"the file is not named: {error}") from error
        raise
    assert back.t.tolist() == [1, 2, 4]
    assert back.distance.tolist() == [3, 2, 1]


VALUES = (
    "1",
    "2",
    "0.5",
    "1/2",
    "1,2",
    "0.1,1",
    "-1",
    "0",
    "1e3",
    "64",
    "3",
    "12",
    "1e-300",
    "1e300",
    "1e4000",
    "0,-1/2",
)
MODEL = ("--prompt", "--depth", "--relay", "--residual", "--position", "--recency", "--sink", "--heads")
GRID = ("--t", "--t-max", "--points")
COMMANDS = {
    "influence": (*MODEL, *GRID, "--json", "--csv"),
    "bound": (*MODEL, *GRID, "--json"),
    "sweep": (*MODEL, *GRID, "--json"),
    "simulate": (*MODEL, *GRID, "--json"),
    "control": (*MODEL, *GRID, "--bias", "--share", "--every", "--length", "--hold", "--horizon", "--json"),
    "derive": ("--depth", "--relay", "--residual", "--position", "--order", "--steps", "--latex", "--json"),
    "exponent": ("--layer", "--t-min", "--t-max", "--json", "--csv"),
    "": ("--version", "-h", "--help"),
    "nonsense": ("--json",),
}
SMALL = {"--prompt": 10**6, "--depth": 6, "--points": 30, "--order": 4, "--t-max": 2000, "--t": 10**300}


def line(rng):
    """Return a command line: what a user might type, and what nobody would."""
    command = choose(rng, list(COMMANDS))
    words = [command] if command else []
    if command == "exponent":
        words.append(choose(rng, (str(FOLDER / "fuzzed.csv"), "missing.csv", "-", "", ".")))
    for name in COMMANDS[command]:
        if rng.random() > 0.25:
            continue
        words.append(name)
        if name in ("--json", "--steps", "--latex", "--version", "-h", "--help"):
            continue
        if name == "--csv":
            words.append("-")  # and no files of odd names
        elif rng.random() < 0.12:
            words.append(choose(rng, (*ODD, "a,b", "equal", "different", "0.3:recency=0.7", "1+2:position=1")))
        else:
            words.append(choose(rng, [value for value in VALUES if fits(name, value)]))
    if "--t" not in words and command in ("influence", "bound", "sweep", "simulate", "control"):
        words += ["--t", "3,10"] if "--t-max" not in words and "--points" not in words else []
    if rng.random() < 0.05:
        words.append(choose(rng, (*ODD, "--frob", "-x", "--", "extra", "--json=1")))
    if "--depth" not in words and command not in ("exponent", "", "nonsense", "sweep") and rng.random() < 0.8:
        words += ["--depth", choose(rng, ("1", "2", "3"))]
    return [word.replace("\x00", "") if rng.random() < 0.5 else word for word in words]


def fits(name, value):
    """Whether a value is of a size that takes no patience."""
    if name not in SMALL:
        return True
    try:
        return all(float(part) <= SMALL[name] for part in value.split(","))
    except ValueError:
        return False


def command(rng):
    """Run a command line: exit code 0 and sound output, or 2 and one line."""
    words = line(rng)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program(words)
    printed, said = out.getvalue(), err.getvalue()
    assert code in (0, 2), (words, code)
    assert "\x1b" not in printed + said, words
    if code == 2:
        assert printed == "", (words, printed)
        assert said.startswith("relaymodel: "), (words, said)
        assert said.count("\n") == 1, (words, said)
        assert "unexpected" not in said.replace("unexpected extra", ""), (words, said)
        raise RefusedError(said)
    assert said == "", (words, said)
    if "--json" in words and "-h" not in words and "--help" not in words:
        found = json.loads(printed, parse_constant=_refuse)
        assert all(math.isfinite(number) for number in _numbers(found)), (words, printed)
        if words[0] == "influence":
            agree(words, found)


def agree(words, found):
    """Demand that influences are those of the recursion, where it is short."""
    given = dict(pairwise(words[1:]))
    if set(given) & {"--heads", "--recency", "--sink", "--residual", "--position", "--depth"} or "," in given.get(
        "--relay", ","
    ):
        return
    from fractions import Fraction

    model = rm.RelayModel.uniform(int(Fraction(given.get("--prompt", "64"))), 6, Fraction(given["--relay"]))
    for t, value in zip(found["t"], found["influence"], strict=True):
        if isinstance(t, int) and t <= 40 and abs(value) > 1e-290:
            exact = model.differences(model.prompt + t)[-1]
            assert abs(Fraction(value) / exact - 1) < Fraction(1, 10**12), (words, t, value)


def _numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, float):
        yield 0.0 if math.isinf(value) else value  # beyond float64, and written in full


def _refuse(name):
    raise AssertionError(f"JSON holds {name}")


KINDS = {"tables": table, "archives": archive, "commands": command}
