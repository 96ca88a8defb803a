"""What a pass shows beside distances: the next token, attention, and responses to single tokens.

`python -m studies instruments MODEL --store FOLDER --out docs/instruments` writes docs/instruments.csv, the figures
docs/instruments-tokens.png (predictions, shares of attention) and docs/instruments-profiles.png (profiles over u,
responses to single tokens).  The store keeps each pair that is done, so that an interrupted run goes on;
`--response-pairs 0` leaves out the responses, which take nine passes of three times the cost for each pair.
"""

import numpy as np

from relaymodel import Curve, files, fit_power_law, measure
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.protocol.next_token import DIVERGENCES
from relaymodel.networks.texts import english
from relaymodel.plotting import panels, plot_attention, plot_next_token, plot_profile, plot_response, save
from studies import small

MAKES = "docs/instruments.csv, docs/instruments-tokens.png, docs/instruments-profiles.png"
EXTRA = "networks"
START = 16  # of the fits
POINTS = 160  # of a curve that is fitted: neighbouring tokens tell little more


def taste(folder):
    few = ["--pairs", "2", "--prompt", "8", "--steps", "200", "--response-pairs", "2", "--response-steps", "100"]
    return small.arguments(folder, "table", *few)


def add_options(parser):
    small.add_options(parser, pairs=4, prompt=64, steps=1024, response_pairs=2, response_steps=1024)
    parser.add_argument("--weights", nargs="+", choices=("trained", "untrained"), default=("trained", "untrained"))


def run(model, weights, options, pairs, steps, instruments):
    """Return the measurement of one network with some instruments."""
    network = load(model, untrained=weights == "untrained")
    texts = draw_pairs(network, text=english(), pairs=pairs, prompt=options.prompt, steps=steps)
    store = options.store / f"{weights}-{'-'.join(instruments)}"
    return measure(network, texts, instruments=instruments, resume=store, progress=True)


def exponent(curve):
    """Return the power law of a curve from t = 16 on, of at most 160 tokens evenly spread in log t."""
    wanted = np.geomspace(START, curve.t[-1], POINTS)
    some = np.unique(np.searchsorted(curve.t, wanted).clip(max=len(curve) - 1))
    pairs = None if curve.pairs is None else curve.pairs[:, some]
    stderr = None if curve.stderr is None else curve.stderr[some]
    return fit_power_law(Curve(curve.t[some], curve.distance[some], stderr, curve.provenance, pairs))


def fits(measured, spoken, layers):
    """Yield (quantity, value, error) of exponents from t = 16 on, and of the loss."""
    for layer in layers:
        law = exponent(spoken.curve(layer))
        yield f"distance, layer {layer}", law.value, law.noise_stderr
    for kind in DIVERGENCES:
        law = exponent(spoken.next_token.curve(kind))
        yield kind, law.value, law.noise_stderr
    loss = spoken.next_token.loss
    yield "loss (nats a token)", loss.mean(), loss.mean(axis=0).std(ddof=1) / np.sqrt(loss.shape[1])
    for layer in layers if measured is not None else ():
        found = measured.response
        law = exponent(found.profile(layer))
        yield f"response p, layer {layer}", law.value, law.noise_stderr
        for name, curve in (
            ("response summed, aligned", found.summed(layer)),
            ("response summed, unrelated", found.summed(layer, aligned=False)),
            ("whole prompt to first order", found.linear(layer)),
            ("distance of the same pairs", measured.curve(layer)),
        ):
            law = exponent(curve)
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
    spoken, measured = {}, {}
    for weights in options.weights:
        spoken[weights] = run(
            options.model, weights, options, options.pairs, options.steps, ("next_token", "attention")
        )
        if options.response_pairs:
            few = options.response_pairs, options.response_steps
            measured[weights] = run(options.model, weights, options, *few, ("response",))
        layers = ((spoken[weights].depth + 1) // 2, spoken[weights].depth)
        found = [*fits(measured.get(weights), spoken[weights], layers), *attention(spoken[weights], layers)]
        for quantity, value, stderr in found:
            error = None if stderr is None or not np.isfinite(stderr) else float(stderr)
            print(f"{weights:10s} {quantity:45s} {value:.4f}", "" if error is None else f"± {error:.4f}", flush=True)
            for name, entry in zip(columns, (weights, quantity, float(value), error), strict=True):
                columns[name].append(entry)
    first = options.weights[0]
    about = spoken[first].provenance
    draw = [
        lambda ax: plot_next_token(spoken[first], ax=ax),
        lambda ax: plot_attention(spoken[first], ax=ax),
        lambda ax: plot_profile(spoken[first], ax=ax),
    ]
    if measured:
        draw.append(lambda ax: plot_response(measured[first], layers, ax=ax))
    known = {key: about[key] for key in ("network", "sha256", "torch", "transformers", "prompt") if key in about}
    files.write_table(options.out.with_suffix(".csv"), columns, known, overwrite=True)
    save(panels(*draw[:2]), options.out.with_name(f"{options.out.name}-tokens.png"), overwrite=True)
    save(panels(*draw[2:]), options.out.with_name(f"{options.out.name}-profiles.png"), overwrite=True)
