"""Small recipes, and trainings made up."""

from dataclasses import replace

from relaymodel.networks.training import ARMS, PRESETS, Training
from relaymodel.networks.training.result import Row

QUICK = PRESETS["quick"]
PLAIN, TRAINED, ADDED, REMOVED = ARMS
SMALL = replace(QUICK, steps=6, checkpoints=2, pairs=2)


def planted(ends, path=None):
    """A training of two seeds whose exponents go from one number to another: {arm: (first, last)}."""
    rows = [
        Row(arm, seed, step, 1, first + (last - first) * step / 100 + 0.01 * (2 * seed - 1), 0.1, 16, 480, None, 2.0)
        for arm, (first, last) in ends.items()
        for seed in (0, 1)
        for step in (0, 10, 100)
    ]
    return Training(path, {}, tuple(rows))
