"""The site as built: whole, and asking nothing of any other address.

Build it first: `sphinx-build -W --keep-going docs site` (extra `docs`).
"""

import inspect
import re
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import relaymodel
from relaymodel.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
SITE = ROOT / "site"
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the site is not built: sphinx-build docs site"
)
LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "use": "href",
}


class Loaded(HTMLParser):
    """Collects what a browser loads to show a page; a link is loaded when it is followed, and so is not among them."""

    def __init__(self, text):
        super().__init__()
        self.addresses = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag in LOADED and given.get("rel") != "canonical":
            self.addresses.append(given.get(LOADED[tag]) or "")
        self.addresses += re.findall(r"url\(([^)]*)\)", given.get("style") or "")


def outside(address):
    return re.match(r"\s*['\"]?(https?:)?//", address) is not None


def text_of(page):
    return (SITE / page).read_text(encoding="utf-8")


def test_what_is_loaded_is_seen():
    page = '<script src="https://a/b.js"></script><img src="//c/d.png"><a href="https://e">f</a><link href="g.css">'
    assert Loaded(page).addresses == ["https://a/b.js", "//c/d.png", "g.css"]
    assert [outside(address) for address in Loaded(page).addresses] == [True, True, False]


def test_pages_load_nothing_from_elsewhere():
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 30
    for path in pages:
        assert [address for address in Loaded(path.read_text(encoding="utf-8")).addresses if outside(address)] == [], (
            path
        )
    for path in SITE.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        found = re.findall(r"url\(([^)]*)\)", text) + re.findall(r"@import\s+(\S+)", text)
        assert [address for address in found if outside(address)] == [], path


def test_formulas_are_set_without_a_script():
    theory = text_of("theory.html")
    assert theory.count("<math") > 400
    assert re.findall(r"\$[^$<]*\\\w+", re.sub(r"<annotation.*?</annotation>", "", theory)) == []
    assert not list(SITE.rglob("*athjax*"))


def test_the_page_to_play_with_is_linked_and_small():
    assert 'href="explore.html"' in text_of("index.html")
    assert 10_000 < (SITE / "explore.html").stat().st_size < 400_000


def test_every_command_and_public_name_has_its_place():
    commands = text_of("cli.html")
    for command in COMMANDS:
        assert f'id="relaymodel-{command.__name__}"' in commands
    pages = "".join(path.read_text(encoding="utf-8") for path in (SITE / "api").glob("*.html"))
    shown = set(re.findall(r'id="(relaymodel[\w.]*)"', pages))
    packages = [name for _, name, is_package in walk_packages(relaymodel.__path__, "relaymodel.") if is_package]
    assert len(packages) > 12
    for package in {"relaymodel", *packages} - {"relaymodel.cli"}:
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                assert shown & {f"relaymodel.{name}", f"{package}.{name}"}, (package, name)


def test_notebooks_are_shown_with_their_outputs():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page = text_of(f"course/{path.stem}.html")
        assert 'class="cell_output' in page
        assert "<img" in page


def test_search_finds_the_theory():
    index = text_of("searchindex.js")
    assert '"theory"' in index
    assert "hausdorff" in index
