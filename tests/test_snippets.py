"""Every snippet of the README and the docs runs: Python and commands of a page in their order, in one folder."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from relaymodel.cli import main

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    path.relative_to(ROOT).as_posix(): blocks
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if (blocks := BLOCK.findall(path.read_text(encoding="utf-8")))
}
ELSEWHERE = (  # what a shell does that a test must not, or that another test does
    "python -m venv ",
    ". .venv/bin/activate",
    "pip install ",
    "pre-commit install",
    "jupyter lab ",
    "sphinx-build ",
    "python -m studies ",
    "OMP_NUM_THREADS=1 python -m studies ",
)


class Page:
    """Runs the blocks of a page: names and files that one leaves are there for the next."""

    def __init__(self, name, capsys):
        self.name, self.capsys, self.names = name, capsys, {}

    def python(self, code):
        if ">>>" not in code:
            exec(compile(code, self.name, "exec"), self.names)
            return
        examples = doctest.DocTestParser().get_doctest(code, self.names, self.name, self.name, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        assert runner.run(examples, clear_globs=False).failed == 0
        self.names.update(examples.globs)

    def sh(self, code):
        for line in code.splitlines():
            if not line.startswith(ELSEWHERE):
                program, *arguments = shlex.split(line, comments=True)
                assert program == "relaymodel", line
                self.capsys.readouterr()
                assert main(arguments) == 0, (line, self.capsys.readouterr().err)
                printed, said = self.capsys.readouterr()
                assert printed or said, line
                assert re.search(r"\bnan\b", printed) is None, line
                assert all(words.startswith("wrote ") for words in said.splitlines()), (line, said)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_snippets_of_a_page_run_in_order(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("relaymodel.report.claim.CLAIMS", [])
    page = Page(name, capsys)
    for language, code in PAGES[name]:
        getattr(page, language)(code)


def test_a_snippet_that_fails_is_seen(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = Page("page", capsys)
    page.python("x = 1\n")
    page.python(">>> x + 1\n2\n")
    page.sh("relaymodel bound --t 10  # a comment\n")
    with pytest.raises(AssertionError):
        page.python(">>> x + 1\n3\n")
    with pytest.raises(NameError):
        page.python("y\n")
    for line in ("relaymodel bound --t 0", "rm -r relaymodel"):
        with pytest.raises(AssertionError):
            page.sh(line)


def test_pages_have_snippets():
    assert {"README.md", "docs/start.md", "docs/theory.md", "docs/howto/claim.md"} <= set(PAGES)
    assert sum(len(blocks) for blocks in PAGES.values()) > 30
