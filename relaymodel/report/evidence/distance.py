"""Published powers of distance, and what dilution alone reads as."""

from pathlib import Path

import numpy as np

from relaymodel.inference.dilution import distance_or_dilution
from relaymodel.model import Head
from relaymodel.report.evidence.row import Outcome, PublishedNumber, number, published
from relaymodel.simulation.heads import kernel_of

MATRIX_TOKENS = 512


def attention(recency: float) -> np.ndarray:
    """Return the attention matrix of a Beta head, (512, 512)."""
    kernel = kernel_of(0, Head(1, recency=recency))
    near, n = kernel.near(MATRIX_TOKENS, kernel.order), np.arange(MATRIX_TOKENS)
    d = n[:, None] - n[None, :]
    weights = np.where(d >= 0, near[np.maximum(d, 0)], 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@published(
    "Attention read as a power of distance",
    source="karlesmarin/tafagent, a public atlas: .7575 over d = 30 to 2000 and .7123 over d = 30 to "
    "1000, for a network "
    "after one training step",
    says="Attention falls as a power of the distance of the key, already after one training step.",
)
def atlas(_: Path) -> Outcome:
    """Fit uniform attention 1/(d + c) on a log grid of d, and tell distance from dilution where both indices vary."""
    comparisons = []
    for c, far, near in ((59, 0.77, 0.72), (50, 0.79, 0.75)):
        for last, value in ((2000, far), (1000, near)):
            d = np.geomspace(30, last, 200)
            slope = float(np.polyfit(np.log(d), np.log(d + c), 1)[0])
            comparisons.append(number(f"1/(d + {c}) fitted over d = 30 to {last}", value, slope, digits=2))
    uniform, recent = distance_or_dilution(attention(0.0)), distance_or_dilution(attention(0.7))
    comparisons += [
        PublishedNumber(
            "uniform attention, both indices: exponents of distance and of n",
            "0, 1",
            f"{abs(uniform.distance.value):.3f}, {uniform.dilution.value:.3f}: {uniform.verdict}; read without n: "
            f"{uniform.apparent:.2f}",
            uniform.verdict == "dilution",
        ),
        PublishedNumber(
            "attention that falls as d^-.7, both indices",
            ".7, .3",
            f"{recent.distance.value:.2f}, {recent.dilution.value:.2f}: {recent.verdict}",
            abs(recent.distance.value - 0.7) < 0.1 and recent.verdict == "both",
        ),
    ]
    return Outcome(
        tuple(comparisons),
        "A key at a fixed place c has distance d in a context of d + c tokens: uniform attention gives it "
        "1/(d + c). On a "
        "log grid that reads as a power close to the published one. `distance_or_dilution` fits both indices at once.",
        "c is not published: that the atlas measured dilution is a possibility, not shown",
    )
