"""Each claim about control is fed a wrong value once: none of them can pass by itself."""

import pytest

import relaymodel as rm
from relaymodel import PromptBias, Reminders, simulate
from relaymodel.control import (
    biased_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.report.claim import Workspace
from relaymodel.report.claims import control as claims


class TestWrongFormulasFail:
    """Each claim is fed a wrong value once: none of them can pass by itself."""

    def verdict(self, check, tmp_path):
        return check(Workspace(tmp_path)).passed

    @pytest.fixture(autouse=True)
    def no_figures(self, monkeypatch):
        monkeypatch.setattr(Workspace, "image", lambda *arguments: None)

    def test_plateau(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "simulate", lambda *a, **o: _scaled(simulate(*a, **o), 1 + 1e-10))
        assert not self.verdict(claims.plateau, tmp_path)

    def test_exponent(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "biased_influence", lambda m, b, t: biased_influence(m, b, t) * (1 + 1e-7))
        assert not self.verdict(claims.exponent, tmp_path)

    def test_reversal(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "turning_point", lambda m, b: turning_point(m, PromptBias(b.strength * 1.02)))
        assert not self.verdict(claims.reversal, tmp_path)

    @pytest.mark.slow
    def test_one_bias(self, tmp_path, monkeypatch):
        true = claims.key_by_key
        monkeypatch.setattr(claims, "key_by_key", lambda *a: true(*a) * (1 + 2e-10))
        assert not self.verdict(claims.one_bias, tmp_path)

    @pytest.mark.slow
    def test_one_bias_table(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "PromptBias", lambda strength: PromptBias(strength, 0.05))
        assert not self.verdict(claims.one_bias, tmp_path)

    @pytest.mark.slow
    def test_reminders(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims, "reminder_limit", lambda m, r: reminder_limit(m.with_prompt(1), _denser(r)))
        assert not self.verdict(claims.reminders, tmp_path)


def _scaled(curve, factor):
    return rm.Curve(curve.t, curve.distance * factor)


def _denser(schedule):
    return Reminders(schedule.every - 1, schedule.length) if isinstance(schedule, Reminders) else schedule
