"""An untrained GPT-2, measured, beside what its weights predict.

`python -m studies untrained_gpt2`

For each layer, with c the geometric mean of measured/predicted over the octaves of t: c; how far measured/(c predicted)
goes from 1 at any t; how far its mean in any octave does; and what the pairs' scatter allows, the standard error of
the measured mean at a single t.  Then the same for the short form, source * rms_influence(model).
"""

import time

import numpy as np

from relaymodel import rms_influence
from relaymodel.networks.calibration import calibrate
from relaymodel.networks.protocol import draw_pairs, measure
from relaymodel.networks.transformer import Architecture, Transformer


def compare(curve, predicted):
    """Return the constant and the two deviations in shape, as fractions."""
    logs = np.log(curve.distance / predicted)
    octave = np.floor(np.log2(curve.t)).astype(int)
    whole = range(int(np.log2(curve.t[-1] + 1)))  # an octave of one token at the end would be noise
    means = np.array([logs[octave == k].mean() for k in whole])
    constant = means.mean()
    return np.exp(constant), np.abs(logs - constant).max(), np.abs(means - constant).max()


MAKES = "what the calibration is said to be right to (printed)"


def taste(folder):
    small = {"depth": 2, "width": 32, "heads": 2, "vocabulary": 64, "pairs": 2, "prompt": 8, "steps": 64}
    return [word for name, value in small.items() for word in (f"--{name}", str(value))]


def add_options(parser):
    for name, default in {"depth": 12, "width": 768, "heads": 12, "vocabulary": 50257}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"pairs": 8, "prompt": 64, "steps": 2048, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)


def main(options):
    shape = Architecture(
        options.depth, options.width, options.heads, options.vocabulary, options.prompt + options.steps
    )
    network = Transformer.random(shape, np.random.default_rng(options.seed))
    pairs = draw_pairs(network, pairs=options.pairs, prompt=options.prompt, steps=options.steps, seed=options.seed)
    start = time.perf_counter()
    calibration = calibrate(network, pairs)
    middle = time.perf_counter()
    measured = measure(network, pairs, progress=True)
    print(shape.describe(), f"prompt {options.prompt}, {options.pairs} pairs, seed {options.seed}", sep=", ")
    print(f"predicted in {middle - start:.1f} s, measured in {time.perf_counter() - middle:.0f} s")
    print("layer  constant  shape, any t  in octaves  pair noise | short form: constant  shape, any t  in octaves")
    for layer in measured.layers:
        curve = measured.curve(layer)
        full = compare(curve, calibration.predict(layer, curve.t))
        short = compare(curve, calibration.source * rms_influence(calibration.model(layer), curve.t))
        noise = np.nan if curve.stderr is None else np.median(curve.stderr / curve.distance)
        print(
            f"{layer:5}  {full[0]:8.3f}  {full[1]:12.1%}  {full[2]:10.1%}  {noise:10.1%} | "
            f"{short[0]:20.3f}  {short[1]:12.1%}  {short[2]:10.1%}"
        )
