"""What a claim is, how one is registered, and where it puts its figures and tables."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaymodel import files, plotting


def literal(text: object) -> str:
    r"""Return a text from outside, such as a file's name, so that the page shows it as it is.

    >>> print(literal("a$b **c**"))
    a\$b \*\*c\*\*
    """
    return re.sub(r"([\\$*])", r"\\\1", " ".join(str(text).split()))


@dataclass(frozen=True)
class DataTable:
    """Numbers behind a claim: shown in the report, and written whole as CSV."""

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Image:
    """A figure behind a claim, written as PNG and SVG under `name`."""

    name: str
    caption: str


@dataclass(frozen=True)
class Claim:
    """One statement of the theory, and what came of checking it.

    Attributes
    ----------
    title, section
        The statement, and the section of the theory it is from.
    passed
        The verdict.
    finding
        What was found, in one line with its figures.
    explanation
        What was done, in paragraphs: formulas between `$`, bold words between `**`, displayed formulas after `$$`.
    tables, images
        The numbers and pictures behind it.
    seconds
        How long it took.
    """

    title: str
    section: str
    passed: bool
    finding: str
    explanation: tuple[str, ...]
    tables: tuple[DataTable, ...]
    images: tuple[Image, ...]
    seconds: float = 0.0


@dataclass
class Workspace:
    """The folder of one report, which a claim fills with tables and figures; and what the claims that ask get."""

    folder: Path
    inputs: Mapping[str, str] = field(default_factory=dict)
    tables: list[DataTable] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)

    def table(self, name: str, caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a table and write it to `data/NAME.csv`; floats keep every digit there."""
        table = DataTable(name, caption, tuple(header), tuple(tuple(row) for row in rows))
        target = self.folder / "data" / f"{name}.csv"
        target.parent.mkdir(exist_ok=True)
        files.write_table(target, dict(zip(table.header, zip(*table.rows, strict=True), strict=True)), {})
        self.tables.append(table)

    def image(self, name: str, caption: str, figure: Any) -> None:
        """Add a figure, or the figure around some axes, and write it to `figures/NAME.png` and `.svg`."""
        (self.folder / "figures").mkdir(exist_ok=True)
        for suffix in (".png", ".svg"):
            plotting.save(figure, self.folder / "figures" / f"{name}{suffix}")
        self.images.append(Image(name, caption))


@dataclass(frozen=True)
class Verdict:
    """What the function that checks a claim returns."""

    passed: bool
    finding: str
    explanation: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """A registered claim: title, section, the function that checks it, and the input that it needs, if any."""

    title: str
    section: str
    run: Callable[[Workspace], Verdict]
    needs: str | None = None


CHECKS: list[Check] = []
"""Every registered claim, in the order of the report."""


def claim(
    title: str, *, section: str, needs: str | None = None
) -> Callable[[Callable[[Workspace], Verdict]], Callable[[Workspace], Verdict]]:
    """Register a function as the check of a claim.

    The function receives a `Workspace`, adds tables and images to it, and returns a `Verdict`.  This is all
    there is to adding a row to the report.  With `needs` it is left out unless `reproduce` gets the input of that name.
    """

    def register(run: Callable[[Workspace], Verdict]) -> Callable[[Workspace], Verdict]:
        CHECKS.append(Check(title, section, run, needs))
        return run

    return register
