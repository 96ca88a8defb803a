"""Each claim about attention by relative position fails when it is fed a wrong value."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest

from relaymodel.exact import influence, local_exponent
from relaymodel.report.claim import Workspace
from relaymodel.report.claims import heads as claims


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr(Workspace, "image", lambda *arguments: None)


def judged(check, folder):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        return check(Workspace(Path(own)))


@pytest.mark.slow
def test_recency(tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "local_exponent", lambda model, t: local_exponent(model, t) * 0.985)
    assert not judged(claims.recency_raises_the_exponent, tmp_path).passed


def test_densities(tmp_path, monkeypatch):
    verdict = judged(claims.density_is_the_constant, tmp_path)
    assert verdict.passed, verdict.finding
    with monkeypatch.context() as planted:
        planted.setattr(claims, "influence", lambda model, t: influence(model, t) * (1 + 1e-9))
        assert not judged(claims.density_is_the_constant, tmp_path).passed
    monkeypatch.setattr(claims, "density", lambda head: 1 - Fraction(head.recency) / 2)
    assert not judged(claims.density_is_the_constant, tmp_path).passed
