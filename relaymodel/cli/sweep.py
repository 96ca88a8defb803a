"""The command that evaluates many models at once and writes one tidy table."""

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from relaymodel.checks import Number
from relaymodel.cli.numbers import nearest, numbers, parts, whole
from relaymodel.cli.options import MAX_DEPTH, MODEL, MOST_POINTS, OUTPUT, GridOptions, option, options
from relaymodel.cli.output import Files, Listing, folder
from relaymodel.model import RelayModel

PARAMETERS = ("prompt", "depth", "relay", "residual", "position", "recency", "sink", "bias")
MOST_PROCESSES = 256  # more than machines have cores, mostly


def _prompts(name: str, text: str) -> Sequence[int]:
    return [whole()(name, part) for part in parts(text)]


def _depths(name: str, text: str) -> Sequence[int]:
    return [whole(MAX_DEPTH)(name, part) for part in parts(text)]


@options(MODEL)
class SweepOptions:
    """Models of equal layers: every combination of these."""

    prompt: Annotated[Sequence[int], option("P[,P...]", "Numbers of prompt tokens.", _prompts)] = (64,)
    depth: Annotated[Sequence[int], option("L[,L...]", "Numbers of layers.", _depths)] = (
        1,
        2,
        4,
        8,
        12,
    )
    relay: Annotated[Sequence[Number], option("X[,X...]", "Relay strengths, each of all layers.", numbers)] = (0.5, 1)
    residual: Annotated[Sequence[Number], option("X[,X...]", "Residual strengths, likewise.", numbers)] = (1,)
    position: Annotated[Sequence[Number], option("X[,X...]", "Position exponents g > -1, likewise.", numbers)] = (0,)
    recency: Annotated[Sequence[Number], option("X[,X...]", "Recency exponents gamma < 1, likewise.", numbers)] = (0,)
    sink: Annotated[Sequence[Number], option("X[,X...]", "Weights of the first token, likewise.", numbers)] = (0,)
    bias: Annotated[
        Sequence[Number],
        option("B[,B...]", "Strengths of a bias on the prompt's keys; t are whole then.", numbers),
    ] = (0,)


@options(OUTPUT)
class RunOptions:
    """How a long sweep is run."""

    processes: Annotated[int, option("N", "Processes that share the work.", whole(MOST_PROCESSES))] = 1
    resume: Annotated[
        Path | None,
        option("FOLDER", "Keep finished blocks here, and go on from them.", folder),
    ] = None


def sweep(
    *,
    models: SweepOptions = SweepOptions(),
    grid: GridOptions = GridOptions(),
    running: RunOptions = RunOptions(),
    output: Files = Files(),
) -> None:
    """Evaluate many models at once.

    Every combination of depth, prompt and strength, one row for each model of equal layers and each continuation token:
    the model, t, influence, local_exponent. --csv writes them as plain CSV, without comments, for any table program.
    """
    output.check()
    axes = {name: getattr(models, name) for name in PARAMETERS} | {"t": grid.times()}
    rows = prod(map(len, axes.values()))
    if rows > MOST_POINTS:
        raise ValueError(
            f"the sweep must have at most {MOST_POINTS} rows, got {rows // len(axes['t'])} models at {len(axes['t'])} "
            "t; give fewer values or --points"
        )
    points = list(product(*axes.values()))
    columns = {name: list(column) for name, column in zip(axes, zip(*points, strict=True), strict=True)}
    columns |= _values(axes, points, running)
    for name in ("recency", "sink", "bias"):  # a table has no column of what no model has
        if not any(columns[name]):
            del columns[name]
    output.give(columns, {}, body=[Listing(columns, thin=True)])


def _values(axes: Mapping[str, Any], points: Sequence[tuple[Any, ...]], running: RunOptions) -> dict[str, list[Any]]:
    """Return D and the local exponent of each row; D as a decimal number where it is below the range of float64."""
    from relaymodel.exact import influence_ball
    from relaymodel.many import grid_of

    with ProcessPoolExecutor(running.processes) if running.processes > 1 else nullcontext() as executor:
        found = grid_of(axes, executor=executor, resume=running.resume, progress=True)
    D, alpha = (found[name].ravel().tolist() for name in ("influence", "local_exponent"))
    for i, (*given, bias, t) in enumerate(points):
        if abs(D[i]) < sys.float_info.min and not bias:
            D[i] = nearest(influence_ball(RelayModel.uniform(*given), t, digits=25))
    return {"influence": D, "local_exponent": alpha}
