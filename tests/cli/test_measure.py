"""The command that measures."""

import json
from fractions import Fraction

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.cli import main
from relaymodel.cli.inputs import SPEED, NetworkOptions, announce
from relaymodel.networks.protocol import Measurement, measure
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.simulation import ClampedShare, PromptBias, Reminders, SplitSoftmax


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_command_with_its_defaults_measures_a_numpy_network(capsys, tmp_path):
    options = ["--pairs", "2", "--t-max", "150", "--depth", "2", "--prompt", "8", "--layers", "1-2"]
    files = [f"--{name}={tmp_path / file}" for name, file in (("csv", "c.csv"), ("plot", "p.png"), ("save", "m.nc"))]
    code, out, err = run(capsys, "measure", "untrained-numpy", *options, *files)
    assert code == 0, err
    assert "random tokens, seed 0" in out
    curve = rm.Curve.from_csv(tmp_path / "c.csv", layer=2)
    assert len(curve) == 150
    assert curve.pairs.tolist() == Measurement.from_netcdf(tmp_path / "m.nc").distance(2).tolist()
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = run(capsys, "measure", "untrained-numpy", *options, "--json")
    result = json.loads(out)
    assert result["layer"] == [1, 2]
    assert result["alpha"][1] == pytest.approx(np.mean(result["each"][1]))


@pytest.mark.slow
def test_command_reads_other_instruments_in_the_same_pass(capsys, tmp_path):
    options = ["--pairs", "2", "--t-max", "100", "--depth", "1", "--prompt", "8"]
    asked = ["--instruments", "next_token,attention,response", "--csv", str(tmp_path / "c.csv")]
    figure, saved = ["--plot", str(tmp_path / "p.png")], ["--save", str(tmp_path / "m.npz")]
    code, out, err = run(capsys, "measure", "untrained-numpy", *options, *asked, *figure, *saved, "--json")
    assert code == 0, err
    result, measured = json.loads(out), Measurement.from_npz(tmp_path / "m.npz")
    kinds = result["next_token"]["prediction"]
    assert kinds == ["total variation", "jensen shannon", "kl"]
    assert result["next_token"]["alpha"][0] == measured.next_token.alpha().value
    late = measured.attention.t > 54 - 8
    assert result["attention"]["prompt"][-1] == pytest.approx(measured.attention.share()[:, late].mean())
    assert result["response"]["p"] == [rm.fit_power_law(measured.response.profile(1)).value]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "c-attention.csv",
        "c-next_token.csv",
        "c-response.csv",
        "c.csv",
        "m.npz",
        "p.png",
    ]
    code, _, err = run(capsys, "measure", "untrained-numpy", *options, *asked)
    assert code == 2
    assert "exists already" in err
    assert run(capsys, "measure", "untrained-numpy", "--instruments", "tea")[0] == 2


def test_command_reads_prompts_and_continuation_from_files(capsys, tmp_path):
    for name, text in (("a", "first prompt text"), ("b", "other prompt here"), ("c", "and the rest " * 20)):
        (tmp_path / name).write_text(text)
    command = ["measure", "untrained-numpy", "--depth", "1", "--prompt", "8", "--t-max", "200", "--json"]
    texts = [
        "--prompt-a",
        str(tmp_path / "a"),
        "--prompt-b",
        str(tmp_path / "b"),
        "--continuation",
        str(tmp_path / "c"),
    ]
    code, out, err = run(capsys, *command, *texts)
    assert code == 0, err
    network = Transformer.random(
        Architecture(depth=1, width=256, heads=8, vocabulary=256, context=208), np.random.default_rng(0)
    )
    direct = measure(network, ("first pr", "other pr", ("and the rest " * 20)[:200]))
    assert json.loads(out)["alpha"] == [direct.alpha(1).alpha]
    code, _, err = run(capsys, *command, *texts, "--pairs", "3")
    assert code == 2
    assert "--prompt-a must have at least 3 x 8 = 24 tokens" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt-a", "x"], "--prompt-a and --prompt-b must be given together"),
        (["--prompt-a", "no", "--prompt-b", "no"], "--prompt-a must be a text file, and there is none at no"),
        (["--continuation", "nowhere.txt"], "a text file, and there is none at nowhere.txt"),
        (["--layers", "5-2"], "--layers must go up"),
        (["--layers", "99", "--depth", "1"], "layers must be from 0 to 1, got 99"),
        (["--metric", "manhattan"], "--metric must be one of"),
        (["--t-max", "1"], "--t-max must be"),
        (["--bias", "nan"], "--bias must be"),
        (["--layers", "0"], "--layers must be at least 1"),
        (["--pairs", "1e9"], "--pairs must be at most"),
        (["--t-max", "1e12"], "--t-max must be at most"),
        (["--depth", "1e9"], "--depth must be at most"),
        (["--t-min", "19"], "--t-min must be at most half of --t-max"),
        (["--dtype", "float16"], "--dtype must be left out"),
        (["--device", "cuda"], "--device must be left out for untrained-numpy"),
        (["--chunk", "8"], "--chunk must be left out for untrained-numpy"),
        (["--resume", ""], "--resume must name a folder"),
        (["--csv", ""], "must name a file"),
        (["--prompt", "1e6"], "--t-max, --prompt or --depth must be smaller: a network of 12 layers on 1000020 tokens"),
        (["--t-max", "1e6"], "--t-max, --prompt or --depth must be smaller"),
    ],
)
def test_command_names_what_is_unusable(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("relaymodel.memory.free_memory", lambda: 4 * 10**9)
    code, out, err = run(capsys, "measure", "untrained-numpy", "--pairs", "1", "--t-max", "20", *arguments)
    assert code == 2
    assert message in err
    assert out == ""
    assert len(err.splitlines()) == 1


def test_long_work_is_announced(capsys):
    announce(29)
    assert capsys.readouterr().err == ""
    announce(14 * 3600)
    assert capsys.readouterr().err == "relaymodel: this takes about 14 hours\n"


def test_what_is_announced_is_the_work_of_all_pairs(capsys, monkeypatch):
    told = []
    monkeypatch.setattr("relaymodel.cli.networks.announce", told.append)
    options = ["--pairs", "3", "--t-max", "40", "--depth", "2", "--prompt", "8"]
    assert run(capsys, "measure", "untrained-numpy", *options)[0] == 0
    shape = Architecture(depth=2, width=256, heads=8, vocabulary=256, context=48)
    assert told == [3 * shape.operations(48) / SPEED]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--split", "1/2"], {"bias": SplitSoftmax(Fraction(1, 2))}),
        (["--clamp", "0.25"], {"bias": ClampedShare(0.25)}),
        (["--every", "16", "--length", "4"], {"reminders": Reminders(16, 4)}),
        (["--bias", "2", "--every", "16", "--length", "4"], {"bias": PromptBias(2), "reminders": Reminders(16, 4)}),
    ],
)
def test_interventions_are_those_of_the_package(capsys, tmp_path, arguments, options):
    setting = ["--pairs", "2", "--prompt", "4", "--t-max", "40", "--depth", "2", "--seed", "3"]
    file = tmp_path / "found.npz"
    code, _, err = run(capsys, "measure", "untrained-numpy", *setting, *arguments, "--save", str(file))
    assert code == 0, err
    network = NetworkOptions(depth=2, prompt=4, t_max=40, seed=3).checked("untrained-numpy", prompt=64, t_max=2048)
    runs = network.network("untrained-numpy")
    measured = measure(runs, network.pairs(runs, 2), **options)
    np.testing.assert_array_equal(Measurement.from_npz(file).euclidean, measured.euclidean)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "0.5", "--bias", "1"], "--bias must not be given together with --split"),
        (["--split", "0.5", "--clamp", "0.5"], "--split must not be given together with --clamp"),
        (["--split", "2"], "--split must be above 0 and at most 1"),
        (["--clamp", "1"], "--clamp must lie between 0 and 1"),
        (["--every", "8"], "--every and --length must be given together"),
    ],
)
def test_interventions_that_cannot_be_are_refused(capsys, arguments, message):
    code, out, err = run(capsys, "measure", "untrained-numpy", "--pairs", "1", "--t-max", "40", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
