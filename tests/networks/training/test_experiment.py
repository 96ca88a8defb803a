"""An experiment end to end, resumed to the last bit, and what is refused."""

import csv
import hashlib
import json
import multiprocessing
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from relaymodel import PromptBias, measure
from relaymodel.cli import main
from relaymodel.curve import Curve
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.texts import english
from relaymodel.networks.training import ARMS, Recipe, Training, run, train
from relaymodel.networks.training.result import ALPHA_COLUMNS
from relaymodel.networks.training.text import split
from tests.networks.training.grown import ADDED, PLAIN, QUICK, REMOVED, SMALL, TRAINED

torch = pytest.importorskip("torch")


def weights(grown, step):
    return (grown / "weights" / f"step-{step:06d}" / "model.safetensors").read_bytes()


class TestFolder:
    def test_every_exponent_is_there_once(self, grown, training):
        expected = {
            (arm, seed, step, layer) for arm in ARMS for seed in (0, 1) for step in QUICK.measured for layer in (1, 2)
        }
        found = [(row.arm, row.seed, row.step, row.layer) for row in training.rows]
        assert set(found) == expected
        assert len(found) == len(expected)
        lines = (grown / "alpha.csv").read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# command: relaymodel train english --arms --bias 1 --seeds 2 --preset quick")
        table = [line for line in lines if not line.startswith("#")]
        assert tuple(table[0].split(",")) == ALPHA_COLUMNS
        assert len(list(csv.DictReader(table))) == len(expected)

    def test_configuration_says_what_was_done(self, grown):
        stored = json.loads((grown / "configuration.json").read_text(encoding="utf-8"))
        assert Recipe(**stored["recipe"]) == QUICK
        assert stored["bias"] == {"strength": "1", "offset": "0"}
        assert stored["seeds"] == [0, 1]
        assert stored["trainings"] == ["plain", "bias"]
        assert stored["made with"]["torch"] == torch.__version__
        text = (grown / "text.txt").read_text(encoding="utf-8")
        assert text == english()
        assert stored["text"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()

    def test_figure_is_drawn(self, grown):
        assert (grown / "training.png").read_bytes().startswith(b"\x89PNG")

    def test_nothing_is_left_of_the_work(self, grown):
        assert list(grown.rglob("state.pt")) == []
        assert list(grown.rglob(".*")) == []

    def test_losses_fall(self, training):
        for arm in (PLAIN, TRAINED):
            rows = [row for row in training.rows if row.arm == arm and row.seed == 0 and row.layer == 1]
            assert rows[0].loss is None
            assert abs(rows[0].held_out - np.log(256)) < 0.1  # nothing is known of bytes at first
            assert rows[-1].held_out < rows[-1].loss < rows[1].loss
            assert rows[-1].held_out > 1  # nats a byte; lower would be a leak

    @pytest.mark.parametrize("arm", ARMS)
    def test_curves_are_those_of_a_measurement_of_the_saved_weights(self, grown, training, arm):
        network = training.network(arm, 1, 24)
        stretch = english()[round(0.9 * len(english())) :]
        pairs = draw_pairs(network, pairs=3, prompt=16, steps=80, text=stretch, seed=1)
        bias = PromptBias(1) if arm in (TRAINED, ADDED) else None
        measured = measure(network, pairs, bias=bias)
        kind = "plain" if arm in (PLAIN, ADDED) else "bias"
        path = grown / f"{kind}-seed-1" / "curves" / f"{arm.replace(' ', '-')}-000024.csv"
        for layer in (1, 2):
            stored, anew = Curve.from_csv(path, layer=layer), measured.curve(layer)
            np.testing.assert_array_equal(stored.distance, anew.distance)
            np.testing.assert_array_equal(stored.stderr, anew.stderr)
            row = next(row for row in training.rows if (row.arm, row.seed, row.step, row.layer) == (arm, 1, 24, layer))
            fit = measured.alpha(layer)
            assert (row.alpha, row.stderr, row.from_t, row.to_t) == (fit.alpha, fit.noise_stderr, *fit.window)

    def test_seeds_differ_and_arms_of_a_seed_start_alike(self, grown, training):
        assert weights(grown / "plain-seed-0", 0) != weights(grown / "plain-seed-1", 0)
        corpus = split(english(), QUICK)
        assert not np.array_equal(corpus.batch(QUICK, 0, 0), corpus.batch(QUICK, 1, 0))
        assert not np.array_equal(corpus.batch(QUICK, 0, 0), corpus.batch(QUICK, 0, 1))
        for seed in (0, 1):
            assert weights(grown / f"plain-seed-{seed}", 0) == weights(grown / f"bias-seed-{seed}", 0)
            # the first update sees the bias in one of them
            assert weights(grown / f"plain-seed-{seed}", 1) != weights(grown / f"bias-seed-{seed}", 1)
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
    def test_an_interrupted_run_ends_with_the_same_bits(self, grown, tmp_path, monkeypatch):
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
        assert (out / "alpha.csv").read_bytes() == (grown / "alpha.csv").read_bytes()
        for name in ("plain-seed-0", "bias-seed-0", "plain-seed-1", "bias-seed-1"):
            assert weights(out / name, 24) == weights(grown / name, 24)
            for path in sorted((grown / name / "curves").iterdir()):
                assert (out / name / "curves" / path.name).read_bytes() == path.read_bytes()
        assert result.rows == Training.read(grown).rows

    def test_trainings_side_by_side_end_with_an_error_of_one(self, tmp_path):
        explosive = replace(SMALL, rate=1e30, checkpoints=1)
        with pytest.raises(ValueError, match="rate must be lower"):
            train(english(), tmp_path / "rate", recipe=explosive, seeds=2, jobs=2)
        assert multiprocessing.active_children() == []

    def test_a_finished_experiment_is_returned(self, grown, training):
        result = train(english(), grown, recipe=QUICK, arms=True, seeds=2, name="english", resume=True)
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
    def test_another_experiment_is_not_resumed(self, grown, change, named):
        options = {"text": english(), "recipe": QUICK, "arms": True, "seeds": 2, "name": "english"} | change
        with pytest.raises(ValueError, match=f"its {named} is"):
            train(options.pop("text"), grown, **options, resume=True)


class TestFaults:
    """What can go wrong with the folder: each is one error that names the file."""

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("configuration.json", b"", "configuration.json must be a JSON file"),
            ("configuration.json", b"[1, 2]", "configuration.json must say what is trained"),
            ("configuration.json", b"\xff\xfe", "configuration.json must be UTF-8 text"),
            ("plain-seed-0/records.json", b'[{"step": 0', "records.json must be a JSON file"),
            ("plain-seed-0/records.json", b'{"step": 0}', "records.json must hold what a training measured"),
            ("plain-seed-0/records.json", b"[1]", "records.json must hold what a training measured"),
            ("plain-seed-0/state.pt", b"", "state.pt must be the state of this training"),
            ("plain-seed-0/state.pt", b"PK\x03\x04 and so on", "state.pt must be the state of this training"),
        ],
    )
    def test_damaged_files(self, tmp_path, name, content, words):
        out, options = tmp_path / "out", {"recipe": SMALL, "resume": True}

        def stop(done, total):
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(english(), out, **options, progress=stop)
        assert (out / name).exists()
        (out / name).write_bytes(content)
        with pytest.raises(ValueError, match=words):
            train(english(), out, **options)

    def test_the_state_of_another_network(self, tmp_path):
        out = tmp_path / "out"

        def stop(done, total):
            if done == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            train(english(), out, recipe=SMALL, progress=stop)
        path = out / "plain-seed-0" / "state.pt"
        state = torch.load(path, weights_only=True)
        state["model"]["transformer.wte.weight"] = torch.zeros(3, 3)
        torch.save(state, path)
        with pytest.raises(ValueError, match=r"state.pt must be the state of this training"):
            train(english(), out, recipe=SMALL, resume=True)

    @pytest.mark.parametrize(("most", "name"), [(20_000, "step-000000"), (200_000, "state.pt")])
    def test_a_full_disk_is_one_line_and_names_the_file(self, tmp_path, most, name):
        """A limit on the size of a file stands for the disk: the weights have 139 kB, the state 400."""
        code = (
            "import resource, signal, sys\n"
            "from relaymodel.cli import main\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "import torch, transformers\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
            f"text = {str(tmp_path / 'text')!r}\n"
            f"sys.exit(main(['train', text, '--preset', 'quick', '--out', {str(tmp_path / 'out')!r}]))\n"
        )
        (tmp_path / "text").write_text("what is said three times is true. " * 500)
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert name in done.stderr
        assert "cannot write" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_a_folder_is_trained_by_one_process_at_a_time(self, tmp_path):
        out, seen = tmp_path / "out", []

        def second(done, total):
            if done == 2 and not seen:
                with pytest.raises(BlockingIOError, match="is being trained by another process; wait until it ends"):
                    train(english(), out, recipe=SMALL, resume=True)
                seen.append(done)

        train(english(), out, recipe=SMALL, progress=second)
        assert seen == [2]
        train(english(), out, recipe=SMALL, resume=True)  # free again

    @pytest.mark.parametrize("size", [{"depth": 10**6}, {"width": 10**5}, {"batch": 10**7}])
    def test_sizes_beyond_memory_are_refused_at_once(self, tmp_path, monkeypatch, size):
        monkeypatch.setattr("relaymodel.memory.free_memory", lambda: 64 * 10**9)
        with pytest.raises(ValueError, match=r"recipe \(depth, .*\) must be smaller: .* GB of memory"):
            train(english(), tmp_path / "out", recipe=Recipe(**size))
        assert list(tmp_path.iterdir()) == []

    def test_trainings_side_by_side_share_the_memory(self, tmp_path, monkeypatch):
        monkeypatch.setattr("relaymodel.memory.free_memory", lambda: 1.5 * SMALL.memory / 0.9)
        with pytest.raises(ValueError, match="2 at a time"):
            train(english(), tmp_path / "out", recipe=SMALL, seeds=2, jobs=2)
        train(english(), tmp_path / "out", recipe=replace(SMALL, steps=1), seeds=2, jobs=1)


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
            ({"threads": 2 * 10**9}, "threads must be at most 1024"),
            ({"checkpoints": 10**12}, "checkpoints must be at most 10000"),
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

    def test_folders_of_another_kind(self, tmp_path, grown):
        with pytest.raises(FileNotFoundError, match="it has no configuration.json"):
            Training.read(tmp_path)
        (tmp_path / "configuration.json").write_text("{}")
        (tmp_path / "alpha.csv").write_text("step,alpha\n1,2\n")
        with pytest.raises(ValueError, match=r"alpha.csv, line 2: the columns must be arm, seed"):
            Training.read(tmp_path)
        training = Training.read(grown)
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
