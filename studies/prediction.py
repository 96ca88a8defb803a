"""How far the exact model predicts a trained network: from its attention and weights, and fitted without a bias.

`python -m studies prediction MODEL --store FOLDER --out docs/prediction.csv`, where FOLDER is what
the study trained_model left, whose distances it reads; two pairs are run again for their attention.
Predictions of D at late t, and of the exponents under biases:

- read: each layer's mean profile of attention by relative position, fitted by beta heads (THEORY section 10), with
  strengths from the size of the weights and of the residual stream; nothing fitted to a distance;
- fitted: relay and recency at bias 0, t = 4 to T/4, `rm.fit`;
- fitted, gap read: the same two, with the prompt's logits lower by a constant, so that its share of the attention
  without the sink is the one measured;
- uniform attention and a power law, fitted to the same distances.
"""

import numpy as np
from scipy.optimize import least_squares
from scipy.special import logit

from relaymodel import PromptBias, RelayModel, fit, fit_power_law, measure
from relaymodel.model import Head, Layer
from relaymodel.networks.huggingface import as_transformer, load
from relaymodel.networks.protocol import Pairs, draw_pairs
from relaymodel.networks.texts import english
from relaymodel.simulation import simulate
from studies import small, tables
from studies.trained_model import biases, joined, measured_pair

MAKES = "docs/prediction.csv"
EXTRA = "networks"
STRENGTHS = (0, 0.5, 1, 1.3, 2, 3)


def slope(t, distance, first=16):
    """Return the exponent from `first` on, of points equally far apart in log t."""
    at = np.unique(np.rint(np.geomspace(first, t[-1], 64)))
    return -float(np.polyfit(np.log(at), np.log(np.interp(at, t, distance)), 1)[0])


def gains(network):
    """Return the root mean square gain of each block's attention, all heads with random signs, shape (L,)."""
    converted = as_transformer(network)
    a, found = converted.architecture, []
    for block in converted.weights.blocks:
        value = (block.attention_gain[:, None] * block.value).reshape(a.width, -1, a.head_size)
        value = np.repeat(value, a.heads // value.shape[1], axis=1)
        output = block.output.reshape(a.heads, a.head_size, a.width)
        each = [np.sum((value[:, h] @ output[h]) ** 2) / a.width for h in range(a.heads)]
        found.append(np.sqrt(sum(each)))
    return np.array(found)


def read_model(network, seen, prompt):
    """Return the relay model of attention profiles, norms and weights."""
    norms = np.sqrt(np.mean(seen.norms**2, axis=(0, 1, 3)))  # |x| at layers 0..L
    size = norms / np.sqrt(network.model.config.get_text_config(decoder=True).hidden_size)
    layers = []
    for i, gain in enumerate(gains(network)):
        mixture = seen.attention.mixture(i + 1)
        relay = float(gain / size[i])
        heads = [Head(relay * float(h.relay), h.position, h.recency) for h in mixture.heads]
        layers.append(Layer(heads=heads, residual=float(np.hypot(1, relay * mixture.own))))
    return RelayModel(prompt, layers)


def gap_of(attention, recency, prompt):
    """Return what the prompt's logits are lower by, in a head of this recency, to have the share that was measured."""
    share = (attention.share("prompt") - attention.share("sink")).mean(axis=0)
    share = share / (1 - attention.share("sink").mean(axis=0))
    late = attention.t >= prompt
    head = RelayModel(prompt, [Layer(1.0, residual=0.0, recency=recency)])
    own = simulate(head, int(attention.t[-1]), samples=attention.t).distance
    return float(np.mean(logit(share[late]) - logit(own[late])))


def fitted_with_gap(curve, layer, attention, prompt, last):
    """Return relay, recency and gap: the first two fitted to a curve, the last read off the attention."""
    at = np.unique(np.rint(np.geomspace(4, last, 48))).astype(int)
    logs = [np.log(curve.distance[(curve.t >= x / 1.06) & (curve.t <= x * 1.06)]).mean() for x in at]

    def values(p, strength=0.0, steps=last, samples=at):
        relay, recency = float(np.exp(p[0])), float(1 - np.exp(p[1]))
        bias = PromptBias(strength, gap_of(attention, recency, prompt))
        model = RelayModel.uniform(prompt, layer, relay, recency=recency)
        return simulate(model, steps, bias=bias, samples=samples).distance

    def misfit(p):
        apart = np.log(values(p)) - logs
        return apart - apart.mean()

    starts = ((-3.0, -0.7), (-1.0, -1.6))
    found = min(
        (least_squares(misfit, start, bounds=([-8, -3], [2, 0.3]), diff_step=1e-4, max_nfev=25) for start in starts),
        key=lambda f: f.cost,
    )
    return found.x, values


def taste(folder):
    few = ["--pairs", "2", "--measured", "2", "--prompt", "8", "--steps", "300", "--strengths", "0,2"]
    return small.arguments(folder, "table.csv", *few)


def add_options(parser):
    small.add_options(parser, pairs=8, measured=8, prompt=64, steps=2048)
    parser.add_argument("--strengths", default=",".join(map(str, STRENGTHS)), help="comma-separated")


def main(options):
    network, prompt, steps = load(options.model), options.prompt, options.steps
    dealt = draw_pairs(network, text=english(), pairs=options.pairs, prompt=prompt, steps=steps)
    names = options.strengths.split(",")
    measured = {}
    for name in names:
        each = [
            measured_pair(network, dealt, k, biases(prompt)[name], options.store, "trained", name)
            for k in range(options.measured)
        ]
        measured[name] = joined(each)
    two = Pairs(*(texts[:2] for texts in (dealt.prompt_a, dealt.prompt_b, dealt.continuation)))
    layers_seen = tuple(range(network.depth + 1))
    seen = measure(network, two, layers=layers_seen, instruments=("attention",), resume=options.store / "attention")
    read = read_model(network, seen, prompt)
    strengths, t, last = [float(name) for name in names], np.arange(1, steps + 1), steps // 4
    rows = []
    for layer in ((network.depth + 1) // 2, network.depth):
        curve = measured["0"].curve(layer)
        late = (curve.t >= 0.73 * steps) & (curve.t <= steps)
        true = np.log(curve.distance[late]).mean()
        window = (curve.t >= 4) & (curve.t <= last)

        def row(kind, parameters, curves, layer=layer, curve=curve, late=late, true=true, window=window):
            """`curves`: distance at every t for each strength, or None."""
            plain = np.interp(curve.t, t, curves[0])
            factor = np.mean(np.log(curve.distance[window]) - np.log(plain[window]))
            found = {"layer": layer, "prediction": kind, "parameters": parameters}
            found["late"] = round(float(np.exp(np.log(plain[late]).mean() + factor - true)), 3)
            for name, one in zip(names, curves, strict=True):
                found[f"alpha_{name}"] = "" if one is None else round(slope(t, one), 3)
            rows.append(found)
            print(found, flush=True)

        row("measured", "", [np.interp(t, (c := measured[name].curve(layer)).t, c.distance) for name in names])
        cut = RelayModel(prompt, read.layers[:layer])
        row("read", "none fitted", [simulate(cut, steps, bias=PromptBias(b), samples=t).distance for b in strengths])
        recent = fit(curve, depth=float(layer), recency=None, t_min=4, t_max=last)
        text = f"relay {recent.relay.value:.3g}, recency {recent.recency.value:.3g}"
        row("fitted", text, [recent.predict(t, bias=b) for b in strengths])
        p, values = fitted_with_gap(curve, layer, seen.attention, prompt, last)
        recency = 1 - np.exp(p[1])
        gap = gap_of(seen.attention, recency, prompt)
        text = f"relay {np.exp(p[0]):.3g}, recency {recency:.3g}, gap {gap:.2f} read"
        row("fitted, gap read", text, [values(p, b, steps, t) for b in strengths])
        plain = fit(curve, depth=float(layer), t_min=4, t_max=last)
        row("uniform", f"relay {plain.relay.value:.3g}", [plain.predict(t, bias=b) for b in strengths])
        law = fit_power_law(curve, t_min=16, t_max=last)
        row("power law", f"exponent {law.value:.3f}", [t**-law.value, *[None] * (len(names) - 1)])
    tables.write(options.out, rows)
