"""The certificate: what it says, how it is verified, and how another measurement is held against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.majorant import Majorant, majorant
from relaymodel.certificate.render import html, latex
from relaymodel.certificate.rounding import gamma
from relaymodel.certificate.steps import Step, find
from relaymodel.checks import show
from relaymodel.model import RelayModel
from relaymodel.networks.protocol import Measurement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaymodel.certificate.constants import Constants

Array = NDArray[np.float64]

MENTIONED = 5  # failures named one by one

CERTIFIED = (
    "For every step the layer's inequality, and the bound that follows from it, at every position and layer, between "
    "the two runs' float64 states taken as exact numbers: distances are rounded outward, bounds against the claim. "
    "For the steps 'weights' and 'hypotheses' also the theorem in exact arithmetic, for all the texts that they name: "
    "norms of the float64 weights are proven upper bounds, and every formula is rounded up."
)
MEASURED = (
    "Floors, ω, Q, K, R_K and R_V are float64 values of the two runs, enlarged by a bound on their rounding to first "
    "order in it; constants of single positions are plain float64 values, which no claim rests on, for the inequality "
    "is checked on the distances themselves.  Nothing is said of runs in another number format."
)


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis of the theorem, what was found, and whether it holds."""

    name: str
    holds: bool
    finding: str


@dataclass(frozen=True)
class Verification:
    """What came of checking inequalities: how many, and those that fail, the first few in words."""

    inequalities: int
    failed: int
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether all hold."""
        return self.failed == 0


@dataclass(frozen=True, eq=False)
class Certificate:
    r"""The theorem of THEORY section 8 for one network and two runs; made by `certify`.

    Attributes
    ----------
    prompt, t
        P, and the continuation tokens, shape (T,).
    low, high
        Shape (L + 1, P + T): bounds on the measured distances at layer 0 to L, equal up to rounding.
    omega
        Shape (L, P + T): $\max_{s,h} n A_{ns}$ at every query of every block, rounded up.
    constants
        {step: constants of each block} for the steps "weights", "hypotheses" and "section 8", from which the relay
        layers of these steps and of "covariance" follow by hand.
    hypotheses
        Each hypothesis of the theorem with its verdict.
    steps
        The bounds, from the crudest: see `Step` and `ladder`.
    provenance
        Network, texts, bias.
    """

    prompt: int
    t: NDArray[np.int64]
    low: Array
    high: Array
    omega: Array
    constants: Mapping[str, tuple[Constants, ...]]
    hypotheses: tuple[Hypothesis, ...]
    steps: tuple[Step, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)

    certified = CERTIFIED
    measured_only = MEASURED

    @property
    def depth(self) -> int:
        """Number of blocks, L."""
        return len(self.low) - 1

    @property
    def applies(self) -> bool:
        """Whether every hypothesis of the theorem holds."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    @cached_property
    def verification(self) -> Verification:
        """What `verify` found."""
        return self.verify()

    @property
    def holds(self) -> bool:
        """Whether every inequality was verified, position by position and layer by layer."""
        return self.verification.passed

    @property
    def a_priori(self) -> Step:
        """The bound from weights, floors and omega alone: it holds for every text that meets these."""
        return self.step("hypotheses")

    @property
    def a_posteriori(self) -> Step:
        """The tightest bound that is put together from the parts of the blocks."""
        return self.step("prompts")

    @property
    def limit(self) -> Step:
        """What relay layers can give at best: the smallest ones above the measured distances."""
        return self.step("smallest, prompts")

    @property
    def unit(self) -> float:
        """The largest difference of the prompts' embeddings, in whose units `model` counts."""
        return float(self.high[0].max())

    @property
    def model(self) -> RelayModel:
        """The smallest relay model found that dominates the network: distances are at most `unit` * D(t)."""
        return RelayModel(self.prompt, self.step("smallest").layers)

    def step(self, name: str) -> Step:
        """Return the step of a name; `ValueError` with the names there are."""
        return find(self.steps, name)

    def distance(self, layer: int | None = None) -> Array:
        """Return the measured distances at a layer, by default the last, shape (T,)."""
        return np.asarray(self.high[self._layer(layer), self.prompt :])

    def log10_bound(self, step: str, layer: int | None = None) -> Array:
        """Return the decimal logarithm of a step's bound at a layer, by default the last, shape (T,)."""
        return np.asarray(self.step(step).bound.log10[self._layer(layer), self.prompt :])

    def log10_ratio(self, step: str, layer: int | None = None) -> Array:
        """Return by how many orders of magnitude a step's bound is above the measured distance, shape (T,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.log10_bound(step, layer) - np.log10(self.distance(layer)))

    @property
    def ladder(self) -> tuple[tuple[str, float, float], ...]:
        """For each step its name, the orders of magnitude above the truth, and those gained on the step before.

        At the last layer, the mean over the continuation of log10 (bound / measured).
        """
        rows: list[tuple[str, float, float]] = []
        for step in self.steps:
            above = self.log10_ratio(step.name)
            mean = float(np.mean(above[np.isfinite(above)])) if np.any(np.isfinite(above)) else 0.0
            rows.append((step.name, mean, rows[-1][1] - mean if rows else 0.0))
        return tuple(rows)

    def verify(self) -> Verification:
        """Check every inequality anew, from the layers and the distances; see `certified`.

        Constants must give the layers of their steps, each layer must dominate its block at every position, and the
        bound that the layers give must be what is stored and must not be exceeded anywhere.
        """
        check = _Check()
        sources = {
            "weights": "weights",
            "hypotheses": "hypotheses",
            "section 8": "section 8",
            "covariance": "section 8",
        }
        for step in self.steps:
            name = f"step {step.name!r}"
            if step.name in sources:
                given = self.constants[sources[step.name]]
                for l, (layer, c) in enumerate(zip(step.layers, given, strict=True), start=1):
                    wanted = c.section_8() if step.name == "section 8" else c.covariance()
                    good = layer.relay >= wanted.relay and layer.residual >= wanted.residual
                    check.add(np.array([good]), f"{name}, block {l}: its strengths are below what its constants give")
            for l, row in enumerate(step.excess(self.low, self.high), start=1):
                check.add(
                    row >= 1, f"{name}, block {l}: the relay layer does not dominate", self.low.shape[1] - len(row)
                )
            given_prompts = self.prompt if step.sources is not None else 0
            check.add(np.all(step.start[None] >= self.high[0][None], axis=0), f"{name}: starts below the embeddings")
            if step.sources is not None:
                check.add((step.sources >= self.high[:, :given_prompts]).ravel(), f"{name}: starts below the prompts")
            again = majorant(step.layers, step.start, self.prompt, step.sources)
            same = np.array_equal(again.mantissa, step.bound.mantissa) and np.array_equal(
                again.exponent, step.bound.exponent
            )
            check.add(np.array([same]), f"{name}: the bound is not that of its layers")
            self._cover(check, again, self.high, range(len(self.high)), name)
        return check.result()

    def check(self, measured: Measurement, step: str = "smallest, prompts") -> Verification:
        """Hold another measurement of the same texts, in float64, against a step's bound at every layer and token.

        A network with other weights, or a curve that was tampered with, exceeds the bound where the change is large
        enough; the tightest step is the most sensitive one.
        """
        if not isinstance(measured, Measurement):
            raise TypeError(f"measured must be a Measurement, got {show(measured)}")
        for name, mine, other in (
            ("prompt", self.prompt, measured.prompt),
            ("depth", self.depth, measured.depth),
            ("number of tokens", self.t.size, measured.t.size),
        ):
            if mine != other:
                raise ValueError(f"measured must have the certificate's {name}, {mine}, got {other}")
        check = _Check()
        layers = [layer for layer in measured.layers if layer <= self.depth]
        for distances in measured.euclidean:
            values = distances[: len(layers)] * (1 - gamma(10_000))
            self._cover(check, self.step(step).bound, values, layers, f"step {step!r}")
        return check.result()

    def _cover(self, check: _Check, bound: Majorant, rows: Array, layers: range | list[int], name: str) -> None:
        for row, layer in zip(rows, layers, strict=True):
            offset = self.low.shape[1] - row.size
            check.add(bound.covers(layer, row), f"{name}, layer {layer}: a distance exceeds the bound", offset)

    def _layer(self, layer: int | None) -> int:
        if layer is None:
            return self.depth
        if isinstance(layer, bool) or not isinstance(layer, (int, np.integer)) or not 0 <= layer <= self.depth:
            raise ValueError(f"layer must be from 0 to {self.depth}, got {show(layer)}")
        return int(layer)

    def latex(self) -> str:
        """Return the certificate as LaTeX (amsmath): hypotheses, constants with the formulas they go into, bounds."""
        return latex(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __repr__(self) -> str:
        name, above, _ = self.ladder[[step.name for step in self.steps].index(self.a_posteriori.name)]
        return (
            f"Certificate(depth {self.depth}, prompt {self.prompt}, t = 1..{self.t[-1]}; "
            f"hypotheses {'hold' if self.applies else 'fail'}; {self.verification.inequalities} inequalities "
            f"{'hold' if self.holds else 'do NOT all hold'}; step {name!r} is 10^{above:.2f} above the truth)"
        )


class _Check:
    """Counts inequalities."""

    def __init__(self) -> None:
        self.count, self.failed = 0, 0
        self.words: list[str] = []

    def add(self, good: NDArray[np.bool_], words: str, offset: int = 0) -> None:
        self.count += good.size
        bad = int(np.sum(~good))
        if bad:
            self.failed += bad
            where = f" at {bad} positions, the first n = {int(np.argmin(good)) + offset + 1}" if good.size > 1 else ""
            self.words.append(words + where)

    def result(self) -> Verification:
        more = len(self.words) - MENTIONED
        return Verification(
            self.count, self.failed, (*self.words[:MENTIONED], *([f"and {more} more"] if more > 0 else []))
        )
