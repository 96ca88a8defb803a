"""What the README promises beside its snippets, which `test_snippets` runs."""

import os
import re
from pathlib import Path

import pytest

from relaymodel.cli import main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
INSTALLING = re.findall(r"^python -m venv .*$", TEXT, flags=re.MULTILINE)


def test_the_two_commands_are_those_that_ci_runs():
    """They build environments, so they are run by .ci/run and not here: see that it takes them from the README."""
    assert len(INSTALLING) == 2
    assert INSTALLING[0].endswith("relaymodel reproduce --out report")
    assert INSTALLING[1].endswith("python -m pytest -n 2")
    script = (ROOT / ".ci" / "run").read_text()
    assert "grep -E '^python -m venv ' README.md" in script
    assert script.count("${commands[") == 2
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_it_is_short():
    assert len(TEXT.splitlines()) < 130


def test_code_runs_in_the_first_ten_lines():
    assert TEXT.splitlines().index("```python") < 10


def test_files_that_are_named_exist():
    for name in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / name).exists(), name


@pytest.mark.slow
def test_the_figure_can_be_drawn_again(tmp_path):
    """docs/forgetting.png is this figure."""
    command = "influence --relay 0.5 --depth 1,2,4,8,12 --t-max 1e8 --plot"
    assert main([*command.split(), str(tmp_path / "forgetting.png")]) == 0
    stored = (ROOT / "docs" / "forgetting.png").read_bytes()
    assert stored[16:24] == (tmp_path / "forgetting.png").read_bytes()[16:24]  # width and height in the PNG header
