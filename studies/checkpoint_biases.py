"""What decides whether the decay reverses: the checkpoints of a plain training, measured under other biases.

`python -m studies checkpoint_biases FOLDER --out docs/training/biases.csv`, where FOLDER is what
`relaymodel train english --arms --seeds 3 --out FOLDER` left.  Two windows of the fit; mean and standard error over
seeds.
"""

import csv
from pathlib import Path

import numpy as np

from relaymodel.networks.texts import english
from relaymodel.networks.training import Recipe, Training, train
from relaymodel.networks.training.run import measure_checkpoint
from relaymodel.networks.training.text import split
from relaymodel.simulation import ConstantShare, PromptBias

BIASES = {"constant share 1/2": ConstantShare(0.5), "strength 1.5": PromptBias(1.5), "strength 2": PromptBias(2)}
WINDOWS = (16, 64)
COLUMNS = ("step", "bias", "layer", "from_t", "alpha", "stderr", "seeds")


MAKES = "docs/training/biases.csv"


def taste(folder):
    trained = folder / "training"
    recipe = Recipe(depth=2, width=32, heads=2, context=128, prompt=16, steps=2, batch=1, checkpoints=1, pairs=2)
    train(english(), trained, recipe=recipe, bias=PromptBias(1), arms=True, seeds=2)
    return [str(trained), "--out", str(folder / "biases.csv")]


def add_options(parser):
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)


def main(options):
    training = Training.read(options.folder)
    recipe = Recipe(**training.configuration["recipe"])
    corpus = split((options.folder / "text.txt").read_text(encoding="utf-8"), recipe)
    seeds, steps = training.configuration["seeds"], training.alpha("plain").steps
    rows = []
    for step in map(int, steps):
        networks = {seed: training.network("plain", seed, step) for seed in seeds}
        for name, bias in BIASES.items():
            measured = [measure_checkpoint(networks[seed], corpus, recipe, seed, bias) for seed in seeds]
            for first in WINDOWS:
                each = [one.alpha(training.layer, t_min=first).alpha for one in measured]
                error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else ""
                rows.append((step, name, training.layer, first, np.mean(each), error, len(each)))
                print(*rows[-1][:4], f"{rows[-1][4]:.4f}", error, flush=True)
    with options.out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
