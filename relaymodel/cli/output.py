"""What commands give back: a table or a JSON object on standard output, and files."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel import files
from relaymodel.checks import one_line, show
from relaymodel.cli.numbers import text
from relaymodel.cli.options import OUTPUT, Force, Json, option, options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 25

Columns = Mapping[str, Sequence[Any]]


STDOUT = Path("-")


def filename(option: str, text: str, kind: str = "file") -> Path:
    """Return the path of a file."""
    if not text or "\0" in text:
        raise ValueError(f"{option} must name a {kind}, got {show(text) if text else 'an empty name'}")
    return Path(text)


folder = partial(filename, kind="folder")


@options
class Files:
    """Where results go.

    `check` looks at the paths before any work: `OSError` for a path that cannot be written and `ValueError` for one
    that does not fit its purpose.
    """

    json: Json = False
    csv: Annotated[
        Path | None, option("--csv", "FILE", "Write the numbers to a CSV file; - is standard output.", filename, OUTPUT)
    ] = None
    force: Force = False

    def check(self, **others: Path | None) -> None:
        """Check the paths, with `others` that the command writes to, by option."""
        paths = {name: path for name, path in {"csv": self.csv, **others}.items() if path is not None}
        if self.csv == STDOUT:
            del paths["csv"]
            if self.json:
                raise ValueError("--csv - must not be given together with --json: both are standard output")
        if len({path.absolute() for path in paths.values()}) < len(paths):
            raise ValueError(f"{' and '.join(f'--{name}' for name in paths)} must be different files")
        for path in paths.values():
            claim(path, force=self.force)
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder; name a file")

    def write_csv(self, write: Callable[[Path, bool], Path]) -> None:
        """Let `write(path, overwrite)` write the CSV file, if there is to be one."""
        if self.csv == STDOUT:
            with TemporaryDirectory() as folder:
                print(write(Path(folder) / "table.csv", False).read_text(encoding="utf-8"), end="")
        elif self.csv is not None:
            written(write(self.csv, self.force))

    def write_table(self, columns: Columns, provenance: Mapping[str, str]) -> None:
        """Write the CSV file, if there is to be one: `# key: value` lines, a header, one row a point."""
        self.write_csv(lambda path, overwrite: files.write_table(path, columns, provenance, overwrite=overwrite))

    def show(self, result: Mapping[str, Any], lines: Callable[[], object]) -> None:
        """Print the result as JSON or, by calling `lines`, as text; nothing if the CSV file is standard output."""
        if self.json:
            print_json(result)
        elif self.csv != STDOUT:
            lines()


@options
class Output(Files):
    """Where results and a figure go."""

    plot: Annotated[Path | None, option("--plot", "FILE", "Draw a figure (.png, .svg or .pdf).", filename, OUTPUT)] = (
        None
    )

    def check(self, **others: Path | None) -> None:
        """Check the paths, with `others` that the command writes to, by option."""
        if self.plot is not None:
            from relaymodel.plotting import check_suffix

            check_suffix(self.plot)
        super().check(plot=self.plot, **others)

    def write_figure(self, draw: "Callable[[], Figure]") -> None:
        """Draw and write the figure, if there is to be one."""
        if self.plot is not None:
            from relaymodel.plotting import save

            written(save(draw(), self.plot, overwrite=self.force))


def written(path: Path) -> None:
    """Tell the user about a file."""
    say(f"wrote {one_line(path)}", file=sys.stderr)


def say(text: object = "", **where: Any) -> None:
    """Print text that does nothing else to a terminal: what cannot be printed is escaped, line by line."""
    print("\n".join(line if line.isprintable() else one_line(line) for line in str(text).split("\n")), **where)


def claim(path: Path, *, force: bool) -> None:
    """Check that a path may be written."""
    try:
        files.claim(path, overwrite=force)
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; choose another path, or --force to overwrite it") from None


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object.  Decimal numbers are written as numbers, whatever their size; NaN is refused."""
    # json knows no numbers beyond the float range: they pass through it as marked strings
    encoded = json.dumps(result, default=_plain, allow_nan=False)
    print(re.sub(r'"\\u0000([^"]*)"', r"\1", encoded))


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"\0{value}"
    if isinstance(value, Fraction):
        return float(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def print_table(columns: Columns, digits: Mapping[str, int] | None = None, *, thin: bool = False) -> None:
    """Print aligned columns; if `thin`, at most 25 rows, evenly chosen, the first and the last among them."""
    count = len(next(iter(columns.values())))
    stride = max(1, -(-(count - 1) // (MOST_ROWS - 1))) if thin else 1
    rows = sorted({*range(0, count, stride), count - 1})
    cells = [
        [name.replace("_", " "), *(text(values[i], (digits or {}).get(name, 6)) for i in rows)]
        for name, values in columns.items()
    ]
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        say("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if len(rows) < count:
        say(f"({len(rows)} of {count} points; --json or --csv FILE gives all)")
