"""The pages of docs/: what docstrings cite exists, links lead somewhere, every page is found."""

import re
from pathlib import Path

import pytest

import relaymodel
from relaymodel.report.claim import Workspace

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
THEORY = (DOCS / "theory.md").read_text(encoding="utf-8")
CITED = re.compile(r"THEORY\s+sections?\s+((?:\d+|,|-|\s|and)+)")
CITING = ["relaymodel", "studies", "benchmarks", "tests", "notebooks"]


def cited(text):
    """The sections that a text cites; a line break and a comment sign may stand between."""
    found = set()
    for numbers in CITED.findall(re.sub(r"\n\s*#?\s*", " ", text)):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_citations_are_read_in_every_form():
    assert cited("(THEORY section 4).") == {4}
    assert cited("THEORY sections 2, 3 and\n    # 5)") == {2, 3, 5}
    assert cited("THEORY sections 1-3") == {1, 2, 3}


def test_every_section_that_is_cited_exists():
    sections = [int(number) for number in re.findall(r"^## (\d+)\. \w", THEORY, flags=re.MULTILINE)]
    assert sections == list(range(1, 11))
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            assert cited(path.read_text(encoding="utf-8")) <= set(sections), path
    package = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "relaymodel").rglob("*.py"))
    assert cited(package) >= set(range(1, 10))


def test_equations_are_numbered_in_order_and_those_referred_to_exist():
    numbers = [int(number) for number in re.findall(r"\\tag\{(\d+)\}", THEORY)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {int(number) for number in re.findall(r"(?<![\w)}{])\((\d{1,2})\)", THEORY)} <= set(numbers)


def test_formulas_are_closed():
    for paragraph in re.split(r"\n\n+", re.sub(r"^```.*?^```$", "", THEORY, flags=re.MULTILINE | re.DOTALL)):
        assert paragraph.count("$$") % 2 == 0, paragraph
        assert paragraph.replace("$$", "").count("$") % 2 == 0, paragraph
        assert paragraph.count("{") == paragraph.count("}"), paragraph


def test_the_claim_that_shows_how_to_add_one_holds(tmp_path, monkeypatch):
    text = (DOCS / "howto" / "claim.md").read_text(encoding="utf-8")
    code, _ = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    claims = []
    monkeypatch.setattr("relaymodel.report.claim.CLAIMS", claims)
    exec(compile(code, "claim.md", "exec"), {})
    (claim,) = (claim.checked(Workspace(tmp_path)) for claim in claims)
    assert claim.passed, claim.finding
    assert (tmp_path / "data" / f"{claim.check.__name__}.csv").exists()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#:\s]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_every_page_is_in_the_navigation():
    """Sphinx warns of the others, and its warnings are errors."""
    entries = {DOCS / "index.md"}
    for path in PAGES:
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            entries |= {path.parent / f"{line}.md" for line in block.split("\n") if line and not line.startswith(":")}
    assert set(PAGES) <= entries


class TestCitation:
    """CITATION.cff, as GitHub and reference managers read it."""

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    def test_it_has_what_the_format_requires(self):
        keys = dict(re.findall(r"^([\w-]+): *(.*)$", self.text, flags=re.MULTILINE))
        assert {"cff-version", "message", "title", "authors"} <= set(keys)
        assert keys["cff-version"] == "1.2.0"
        assert keys["type"] == "software"

    def test_it_is_of_this_version_and_says_what_the_bibtex_entry_says(self):
        assert f"version: {relaymodel.__version__}\n" in self.text
        assert "The relaymodel developers" in self.text
        assert "The relaymodel developers" in relaymodel.__bibtex__
        title = re.search(r'^title: "(.*)"$', self.text, flags=re.MULTILINE)[1]
        assert title in relaymodel.__bibtex__


def test_the_changelog_is_about_this_version():
    text = (DOCS / "changelog.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(relaymodel.__version__)}\b", text, flags=re.MULTILINE)
