"""The report: every claim holds, the page is whole and self-contained, and a failed claim is seen to fail."""

import csv
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from relaymodel import reproduce
from relaymodel.exact import influence
from relaymodel.report import claim as claim_module
from relaymodel.report.claim import Check, Verdict, Workspace
from relaymodel.report.claims import bound, decay, limits, solution

TITLES = [check.title for check in claim_module.CHECKS if check.needs is None]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    seen = []
    result = reproduce(tmp_path_factory.mktemp("out") / "report", progress=lambda *step: seen.append(step))
    assert [step[:2] for step in seen] == [(i, len(TITLES)) for i in range(len(TITLES) + 1)]
    return result


def test_every_claim_holds(report):
    assert [claim.title for claim in report.claims if not claim.passed] == []
    assert len(report.claims) >= 6
    assert report.passed


def test_page_is_self_contained(report):
    page = (report.folder / "index.html").read_text(encoding="utf-8")
    resources = re.findall(r'(?:src|href|xlink:href)="([^"]*)"', page)
    tables = {f"data/{table.name}.csv" for claim in report.claims for table in claim.tables}
    assert {resource for resource in resources if not resource.startswith(("#", "data:"))} <= tables | {"explore.html"}
    assert "</html>" in (report.folder / "explore.html").read_text(encoding="utf-8")
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", page)
    assert page.count("<img ") == sum(len(claim.images) for claim in report.claims)
    assert 'name="viewport"' in page
    assert "@media print" in page

    class Balance(HTMLParser):
        void = frozenset({"meta", "img", "br", "path", "use", "rect"})

        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag):
            if tag not in self.void:
                assert self.open.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.open == []


def test_data_and_figures_are_written(report):
    for claim in report.claims:
        for table in claim.tables:
            with (report.folder / "data" / f"{table.name}.csv").open(newline="", encoding="utf-8") as stream:
                rows = list(csv.reader(stream))
            assert tuple(rows[0]) == table.header
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


def test_a_failed_claim_is_reported(tmp_path, monkeypatch):
    failing = Check("Two is three", "0", lambda workspace: Verdict(False, "it is not", ("Counted.",)))
    monkeypatch.setattr(claim_module, "CHECKS", [failing])
    monkeypatch.setattr("relaymodel.report.CHECKS", [failing])
    result = reproduce(tmp_path / "report")
    assert not result.passed
    assert "✗ fails" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


class TestWrongFormulasFail:
    """Each check is fed a wrong value once: none of them can pass by itself."""

    def verdict(self, check, tmp_path):
        return check(Workspace(tmp_path)).passed

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
