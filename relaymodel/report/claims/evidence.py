"""The claim that published numbers come out again."""

from pathlib import Path

from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.report.evidence import ROWS


@claim("Published numbers come out again, or are contradicted for a reason", section="6, 7, 10")
def evidence(workspace: Workspace) -> Verdict:
    """Compute each published number that needs no measurement."""
    rows, failed, count = [], [], 0
    for row in ROWS:
        if row.measured:
            continue
        outcome = row.check(Path())
        count += 1
        for comparison in outcome.comparisons:
            words = "agrees" if comparison.agrees else "does not agree"
            rows.append((row.title, row.source, comparison.what, comparison.published, comparison.ours, words))
        if outcome.holds == (row.title in CONTRADICTED):
            failed.append(row.title)
        if row.figure is not None:
            workspace.image(row.check.__name__, f"{row.title}.", row.figure())
    workspace.table(
        "evidence",
        "What others published, and what comes out here.",
        ("statement", "source", "quantity", "published", "computed", "verdict"),
        rows,
    )
    agree = sum(row[-1] == "agrees" for row in rows)
    return Verdict(
        not failed,
        f"{agree} of {len(rows)} numbers of {count} statements agree; "
        + (f"unexpected: {', '.join(failed)}" if failed else f"contradicted as expected: {', '.join(CONTRADICTED)}"),
        (
            "Each row computes again what a source states, from this package alone. Where a number cannot "
            "be computed the "
            "way its source did, the row compares what can be, and says so.",
        ),
    )


CONTRADICTED = ("A dead zone in the middle",)
"""Statements that do not hold as they stand, for the reason that their row gives."""
