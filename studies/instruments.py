"""What a pass shows beside distances: the next token, attention, and responses to single tokens.

`python -m studies instruments MODEL --store FOLDER --out docs/instruments` writes docs/instruments.csv, the figures
docs/instruments-tokens.png (predictions, shares of attention) and docs/instruments-profiles.png (profiles over u,
responses to single tokens).  The store keeps each pair that is done, so that an interrupted run goes on.
"""

from pathlib import Path

import numpy as np

from relaymodel import files, fit_power_law, measure
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.protocol.next_token import DIVERGENCES
from relaymodel.networks.texts import english
from relaymodel.plotting import panels, plot_attention, plot_next_token, plot_profile, plot_response, save

MAKES = "docs/instruments.csv, docs/instruments-tokens.png, docs/instruments-profiles.png"
START = 16  # of the fits


def taste(folder):
    from studies import small

    few = ["--pairs", "2", "--prompt", "8", "--steps", "200", "--response-pairs", "2", "--response-steps", "100"]
    return [str(small.llama(folder / "model")), "--store", str(folder / "store"), "--out", str(folder / "table"), *few]


def add_options(parser):
    parser.add_argument("model")
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    for name, default in {"pairs": 4, "prompt": 64, "steps": 1024, "response-pairs": 2, "response-steps": 1024}.items():
        parser.add_argument(f"--{name}", type=int, default=default)


def run(model, weights, options, pairs, steps, instruments):
    """Return the measurement of one network with some instruments."""
    network = load(model, untrained=weights == "untrained")
    texts = draw_pairs(network, text=english(), pairs=pairs, prompt=options.prompt, steps=steps)
    store = options.store / f"{weights}-{'-'.join(instruments)}"
    return measure(network, texts, instruments=instruments, resume=store, progress=True)


def fits(measured, spoken, layers):
    """Yield (quantity, value, error) of exponents from t = 16 on, and of the loss."""
    for layer in layers:
        law = spoken.alpha(layer, t_min=START)
        yield f"distance, layer {layer}", law.value, law.noise_stderr
    for kind in DIVERGENCES:
        law = spoken.next_token.alpha(kind, t_min=START)
        yield kind, law.value, law.noise_stderr
    loss = spoken.next_token.loss
    yield "loss (nats a token)", loss.mean(), loss.mean(axis=0).std(ddof=1) / np.sqrt(loss.shape[1])
    for layer in layers:
        found = measured.response
        law = fit_power_law(found.profile(layer), t_min=START)
        yield f"response p, layer {layer}", law.value, law.noise_stderr
        for name, curve in (
            ("response summed, aligned", found.summed(layer)),
            ("response summed, unrelated", found.summed(layer, aligned=False)),
            ("whole prompt to first order", found.linear(layer)),
            ("distance of the same pairs", measured.curve(layer)),
        ):
            law = fit_power_law(curve, t_min=START)
            yield f"{name}, layer {layer}", law.value, law.noise_stderr


def attention(spoken, layers):
    """Yield (quantity, value, error) of shares at texts of several lengths, and of the collapse."""
    found = spoken.attention
    n = found.prompt + found.t
    for part in ("prompt", "first", "own"):
        for end in found.collapse().n:
            each = found.share(part)[:, (n > end / 2) & (n <= end)].mean(axis=1)
            yield f"share on {part}, n = {end // 2}..{end}", each.mean(), each.std(ddof=1) / np.sqrt(each.size)
    for layer in (None, *layers):
        collapse, where = found.collapse(layer), "all layers" if layer is None else f"layer {layer}"
        for end, apart, unscaled in list(zip(collapse.n, collapse.apart, collapse.unscaled, strict=True))[:-1]:
            yield f"collapse on u, n = {end // 2}..{end}, {where}", apart, None
            yield f"collapse on n - s, n = {end // 2}..{end}, {where}", unscaled, None
    mixture = found.mixture()
    yield "mixture of heads: misplaced share", mixture.error, None
    yield "mixture of heads: density at u = 0", mixture.density_at_start, None


def main(options):
    options.store.mkdir(exist_ok=True)
    columns = {name: [] for name in ("weights", "quantity", "value", "stderr")}
    tokens, profiles = panels(2), panels(3)
    for weights in ("trained", "untrained"):
        spoken = run(options.model, weights, options, options.pairs, options.steps, ("next_token", "attention"))
        measured = run(options.model, weights, options, options.response_pairs, options.response_steps, ("response",))
        layers = ((spoken.depth + 1) // 2, spoken.depth)
        for quantity, value, stderr in [*fits(measured, spoken, layers), *attention(spoken, layers)]:
            print(f"{weights:10s} {quantity:45s} {value:.4f}", "" if stderr is None else f"± {stderr:.4f}", flush=True)
            for name, entry in zip(columns, (weights, quantity, float(value), stderr), strict=True):
                columns[name].append(entry)
        plot_profile(spoken, ax=profiles.axes[weights == "untrained"])
        profiles.axes[weights == "untrained"].set_title(weights, loc="right")
        if weights == "trained":
            plot_next_token(spoken, ax=tokens.axes[0])
            plot_attention(spoken, ax=tokens.axes[1])
            plot_response(measured, layers, ax=profiles.axes[2])
            about = {
                key: spoken.provenance[key]
                for key in ("network", "sha256", "torch", "transformers")
                if key in spoken.provenance
            }
    known = {key: about[key] for key in ("network", "sha256", "torch", "transformers", "prompt") if key in about}
    files.write_table(options.out.with_suffix(".csv"), columns, known, overwrite=True)
    for name, drawing in (("tokens", tokens), ("profiles", profiles)):
        save(drawing, options.out.with_name(f"{options.out.name}-{name}.png"), overwrite=True)
