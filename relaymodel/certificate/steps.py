"""The ladder of bounds: what each step knows, the relay layers it gives, and how far above the truth they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.constants import Constants
from relaymodel.certificate.enclosure import enclose
from relaymodel.certificate.majorant import Majorant, majorant
from relaymodel.certificate.rounding import UNIT
from relaymodel.certificate.runs import BlockRun
from relaymodel.checks import show
from relaymodel.model import Layer

Array = NDArray[np.float64]

NAMES = (
    "weights",
    "hypotheses",
    "section 8",
    "covariance",
    "positions",
    "secants",
    "prompts",
    "smallest",
    "smallest, prompts",
)

ANY = "any texts"
MEETING = "any texts with these floors and ω"
RUNS = "these two runs"

KNOWS = {
    "weights": (ANY, "norms of the weights alone"),
    "hypotheses": (MEETING, "weights; activation floors and ω of the runs"),
    "section 8": (RUNS, "the constants of THEORY section 8, largest over positions"),
    "covariance": (RUNS, "the same constants in the covariance identity, without its 3 and 6"),
    "positions": (RUNS, "norms, attention and spread of every position; weights by their norms"),
    "secants": (RUNS, "what the matrices and the MLP do to the actual differences"),
    "prompts": (RUNS, "the same, with the prompts' differences given layer by layer"),
    "smallest": (RUNS, "the smallest relay layers above the measured distances"),
    "smallest, prompts": (RUNS, "the same, with the prompts' differences given layer by layer"),
}


@dataclass(frozen=True, eq=False)
class Step:
    r"""One bound: relay layers that dominate the blocks, and what follows from them.

    Attributes
    ----------
    name
        One of `NAMES`.
    layers
        The relay layers, one for each block: $\delta'_n \le \rho\,\delta_n + \lambda\,(C\delta)_n$.
    start
        Shape (N,): the differences of the embeddings that it starts from, none behind the prompt.
    sources
        Shape (L + 1, P): the prompts' differences at every layer where they are given; otherwise None.
    bound
        The bound at every layer and position.
    """

    name: str
    layers: tuple[Layer, ...]
    start: Array
    sources: Array | None
    bound: Majorant

    @property
    def scope(self) -> str:
        """What it holds for."""
        return KNOWS[self.name][0]

    @property
    def knows(self) -> str:
        """What it is made of."""
        return KNOWS[self.name][1]

    def excess(self, low: Array, high: Array) -> Array:
        r"""Return $(\rho\delta_n+\lambda(C\delta)_n)/\delta'_n$, (L, N'), rounded down; `low`, `high`: (L + 1, N).

        Where the prompts' differences are given, N' counts the continuation only; otherwise all positions.  The
        layer's inequality is certified where it is at least 1; it is 1 where both sides are 0.
        """
        skip = 0 if self.sources is None else self.sources.shape[1]
        n = np.arange(1, low.shape[1] + 1)
        rows = []
        for l, layer in enumerate(self.layers):
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a bound beyond floats is infinite
                relay, residual = (_float(x) for x in (layer.relay, layer.residual))
                mean = np.cumsum(low[l]) / n
                right = np.where(low[l] > 0, residual * low[l], 0) + np.where(mean > 0, relay * mean, 0)
                right *= 1 - (low.shape[1] + 16) * 2 * UNIT
                rows.append(np.where(high[l + 1] > 0, right / high[l + 1], 1)[skip:])
        return np.array(rows)


def build(
    constants: dict[str, list[Constants]], runs: list[BlockRun], low: Array, high: Array, prompt: int
) -> tuple[Step, ...]:
    """Return all steps.

    `constants` has those of "weights", if there are any, of "hypotheses" and of "section 8"; `low` and `high`,
    (L + 1, N), bound the measured distances.
    """
    N = low.shape[1]
    first = high[0].copy()
    start = np.where(np.arange(N) < prompt, high[0].max(), 0.0)
    sources = high[:, :prompt]
    steps = []

    def add(name: str, layers: tuple[Layer, ...], begin: Array, given: Array | None = None) -> None:
        steps.append(Step(name, layers, begin, given, majorant(layers, begin, prompt, given)))

    if "weights" in constants:
        add("weights", tuple(c.covariance() for c in constants["weights"]), start)
    add("hypotheses", tuple(c.covariance() for c in constants["hypotheses"]), start)
    add("section 8", tuple(c.section_8() for c in constants["section 8"]), start)
    add("covariance", tuple(c.covariance() for c in constants["section 8"]), start)
    positions = [run.positions for run in runs]
    secants = [run.secants for run in runs]
    add("positions", enclose(positions, low, first, prompt), first)
    add("secants", enclose(secants, low, first, prompt), first)
    add("prompts", enclose(secants, low, first, prompt, sources), first, sources)
    after = list(high[1:])
    add("smallest", enclose(after, low, first, prompt), first)
    add("smallest, prompts", enclose(after, low, first, prompt, sources), first, sources)
    return tuple(steps)


def find(steps: tuple[Step, ...], name: str) -> Step:
    """Return the step of a name."""
    for step in steps:
        if step.name == name:
            return step
    raise ValueError(f"step must be one of {', '.join(repr(step.name) for step in steps)}, got {show(name)}")


def _float(number: object) -> float:
    try:
        return float(number)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf")
