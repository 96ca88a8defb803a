"""Every snippet and command of the README is run as it stands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import relaymodel as rm
from relaymodel import plotting

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [line for language, code in BLOCKS if language == "sh" for line in code.splitlines()]
INSTALLING = [line for line in SHELL if line.startswith("python -m venv ")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_snippets_run_in_order(folder, capsys):
    assert len(PYTHON) >= 6
    space = {}
    for code in PYTHON:
        exec(compile(code, "README.md", "exec"), space)
    printed = capsys.readouterr().out
    assert "1 - 2/log(t) + O(log(t)**(-2))" in printed
    assert "@software{relaymodel" in printed
    assert "nan" not in printed


def test_commands_run_in_order(folder):
    rm.simulate(rm.RelayModel.uniform(prompt=10, depth=6, relay=1), 10**5).to_csv("curve.csv")
    commands = [line for line in SHELL if line not in INSTALLING]
    assert len(commands) >= 4
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "relaymodel"
        done = subprocess.run([sys.executable, "-m", "relaymodel", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout
        assert done.stderr == ""


def test_the_two_commands_are_those_that_ci_runs():
    """They build environments, so they are run by .ci/run and not here: see that it takes them from the README."""
    assert len(INSTALLING) == 2
    assert INSTALLING[0].endswith("relaymodel reproduce --out report")
    assert INSTALLING[1].endswith("python -m pytest -n 2")
    script = (ROOT / ".ci" / "run").read_text()
    assert "grep -E '^python -m venv ' README.md" in script
    assert script.count("${commands[") == 2
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_code_runs_in_the_first_ten_lines():
    assert TEXT.splitlines().index("```python") < 10


def test_files_that_are_named_exist():
    for name in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / name).exists(), name


def test_the_figure_can_be_drawn_again(folder):
    """docs/forgetting.png is this figure; draw it with `python -m tests.test_readme`."""
    path = plotting.save(draw(), folder / "forgetting.png")
    stored = (ROOT / "docs" / "forgetting.png").read_bytes()
    assert stored[16:24] == path.read_bytes()[16:24]  # width and height in the PNG header


def draw():
    models = {f"$L = {depth}$": rm.RelayModel.uniform(prompt=64, depth=depth, relay=0.5) for depth in (1, 2, 4, 8, 12)}
    figure = plotting.panels(2)
    t = plotting.grid(1, 1e8, 200)
    plotting.plot_influence(models, t, ax=figure.axes[0])
    plotting.plot_local_exponent(models, t, ax=figure.axes[1])
    return figure


if __name__ == "__main__":
    plotting.save(draw(), ROOT / "docs" / "forgetting.png", overwrite=True)
