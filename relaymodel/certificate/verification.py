"""Verification: the evidence computed anew from its subject, and every inequality checked on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.evidence import Evidence
from relaymodel.certificate.ladder import Rung
from relaymodel.certificate.majorant import Majorant
from relaymodel.certificate.rounding import gamma
from relaymodel.checks import show
from relaymodel.networks.protocol import Measurement

Array = NDArray[np.float64]

MENTIONED = 5  # failures named one by one


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


def verify(evidence: Evidence) -> Verification:
    """Compute the evidence anew, compare each number bit for bit, and check every inequality of every rung.

    Each layer must dominate its block at every position, each rung must start above the embeddings, and its bound must
    not be exceeded anywhere.  Numbers are the same again on the same machine with the same libraries.
    """
    tally, low, high = Tally(), evidence.low, evidence.high
    again = Evidence.gather(evidence.subject)
    shapes = True
    for name in ("low", "high", "omega", "noise", "hypotheses", "ladder"):
        for where, mine, other in differences(getattr(evidence, name), getattr(again, name), name):
            tally.add(np.array([False]), f"{where} is not what the network gives on its texts")
            shapes &= type(mine) is type(other) and np.shape(mine) == np.shape(other)
    if not shapes:
        return tally.result()
    tally.add((low <= high).ravel(), "a distance's lower bound is above its upper one")
    for name, rung in evidence.ladder.rungs.items():
        try:
            excess, bound = rung.excess(low, high), rung.bound
        except (ValueError, ArithmeticError) as error:  # as what was doctored may be unusable
            tally.add(np.array([False]), f"rung {name!r}: no bound follows ({error})")
            continue
        for l, row in enumerate(excess, start=1):
            words = f"rung {name!r}, block {l}: the relay layer does not dominate"
            tally.add(row >= 1, words, low.shape[1] - len(row))
        tally.add(rung.start >= high[0], f"rung {name!r}: starts below the embeddings")
        if rung.sources is not None:
            tally.add((rung.sources >= high[:, : rung.prompt]).ravel(), f"rung {name!r}: starts below the prompts")
        tally.cover(bound, high, range(len(high)), name)
    return tally.result()


def compare(evidence: Evidence, measured: Measurement, rung: str | Rung) -> Verification:
    """Hold another measurement of the same texts, in float64, against a rung's bound at every layer and token."""
    if not isinstance(measured, Measurement):
        raise TypeError(f"measured must be a Measurement, got {show(measured)}")
    for name, mine, other in (
        ("prompt", evidence.prompt, measured.prompt),
        ("depth", evidence.depth, measured.depth),
        ("number of tokens", evidence.t.size, measured.t.size),
    ):
        if mine != other:
            raise ValueError(f"measured must have the certificate's {name}, {mine}, got {other}")
    tally = Tally()
    layers = [layer for layer in measured.layers if layer <= evidence.depth]
    found = evidence.ladder.find(rung)
    name = next((name for name, other in evidence.ladder.rungs.items() if other is found), "given")
    for distances in measured.euclidean:
        tally.cover(found.bound, distances[: len(layers)] * (1 - gamma(10_000)), layers, name)
    return tally.result()


def differences(mine: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the places at which two values differ, fields and entries gone through one by one: path, mine, other."""
    if type(mine) is not type(other):
        yield path, mine, other
    elif is_dataclass(mine):
        for field in fields(mine):
            yield from differences(getattr(mine, field.name), getattr(other, field.name), f"{path}.{field.name}")
    elif isinstance(mine, tuple) and len(mine) == len(other):
        for i, (one, two) in enumerate(zip(mine, other, strict=True)):
            yield from differences(one, two, f"{path}[{i}]")
    elif not (np.array_equal(mine, other) if isinstance(mine, np.ndarray) else mine == other):
        yield path, mine, other


class Tally:
    """Counts inequalities."""

    def __init__(self) -> None:
        self.count, self.failed = 0, 0
        self.words: list[str] = []

    def add(self, good: NDArray[np.bool_], words: str, offset: int = 0) -> None:
        """Count inequalities, (N,), of positions from `offset` on."""
        self.count += good.size
        bad = int(np.sum(~good))
        if bad:
            self.failed += bad
            where = f" at {bad} positions, the first n = {int(np.argmin(good)) + offset + 1}" if good.size > 1 else ""
            self.words.append(words + where)

    def cover(self, bound: Majorant, rows: Array, layers: Sequence[int], name: str) -> None:
        """Count distances, (len(layers), N'), the last N' positions, against a bound at these layers."""
        offset = bound.mantissa.shape[1] - rows.shape[1]
        for row, layer in zip(rows, layers, strict=True):
            self.add(bound.covers(layer, row), f"rung {name!r}, layer {layer}: a distance exceeds the bound", offset)

    def result(self) -> Verification:
        """Return the counts."""
        more = len(self.words) - MENTIONED
        rest = (f"and {more} more",) if more > 0 else ()
        return Verification(self.count, self.failed, (*self.words[:MENTIONED], *rest))
