"""The hypotheses of the theorem, each with its verdict (THEORY section 8)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.constants import Constants
from relaymodel.certificate.runs import BlockRun
from relaymodel.certificate.subject import Subject
from relaymodel.display import power

Array = NDArray[np.float64]

SINK = 0.5  # growth of n A with n from which it is said to be a share


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of the theorem, what was found, and whether it holds."""

    name: str
    holds: bool
    finding: str


def examine(
    subject: Subject, runs: Sequence[BlockRun], weights: Sequence[Constants] | None, floor: float, embedded: Array
) -> tuple[Hypothesis, ...]:
    """Return the verdicts: from the runs, the constants and floor of the weights, the embeddings' distances, (N,)."""
    P, depth = subject.prompt, subject.network.depth
    least, same = min(run.least for run in runs), bool(np.all(embedded[P:] == 0))
    return (
        Hypothesis("pre-LN", True, f"{depth} blocks x + attention(norm(x)), y + MLP(norm(y)), recomputed"),
        Hypothesis("finite depth", True, f"L = {depth}"),
        Hypothesis("bounded logits", not subject.grows, _logits(subject, runs, weights)),
        Hypothesis(
            "activation floor",
            floor > 0,
            f"σ ≥ {floor:.3g} for every text, from the weights; {least:.3g} on these runs",
        ),
        Hypothesis(
            "same positions",
            same,
            f"both prompts have {P} tokens, and the embeddings behind them are {'equal' if same else 'NOT equal'}",
        ),
        Hypothesis("full attention", True, "every query sees all keys before it"),
    )


def _logits(subject: Subject, runs: Sequence[BlockRun], weights: Sequence[Constants] | None) -> str:
    omega = np.stack([run.omega[subject.prompt :] for run in runs])
    growth = max(slope(row, subject.prompt) for row in omega)
    largest = power(float(np.log10(omega.max())))
    seen = f"on these runs n A is at most {largest} and its largest grows as n^{growth:.2f}"
    if subject.grows:
        return (
            f"the bias grows with t: {seen}, from {omega[:, 0].max():.3g} at t = 1 to {omega[:, -1].max():.3g} at "
            f"t = {omega.shape[1]}; no ω holds for all n"
        )
    if weights is None:
        return f"the weights bound the logits, but by so much that no ω can be written down from them alone; {seen}"
    logits = f"ω ≤ {power(max(math.log10(c.omega) for c in weights))} from the weights, for every text; {seen}"
    if growth > SINK:
        logits += ": keys that take a share of every query (attention sinks), so that these runs show no ω yet"
    return logits


def slope(omega: Array, prompt: int) -> float:
    """Return the exponent with which n max A grows over the continuation, (T,): least squares in logarithms."""
    if omega.size < 2:
        return 0.0
    n = np.log(prompt + np.arange(1, omega.size + 1))
    n -= n.mean()
    return float(n @ np.log(omega) / (n @ n))
