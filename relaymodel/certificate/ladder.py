"""The ladder of bounds: each rung holds what it knows of the network, and derives its relay layers and its bound."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.constants import BEYOND, Constants
from relaymodel.certificate.enclosure import enclose
from relaymodel.certificate.majorant import Majorant, majorant
from relaymodel.certificate.rounding import UNIT
from relaymodel.certificate.runs import BlockRun
from relaymodel.checks import show
from relaymodel.model import Layer

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rung(ABC):
    r"""One bound: relay layers that dominate the blocks, and what follows from them.

    Attributes
    ----------
    scope, knows
        What it holds for, and what it is made of.
    prompt
        P.
    start
        Shape (N,): the differences of the embeddings that it starts from, none behind the prompt.
    sources
        Shape (L + 1, P): the prompts' differences at every layer where they are given; otherwise None.
    """

    scope: str
    knows: str
    prompt: int
    start: Array
    sources: Array | None

    @property
    @abstractmethod
    def layers(self) -> tuple[Layer, ...]:
        r"""The relay layers, one for each block: $\delta'_n \le \rho\,\delta_n + \lambda\,(C\delta)_n$."""

    @cached_property
    def bound(self) -> Majorant:
        """The bound at every layer and position."""
        return majorant(self.layers, self.start, self.prompt, self.sources)

    def excess(self, low: Array, high: Array) -> Array:
        r"""Return $(\rho\delta_n+\lambda(C\delta)_n)/\delta'_n$, (L, N'), rounded down; `low`, `high`: (L + 1, N).

        Where the prompts' differences are given, N' counts the continuation only; otherwise all positions.  The
        layer's inequality is certified where it is at least 1; it is 1 where both sides are 0.
        """
        skip = 0 if self.sources is None else self.prompt
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


@dataclass(frozen=True, eq=False)
class Derived(Rung):
    """A rung whose layers follow by `formula`, of `Constants`, from the constants of each block."""

    constants: tuple[Constants, ...]
    formula: Callable[[Constants], Layer]

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The formula's relay layers."""
        return tuple(self.formula(c) for c in self.constants)


@dataclass(frozen=True, eq=False)
class Enclosing(Rung):
    """A rung of the smallest layers that lead from the distances `low`, (L + 1, N), above the `targets`, (L, N)."""

    targets: Array
    low: Array

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The enclosing relay layers."""
        return enclose(self.targets, self.low, self.start, self.prompt, self.sources)


@dataclass(frozen=True, eq=False)
class Ladder:
    """The bounds, from the crudest.

    Attributes
    ----------
    weights, hypotheses
        Of the weights alone, None where the bias grows; with the activation floors and omega of the runs.
    section_8, covariance
        Of the same constants, largest over positions: by the formulas of THEORY section 8, by the covariance identity.
    positions, secants, prompts
        Of what every position does: by norms; to the actual differences; the same, with the prompts' differences given.
    smallest, smallest_prompts
        The least that relay layers can give, without and with the prompts' differences given.
    """

    weights: Derived | None
    hypotheses: Derived
    section_8: Derived
    covariance: Derived
    positions: Enclosing
    secants: Enclosing
    prompts: Enclosing
    smallest: Enclosing
    smallest_prompts: Enclosing

    @property
    def rungs(self) -> dict[str, Rung]:
        """The rungs that there are, by their names, from the crudest."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: rung for name, rung in named.items() if rung is not None}

    def find(self, name: str | Rung) -> Rung:
        """Return the rung of a name; `ValueError` with the names there are.  A rung is returned as it is."""
        if isinstance(name, Rung):
            return name
        rungs = self.rungs
        if not isinstance(name, str) or name not in rungs:
            raise ValueError(f"rung must be one of {', '.join(map(repr, rungs))}, got {show(name)}")
        return rungs[name]


def build(
    weights: Sequence[Constants] | None,
    hypotheses: Sequence[Constants],
    measured: Sequence[Constants],
    runs: Sequence[BlockRun],
    low: Array,
    high: Array,
    unit: float,
    prompt: int,
) -> Ladder:
    """Return the ladder: from three sets of constants of the blocks, the runs, and the bounds on their distances.

    `unit` is a bound on the difference of the prompts' embeddings at any position.
    """
    any_texts, these = "any texts", "these two runs"
    largest = np.where(np.arange(low.shape[1]) < prompt, unit, 0.0)
    given = "the same, with the prompts' differences given layer by layer"

    def derived(
        scope: str, knows: str, constants: Sequence[Constants], formula: Callable[[Constants], Layer]
    ) -> Derived:
        return Derived(scope, knows, prompt, largest, None, tuple(constants), formula)

    def enclosing(knows: str, targets: Array, sources: Array | None = None) -> Enclosing:
        return Enclosing(these, knows, prompt, high[0], sources, targets, low)

    positions, secants = (np.stack(each) for each in zip(*((run.positions, run.secants) for run in runs), strict=True))
    if not (np.all(np.isfinite(positions)) and np.all(np.isfinite(secants))):
        raise ValueError(BEYOND)
    sources = high[:, :prompt]
    return Ladder(
        None if weights is None else derived(any_texts, "norms of the weights alone", weights, Constants.covariance),
        derived(
            "any texts with these floors and ω",
            "weights; activation floors and ω of the runs",
            hypotheses,
            Constants.covariance,
        ),
        derived(these, "the constants of THEORY section 8, largest over positions", measured, Constants.section_8),
        derived(
            these, "the same constants in the covariance identity, without its 3 and 6", measured, Constants.covariance
        ),
        enclosing("norms, attention and spread of every position; weights by their norms", positions),
        enclosing("what the matrices and the MLP do to the actual differences", secants),
        enclosing(given, secants, sources),
        enclosing("the smallest relay layers above the measured distances", high[1:]),
        enclosing(given, high[1:], sources),
    )


def _float(number: object) -> float:
    try:
        return float(number)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf")
