"""What keeps a prompt on a trained model, how much, and at what cost in loss on the continuation.

`python -m studies interventions MODEL --store FOLDER --out docs/interventions.csv` measures SmolLM2-135M, pairs of
64 + 512 tokens of English, under biases, rules of the prompt's share, and reminders, and compares two predictions:

- the exact model: depth, relay and recency fitted to the distances without intervention, then simulated under it;
- superposition (THEORY section 7), for reminders: D of a prompt of p tokens at position n read off the same curve as
  that of P at nP/p, and sources added up.

What is kept is the distance in the later half relative to that without intervention; the cost is the rise of the loss,
in nats a token, on the same tokens of text.
"""

import numpy as np

from relaymodel import PromptBias, RelayModel, Reminders, fit, measure
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.texts import english
from relaymodel.simulation import ClampedShare, ConstantShare, ReminderBlocks, SplitSoftmax, simulate
from studies import small, tables
from studies.trained_model import joined, one_pair

MAKES = "docs/interventions.csv"
EXTRA = "networks"


def interventions(prompt):
    """Return options of `measure` and of `simulate` by name; the first is none."""
    biases = {
        "none": None,
        "bias, strength 1": PromptBias(1),
        "split-softmax, power 1/2": SplitSoftmax(0.5),
        "clamped share 1/2": ClampedShare(0.5),
        "bias, strength 2": PromptBias(2),
        "bias log t": ConstantShare(prompt / (prompt + 1)),
        "split-softmax, power 1/4": SplitSoftmax(0.25),
    }
    reminders = {
        f"{prompt} tokens in every {4 * prompt}": Reminders(4 * prompt, prompt),
        f"{prompt // 4} tokens in every {4 * prompt}": Reminders(4 * prompt, prompt // 4),
        f"the first {prompt} tokens": ReminderBlocks(((1, prompt),)),
    }
    return {name: {"bias": bias} for name, bias in biases.items()} | {
        name: {"reminders": schedule} for name, schedule in reminders.items()
    }


def superposed(curve, prompt, t, schedule):
    """Return the distance at t, (T,), of prompt and reminders, from the plain curve alone, its noise averaged."""
    edges = np.geomspace(1, curve.t[-1] + 1, int(np.log(curve.t[-1]) / 0.25))
    bins = np.digitize(curve.t, edges)
    places, logs = (
        np.array([x[bins == i].mean() for i in np.unique(bins)]) for x in map(np.log, (curve.t, curve.distance))
    )

    def K(n, p):
        """D of p tokens at position n; before the first token it is that of the first."""
        return np.exp(np.interp(np.log(np.maximum(prompt * (n / p - 1), 1.0)), places, logs))

    n = prompt + t
    total = K(n, prompt)
    for start, stop in schedule.intervals(int(t[-1])):
        behind = t > stop
        total[behind] += K(n[behind], prompt + stop) - K(n[behind], prompt + start - 1)
    return total, K(n, prompt)


def kept(t, values, plain_t, plain, first):
    """Return the geometric mean of values relative to the plain ones at the same t, from `first` on."""
    here = t >= first
    return float(np.exp(np.mean(np.log(values[here] / plain[np.searchsorted(plain_t, t[here])]))))


def rows_of(found, layers, prompt, first):
    """Yield a row for each intervention and layer."""
    plain = found["none"]
    losses = -plain.next_token.log_probability.mean(axis=0)  # (K, T)
    models = {}
    for layer in layers:
        fitted = fit(plain.curve(layer), depth=float(layer), recency=None, t_min=4)
        models[layer] = RelayModel.uniform(prompt, layer, fitted.relay.value, recency=fitted.recency.value)
    for name, options in interventions(prompt).items():
        if name == "none" or name not in found:
            continue
        measured = found[name]
        loss = -measured.next_token.log_probability.mean(axis=0)
        cost = loss.mean(axis=1) - losses[:, : loss.shape[1]].mean(axis=1)  # (K,): the same tokens of text
        for layer in layers:
            t, usual = measured.t.astype(float), plain.curve(layer)
            steps = int(plain.t[-1])
            exact, bare = (simulate(models[layer], steps, samples=plain.t, **o).distance for o in (options, {}))
            each = [
                np.log(kept(t, measured.euclidean[k, measured.layers.index(layer)], plain.t, one, first))
                for k, one in enumerate(plain.euclidean[:, plain.layers.index(layer)])
            ]
            alpha = measured.alpha(layer)
            row = {
                "intervention": name,
                "layer": layer,
                "kept": np.exp(np.mean(each)),
                "stderr": np.exp(np.mean(each)) * np.std(each, ddof=1) / np.sqrt(len(each)),
                "exact": kept(t, exact[measured.t - 1], plain.t, bare, first),
                "superposition": "",
                "alpha": alpha.value,
                "alpha_stderr": alpha.stderr,
                "cost": cost.mean(),
                "cost_stderr": np.std(cost, ddof=1) / np.sqrt(len(cost)),
                "pairs": len(each),
            }
            if "reminders" in options:
                total, alone = superposed(usual, prompt, t, options["reminders"])
                row["superposition"] = kept(t, total, t, alone, first)
            yield {key: round(float(v), 4) if isinstance(v, float) else v for key, v in row.items()}


def taste(folder):
    few = ["--pairs", "2", "--measured", "2", "--prompt", "8", "--steps", "200"]
    return small.arguments(folder, "table.csv", *few)


def add_options(parser):
    small.add_options(parser, pairs=3, measured=3, prompt=64, steps=512)


def main(options):
    network = load(options.model)
    prompt = options.prompt
    dealt = draw_pairs(network, text=english(), pairs=options.pairs, prompt=prompt, steps=options.steps)
    measured = {name: [] for name in interventions(prompt)}
    for k in range(options.measured):
        for number, (name, how) in enumerate(interventions(prompt).items()):
            folder = options.store / f"{number}-{k}"
            folder.parent.mkdir(parents=True, exist_ok=True)
            one = measure(network, one_pair(dealt, k), instruments=("next_token",), resume=folder, **how)
            measured[name].append(one)
            print(f"pair {k}, {name}: loss {one.next_token.loss.mean():.4f}", flush=True)
    found = {name: joined(each) for name, each in measured.items()}
    layers = ((network.depth + 1) // 2, network.depth)
    rows = list(rows_of(found, layers, prompt, options.steps // 2))
    for row in rows:
        print(row)
    tables.write(options.out, rows)
