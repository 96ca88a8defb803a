"""Which bias stops the decay, which reverses it: checkpoints of a plain training, measured under several biases.

`python -m studies checkpoint_biases FOLDER --out docs/training/biases.csv`, where FOLDER is what
`relaymodel train english --seeds 3 --out FOLDER` left, with `--preset units` for tokens beyond bytes.  Two windows of
the fit; mean and standard error over seeds, over pairs if there is one seed.
"""

from pathlib import Path

import numpy as np

from relaymodel.networks.protocol.decay import FIRST_TOKENS, verdict
from relaymodel.networks.texts import english
from relaymodel.networks.training import Recipe, Training, train
from relaymodel.networks.training.run import measure_checkpoint
from relaymodel.networks.training.text import split
from relaymodel.simulation import ConstantShare, PromptBias
from studies import tables

MAKES = "docs/training/biases.csv, docs/training/biases_units.csv"
EXTRA = "networks"
STEPS = 5  # checkpoints, equally far apart in the list of those there are, unless the options name them


def biases(prompt):
    """Return the biases by name; `log t` is the constant share P/(P + 1)."""
    strengths = {f"strength {b}": PromptBias(b) for b in (1, 2, 3, 4)}
    shares = {"log t": ConstantShare(prompt / (prompt + 1)), "constant share 1/2": ConstantShare(0.5)}
    return {"none": None} | strengths | shares


def taste(folder):
    trained = folder / "training"
    recipe = Recipe(depth=2, width=32, heads=2, context=128, prompt=16, steps=2, batch=1, checkpoints=1, pairs=2)
    train(english(), trained, recipe=recipe, seeds=2)
    return [str(trained), "--steps", "2", "--out", str(folder / "biases.csv")]


def add_options(parser):
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", help="comma-separated; default: five of those there are")


def main(options):
    training = Training.read(options.folder)
    recipe = Recipe(**training.configuration["recipe"])
    corpus = split((options.folder / "text.txt").read_text(encoding="utf-8"), recipe)
    found = training.alpha("plain")
    steps = found.steps[np.unique(np.linspace(0, len(found.steps) - 1, STEPS).round().astype(int))].tolist()
    if options.steps:
        steps = list(map(int, options.steps.split(",")))
    seeds = [
        seed for seed in training.seeds if all((seed, s) in {(r.seed, r.step) for r in training.rows} for s in steps)
    ]
    rows = []
    for step in steps:
        networks = {seed: training.network("plain", seed, step) for seed in seeds}
        for name, bias in biases(recipe.prompt).items():
            measured = [measure_checkpoint(networks[seed], corpus, recipe, seed, bias) for seed in seeds]
            row = {"step": step, "bias": name, "layer": training.layer}
            exponents = []
            for first in FIRST_TOKENS:
                fits = [one.alpha(training.layer, t_min=first) for one in measured]
                each = [fit.value for fit in fits]
                error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else fits[0].noise_stderr
                exponents.append((float(np.mean(each)), float(error)))
                row |= {f"alpha_{first}": round(exponents[-1][0], 4), f"stderr_{first}": round(exponents[-1][1], 4)}
            rows.append(row | {"verdict": verdict(exponents), "seeds": len(seeds)})
            print(rows[-1], flush=True)
    tables.write(options.out, rows)
