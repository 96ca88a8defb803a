"""What a published statement is, and what comes of computing it again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PublishedNumber:
    """One published number or statement beside ours, and whether they agree."""

    what: str
    published: str
    ours: str
    agrees: bool


@dataclass(frozen=True)
class Outcome:
    """What came of a row: the comparisons, how ours was computed, and where the match is only suggestive."""

    comparisons: tuple[PublishedNumber, ...]
    how: str
    suggestive: str = ""

    @property
    def holds(self) -> bool:
        """Whether all comparisons agree."""
        return all(comparison.agrees for comparison in self.comparisons)


@dataclass(frozen=True)
class PublishedRow:
    """A published statement, with the function that computes it again.

    Attributes
    ----------
    title, source, says
        What it is about, where it stands, and what it says there.
    check
        Computes it; gets the folder of stored measurements.
    figure
        Draws it, or None.
    measured
        The stored measurements that it reads; without them it is left out.
    """

    title: str
    source: str
    says: str
    check: Callable[[Path], Outcome]
    figure: Callable[[], Any] | None = None
    measured: tuple[str, ...] = ()


ROWS: list[PublishedRow] = []
"""Every registered row, in the order of the page."""


def published(
    title: str,
    *,
    source: str,
    says: str,
    figure: Callable[[], Any] | None = None,
    measured: tuple[str, ...] = (),
) -> Callable[[Callable[[Path], Outcome]], Callable[[Path], Outcome]]:
    """Register a function as the check of a published statement; that is all there is to adding a row."""

    def register(check: Callable[[Path], Outcome]) -> Callable[[Path], Outcome]:
        ROWS.append(PublishedRow(title, source, says, check, figure, measured))
        return check

    return register


def number(what: str, published: float, ours: float, *, digits: int, tolerance: float | None = None) -> PublishedNumber:
    """Compare with a number published to so many digits behind the point: ours must round to it.

    >>> number("x", 0.0270, 0.02704, digits=4).agrees
    True
    """
    allowed = 0.5000001 * 10.0**-digits if tolerance is None else tolerance
    return PublishedNumber(what, f"{published:.{digits}f}", f"{ours:.{digits + 1}f}", abs(ours - published) <= allowed)
