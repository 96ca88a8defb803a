"""Every study is listed, says what it makes, and runs; the commands that the docs give for their numbers parse."""

import re
import shlex
from pathlib import Path

import pytest

import studies

ROOT = Path(__file__).parent.parent
STUDIES = studies.studies()
COMMAND = re.compile(r"python -m studies ([^`\n]+)")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "studies").glob("*.py"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_taste_of_it_runs(name, tmp_path, capsys):
    if hasattr(STUDIES[name], "EXTRA"):
        pytest.importorskip("torch")
    arguments = STUDIES[name].taste(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert studies.run([name, *arguments]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"\d", printed)) >= 3
    assert "nan" not in printed.split()
    files = [tmp_path / argument for argument in arguments if re.search(r"\.(csv|png)$", argument)]
    assert all(path.stat().st_size > 0 for path in files if path not in before)


def test_the_list_names_each_with_what_it_makes(capsys):
    assert studies.run([]) == 0
    listed = capsys.readouterr().out
    assert len(STUDIES) >= 6
    for name, module in STUDIES.items():
        assert name in listed
        assert module.MAKES in listed


def test_another_name_is_refused_with_those_there_are(capsys):
    assert studies.run(["nonsense"]) == 2
    assert "coverage" in capsys.readouterr().out


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_in_the_docs_are_such_as_can_be_run(path):
    for command in COMMAND.findall(path.read_text(encoding="utf-8").replace("\\\n", " ")):
        if command.startswith(("NAME", "{name}")):
            continue
        name, *arguments = shlex.split(command.replace("...", "").rstrip("."))
        studies.parser_of(name).parse_args(arguments)


def test_files_that_are_made_are_there():
    for name, module in STUDIES.items():
        for path in re.findall(r"docs/[\w/]+\.\w+", module.MAKES):
            assert (ROOT / path).exists(), (name, path)
