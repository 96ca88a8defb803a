"""Published exponents of networks, beside those that are stored in docs/."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from relaymodel.exact import influence, local_exponent
from relaymodel.inference.dilution import LEAST_FALL
from relaymodel.model import RelayModel
from relaymodel.report.evidence.row import Outcome, PublishedNumber, published

MODEL_TABLE, BIAS_TABLE = "smollm2_biases.csv", "training/biases.csv"
ATTENTION_TABLE = "attention_decay.csv"
RESPONSE_TABLES = "instruments.csv", "instruments_untrained.csv"
COMPARED_LAYERS = (15, 30)
TELLING = 0.1
"""The largest standard error of an exponent that tells anything."""


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, comments left out."""
    with path.open(newline="", encoding="utf-8") as stream:
        yield from csv.DictReader(line for line in stream if not line.startswith("#"))


def pm(value: float, stderr: float) -> str:
    """Return a value with its standard error.

    >>> pm(0.5772, 0.025)
    '0.577 ± 0.025'
    """
    return f"{value:.3f} ± {stderr:.3f}"


@published(
    "How fast networks forget, trained and untrained",
    source="the sources of this package's theory (known through reports on them)",
    says="Exponent .55 to .7 in trained networks, .2 to .5 in untrained ones, whose local exponent rises to 1; a fixed "
    "prompt's share of uniform attention falls with exponent 1; a compensating bias stops the decay early "
    "in training and "
    "reverses it later.",
    measured=(MODEL_TABLE, BIAS_TABLE),
)
def exponents(folder: Path) -> Outcome:
    """Compare SmolLM2-135M and the checkpoints of small trainings with the published ranges."""
    comparisons = []
    for row in rows(folder / MODEL_TABLE):
        if row["bias"] != "0" or int(row["layer"]) not in COMPARED_LAYERS:
            continue
        value, stderr = float(row["alpha_16"]), float(row["stderr_16"])
        low, high = (0.55, 0.7) if row["weights"] == "trained" else (0.2, 0.5)
        comparisons.append(
            PublishedNumber(
                f"SmolLM2-135M {row['weights']}, layer {row['layer']}, alpha from t = 16",
                f"{low} to {high}",
                pm(value, stderr),
                low - 2 * stderr <= value <= high + 2 * stderr,
            )
        )
    found = list(rows(folder / BIAS_TABLE))
    steps = sorted({int(row["step"]) for row in found})
    start = next(row for row in found if int(row["step"]) == 0 and row["bias"] == "none")
    value, stderr = float(start["alpha_16"]), float(start["stderr_16"])
    comparisons.append(
        PublishedNumber(
            f"small GPT before training, layer {start['layer']}, alpha from t = 16",
            "0.2 to 0.5",
            pm(value, stderr),
            0.2 - 2 * stderr <= value <= 0.5 + 2 * stderr,
        )
    )
    for bias in sorted({row["bias"] for row in found} - {"none"}):
        said = [next(row["verdict"] for row in found if int(row["step"]) == s and row["bias"] == bias) for s in steps]
        if bias == "strength 4":
            comparisons.append(
                PublishedNumber(
                    f"small GPT under a bias of {bias}, steps {', '.join(map(str, steps))}",
                    "stopped early, reversed later",
                    ", ".join(said),
                    said[0] == "stopped" and "reversed" in said[1:],
                )
            )
    share = influence(RelayModel.uniform(64, 1, 1, 0), [1e6, 1e7])  # one layer of nothing but attention
    alpha = local_exponent(RelayModel.uniform(64, 6, 0.5), [1e2, 1e4, 1e8, 1e300])
    comparisons += [
        PublishedNumber(
            "exponent of the share, t = 10^6 to 10^7",
            "1",
            f"{np.log10(share[0] / share[1]):.4f}",
            bool(abs(np.log10(share[0] / share[1]) - 1) < 1e-3),
        ),
        PublishedNumber(
            "exact alpha at t = 1e2, 1e4, 1e8, 1e300 (L = 6, relay 1/2)",
            "rises to 1",
            ", ".join(f"{a:.3f}" for a in alpha),
            bool(np.all(np.diff(alpha) > 0) and 0.98 < alpha[-1] < 1),
        ),
    ]
    return Outcome(
        tuple(comparisons),
        "Stored measurements: the studies trained_model and checkpoint_biases "
        "(docs/networks "
        "has the tables, the numbers of pairs and seeds, and the criterion of stopped and reversed).",
        "thirty layers with untrained weights relay so much that they hardly forget within the window",
    )


def implied(p: float) -> float:
    """Return the exponent of (n-s+1)^-p summed over a prompt of 64 tokens, t = 16 to 2048 equally spaced in log t."""
    t = np.geomspace(16, 2048, 200)
    curve = np.sum((t[:, None] + np.arange(1, 65)) ** -p, axis=1)
    return -float(np.polyfit(np.log(t), np.log(curve), 1)[0])


@published(
    "The response to single tokens",
    source="Brändel, Köhler, Rheinbach, How Token Influence Decays with Distance, arXiv 2606.29139",
    says="The median sensitivity falls as (r+1)^-p with p = .7 to .9 in trained Pythia and Qwen models, "
    "not in untrained "
    "ones.",
    measured=(*RESPONSE_TABLES, MODEL_TABLE),
)
def responses(folder: Path) -> Outcome:
    """Compare SmolLM2's responses, and what their sums imply over the window, with what is measured."""
    trained, untrained = (
        {row["quantity"]: (float(row["value"]), float(row["stderr"] or "nan")) for row in rows(folder / name)}
        for name in RESPONSE_TABLES
    )
    bare = {
        int(row["layer"]): (float(row["alpha_16"]), float(row["stderr_16"]))
        for row in rows(folder / MODEL_TABLE)
        if (row["weights"], row["bias"]) == ("trained", "0")
    }
    comparisons = []
    for layer in COMPARED_LAYERS:
        name = f"response p, layer {layer}"
        p, error = trained[name]
        told = error <= TELLING
        comparisons.append(
            PublishedNumber(
                f"p of SmolLM2-135M, layer {layer}, r from 16",
                "0.7 to 0.9",
                pm(p, error) + ("" if told else ": undetermined"),
                told and 0.7 - 2 * error <= p <= 0.9 + 2 * error,
            )
        )
        bound = untrained[name][0] + 2 * untrained[name][1]
        comparisons.append(
            PublishedNumber(f"the same, untrained, layer {layer}", "no such power", pm(*untrained[name]), bound < 0.7)
        )
        measured, spread = bare[layer]
        ends = [implied(p - error), implied(p), implied(p + error)]
        comparisons.append(
            PublishedNumber(
                f"alpha that this p implies for 64 tokens from t = 16 to 2048, layer {layer}",
                f"measured {pm(measured, spread)}",
                f"{ends[1]:.2f} ({ends[0]:.2f} to {ends[2]:.2f})" if told else "undetermined",
                told and ends[0] - 2 * spread <= measured <= ends[2] + 2 * spread,
            )
        )
    for p, alpha in ((0.7, 0.58), (0.8, 0.66), (0.9, 0.74)):
        slope = implied(p)
        comparisons.append(
            PublishedNumber(
                f"alpha of 64 tokens summed, p = {p}, t = 16 to 2048",
                f"{alpha:.2f}",
                f"{slope:.3f}",
                abs(slope - alpha) < 0.006,
            )
        )
    return Outcome(
        tuple(comparisons),
        "Exact Jacobian-vector products of the hidden states (the study instruments; "
        "docs/networks). The last "
        "rows sum (n-s+1)^-p over a prompt of 64 tokens and fit a line.",
        "theirs is a median over gradients of the prediction, ours a mean over hidden states; the sum "
        "takes all tokens to "
        "move the state the same way",
    )


@published(
    "Distance or dilution in a real network",
    source="karlesmarin/tafagent, a public atlas",
    says="Attention falls as a power of the distance of the key, already after one training step.",
    measured=(ATTENTION_TABLE,),
)
def attention_decay(folder: Path) -> Outcome:
    """Hold the exponents of SmolLM2's attention, trained and untrained, against dilution alone."""
    comparisons = []
    for row in rows(folder / ATTENTION_TABLE):
        p, error = float(row["distance"]), float(row["distance_stderr"])
        q, spread = float(row["dilution"]), float(row["dilution_stderr"])
        trained = row["weights"] == "trained"
        comparisons.append(
            PublishedNumber(
                f"SmolLM2-135M {row['weights']}: exponents of distance and of n, {row['texts']} texts of "
                f"{row['tokens']}",
                "a power of distance" if trained else "a power of distance, after one step",
                f"{pm(p, error)}, {pm(q, spread)}: {row['verdict']}; read without n: {float(row['apparent']):.2f}",
                p > 2 * error + LEAST_FALL,
            )
        )
    return Outcome(
        tuple(comparisons),
        "Mean attention over heads and layers, both indices varied (the study attention_decay). Trained, it falls with "
        "distance, and p + q is near 1, as for a normalised power. With random weights nothing depends on "
        "distance: what "
        "reads as a power there is dilution.",
        "random weights are not those after one training step, and the atlas averages otherwise",
    )
