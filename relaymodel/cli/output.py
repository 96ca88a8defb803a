"""What commands give back: a table or a JSON object on standard output, and files."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel import files, plotting
from relaymodel.checks import choice, floating, one_line, show
from relaymodel.cli.numbers import numbers, text
from relaymodel.cli.options import OUTPUT, Force, Json, flag, option, options
from relaymodel.display import STYLES, typeset
from relaymodel.files import STDIO
from relaymodel.progress import Clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 25  # of a table on a terminal
FLOAT_MAX = int(sys.float_info.max)

Columns = Mapping[str, Sequence[Any]]
Draw = Callable[["Axes"], object]
"""Draws a panel of a figure."""


@dataclass(frozen=True)
class Listing:
    """Columns to print; of a `thin` table at most 25 rows, evenly chosen, the first and the last among them."""

    columns: Columns
    digits: Mapping[str, int] = field(default_factory=dict)
    thin: bool = False

    def set(self, style: str) -> str:
        """Return it as text, Markdown or LaTeX."""
        count = len(next(iter(self.columns.values())))
        stride = max(1, -(-(count - 1) // (MOST_ROWS - 1))) if self.thin else 1
        rows = sorted({*range(0, count, stride), count - 1} - {-1})
        cells = [[text(values[i], self.digits.get(name, 6)) for i in rows] for name, values in self.columns.items()]
        found = typeset([name.replace("_", " ") for name in self.columns], zip(*cells, strict=True), style)
        if len(rows) < count and style == "text":
            found += f"\n({len(rows)} of {count} points; --json or --csv FILE gives all)"
        return found


def filename(option: str, text: str, kind: str = "file") -> Path:
    """Return the path of a file; - is standard input or output."""
    if not text or "\0" in text:
        raise ValueError(f"{option} must name a {kind}, got {show(text) if text else 'an empty name'}")
    return Path(text)


def folder(option: str, text: str) -> Path:
    """Return the path of a folder."""
    if text == "-":
        raise ValueError(f"{option} must name a folder, which standard output is not, got -")
    return filename(option, text, "folder")


def _style(option: str, text: str) -> str:
    return choice(option, text, STYLES)


def _size(option: str, text: str) -> tuple[float, float]:
    """Return width and height.

    >>> _size("--size", "12,4.8")
    (12.0, 4.8)
    """
    found = [floating(option, value) for value in numbers(option, text)]
    if len(found) != 2:
        raise ValueError(f"{option} must be width and height in inches, such as 12,4.8, got {show(text)}")
    return found[0], found[1]


@options(OUTPUT)
class Printed:
    """How results are printed; `agree` refuses, before any work, what contradicts itself."""

    json: Json = False
    strings: Annotated[bool, flag("In JSON, write numbers beyond the range of float64 as strings.")] = False
    table: Annotated[str, option("STYLE", "Print tables alone, as markdown or latex.", _style)] = "text"

    def agree(self) -> None:
        """Refuse styles of what is not printed."""
        if self.json and self.table != "text":
            raise ValueError(f"--table must not be given together with --json, got {self.table}; choose one")
        if self.strings and not self.json:
            raise ValueError("--strings must be given with --json, whose numbers it is about")

    def show(self, result: Mapping[str, Any], body: Sequence[str | Listing]) -> None:
        """Print a result: one JSON object, or texts and tables, of which Markdown and LaTeX take the tables alone."""
        if self.json:
            print_json(result, strings=self.strings)
        elif self.table == "text":
            say("\n".join(part if isinstance(part, str) else part.set("text") for part in body))
        else:
            tables = [part.set(self.table) for part in body if isinstance(part, Listing)]
            if not tables:
                raise ValueError(f"--table must be left out where no table is printed, got {self.table}")
            say("\n\n".join(tables))


@options(OUTPUT)
class Files(Printed):
    """Where results go.

    `check` looks at the paths before any work: `OSError` for a path that cannot be written and `ValueError` for one
    that does not fit its purpose.
    """

    csv: Annotated[
        Path | None,
        option("FILE", "Write the numbers: CSV, or by its name .tsv, .npz, .parquet; - is stdout.", filename),
    ] = None
    force: Force = False

    def check(self, **others: Path | None) -> None:
        """Check the paths, with `others` that the command writes to, by option."""
        self.agree()
        paths = {name: path for name, path in {"csv": self.csv, **others}.items() if path is not None}
        if len({path.absolute() for path in paths.values()}) < len(paths):
            raise ValueError(f"{' and '.join(f'--{name}' for name in paths)} must be different files")
        for name, path in paths.items():
            if path == STDIO and self.json:
                raise ValueError(f"--{name} - must not be given together with --json: both are standard output")
            claim(path, force=self.force)
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder; name a file")

    def give(
        self,
        columns: Columns,
        provenance: Mapping[str, Any],
        *,
        body: Sequence[str | Listing] | None = None,
        result: Mapping[str, Any] | None = None,
        csv: Callable[..., Path] | None = None,
        quiet: bool = False,
    ) -> None:
        """Write and print what was found.

        The columns go to the CSV file below the provenance, or what `csv(path, overwrite=)` writes in their place; the
        `result`, by default the columns, is the JSON object; the `body`, by default the columns, what else is printed,
        unless `quiet` or a file went to standard output.
        """
        if self.csv is not None:
            write = partial(files.write_table, columns=columns, facts=provenance) if csv is None else csv
            written(write(self.csv, overwrite=self.force))
        if self.csv != STDIO and not quiet:
            self.show(columns if result is None else result, [Listing(columns)] if body is None else body)


@options(OUTPUT)
class Output(Files):
    """Where results and a figure go."""

    plot: Annotated[Path | None, option("FILE", "Draw a figure (.png, .svg or .pdf); - is stdout.", filename)] = None
    title: Annotated[str | None, option("TEXT", "What stands above the figure; formulas between dollars.")] = None
    size: Annotated[tuple[float, float] | None, option("W,H", "Width and height of the figure, in inches.", _size)] = (
        None
    )
    format: Annotated[
        str | None,
        option("NAME", "png, svg or pdf.  [default: by the figure's name; stdout png]"),
    ] = None

    def check(self, **others: Path | None) -> None:
        """Check the paths, with `others` that the command writes to, by option."""
        if self.plot is None:
            for name in ("title", "size", "format"):
                if getattr(self, name) is not None:
                    raise ValueError(f"--{name} must be given with --plot FILE, whose figure it is about")
        else:
            self._kind()
            plotting.panels(title=self.title, size=self.size)
        super().check(plot=self.plot, **others)

    def _kind(self) -> str:
        """Return the format of the figure."""
        assert self.plot is not None
        if self.format is not None or self.plot == STDIO:
            return choice("--format", "png" if self.format is None else self.format, ("png", "svg", "pdf"))
        return plotting.check_suffix(self.plot)[1:]

    def give(self, *found: Any, draw: Sequence[Draw] = (), quiet: bool = False, **others: Any) -> None:
        """Draw a panel of the figure with each function of some axes, then write and print as `Files.give`."""
        if self.plot is not None:
            figure = plotting.panels(*draw, title=self.title, size=self.size)
            written(plotting.save(figure, self.plot, kind=self._kind(), overwrite=self.force))
        super().give(*found, quiet=quiet or self.plot == STDIO, **others)


def written(path: Path) -> None:
    """Tell the user about a file."""
    if path != STDIO:
        say(f"wrote {one_line(path)}", file=sys.stderr)


def say(text: object = "", **where: Any) -> None:
    """Print text that does nothing else to a terminal: what cannot be printed is escaped, line by line."""
    Clock.stop()
    print("\n".join(line if line.isprintable() else one_line(line) for line in str(text).split("\n")), **where)


def claim(path: Path, *, force: bool) -> None:
    """Check that a path may be written."""
    try:
        files.claim(path, overwrite=force)
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; choose another path, or --force to overwrite it") from None


def print_json(result: Mapping[str, Any], *, strings: bool = False) -> None:
    """Print one JSON object; NaN is refused.

    Numbers beyond the range of float64 are written as numbers, of any size, or as strings.
    """
    # json knows no numbers beyond the float range: they pass through it as marked strings
    Clock.stop()
    encoded = json.dumps(_jsonable(result, strings=strings), allow_nan=False)
    print(encoded if strings else re.sub(r'"\\u0000([^"]*)"', r"\1", encoded))


def _jsonable(value: Any, *, strings: bool) -> Any:
    """Return what json can write, numbers outside float64 as strings, marked unless they are to stay strings."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item, strings=strings) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item, strings=strings) for item in value]
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Decimal) or (strings and type(value) is int and abs(value) > FLOAT_MAX):
        return str(value) if strings else f"\0{value}"
    return value
