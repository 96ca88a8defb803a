"""Published statements on logits that grow with log n."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from relaymodel import plotting
from relaymodel.control import bias_limit
from relaymodel.model import RelayModel
from relaymodel.report.evidence.row import Outcome, PublishedNumber, number, published
from relaymodel.simulation import PromptBias, scalable_softmax

LOGIT_GAP, LOG_SCALE = 5.0, 0.43
LLAMA_FLOOR = 8192


def top(logit: float, n: float) -> float:
    """Return the weight of one key whose logit is so far above n - 1 others."""
    return 1 / (1 + (n - 1) * math.exp(-logit))


def phases() -> Any:
    """Draw the phases over s and the gap, with the published points."""
    return plotting.plot_scaling_phases(
        {f"s = {LOG_SCALE}, gap {LOGIT_GAP:g}": (LOG_SCALE, LOGIT_GAP), "Llama 4, gap 8": (0.1, 8.0)}, gaps=12
    )


@published(
    "Softmax scaled by log n",
    source="Nakanishi, Scalable-Softmax Is Superior for Attention, arXiv 2501.19399 (figure 1: logits -2 "
    "and +3, s = .43)",
    says="The largest weight of a softmax fades as n grows; with logits times s log n it stays near 1.",
    figure=phases,
)
def scaled_softmax(_: Path) -> Outcome:
    """Compute the top weight, and the phase of the prompt bias of strength s times the gap."""
    comparisons = []
    for n, plain, digits, scaled, places in (
        (1e2, 0.600, 3, 0.9951, 4),
        (1e4, 0.0146, 4, 0.99997, 5),
        (1e6, 0.00015, 5, 0.999999, 6),
    ):
        ours = top(LOG_SCALE * LOGIT_GAP * math.log(n), n)
        comparisons.append(number(f"top weight, n = {n:.0e}, softmax", plain, top(LOGIT_GAP, n), digits=digits))
        agrees = ours > scaled if n == 1e6 else abs(ours - scaled) <= 0.51 * 10.0**-places
        comparisons.append(
            PublishedNumber("the same, scaled", f"{'> ' if n == 1e6 else ''}{scaled}", f"{ours:.8f}", agrees)
        )
    model = RelayModel.uniform(64, 4, 0.5)
    scale = Fraction("0.43")
    found = [bias_limit(model, scalable_softmax(scale, gap, 64)).phase for gap in (1, 1 / scale, 5)]
    comparisons.append(
        PublishedNumber(
            "D of a prompt at gaps 1, 1/s and 5",
            "no fading at 5",
            ", ".join(found),
            found == ["decay", "plateau", "reversal"],
        )
    )
    return Outcome(
        tuple(comparisons),
        "1 / (1 + (n-1) e^-logit), the gap as the logit, or s times the gap times log n. For the prompt's keys it is a "
        "`PromptBias` of strength s times the gap (THEORY section 7): a plateau at 1, a decay below, a reversal above.",
    )


def temperature(n: float) -> float:
    """Return the factor of Llama 4's queries without positions at position n."""
    return 1 + 0.1 * math.log(math.floor((n + 1) / LLAMA_FLOOR) + 1)


@published(
    "The temperature of Llama 4",
    source="Llama 4 in the transformers library (attn_scale .1, floor_scale 8192)",
    says="Queries of layers without positions are multiplied by 1 + .1 log(floor((n+1)/8192) + 1).",
)
def llama(_: Path) -> Outcome:
    """Compute the exponent of a key's share between n = 10^6 and 10^7, and the prompt bias that it is."""
    comparisons = []
    for gap, published_exponent in ((5, 0.501), (8, 0.182), (10, 0.001)):
        shares = [top(gap * temperature(n), n) for n in (1e6, 1e7)]
        exponent = math.log(shares[0] / shares[1]) / math.log(10)
        comparisons.append(
            number(f"exponent of the share from n = 10^6 to 10^7, gap {gap}", published_exponent, exponent, digits=3)
        )
    model = RelayModel.uniform(LLAMA_FLOOR, 4, 0.5)
    limits = {gap: bias_limit(model, PromptBias(Fraction(gap, 10))) for gap in (5, 8, 10, 12)}
    comparisons.append(
        PublishedNumber(
            "limit of D's exponent behind a prompt of 8192 tokens, gaps 5, 8, 10, 12",
            "1 - gap/10 for the share",
            ", ".join(f"{float(limit.exponent):g} ({limit.phase})" for limit in limits.values()),
            [float(limits[gap].exponent) for gap in (5, 8)] == [0.5, 0.2] and limits[10].phase == "plateau",
        )
    )
    return Outcome(
        tuple(comparisons),
        "The share of one key with that gap over n - 1 others. The factor is .1 log(1 + n/8192) up to its steps: on a "
        "prompt's keys with gap Delta, `PromptBias(Delta/10)` in units of 8192 tokens. It stops the "
        "forgetting of prompts "
        "whose keys stand out by a gap of 10 or more, and slows that of others by Delta/10.",
    )


@published(
    "Critical attention scaling",
    source="Chen, Lin, Polyanskiy, Rigollet, Critical attention scaling in long-context transformers, arXiv 2510.05554",
    says="With logits gamma log n times inner products rho, attention changes from averaging to the token itself at "
    "gamma = 1/(1 - rho).",
)
def critical(_: Path) -> Outcome:
    """Find the gamma at which a token's own weight neither falls nor rises, for several rho."""
    comparisons = []
    for rho in (0.0, 0.5, 0.8):
        predicted = 1 / (1 - rho)
        own = [
            [top(gamma * (1 - rho) * math.log(n), n) for n in np.geomspace(1e3, 1e12, 4)]
            for gamma in (0.9 * predicted, predicted, 1.1 * predicted)
        ]
        falls, stays, rises = own[0][-1] < 0.1, max(abs(w - 0.5) for w in own[1]) < 1e-3, own[2][-1] > 0.9
        phase = bias_limit(RelayModel.uniform(8, 2, 0.5), PromptBias(predicted * (1 - rho))).phase
        comparisons.append(
            PublishedNumber(
                f"own weight at n = 10^12, rho = {rho:g}, gamma = .9, 1 and 1.1 times {predicted:g}",
                f"critical at {predicted:g}",
                ", ".join(f"{w[-1]:.3f}" for w in own) + f"; {phase}",
                falls and stays and rises and phase == "plateau",
            )
        )
    return Outcome(
        tuple(comparisons),
        "The own weight is 1 / (1 + (n-1) n^(-gamma (1-rho))). The same threshold as section 7's: the gap "
        "1 - rho times "
        "gamma is the strength of the bias, and 1 compensates the dilution.",
        "their tokens move from layer to layer; here only one layer's weights are compared",
    )
