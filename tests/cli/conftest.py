"""How commands are run here."""

import json
import re
import shlex
from decimal import Decimal

import pytest

from relaymodel.cli import main


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return its exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def call(command):
        code = main(shlex.split(command) if isinstance(command, str) else command)
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
