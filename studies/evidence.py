"""Published numbers beside what this package computes, as a page.

    python -m studies evidence --out docs/evidence.md

Each row is a function in `relaymodel/report/evidence`.  Rows on networks read stored measurements beside the page,
which other studies write; a row whose measurements are missing is named as missing.
"""

from pathlib import Path

from relaymodel import plotting
from relaymodel.report.evidence import ROWS

MAKES = "docs/evidence.md, docs/evidence/*.png"
HEAD = """# Evidence

What others published, computed again by this package, side by side. Each row is a function that can fail; the page is
written by `python -m studies evidence --out docs/evidence.md`, and the report of `relaymodel reproduce` has the rows
that need no measurement.

"""


def taste(folder):
    return [
        "--out",
        str(folder / "evidence.md"),
        "--rows",
        "How fast a causal mask forgets late tokens",
        "Low precision loses a token",
    ]


def add_options(parser):
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", nargs="+", help="titles of the rows, instead of all")


def main(options):
    folder = options.out.parent
    chosen = [row for row in ROWS if options.rows is None or row.title in options.rows]
    summary, parts, missing = [], [], []
    for number, row in enumerate(chosen, start=1):
        absent = [name for name in row.measured if not (folder / name).exists()]
        if absent:
            missing.append(f"{row.title} (needs {', '.join(absent)})")
            continue
        outcome = row.check(folder)
        agree = sum(comparison.agrees for comparison in outcome.comparisons)
        verdict = f"{agree} of {len(outcome.comparisons)} agree"
        summary.append(f"| {number} | {row.title} | {row.source} | {verdict} |")
        parts.append(section(number, row, outcome, folder))
        print(f"{row.title}: {verdict}", flush=True)
    text = HEAD + "| | statement | source | verdict |\n| --- | --- | --- | --- |\n" + "\n".join(summary) + "\n\n"
    if missing:
        text += "Not measured here: " + "; ".join(missing) + ".\n\n"
    options.out.write_text(text + "\n".join(parts), encoding="utf-8")
    return 0


def section(number, row, outcome, folder):
    """Return the part of the page on one row, and write its figure."""
    lines = [f"## {number}. {row.title}", "", f"**Source.** {row.source}.", "", f"**It says.** {row.says}", ""]
    lines += ["| quantity | published | computed | |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {cell(c.what)} | {cell(c.published)} | {cell(c.ours)} | {'agrees' if c.agrees else '**does not agree**'} |"
        for c in outcome.comparisons
    ]
    lines += ["", f"**How.** {outcome.how}", ""]
    if outcome.suggestive:
        lines += [f"**Only suggestive:** {outcome.suggestive}.", ""]
    if row.figure is not None:
        (folder / "evidence").mkdir(exist_ok=True)
        name = f"evidence/{row.check.__name__}.png"
        plotting.save(row.figure(), folder / name, overwrite=True)
        lines += [f"![{row.title}]({name})", ""]
    return "\n".join(lines)


def cell(text):
    """Return a text for a cell of a Markdown table."""
    return text.replace("|", r"\|")
