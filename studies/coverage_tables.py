"""The tables of docs/estimators.md, from what the study `coverage` wrote.

`python -m studies coverage_tables docs/coverage.csv docs/alternatives.csv --plot docs/coverage.png`
"""

import csv
from collections import defaultdict
from pathlib import Path

NOISES = ("white", "AR(1) 0.9", "80% over 30", "fading")


def read(path):
    """Return the rows of a file, numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row |= {key: float(row[key]) for key in ("sets", "coverage", "bias", "spread", "width", "seconds")}
    return rows


def markdown(header, rows):
    """Return a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def groups(rows, key):
    """Return rows grouped by a key, in order of appearance."""
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def span(rows):
    """Return mean, least and largest coverage in per cent."""
    values = [100 * row["coverage"] for row in rows]
    return f"{sum(values) / len(values):.1f} ({min(values):.1f}-{max(values):.1f})" if values else ""


def coverage(rows):
    """Return the coverage of each estimate by the kind of noise."""
    table = []
    for name, part in groups(rows, lambda row: row["estimate"]).items():
        values = [100 * row["coverage"] for row in part]
        table.append(
            [
                name,
                *(span([row for row in part if row["noise"] == noise]) for noise in NOISES),
                f"{sum(93 <= v <= 97 for v in values)} of {len(values)}",
                f"{sum(90 <= v <= 99 for v in values)} of {len(values)}",
            ]
        )
    return markdown(["estimate", *NOISES, "within 93-97", "within 90-99"], table)


def biases(rows):
    """Return bias and spread of each estimate by truth: of the cases, the one with the largest bias in spreads."""
    table = []
    truths = list(groups(rows, lambda row: row["truth"]))
    for name, part in groups(rows, lambda row: row["estimate"]).items():
        line = [name]
        for truth in truths:
            here = [row for row in part if row["truth"] == truth]
            worst = max(here, key=lambda row: abs(row["bias"]) / row["spread"], default=None)
            line.append("" if worst is None else f"{worst['bias']:+.2g} of {worst['spread']:.2g}")
        table.append(line)
    return markdown(["estimate", *truths], table)


def alternatives(rows):
    """Return the coverage of each program by noise: the power of a power law, and the limit of other curves."""
    table = []
    for name in dict.fromkeys(row["estimate"].rsplit(", ", 1)[0] for row in rows):
        line = [name]
        for what, straight in (("window", True), ("limit", False)):
            for noise in ("white", "80% over 30"):
                here = [
                    row
                    for row in rows
                    if row["estimate"] == f"{name}, {what}"
                    and row["noise"] == noise
                    and (row["truth"] == "power") == straight
                ]
                line.append(span(here))
        table.append(line)
    return markdown(
        ["program", "power law, white", "power law, 80% over 30", "limit of the rest, white", "limit, 80% over 30"],
        table,
    )


def plot(rows, path):
    """Draw the coverage of every case: one line an estimate, one mark a truth and grid, coloured by noise."""
    from matplotlib.figure import Figure

    names = list(groups(rows, lambda row: row["estimate"]))
    figure = Figure(figsize=(9, 0.42 * len(names) + 1.6), layout="constrained")
    axes = figure.subplots()
    axes.axvspan(90, 99, color="0.92")
    axes.axvspan(93, 97, color="0.82")
    axes.axvline(95, color="black", linewidth=1)
    for i, (noise, mark) in enumerate(zip(NOISES, "osD^", strict=True)):
        part = [row for row in rows if row["noise"] == noise]
        heights = [names.index(row["estimate"]) + 0.18 * (i - 1.5) for row in part]
        axes.plot([100 * row["coverage"] for row in part], heights, mark, markersize=5, alpha=0.7, label=noise)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("coverage of 95 % intervals, 1000 curves a mark (per cent)")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=150)


MAKES = "the tables of docs/estimators.md (printed), docs/coverage.png"


def taste(folder):
    docs = Path(__file__).parent.parent / "docs"
    return [str(docs / "coverage.csv"), str(docs / "alternatives.csv"), "--plot", str(folder / "coverage.png")]


def add_options(parser):
    parser.add_argument("coverage", type=Path)
    parser.add_argument("alternatives", type=Path)
    parser.add_argument("--plot", type=Path)


def main(options):
    rows = read(options.coverage)
    for table in (coverage(rows), biases(rows), alternatives(read(options.alternatives))):
        print(table, end="\n\n")
    if options.plot is not None:
        plot(rows, options.plot)
