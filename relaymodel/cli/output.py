"""What commands give back: a table or a JSON object on standard output, and files."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaymodel import files
from relaymodel.cli.numbers import text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 25

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Output:
    """Where results go; paths are checked when it is made, before any work.

    Raises `OSError` for a path that cannot be written and `ValueError` for one that does not fit its purpose.
    """

    json: bool = False
    csv: Path | None = None
    plot: Path | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if self.plot is not None:
            from relaymodel.plotting import check_suffix

            check_suffix(self.plot)
        if self.csv is not None and self.plot is not None and self.csv.absolute() == self.plot.absolute():
            raise ValueError(f"--csv and --plot must be different files, got {self.csv} for both")
        for path in (self.csv, self.plot):
            if path == Path():
                raise ValueError("--csv and --plot must name a file, got an empty name")
            if path is not None:
                claim(path, force=self.force)
                if path.is_dir():
                    raise IsADirectoryError(f"{path} is a folder; name a file")

    def write_table(self, columns: Columns, provenance: Mapping[str, str]) -> None:
        """Write the CSV file, if there is to be one: `# key: value` lines, a header, one row a point."""
        if self.csv is None:
            return
        self.written(files.write_table(self.csv, columns, provenance, overwrite=self.force))

    def write_figure(self, draw: "Callable[[], Figure]") -> None:
        """Draw and write the figure, if there is to be one."""
        if self.plot is not None:
            from relaymodel.plotting import save

            self.written(save(draw(), self.plot, overwrite=self.force))

    @staticmethod
    def written(path: Path) -> None:
        """Tell the user about a file."""
        print(f"wrote {path}", file=sys.stderr)


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
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if len(rows) < count:
        print(f"({len(rows)} of {count} points; --json or --csv FILE gives all)")
