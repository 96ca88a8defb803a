"""The command that fits the relay model."""

import json
import shlex

import numpy as np
import pytest

from relaymodel import Curve, RelayModel, influence
from relaymodel.cli import main
from relaymodel.curve import read_curves
from tests.inference.curves import DATA, SPARSE, curve_of


class TestCommand:
    @pytest.fixture
    def run(self, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def call(command):
            code = main(shlex.split(command))
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return call

    @pytest.mark.slow
    def test_what_it_prints_and_writes(self, run, tmp_path):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, err = run("fit c.csv --depth 6 --plot c.svg --csv out.csv")
        assert code == 0, err
        assert "relay        0.5 (95 %: 0.5 to 0.5)" in out
        assert "depth        6 (held)" in out
        assert "power of log t" in out
        assert (tmp_path / "c.svg").read_text().startswith("<?xml")
        table = Curve.from_csv(tmp_path / "out.csv")
        assert table.t[0] == SPARSE[SPARSE >= 16][0]
        head = next(l for l in (tmp_path / "out.csv").read_text().splitlines() if not l.startswith("#"))
        assert head == "t,distance,fit,local_exponent"

    @pytest.mark.slow
    def test_recency_and_sink(self, run, tmp_path):
        t = np.geomspace(16, 1024, 16).round()
        model = RelayModel.uniform(64, 4, 0.5, recency=0.7, sink=0.01)
        Curve(t, influence(model, t)).to_csv(tmp_path / "c.csv")
        code, out, err = run("fit c.csv --prompt 64 --depth 4 --recency fit --sink 0.01")
        assert code == 0, err
        assert "recency      0.7 (95 %: 0.7 to 0.7)" in out
        assert "sink         0.01 (held)" in out

    def test_json(self, run, tmp_path):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, _ = run("fit c.csv --json")
        result = json.loads(out)
        assert code == 0
        assert result["depth"]["value"] == pytest.approx(6, abs=1e-3)
        assert result["covariance"]["names"] == ["relay", "depth"]
        assert result["laws"][0]["name"] == "relay model"

    def test_few_points_are_fitted_though_laws_are_not_compared(self, run, tmp_path):
        curve_of(2, 0.5, np.geomspace(16, 1000, 7)).to_csv(tmp_path / "c.csv")
        code, out, err = run("fit c.csv --depth 2")
        assert code == 0, err
        assert "relay        0.5" in out
        assert "at least 9 points for laws" in out
        assert "laws" not in json.loads(run("fit c.csv --depth 2 --json")[1])

    def test_all_layers(self, run):
        code, out, err = run(f"fit {DATA / 'gpt2_untrained.csv'} --all-layers --json")
        assert code == 0, err
        result = json.loads(out)
        assert len(result["amplitude"]) == len(read_curves(DATA / "gpt2_untrained.csv"))
        assert "laws" not in result

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("none.csv", "there is none at none.csv"),
            ("c.csv --layer 1 --all-layers", "--layer must not be given"),
            ("c.csv --depth 3 --all-layers", "--depth must not be given"),
            ("c.csv --all-layers", "no column of layers"),
            ("c.csv --relay x", "--relay must be a number"),
            ("c.csv --prompt 0", "--prompt must be at least 1"),
            ("c.csv --plot c.jpg", "suffix"),
        ],
    )
    def test_refusals(self, run, tmp_path, options, message):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, err = run(f"fit {options}")
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
