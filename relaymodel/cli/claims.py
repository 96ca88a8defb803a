"""The command that works out the whole argument."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from relaymodel.cli.options import Force, Json
from relaymodel.cli.output import claim, print_json


def reproduce(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the report.")] = Path("report"),
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Also measure this trained model (folder, GGUF file, hub name)."),
    ] = None,
    training: Annotated[
        Path | None,
        typer.Option("--training", metavar="DIR", help="Also show what `relaymodel train TEXT --arms` found in DIR."),
    ] = None,
    json: Json = False,
    force: Force = False,
) -> None:
    """Check every claim and write a report.

    The whole argument is worked out, with figures and data, in a folder whose index.html can be read offline. The exit
    code is 1 if a claim fails.
    """
    claim(out, force=force)
    from relaymodel.report import reproduce

    result = reproduce(
        out, model=model, training=training, overwrite=force, progress=_progress if sys.stderr.isatty() else None
    )
    print(f"wrote {out / 'index.html'}", file=sys.stderr)
    if json:
        claims = [{"title": c.title, "finding": c.finding, "passed": bool(c.passed)} for c in result.claims]
        print_json({"passed": bool(result.passed), "claims": claims})
    else:
        for c in result.claims:
            print(f"{'holds ' if c.passed else 'FAILS '}  {c.title}\n          {c.finding}")
    if not result.passed:
        raise typer.Exit(1)


def _progress(done: int, total: int, title: str) -> None:
    """Draw on the terminal's last line how far the work is."""
    line = f"[{'#' * done}{'-' * (total - done)}] {title}"[:78]
    print(f"\r{line:<78}", end="\n" if done >= total else "", file=sys.stderr, flush=True)
