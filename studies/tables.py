"""Rows of a benchmark in a file."""

import csv
from pathlib import Path


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write rows with the same keys to a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
