"""The evidence: everything that follows from a network and two of its runs, and that a certificate shows."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from immutabledict import immutabledict
from numpy.typing import NDArray

from relaymodel.certificate.constants import from_weights, measured, with_hypotheses
from relaymodel.certificate.hypotheses import Hypothesis, examine
from relaymodel.certificate.ladder import Ladder, Rung, build
from relaymodel.certificate.noise import embedded
from relaymodel.certificate.rounding import SMALLEST_SAFE, distances
from relaymodel.certificate.runs import BlockRun, follow
from relaymodel.certificate.subject import Subject
from relaymodel.certificate.weights import floors, read
from relaymodel.checks import show
from relaymodel.model import RelayModel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""What was found, and the bounds that follow from it.

    Attributes
    ----------
    subject
        Network, tokens, bias: what the rest is computed from.
    low, high
        Shape (L + 1, P + T): bounds on the measured distances at layer 0 to L, equal up to rounding.
    omega
        Shape (L, P + T): $\max_{s,h} n A_{ns}$ at every query of every block, rounded up.
    noise
        Shape (L + 1, P + T): how far a distance of the float64 runs may be from that of the network in exact
        arithmetic, to first order in rounding (module `noise`); 0 where the runs are equal.  A bound that uses the runs
        is one on the exact distance where it is added.
    hypotheses
        Each hypothesis of the theorem with its verdict.
    ladder
        The bounds, from the crudest.
    provenance
        Network, texts, bias, in words.
    """

    subject: Subject
    low: Array
    high: Array
    omega: Array
    noise: Array
    hypotheses: tuple[Hypothesis, ...]
    ladder: Ladder
    provenance: Mapping[str, str] = field(default_factory=immutabledict)

    @classmethod
    def gather(
        cls,
        subject: Subject,
        provenance: Mapping[str, str] | None = None,
        report: Callable[[int], object] = bool,
    ) -> Self:
        """Return the evidence on a subject; `report` is called with the number of blocks done, of 2 L."""
        network, P = subject.network, subject.prompt
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite is refused by name
            norms = []
            for l, block in enumerate(network.weights.blocks, start=1):
                norms.append(read(block, network.architecture))
                report(l)
            spans: list[tuple[Array, Array]] = []
            runs: list[BlockRun] = []
            errors: list[Array] = []
            for states, run in follow(network, norms, subject.tokens, subject.mask):
                spans.append(distances(states))
                errors = errors or [embedded(network, states)]
                if run is not None:
                    runs.append(run)
                    errors.append(run.error)
                    report(network.depth + len(runs))
            floor = floors(network)
        low, high = (np.stack(side) for side in zip(*spans, strict=True))
        if np.any((low == 0) & (high > 0)):
            raise ValueError(
                f"the runs must be more than {SMALLEST_SAFE:g} apart if they differ: float64 has no smaller squares"
            )
        weights = [from_weights(n, network.architecture, floor, subject.favour) for n in norms]
        both = list(zip(weights, norms, runs, strict=True))
        known = None if subject.grows or any(c.omega == math.inf for c in weights) else weights
        prompts = distances(network.weights.embedding[subject.tokens[:, :P]])[1]  # positions cancel, unlike in floats
        unit = max(float(high[0].max()), float(prompts.max()))
        apart = np.cumsum(subject.tokens[0] != subject.tokens[1]) > 0  # before it equal tokens, equal arithmetic
        noise = np.nan_to_num(np.stack(errors).sum(axis=1), nan=math.inf, posinf=math.inf)
        constants = [with_hypotheses(*x) for x in both], [measured(*x) for x in both]
        return cls(
            subject,
            low,
            high,
            np.stack([run.omega for run in runs]),
            np.where(apart, noise, 0),
            examine(subject, runs, known, floor, low[0]),
            build(known, *constants, runs, low, high, unit, P),
            immutabledict(provenance or {}),
        )

    @property
    def prompt(self) -> int:
        """P, the length of the prompts."""
        return self.subject.prompt

    @property
    def t(self) -> NDArray[np.int64]:
        """The tokens of the continuation, (T,)."""
        return self.subject.t

    @property
    def depth(self) -> int:
        """Number of blocks, L."""
        return len(self.low) - 1

    @property
    def applies(self) -> bool:
        """Whether every hypothesis of the theorem holds."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    @property
    def unit(self) -> float:
        """The largest difference of the prompts' embeddings, in whose units `model` counts."""
        return float(self.ladder.section_8.start.max())

    @property
    def model(self) -> RelayModel:
        """The smallest relay model found that dominates the network: distances are at most `unit` * D(t)."""
        return RelayModel(self.prompt, self.ladder.smallest.layers)

    def distance(self, layer: int | None = None) -> Array:
        """Return the measured distances at a layer, by default the last, shape (T,)."""
        return np.asarray(self.high[self._layer(layer), self.prompt :])

    def log10_bound(self, rung: str | Rung, layer: int | None = None) -> Array:
        """Return the decimal logarithm of a rung's bound at a layer, by default the last, shape (T,)."""
        return np.asarray(self.ladder.find(rung).bound.log10[self._layer(layer), self.prompt :])

    def log10_ratio(self, rung: str | Rung, layer: int | None = None) -> Array:
        """Return by how many orders of magnitude a rung's bound is above the measured distance, shape (T,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.log10_bound(rung, layer) - np.log10(self.distance(layer)))

    @property
    def heights(self) -> dict[str, float]:
        """For each rung the orders of magnitude above the truth: mean of log10 (bound / measured), last layer."""
        ratios = {name: self.log10_ratio(rung) for name, rung in self.ladder.rungs.items()}
        finite = {name: ratio[np.isfinite(ratio)] for name, ratio in ratios.items()}
        return {name: float(np.mean(ratio)) if ratio.size else 0.0 for name, ratio in finite.items()}

    def _layer(self, layer: int | None) -> int:
        if layer is None:
            return self.depth
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)) or not 0 <= layer <= self.depth:
            raise ValueError(f"layer must be from 0 to {self.depth}, got {show(layer)}")
        return int(layer)
