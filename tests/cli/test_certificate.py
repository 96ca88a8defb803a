"""The command that certifies."""

import json
import time
from dataclasses import fields

import numpy as np
import pytest

from relaymodel import memory
from relaymodel.certificate import Certificate, Ladder
from relaymodel.cli import main


@pytest.mark.slow
def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["certify", "--depth", "2", "--t-max", "30"]
    assert main([*common, "--latex", "a.tex", "--html", "a.html", "--csv", "a.csv", "--plot", "a.png"]) == 0
    out = capsys.readouterr().out
    assert "inequalities hold" in out
    for name in (field.name for field in fields(Ladder)):
        assert f"\n{name} " in out
    assert {path.name for path in tmp_path.iterdir()} == {"a.tex", "a.html", "a.csv", "a.png"}
    assert "<table>" in (tmp_path / "a.html").read_text()
    assert main([*common, "--json", "--bias", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["applies"]) == (True, False)
    assert len(found["t"]) == len(found["log10_section_8"]) == 30
    assert np.all(np.array(found["log10_prompts"]) > np.log10(found["distance"]))
    assert main([*common, "--html", "a.html"]) == 2
    assert "a.html exists already" in capsys.readouterr().err
    assert main([*common, "--html", "b", "--latex", "b"]) == 2
    assert "must be different files" in capsys.readouterr().err
    monkeypatch.setattr(Certificate, "holds", False)
    assert main(common) == 1


def test_what_does_not_fit_is_refused_at_once_and_by_its_option(capsys, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 10**9)
    begun = time.monotonic()
    assert main(["certify", "--t-max", "1e6"]) == 2
    assert (
        "--t-max or --prompt must be smaller: a certificate of two runs of 1000016 tokens takes"
        in capsys.readouterr().err
    )
    assert time.monotonic() - begun < 20
