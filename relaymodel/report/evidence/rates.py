"""Published statements on rates in t and n: when 1/t is seen, and when low precision loses a token."""

from pathlib import Path

import numpy as np
from scipy.optimize import brentq

from relaymodel.exact import local_exponent
from relaymodel.model import RelayModel
from relaymodel.report.evidence.row import Outcome, PublishedNumber, published

NEAR_ONE = 0.05
BF16_BITS = 8
"""Bits of bf16, the leading one counted."""


def visible(model: RelayModel) -> float:
    """Return log10 of the t from which the exponent stays within .05 of 1."""
    log_t = np.linspace(0, 300, 61)
    below = np.flatnonzero(local_exponent(model, 10.0**log_t) < 1 - NEAR_ONE)
    if not below.size or below[-1] == log_t.size - 1:
        raise ValueError("t must be found between 1 and 1e300")
    start = log_t[below[-1]]
    return float(brentq(lambda x: local_exponent(model, 10.0**x) - (1 - NEAR_ONE), start, start + 5, xtol=1e-3))


@published(
    "A rate of 1/t",
    source="Xu, Fang, Self-Attention as a Covariance Readout, arXiv 2605.10466",
    says="The terminal hidden state of an L-layer transformer tends at rate 1/t to a function of the current token.",
)
def terminal(_: Path) -> Outcome:
    """Find the t from which the exact exponent is within .05 of 1."""
    comparisons = []
    for depth in (2, 6, 12, 30):
        found = [visible(RelayModel.uniform(64, depth, 0.5, recency=gamma)) for gamma in (0.0, 0.7)]
        comparisons.append(
            PublishedNumber(
                f"t from which alpha is within .05 of 1, L = {depth}: uniform, recency .7",
                "1/t in the limit",
                ", ".join(f"10^{x:.1f}" for x in found),
                found[1] < found[0] and (depth == 2) == (found[0] < 10),
            )
        )
    return Outcome(
        tuple(comparisons),
        "Exact local exponents, P = 64, relay 1/2. The rate is 1/t times (log t)^(L-1): both statements "
        "hold, but for more "
        "than two layers 1/t is seen at no t that anyone will reach, and a fit over a window reads a smaller exponent.",
        "their inputs are stationary and their limit another one; only the rate is compared",
    )


def bf16(x: np.ndarray) -> np.ndarray:
    """Round to bf16, to nearest, ties to even."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, BF16_BITS)), exponent - BF16_BITS))


@published(
    "Low precision loses a token",
    source="Barbero et al., Transformers need glasses!, arXiv 2406.04267",
    says="Representations of growing sequences that differ in one token collapse, sooner in low "
    "precision; copying fails "
    "beyond a few hundred ones.",
)
def precision(_: Path) -> Outcome:
    """Find the n from which a mean of n - 1 ones and a zero rounds to 1, and that of one more than 1 to 1."""
    n = np.arange(2, 5000)
    below = int(n[bf16((n - 1) / n) == 1][0])
    above = int(n[bf16((n + 1) / n) == 1][0])
    return Outcome(
        (
            PublishedNumber("n from which (n-1)/n is 1 in bf16", "a few hundred", str(below), 100 < below < 1000),
            PublishedNumber("n from which (n+1)/n is 1 in bf16", "a few hundred", str(above), 100 < above < 1000),
        ),
        "A token's share of uniform attention is 1/n; bf16 has 8 bits, so that numbers just below 1 are 2^-8 apart and "
        "just above it 2^-7: a share of half of that is rounded away.",
        "one mean, rounded once; trained models do not attend uniformly",
    )
