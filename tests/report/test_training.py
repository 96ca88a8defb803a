"""The claims about a training."""

import csv
import html
import re

import pytest

from relaymodel.report import claim as claim_module
from relaymodel.report import page, reproduce
from relaymodel.report.claim import Workspace
from relaymodel.report.claims import training as claims
from tests.networks.training.grown import ADDED, PLAIN, QUICK, TRAINED, planted


class TestReport:
    def test_claims_of_a_folder(self, grown, tmp_path, monkeypatch):
        """Only when a folder is given; the figure and the table are in the report."""
        claims = [claim for claim in claim_module.CLAIMS if claim.needs == "training"]
        monkeypatch.setattr("relaymodel.report.CLAIMS", claims)
        assert reproduce(tmp_path / "without").claims == ()
        found = reproduce(tmp_path / "with", training=grown).claims
        assert len(found) == len(claims) == 2
        assert (tmp_path / "with" / "figures" / "training.png").exists()
        with (tmp_path / "with" / "data" / "training.csv").open(newline="", encoding="utf-8") as stream:
            assert len(list(csv.DictReader(stream))) == 4 * len(QUICK.measured)

    @pytest.mark.parametrize(
        ("ends", "raised"),
        [
            ({PLAIN: (0.4, 0.6), TRAINED: (0.1, 0.3), ADDED: (0.1, 0.2)}, True),
            ({PLAIN: (0.4, 0.4), TRAINED: (0.1, 0.3), ADDED: (0.1, 0.2)}, False),
            ({PLAIN: (0.4, 0.6), TRAINED: (0.2, 0.3), ADDED: (0.2, 0.2)}, False),
        ],
    )
    def test_verdicts(self, ends, raised, tmp_path, monkeypatch):
        monkeypatch.setattr(claims.Training, "read", lambda folder: planted(ends, tmp_path))
        assert claims.training_raises_the_exponent(Workspace(tmp_path, {"training": "folder"})).passed is raised

    @pytest.mark.parametrize(
        ("first", "later", "holds"),
        [
            ((-0.02, 0.01, -0.01, 0.02), (-0.18, 0.03, -0.13, 0.03), True),
            ((-0.04, 0.01, -0.01, 0.02), (-0.18, 0.03, -0.13, 0.03), False),  # not still at first
            ((-0.02, 0.01, -0.01, 0.02), (-0.18, 0.03, -0.13, 0.05), False),  # within two errors in one window
            ((-0.02, 0.01, -0.01, 0.02), (0.45, 0.03, 0.76, 0.03), False),
        ],
    )
    def test_a_reversal(self, first, later, holds, tmp_path):
        lines = ["step,bias,layer,alpha_16,stderr_16,alpha_64,stderr_64"]
        for strength, rows in ((4, (first, later)), (1, ((0.08, 0.01, 0.07, 0.01), (0.45, 0.01, 0.76, 0.01)))):
            lines += [
                f"{step},strength {strength},5,{','.join(map(str, r))}" for step, r in zip((0, 90), rows, strict=True)
            ]
        (tmp_path / "biases.csv").write_text("\n".join(lines))
        found = claims.decay_reverses(Workspace(tmp_path, {"training": str(tmp_path)}))
        assert found.passed is holds
        assert "strength 1: decaying at step 0, decaying at step 90" in found.finding

    def test_what_is_lacking(self, tmp_path, monkeypatch):
        workspace = Workspace(tmp_path, {"training": str(tmp_path)})
        assert "not measured" in claims.decay_reverses(workspace).finding
        monkeypatch.setattr(claims.Training, "read", lambda folder: planted({PLAIN: (0.4, 0.6)}, tmp_path))
        with pytest.raises(ValueError, match="lacks bias in training, bias at measurement"):
            claims.training_raises_the_exponent(workspace)


def test_a_name_with_signs_of_the_page_is_shown_as_it_is(tmp_path, monkeypatch):
    name = "relaymodel train '$x$ **b** \\\\.txt\n$$ y'"
    training = planted({PLAIN: (0.4, 0.6), TRAINED: (0.1, 0.3), ADDED: (0.1, 0.2)}, tmp_path)
    training.configuration["command"] = name
    monkeypatch.setattr(claims.Training, "read", lambda folder: training)
    verdict = claims.training_raises_the_exponent(Workspace(tmp_path, {"training": "folder"}))
    shown = page.text(verdict.explanation[0])
    assert html.unescape(re.sub("<span.*?</span>", "", shown)).count(" ".join(name.split())) == 1
    assert "<b>" not in shown
    assert shown.count("<math") == 1  # b_t, the one formula of the paragraph
