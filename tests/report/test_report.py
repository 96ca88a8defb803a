"""The report: every claim holds, the page is whole and self-contained, and a failed claim is seen to fail."""

import csv
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from relaymodel import reproduce
from relaymodel.display import plain
from relaymodel.exact import influence
from relaymodel.report.claim import CLAIMS, Claim, Verdict, Workspace
from relaymodel.report.claims import bound, certificate, control, decay, limits, solution
from relaymodel.report.page import text

QUICK = [bound.bracket_closes_in, bound.rate_is_attained, control.plateau, certificate.bound_attained]


def reproduced(checks, out, monkeypatch, **options):
    """The report of some claims only."""
    claims = [claim for claim in CLAIMS if claim.check in checks]
    monkeypatch.setattr("relaymodel.report.CLAIMS", claims)
    return reproduce(out, **options)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        out = tmp_path_factory.mktemp("out") / "report"
        result = reproduced(QUICK, out, patch, progress=lambda *step: seen.append(step))
    assert [step[:2] for step in seen] == [(i, len(QUICK)) for i in range(len(QUICK) + 1)]
    assert seen[2][2] == "A compensating prompt bias stops the decay: D reaches the plateau X-∏_l(ρ_l+λ_l(1-c))"
    return result


@pytest.fixture(scope="module")
def page(report):
    return (report.folder / "index.html").read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_every_claim_holds(tmp_path):
    """The ordinary suite leaves this to CI, which makes the report twice and fails if a claim does."""
    result = reproduce(tmp_path / "report")
    assert [claim.title for claim in result.claims if not claim.passed] == []
    assert len(result.claims) == len([claim for claim in CLAIMS if claim.needs is None]) >= 16


def test_the_quick_claims_hold(report):
    assert report.passed
    assert repr(report).startswith("Report(4 of 4 claims hold, in ")


def test_page_is_self_contained(report, page):
    resources = re.findall(r'(?:src|href|xlink:href)="([^"]*)"', page)
    tables = {f"data/{table.name}.csv" for claim in report.claims for table in claim.tables}
    assert {resource for resource in resources if not resource.startswith(("#", "data:"))} == tables | {"explore.html"}
    assert "</html>" in (report.folder / "explore.html").read_text(encoding="utf-8")
    assert "http" not in page
    assert page.count("<img ") == 2 + sum(len(claim.images) for claim in report.claims)
    assert 'name="viewport"' in page
    assert "@media print" in page

    class Balance(HTMLParser):
        void = frozenset({"meta", "img", "br", "mspace"})

        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag):
            if tag not in self.void:
                assert self.open.pop() == tag

        def handle_startendtag(self, tag, attrs):
            pass

    parser = Balance()
    parser.feed(page)
    assert parser.open == []


def test_the_page_explains_itself_before_the_verdicts(page):
    top = page[: page.index('class="verdicts"')]
    for words in ("linear relay model", "Its unit is the difference", "Symbols", 'alt="What is left of a prompt'):
        assert words in top
    assert top.count("<math") > 40
    assert page.rstrip().splitlines()[-2].startswith('<p class="total"><b>4 of 4 claims hold.</b>')


def test_formulas_are_typeset_everywhere(page):
    words = re.sub(r"<math.*?</math>|<[^>]+>", "", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))
    assert re.findall(r"\$[^$]*\$|\\\w+|prod\(|\w\^|\b\d+e[-+]?\d+\b", words) == []
    assert re.search(r"<h2>\d+\. A compensating prompt bias.*<math>.*</h2>", page)


def test_tables_are_whole_and_the_long_ones_folded(report, page):
    for table in (table for claim in report.claims for table in claim.tables):
        part = page[page.rindex("<details", 0, page.index(f"data/{table.name}.csv")) :]
        assert part.startswith("<details>" if len(table.rows) > 8 else "<details open>"), table.name
        assert part[: part.index("</table>")].count("<tr>") == len(table.rows) + 1
    assert "..." not in re.sub(r"<math.*?</math>", "", page[page.index("<table") :])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a < b & c", "a &lt; b &amp; c"),
        (r"\$5 \*\*", "$5 **"),
        ("**a $x$**", '<b>a <span class=""><math><mi>x</mi></math></span></b>'),
        ("page 1e5.txt, v2e3x, 1.5", "page 1e5.txt, v2e3x, 1.5"),
        ("1e-05", "<math><msup><mn>10</mn><mrow><mo"),
        ("2.5e3 of", "<math><mn>2.5</mn><mo"),
    ],
)
def test_words_are_set(words, shown):
    assert text(words).startswith(shown)
    assert text(words) == shown or "<mo" in shown


def test_data_and_figures_are_written(report):
    for claim in report.claims:
        for table in claim.tables:
            with (report.folder / "data" / f"{table.name}.csv").open(newline="", encoding="utf-8") as stream:
                rows = list(csv.reader(stream))
            assert rows[0] == [plain(name) for name in table.header]
            assert len(rows) == len(table.rows) + 1
        for image in claim.images:
            assert (report.folder / "figures" / f"{image.name}.png").read_bytes().startswith(b"\x89PNG")
            assert "<svg" in (report.folder / "figures" / f"{image.name}.svg").read_text()


def test_nothing_is_overwritten_unasked(report):
    before = (report.folder / "index.html").read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        reproduce(report.folder)
    assert (report.folder / "index.html").read_bytes() == before


def test_interruption_leaves_nothing(tmp_path):
    def stop(done, total, title):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "report", progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_failed_claim_is_reported(tmp_path, monkeypatch):
    failing = Claim("Two is three", "0", lambda workspace: Verdict(False, "it is not", ("Counted.",)))
    assert (failing.passed, failing.finding) == (False, "not checked")
    monkeypatch.setattr("relaymodel.report.CLAIMS", [failing])
    result = reproduce(tmp_path / "report")
    assert not result.passed
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "✗ fails" in page
    assert "<b>0 of 1 claims hold.</b>" in page


class TestWrongFormulasFail:
    """Each check is fed a wrong value once: none of them can pass by itself."""

    def verdict(self, check, tmp_path):
        return check(Workspace(tmp_path)).passed

    @pytest.fixture(autouse=True)
    def no_figures(self, monkeypatch):
        monkeypatch.setattr(Workspace, "image", lambda *arguments: None)

    @pytest.mark.slow
    def test_closed_form(self, tmp_path, monkeypatch):
        true = solution.derive

        class Wrong:
            def __init__(self, depth, **options):
                self.inner = true(depth, **options)

            def __getattr__(self, name):
                value = getattr(self.inner, name)
                return value * (1 + 1 / (self.inner.P + self.inner.t) ** 9) if name == "closed_form" else value

        monkeypatch.setattr(solution, "derive", lambda depth, **o: true(depth) if not o else Wrong(depth, **o))
        assert not self.verdict(solution.closed_form_equals_recursion, tmp_path)

    def test_simulation(self, tmp_path, monkeypatch):
        true = solution.influence_ball
        monkeypatch.setattr(solution, "influence_ball", lambda *a: true(*a) * (1 + 2e-11))
        assert not self.verdict(solution.simulation_agrees, tmp_path)

    @pytest.mark.slow
    def test_exponent(self, tmp_path, monkeypatch):
        monkeypatch.setattr(decay, "extrapolate_exponent", lambda curve, **o: SimpleNamespace(value=0.99, stderr=0.001))
        assert not self.verdict(decay.exponent_rises_to_one, tmp_path)

    def test_bracket(self, tmp_path, monkeypatch):
        true = bound.influence_fraction
        monkeypatch.setattr(bound, "influence_fraction", lambda model, t: true(model, t) * 102 / 100)
        assert not self.verdict(bound.bracket_holds, tmp_path)

    def test_bracket_sums(self, tmp_path, monkeypatch):
        true = bound.influence_ball
        monkeypatch.setattr(bound, "influence_ball", lambda *a: true(*a) * (1 + 1e-15))
        assert not self.verdict(bound.bracket_closes_in, tmp_path)

    def test_rate(self, tmp_path, monkeypatch):
        true = bound.influence_ball
        monkeypatch.setattr(bound, "influence_ball", lambda *a: true(*a) * (1 + 1e-5))
        assert not self.verdict(bound.rate_is_attained, tmp_path)

    def test_limits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(limits, "influence", lambda *a: influence(*a) * 1.05)
        assert not self.verdict(limits.continuum_limits, tmp_path)


@pytest.mark.parametrize("given", [{"training": "nowhere"}, {"model": "nowhere/at/all"}])
def test_what_cannot_be_read_is_said_before_the_work(tmp_path, given):
    seen = []
    with pytest.raises((OSError, ValueError, ImportError)):
        reproduce(tmp_path / "report", **given, progress=lambda *step: seen.append(step[0]))
    assert seen == [0]
    assert list(tmp_path.iterdir()) == []
