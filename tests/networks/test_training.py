"""Training: one experiment end to end, resumed to the last bit, its bias checked against an independent mask."""

import csv
import hashlib
import inspect
import json
import multiprocessing
import re
import shlex
from dataclasses import fields, replace

import numpy as np
import pytest

from relaymodel import PromptBias, measure
from relaymodel.cli import main
from relaymodel.curve import Curve
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.texts import english
from relaymodel.networks.training import ARMS, PRESETS, Recipe, Training, run, train
from relaymodel.networks.training.result import COLUMNS, Row
from relaymodel.networks.training.text import Bytes, split
from relaymodel.plotting import plot_training
from relaymodel.report import claim as claim_module
from relaymodel.report import reproduce
from relaymodel.report.claim import Workspace
from relaymodel.report.claims import training as claims
from relaymodel.simulation import ConstantShare

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

QUICK = PRESETS["quick"]
PLAIN, TRAINED, ADDED, REMOVED = ARMS
SMALL = replace(QUICK, steps=6, checkpoints=2, pairs=2)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As in the quick recipe, so that measurements agree to the last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("training") / "grown"
    assert main(["train", "english", "--arms", "--seeds", "2", "--preset", "quick", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def training(folder):
    return Training.read(folder)


def weights(folder, step):
    return (folder / "weights" / f"step-{step:06d}" / "model.safetensors").read_bytes()


class TestFolder:
    def test_every_exponent_is_there_once(self, folder, training):
        expected = {
            (arm, seed, step, layer) for arm in ARMS for seed in (0, 1) for step in QUICK.measured for layer in (1, 2)
        }
        found = [(row.arm, row.seed, row.step, row.layer) for row in training.rows]
        assert set(found) == expected
        assert len(found) == len(expected)
        lines = (folder / "alpha.csv").read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# command: relaymodel train english --arms --bias 1 --seeds 2 --preset quick")
        table = [line for line in lines if not line.startswith("#")]
        assert tuple(table[0].split(",")) == COLUMNS
        assert len(list(csv.DictReader(table))) == len(expected)

    def test_configuration_says_what_was_done(self, folder):
        stored = json.loads((folder / "configuration.json").read_text(encoding="utf-8"))
        assert Recipe(**stored["recipe"]) == QUICK
        assert stored["bias"] == {"strength": "1", "offset": "0"}
        assert stored["seeds"] == [0, 1]
        assert stored["trainings"] == ["plain", "bias"]
        assert stored["made with"]["torch"] == torch.__version__
        text = (folder / "text.txt").read_text(encoding="utf-8")
        assert text == english()
        assert stored["text"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()

    def test_figure_is_drawn(self, folder):
        assert (folder / "training.png").read_bytes().startswith(b"\x89PNG")

    def test_nothing_is_left_of_the_work(self, folder):
        assert list(folder.rglob("state.pt")) == []
        assert list(folder.rglob(".*")) == []

    def test_losses_fall(self, training):
        for arm in (PLAIN, TRAINED):
            rows = [row for row in training.rows if row.arm == arm and row.seed == 0 and row.layer == 1]
            assert rows[0].loss is None
            assert abs(rows[0].held_out - np.log(256)) < 0.1  # nothing is known of bytes at first
            assert rows[-1].held_out < rows[-1].loss < rows[1].loss
            assert rows[-1].held_out > 1  # nats a byte; lower would be a leak

    @pytest.mark.parametrize("arm", ARMS)
    def test_curves_are_those_of_a_measurement_of_the_saved_weights(self, folder, training, arm):
        network = training.network(arm, 1, 24)
        stretch = english()[round(0.9 * len(english())) :]
        pairs = draw_pairs(network, pairs=3, prompt=16, steps=80, text=stretch, seed=1)
        bias = PromptBias(1) if arm in (TRAINED, ADDED) else None
        measured = measure(network, pairs, bias=bias)
        kind = "plain" if arm in (PLAIN, ADDED) else "bias"
        path = folder / f"{kind}-seed-1" / "curves" / f"{arm.replace(' ', '-')}-000024.csv"
        for layer in (1, 2):
            stored, anew = Curve.from_csv(path, layer=layer), measured.curve(layer)
            np.testing.assert_array_equal(stored.distance, anew.distance)
            np.testing.assert_array_equal(stored.stderr, anew.stderr)
            row = next(row for row in training.rows if (row.arm, row.seed, row.step, row.layer) == (arm, 1, 24, layer))
            fit = measured.alpha(layer)
            assert (row.alpha, row.stderr, row.from_t, row.to_t) == (fit.alpha, fit.noise_stderr, *fit.window)

    def test_seeds_differ_and_arms_of_a_seed_start_alike(self, folder, training):
        assert weights(folder / "plain-seed-0", 0) != weights(folder / "plain-seed-1", 0)
        corpus = split(english(), QUICK)
        assert not np.array_equal(corpus.batch(QUICK, 0, 0), corpus.batch(QUICK, 1, 0))
        assert not np.array_equal(corpus.batch(QUICK, 0, 0), corpus.batch(QUICK, 0, 1))
        for seed in (0, 1):
            assert weights(folder / f"plain-seed-{seed}", 0) == weights(folder / f"bias-seed-{seed}", 0)
            # the first update sees the bias in one of them
            assert weights(folder / f"plain-seed-{seed}", 1) != weights(folder / f"bias-seed-{seed}", 1)
        for one, other in ((TRAINED, ADDED), (PLAIN, REMOVED)):
            np.testing.assert_array_equal(training.alpha(one).each[:, 0], training.alpha(other).each[:, 0])

    def test_the_bias_slows_the_decay_of_the_untrained_network(self, training):
        """Uniform attention, P = 16, one layer: the shares of the relay model, P/(P+t) and (P+t)/(P+2t)."""
        t = np.arange(1.0, 81)
        x, weight = np.log(t), np.gradient(np.log(t))
        for arm, share in ((PLAIN, 16 / (16 + t)), (ADDED, (16 + t) / (16 + 2 * t))):
            expected = -np.polyfit(x, np.log(share), 1, w=np.sqrt(weight))[0]
            # what the residual stream holds by chance varies between prompts by some percent
            assert training.alpha(arm, layer=1).alpha[0] == pytest.approx(expected, abs=0.02)


class TestResume:
    def test_an_interrupted_run_ends_with_the_same_bits(self, folder, tmp_path, monkeypatch):
        """Stop at a measurement, between measurements, and between the two files of a measurement.

        Here trainings follow each other; those of `folder` ran side by side.
        """
        monkeypatch.setattr(run, "SAVE_EVERY", 4)
        out, options = tmp_path / "grown", {"recipe": QUICK, "arms": True, "seeds": 2, "name": "english"}
        stops = iter([7, 15, 24 + 5, 24 + 23])  # in updates, counted through both trainings

        def stop_at(place):
            def progress(done, total):
                if done == place:
                    raise KeyboardInterrupt

            return progress

        for number, place in enumerate(stops):
            with pytest.raises(KeyboardInterrupt):
                train(english(), out, **options, resume=number > 0, progress=stop_at(place))

        def torn(self, step, losses):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(run.Run, "_save", torn)
            with pytest.raises(KeyboardInterrupt):
                train(english(), out, **options, resume=True)
        seen = []
        result = train(english(), out, **options, resume=True, tell=lambda *told: seen.append(told[:2]))
        assert ("plain", 0) not in seen  # what was finished is not done again
        assert (out / "alpha.csv").read_bytes() == (folder / "alpha.csv").read_bytes()
        for name in ("plain-seed-0", "bias-seed-0", "plain-seed-1", "bias-seed-1"):
            assert weights(out / name, 24) == weights(folder / name, 24)
            for path in sorted((folder / name / "curves").iterdir()):
                assert (out / name / "curves" / path.name).read_bytes() == path.read_bytes()
        assert result.rows == Training.read(folder).rows

    def test_trainings_side_by_side_end_with_an_error_of_one(self, tmp_path):
        explosive = replace(SMALL, rate=1e30, checkpoints=1)
        with pytest.raises(ValueError, match="rate must be lower"):
            train(english(), tmp_path / "rate", recipe=explosive, seeds=2, jobs=2)
        assert multiprocessing.active_children() == []

    def test_a_finished_experiment_is_returned(self, folder, training):
        result = train(english(), folder, recipe=QUICK, arms=True, seeds=2, name="english", resume=True)
        assert result.rows == training.rows

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"recipe": replace(QUICK, steps=25)}, "recipe"),
            ({"bias": PromptBias(2)}, "bias"),
            ({"seeds": 3}, "seeds"),
            ({"text": english() + "."}, "text"),
        ],
    )
    def test_another_experiment_is_not_resumed(self, folder, change, named):
        options = {"text": english(), "recipe": QUICK, "arms": True, "seeds": 2, "name": "english"} | change
        with pytest.raises(ValueError, match=f"its {named} is"):
            train(options.pop("text"), folder, **options, resume=True)


class TestBias:
    @pytest.mark.parametrize("bias", [None, PromptBias(1), PromptBias(-0.5, 2), ConstantShare(0.25)])
    def test_loss_and_gradients_are_those_of_an_independent_mask(self, bias, tmp_path):
        """Float64, weights large enough for attention to matter, against a mask written out query by query."""
        corpus = split(english(), SMALL)
        subject = run.Run(tmp_path, corpus, SMALL, 0, bias, {}, {})
        torch.manual_seed(1)
        subject.model = run.build(SMALL).double()
        with torch.no_grad():
            for block in subject.model.transformer.h:
                block.attn.c_attn.weight *= 20
        texts = corpus.batch(SMALL, 0, 0)
        n, P = SMALL.context, SMALL.prompt
        mask = torch.full((1, 1, n, n), -1e30, dtype=torch.float64)
        for query in range(n):
            for key in range(query + 1):
                t = query + 1 - P
                mask[0, 0, query, key] = 0
                if bias is not None and key < P and t > 0:
                    mask[0, 0, query, key] = float(bias.log_bias([t], P)[0])
        ids = torch.from_numpy(texts)
        logits = subject.model(input_ids=ids, attention_mask=mask.expand(len(ids), 1, n, n), use_cache=False).logits
        expected = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        wanted = torch.autograd.grad(expected, list(subject.model.parameters()))
        found = torch.autograd.grad(subject.loss(texts), list(subject.model.parameters()))
        for one, other in zip(found, wanted, strict=True):
            assert torch.allclose(one, other, rtol=1e-9, atol=1e-12)
        if bias is not None:
            subject.bias = None
            plain = torch.autograd.grad(subject.loss(texts), list(subject.model.parameters()))
            assert max(float((one - other).abs().max()) for one, other in zip(found, plain, strict=True)) > 1e-4

    def test_single_arms(self, tmp_path):
        """Without bias there is one way to measure; with a bias alone there is one training."""
        plain = train(english(), tmp_path / "plain", recipe=SMALL)
        assert plain.arms == (PLAIN,)
        shared = train(english(), tmp_path / "share", recipe=SMALL, bias=ConstantShare(0.5), seed=3)
        assert shared.arms == (TRAINED, REMOVED)
        assert shared.seeds == (3,)
        assert shared.configuration["command"].startswith("relaymodel train text --share 0.5 --seeds 1 --seed 3 --pre")
        assert sorted(path.name for path in (tmp_path / "share").iterdir() if path.is_dir()) == ["bias-seed-3"]
        # a constant share of uniform attention: no decay at all, which is seen to 2 % in a narrow network
        assert abs(shared.alpha(TRAINED).alpha[0]) < 0.02
        one = plain.alpha(PLAIN)
        assert one.stderr.tolist() == [row.stderr for row in plain.rows if row.layer == one.layer]


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"text": english()[:4000]}, ValueError, "text must have about 3360 bytes or more"),
            ({"text": 3}, TypeError, "text must be a str"),
            ({"bias": PromptBias(0)}, ValueError, "bias must have a strength other than 0"),
            ({"bias": 1}, TypeError, "bias must be a PromptBias"),
            ({"seeds": 0}, ValueError, "seeds must be at least 1"),
            ({"seed": -1}, ValueError, "seed must be at least 0"),
            ({"recipe": "quick"}, TypeError, "recipe must be a Recipe"),
        ],
    )
    def test_before_any_work(self, tmp_path, change, error, message):
        options = {"text": english(), "recipe": QUICK} | change
        if options["text"] == english()[:4000]:
            options["text"] = options["text"][:3300]
        with pytest.raises(error, match=message):
            train(options.pop("text"), tmp_path / "out", **options)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"prompt": 96}, "prompt must be less than context - 1 = 95"),
            ({"prompt": 95}, "prompt must be less than context - 1 = 95"),
            ({"heads": 5}, "width must be a multiple of heads = 5"),
            ({"rate": 0}, "rate must be positive"),
            ({"steps": 0}, "steps must be at least 1"),
        ],
    )
    def test_recipes(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(QUICK, **change)

    def test_a_folder_that_is_occupied(self, tmp_path, capsys):
        (tmp_path / "notes").write_text("mine")
        with pytest.raises(FileExistsError, match="exists already; choose another folder, or go on with it"):
            train(english(), tmp_path, recipe=SMALL)
        with pytest.raises(FileExistsError, match="holds no training to resume"):
            train(english(), tmp_path, recipe=SMALL, resume=True)
        assert main(["train", "english", "--preset", "quick", "--out", str(tmp_path)]) == 2
        assert "--resume" in capsys.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]

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
            (["english", "--preset", "huge"], "'standard', 'quick'"),
            (["english", "--layer", "9"], "--layer must be at most 6"),
        ],
    )
    def test_command_line(self, tmp_path, capsys, options, message):
        assert main(["train", *options, "--out", str(tmp_path / "out")]) == 2
        printed = capsys.readouterr()
        assert message in printed.err
        assert printed.out == ""
        assert list(tmp_path.iterdir()) == []

    def test_folders_of_another_kind(self, tmp_path, folder):
        with pytest.raises(FileNotFoundError, match="it has no configuration.json"):
            Training.read(tmp_path)
        (tmp_path / "configuration.json").write_text("{}")
        (tmp_path / "alpha.csv").write_text("step,alpha\n1,2\n")
        with pytest.raises(ValueError, match="must have the columns arm"):
            Training.read(tmp_path)
        training = Training.read(folder)
        with pytest.raises(ValueError, match="layer must be one of those measured, 1, 2"):
            training.alpha(PLAIN, layer=3)
        with pytest.raises(ValueError, match="arm must be one of"):
            training.alpha("weighted")
        with pytest.raises(FileNotFoundError):
            training.network(PLAIN, 0, 2)


def test_command_that_is_recorded_gives_the_same_again(tmp_path):
    first = train(english(), tmp_path / "a", recipe=SMALL, bias=PromptBias(0.5), seed=2, name="english")
    words = shlex.split(first.configuration["command"])
    assert words[0] == "relaymodel"
    assert words[-1] == "DIR"
    assert main([*words[1:-1], str(tmp_path / "b"), "--json"]) == 0
    assert (tmp_path / "b" / "alpha.csv").read_bytes() == (tmp_path / "a" / "alpha.csv").read_bytes()


def test_json_is_one_object(tmp_path, capsys):
    out = tmp_path / "out"
    small = ["--set", "steps=2", "--set", "checkpoints=1", "--set", "pairs=2", "--layer", "2"]
    assert main(["train", "english", "--preset", "quick", *small, "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["layer"] == 2
    assert found["step"] == [0, 2]
    assert found["alpha"] == Training.read(out).alpha(PLAIN, layer=2).alpha.tolist()


def test_help_names_every_part_of_the_recipe():
    from relaymodel.cli.training import train as command

    settings = inspect.get_annotations(command)["settings"].__metadata__[0]
    assert [field.name for field in fields(Recipe) if not re.search(rf"\b{field.name}\b", settings.help)] == []


def test_bytes_are_tokens():
    assert Bytes().encode("é!", add_special_tokens=False) == [195, 169, 33]


def test_learning_rate_rises_and_falls():
    recipe = Recipe(steps=1000, rate=1.0)
    rates = [recipe.learning_rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 50)
    assert max(rates) == rates[49] == pytest.approx(1, abs=0.01)
    assert np.all(np.diff(rates[49:]) < 0)
    assert rates[-1] == pytest.approx(0.1, abs=0.001)


def planted(ends, path=None):
    """A training of two seeds whose exponents go from one number to another: {arm: (first, last)}."""
    rows = [
        Row(arm, seed, step, 1, first + (last - first) * step / 100 + 0.01 * (2 * seed - 1), 0.1, 16, 480, None, 2.0)
        for arm, (first, last) in ends.items()
        for seed in (0, 1)
        for step in (0, 10, 100)
    ]
    return Training(path, {}, tuple(rows))


class TestProgression:
    def test_mean_and_error_over_seeds(self):
        one = planted({PLAIN: (0.4, 0.6)}).alpha(PLAIN)
        np.testing.assert_allclose(one.alpha, [0.4, 0.42, 0.6])
        np.testing.assert_allclose(one.stderr, 0.01)  # +-d: standard deviation d sqrt 2, over sqrt 2

    def test_steps_that_a_seed_has_not_reached_are_left_out(self):
        whole = planted({PLAIN: (0.4, 0.6)})
        short = Training(None, {}, tuple(row for row in whole.rows if (row.seed, row.step) != (1, 100)))
        assert short.alpha(PLAIN).steps.tolist() == [0, 10]


class TestFigure:
    def test_lines_and_bars(self):
        training = planted({PLAIN: (0.4, 0.6), TRAINED: (0.1, -0.1), ADDED: (0.1, 0.2), REMOVED: (0.4, 0.7)})
        ax = plot_training(training)
        bars = {container.get_label(): container for container in ax.containers}
        assert list(bars) == [PLAIN, TRAINED, "bias at measurement only"]
        for arm, label in ((PLAIN, PLAIN), (TRAINED, TRAINED), (ADDED, "bias at measurement only")):
            line, _, (bar,) = bars[label].lines
            one = training.alpha(arm)
            np.testing.assert_array_equal(line.get_xdata(), [0, 10, 100])
            np.testing.assert_array_equal(line.get_ydata(), one.alpha)
            ends = np.array(bar.get_segments())[:, :, 1]
            np.testing.assert_allclose(ends.T, [one.alpha - one.stderr, one.alpha + one.stderr])
        transform = ax.transData.transform
        x = [transform((step, 0))[0] for step in (0, 10, 100)]
        assert ax.get_xlim()[0] < 0 < x[0] < x[1] < x[2]
        assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(np.log(11 / 2) / np.log(2), rel=1e-6)
        assert {0.0, 100.0} <= set(ax.get_xticks())

    def test_what_cannot_be_drawn(self):
        training = planted({PLAIN: (0.4, 0.6)})
        with pytest.raises(TypeError, match="training must be a Training"):
            plot_training("folder")
        with pytest.raises(ValueError, match="arm must be one of 'plain'"):
            plot_training(training, arms=[ADDED])
        with pytest.raises(ValueError, match="arms must name at least one"):
            plot_training(training, arms=[])


class TestReport:
    def test_claims_of_a_folder(self, folder, tmp_path, monkeypatch):
        """Only when a folder is given; the figure and the table are in the report."""
        checks = [check for check in claim_module.CHECKS if check.needs == "training"]
        monkeypatch.setattr("relaymodel.report.CHECKS", checks)
        assert reproduce(tmp_path / "without").claims == ()
        found = reproduce(tmp_path / "with", training=folder).claims
        assert len(found) == len(checks) == 2
        assert (tmp_path / "with" / "figures" / "training.png").exists()
        with (tmp_path / "with" / "data" / "training.csv").open(newline="", encoding="utf-8") as stream:
            assert len(list(csv.DictReader(stream))) == 4 * len(QUICK.measured)

    @pytest.mark.parametrize(
        ("ends", "raised", "reversed_"),
        [
            ({PLAIN: (0.4, 0.6), TRAINED: (0.1, 0.3), ADDED: (0.1, 0.2)}, True, False),
            ({PLAIN: (0.4, 0.6), TRAINED: (0.1, 0.3), ADDED: (0.1, -0.1)}, True, True),
            ({PLAIN: (0.4, 0.6), TRAINED: (0.1, -0.015), ADDED: (0.1, 0.2)}, True, False),  # within two errors of 0
            ({PLAIN: (0.4, 0.4), TRAINED: (0.1, 0.3), ADDED: (0.1, 0.2)}, False, False),
            ({PLAIN: (0.4, 0.6), TRAINED: (0.1, 0.6), ADDED: (0.1, 0.2)}, True, False),  # undone by the end
            ({PLAIN: (0.4, 0.6), TRAINED: (0.2, 0.3), ADDED: (0.2, 0.2)}, False, False),
        ],
    )
    def test_verdicts(self, ends, raised, reversed_, tmp_path, monkeypatch):
        monkeypatch.setattr(claims.Training, "read", lambda folder: planted(ends, tmp_path))
        workspace = Workspace(tmp_path, {"training": "folder"})
        assert claims.training_raises_the_exponent(workspace).passed is raised
        assert claims.decay_reverses(workspace).passed is reversed_

    def test_arms_that_are_lacking(self, tmp_path, monkeypatch):
        monkeypatch.setattr(claims.Training, "read", lambda folder: planted({PLAIN: (0.4, 0.6)}, tmp_path))
        with pytest.raises(ValueError, match="lacks bias in training, bias at measurement"):
            claims.decay_reverses(Workspace(tmp_path, {"training": "folder"}))
