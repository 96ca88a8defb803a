"""What a claim is, how one is registered, and where it puts its figures and tables."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relaymodel import files, plotting
from relaymodel.display import plain


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
        files.write_table(target, dict(zip(map(plain, header), zip(*table.rows, strict=True), strict=True)), {})
        self.tables.append(table)

    def image(self, name: str, caption: str, figure: Any) -> None:
        """Add a figure, or the figure around some axes, and write it to `figures/NAME.png` and `.svg`."""
        (self.folder / "figures").mkdir(exist_ok=True)
        for suffix in (".png", ".svg"):
            plotting.save(figure, self.folder / "figures" / f"{name}{suffix}")
        self.images.append(Image(name, caption))


@dataclass(frozen=True)
class Verdict:
    """What came of checking a claim.

    Attributes
    ----------
    passed
        Whether it holds.
    finding
        What was found, in one line with its figures.
    explanation
        What was done, in paragraphs; displayed formulas stand on lines of their own after `$$`.
    """

    passed: bool
    finding: str
    explanation: tuple[str, ...]


Check = Callable[[Workspace], Verdict]


@dataclass(frozen=True)
class Claim:
    """One statement of the theory, how it is checked, and, once it is, what came of it.

    All words may hold formulas between `$`, and bold ones between `**`.

    Attributes
    ----------
    title, section
        The statement, and the section of the theory it is from.
    check
        The function that checks it.
    needs
        The input of `reproduce` without which it is left out, if any.
    verdict, tables, images, seconds
        What came of it: the verdict, the numbers and pictures behind it, and how long it took.
    """

    title: str
    section: str
    check: Check
    needs: str | None = None
    verdict: Verdict | None = None
    tables: tuple[DataTable, ...] = ()
    images: tuple[Image, ...] = ()
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether it was checked and holds."""
        return self.verdict is not None and bool(self.verdict.passed)

    @property
    def finding(self) -> str:
        """What was found."""
        return "not checked" if self.verdict is None else self.verdict.finding

    def checked(self, workspace: Workspace) -> "Claim":
        """Return the claim with what comes of checking it in a fresh workspace."""
        began = time.perf_counter()
        verdict = self.check(workspace)
        seconds = time.perf_counter() - began
        return replace(
            self, verdict=verdict, tables=tuple(workspace.tables), images=tuple(workspace.images), seconds=seconds
        )


CLAIMS: list[Claim] = []
"""Every registered claim, in the order of the report."""


def claim(title: str, *, section: str, needs: str | None = None) -> Callable[[Check], Check]:
    """Register a function as the check of a claim.

    The function receives a `Workspace`, adds tables and images to it, and returns a `Verdict`.  This is all there is to
    adding a row to the report.  With `needs` it is left out unless `reproduce` gets the input of that name.
    """

    def register(check: Check) -> Check:
        CLAIMS.append(Claim(title, section, check, needs))
        return check

    return register
