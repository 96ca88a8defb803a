"""What the README promises beside its snippets, which `test_snippets` runs."""

import os
import re
from pathlib import Path

import relaymodel as rm
from relaymodel import plotting

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


def test_the_figure_can_be_drawn_again(tmp_path):
    """docs/forgetting.png is this figure; draw it with `python -m tests.test_readme`."""
    path = plotting.save(draw(), tmp_path / "forgetting.png")
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
