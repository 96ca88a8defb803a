"""The command that works out the whole argument."""

import sys
from pathlib import Path
from typing import Annotated

from relaymodel.cli.options import NETWORK, OUTPUT, Force, Json, option
from relaymodel.cli.output import claim, folder, print_json, say, written
from relaymodel.progress import Clock


def reproduce(
    *,
    out: Annotated[Path, option("DIR", "Folder for the report.", folder, OUTPUT)] = Path("report"),
    model: Annotated[
        str | None,
        option("MODEL", "Also measure this trained model (folder, GGUF file, hub name).", group=NETWORK),
    ] = None,
    training: Annotated[
        Path | None,
        option("DIR", "Also show what `relaymodel train TEXT --arms` found in DIR.", folder, NETWORK),
    ] = None,
    json: Json = False,
    force: Force = False,
) -> int:
    """Check every claim and write a report.

    The whole argument is worked out, with figures and data, in a folder whose index.html can be read offline. The exit
    code is 1 if a claim fails.
    """
    claim(out, force=force)
    from relaymodel.display import plain
    from relaymodel.report import reproduce

    report = reproduce(
        out, model=model, training=training, overwrite=force, progress=_progress if sys.stderr.isatty() else None
    )
    written(out / "index.html")
    if json:
        claims = [
            {"title": plain(c.title), "finding": plain(c.finding), "passed": bool(c.passed)} for c in report.claims
        ]
        print_json({"passed": bool(report.passed), "claims": claims})
    else:
        for c in report.claims:
            say(f"{'holds ' if c.passed else 'FAILS '}  {plain(c.title)}\n          {plain(c.finding)}")
        say(report.verdicts)
    return 0 if report.passed else 1


def _progress(done: int, total: int, title: str) -> None:
    """Draw on the terminal's last line how far the work is."""
    Clock.stop()
    line = f"[{'#' * done}{'-' * (total - done)}] {title}"[:78]
    print(f"\r{line:<78}", end="\n" if done >= total else "", file=sys.stderr, flush=True)
