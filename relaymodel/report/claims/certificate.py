"""Claims about the theorem's certificate for concrete networks (THEORY section 8)."""

import numpy as np

from relaymodel import plotting
from relaymodel.certificate import certify, sharp_network
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.report.claim import Verdict, Workspace, claim

CERTIFIED_PROMPT, CERTIFIED_STEPS, DEPTH, CERTIFIED_SEED = 16, 200, 4, 0
SHARP_DEPTHS = (1, 3, 6)
SHARP_STEPS = 400
ATTAINED = 1e-4  # bound / measured - 1


@claim("A relay model bounds how far two runs of a network are apart, at every position and layer", section="8")
def bound_holds(workspace: Workspace) -> Verdict:
    """Certify an untrained network, and see how far above the truth each rung of knowledge is."""
    shape = Architecture(depth=DEPTH, width=128, heads=4, vocabulary=256, context=CERTIFIED_PROMPT + CERTIFIED_STEPS)
    network = Transformer.random(shape, np.random.default_rng(CERTIFIED_SEED))
    texts = draw_pairs(network, pairs=1, prompt=CERTIFIED_PROMPT, steps=CERTIFIED_STEPS, seed=CERTIFIED_SEED)
    certificate = certify(network, texts)
    check, above = certificate.verification, certificate.heights
    workspace.table(
        "certificate",
        f"Bounds at the last of {DEPTH} layers, over the measured distance: orders of magnitude, mean over t.",
        ("rung", "holds for", "made of", "log10 (bound / measured)"),
        [(name, rung.scope, rung.knows, above[name]) for name, rung in certificate.ladder.rungs.items()],
    )
    workspace.table(
        "hypotheses",
        "The theorem's hypotheses for this network.",
        ("hypothesis", "verdict", "finding"),
        [(h.name, h.holds, h.finding) for h in certificate.hypotheses],
    )
    workspace.image(
        "certificate",
        "Distance between two runs of an untrained network, and bounds on it that are proven.",
        plotting.plot_certificate(certificate),
    )
    return Verdict(
        certificate.applies and certificate.holds,
        f"{check.inequalities - check.failed} of {check.inequalities} inequalities hold; the constants of section 8 "
        f"give a bound $10^{{{above['section_8']:.1f}}}$ times the truth, what the two runs do in each block one "
        f"{10 ** above['prompts']:.1f} times, and the smallest relay layers one {10 ** above['smallest_prompts']:.2f} "
        "times",
        (
            "In every block of a pre-LN network $\\delta'_n \\leq \\rho\\,\\delta_n + \\lambda\\,(C\\delta)_n$ for the "
            "distance $\\delta_n$ of two runs, so that a relay model is above it. Its strengths come from norms of the "
            "weights, rounded up, from floors on the activations and from the logits; the more of the two runs they "
            "know, the closer the bound. Each inequality is checked on the distances themselves, rounded outward.",
        ),
    )


@claim("There are networks that attain the theorem's rate, constants and all", section="8")
def bound_attained(workspace: Workspace) -> Verdict:
    """Certify networks built to attain the bound from their weights alone."""
    rows, held = [], True
    for depth in SHARP_DEPTHS:
        certificate = certify(sharp_network(depth), ([1] * CERTIFIED_PROMPT, [0] * CERTIFIED_PROMPT, [0] * SHARP_STEPS))
        held &= certificate.applies and certificate.holds
        excess = np.expm1(np.log(10) * certificate.log10_ratio("weights"))
        rows.append((depth, *(float(excess[t - 1]) for t in (1, 10, 100, SHARP_STEPS))))
    worst = max(max(row[1:]) for row in rows)
    workspace.table(
        "attained",
        "Bound from the weights alone, divided by the measured distance, less 1.",
        ("depth", "t = 1", "t = 10", "t = 100", f"t = {SHARP_STEPS}"),
        rows,
    )
    return Verdict(
        held and worst < ATTAINED,
        f"bound and distance differ by {worst:.1e} at most, at every t up to {SHARP_STEPS} and every depth of "
        f"{', '.join(map(str, SHARP_DEPTHS))}",
        (
            "Pre-LN blocks with queries and keys of 0 attend uniformly; a large component common to all tokens holds "
            "the norms fixed; values are carried to where they came from, so that all paths add up with one sign. Such "
            "a network is the relay model with $\\rho = 1$ and any $\\lambda$: the rate $P(\\log t)^{L-1}/t$ cannot be "
            "improved for networks either. It has no MLP, and attention that looks at content may forget faster.",
        ),
    )
