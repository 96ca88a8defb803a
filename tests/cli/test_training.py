"""The command that trains."""

import inspect
import json
import re
from dataclasses import fields

import pytest

from relaymodel.cli import main
from relaymodel.networks.training import Recipe, Training
from tests.networks.training.grown import PLAIN

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_json_is_one_object(tmp_path, capsys):
    out = tmp_path / "out"
    small = ["--set", "steps=2", "--set", "checkpoints=1", "--set", "pairs=2", "--layer", "2"]
    assert main(["train", "english", "--preset", "quick", *small, "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layer"] == 2
    assert found["step"] == [0, 2]
    assert found["alpha"] == Training.read(out).alpha(PLAIN, layer=2).alpha.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere.txt"], "TEXT must be english or a text file"),
        (["english", "--bias", "1", "--share", "0.5"], "choose one"),
        (["english", "--set", "prompt=600"], "prompt must be less than context"),
        (["english", "--set", "prompt"], "--set must be NAME=VALUE with one of the names depth, width"),
        (["english", "--set", "head=3"], "--set must be NAME=VALUE with one of the names depth, width"),
        (["english", "--set", "steps=1.5"], "--set steps must be a whole number"),
        (["english", "--set", "rate=fast"], "--set rate must be a number"),
        (["english", "--set", "rate=-1"], "--set rate must be positive, got -1"),
        (["english", "--set", "rate=1e400"], "--set rate must be within the range of float64"),
        (["english", "--set", "width=1e400"], "--set width must be at most 1000000, got '1e400'"),
        (["english", "--set", "heads=3"], "--set width must be a multiple of heads = 3, got 64"),
        (["english", "--set", "positions=abs"], "--set positions must be one of 'learned', 'rotary', got 'abs'"),
        (["english", "--preset", "huge"], "'standard', 'units', 'quick'"),
        (["english", "--layer", "9"], "--layer must be at most 6"),
    ],
)
def test_command_names_what_is_unusable(tmp_path, capsys, options, message):
    assert main(["train", *options, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_part_of_the_recipe():
    from relaymodel.cli.training import train as command

    settings = inspect.get_annotations(command)["settings"].__metadata__[0]
    assert [field.name for field in fields(Recipe) if not re.search(rf"\b{field.name}\b", settings.help)] == []
