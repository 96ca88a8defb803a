"""Whether a network's attention falls with distance or by dilution, trained and untrained.

    python -m studies attention_decay MODEL --out docs/attention_decay.csv

The mean over heads and layers of the whole attention matrix, for several texts, is handed to `distance_or_dilution`;
the first token, a sink, and the token before a query are left out.
"""

from pathlib import Path

import numpy as np

from relaymodel.inference import distance_or_dilution
from relaymodel.networks.huggingface import load
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.texts import english
from studies import small, tables

MAKES = "docs/attention_decay.csv"
EXTRA = "networks"


def taste(folder):
    return [str(small.llama(folder / "model")), "--texts", "4", "--tokens", "64", "--out", str(folder / "decay.csv")]


def add_options(parser):
    parser.add_argument("model")
    parser.add_argument("--out", type=Path, required=True)
    for name, default in {"texts": 6, "tokens": 512}.items():
        parser.add_argument(f"--{name}", type=int, default=default)


def matrices(network, texts):
    """Yield the mean attention, (n, n), of each text."""
    import torch

    network.model.set_attn_implementation("eager")
    for tokens in texts:
        with torch.no_grad():
            layers = network.model(torch.tensor(tokens)[None], output_attentions=True).attentions
        yield torch.stack([layer[0].double().mean(dim=0) for layer in layers]).mean(dim=0).numpy()


def main(options):
    rows = []
    for weights in ("trained", "untrained"):
        network = load(options.model, untrained=weights == "untrained")
        dealt = draw_pairs(network, text=english(), pairs=options.texts, prompt=8, steps=options.tokens - 8)
        texts = [np.concatenate(pair) for pair in zip(dealt.prompt_a, dealt.continuation, strict=True)]
        found = distance_or_dilution(np.stack(list(matrices(network, texts))))
        row = {"weights": weights, "tokens": options.tokens, "texts": options.texts, "verdict": found.verdict}
        for name in ("distance", "dilution"):
            estimate = getattr(found, name)
            row |= {name: round(estimate.value, 4), f"{name}_stderr": round(estimate.stderr, 4)}
        rows.append(row | {"apparent": round(found.apparent, 4)})
        print(rows[-1], flush=True)
    tables.write(options.out, rows)
