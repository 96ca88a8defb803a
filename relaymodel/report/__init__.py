"""Every claim of the theory derived, simulated or measured, with a verdict: HTML, figures and data.

A claim is one function in `report/claims`, registered by `@claim`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import relaymodel.report.claims  # noqa: F401  (registers the checks)
from relaymodel import files
from relaymodel.display import plain
from relaymodel.explore import write_page
from relaymodel.report.claim import CLAIMS, Claim, Workspace
from relaymodel.report.page import render
from relaymodel.report.story import draw

__all__ = ["Claim", "Report", "reproduce"]

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Report:
    """What `reproduce` found, and the folder it wrote."""

    folder: Path
    claims: tuple[Claim, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every claim holds."""
        return all(claim.passed for claim in self.claims)

    @property
    def verdicts(self) -> str:
        """How many claims hold, in words."""
        good = sum(claim.passed for claim in self.claims)
        return f"{good} of {len(self.claims)} claims hold"

    def __repr__(self) -> str:
        return f"Report({self.verdicts}, in {self.folder}, {self.seconds:.0f} s)"


def reproduce(
    out: files.PathLike,
    *,
    model: files.PathLike | None = None,
    training: files.PathLike | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Check every claim of THEORY sections 1-9 and write a report.

    Parameters
    ----------
    out
        Folder for `index.html` (self-contained), the page to play with that it links to, `figures/` (PNG and SVG) and
        `data/` (CSV).  It must not exist, or be empty; it appears when everything is done, and only then.
    model
        A causal model of transformers (a folder, a GGUF file, a hub name): adds the measurement on a trained network,
        and on the same architecture untrained.  Needs the extra `networks`.
    training
        A folder that `relaymodel train TEXT --arms` wrote, or a copy of its alpha.csv and configuration.json: adds
        what training does to forgetting, without and with a bias.
    overwrite
        Replace a folder that is there.
    progress
        Called as progress(done, total, title) before each claim and at the end.

    Returns
    -------
    Report
        The claims with their verdicts.  A claim that fails is reported, not raised.

    Raises
    ------
    OSError
        If the folder exists (`FileExistsError`) or cannot be written; nothing is computed then.

    Examples
    --------
    >>> report = reproduce("report")  # doctest: +SKIP
    >>> report.passed  # doctest: +SKIP
    True
    """
    target = files.claim(out, overwrite=overwrite)
    start = time.perf_counter()
    given = {"model": model, "training": training}
    inputs = {name: str(value) for name, value in given.items() if value is not None}
    claims = [claim for claim in CLAIMS if claim.needs is None or claim.needs in inputs]
    with files.folder(target, overwrite=overwrite) as folder:
        # those of what was given first: a folder or a model that cannot be read says so at once
        order = sorted(range(len(claims)), key=lambda i: ("training", "model", None).index(claims[i].needs))
        for done, i in enumerate(order):
            if progress is not None:
                progress(done, len(claims), plain(claims[i].title))
            claims[i] = claims[i].checked(Workspace(folder, inputs))
        report = Report(target, tuple(claims), time.perf_counter() - start)
        draw(Workspace(folder))
        files.write_text(folder / "index.html", render(report, folder))
        write_page(folder / "explore.html")
    if progress is not None:
        progress(len(claims), len(claims), "done")
    return report
