"""The command that evaluates many models at once and writes one tidy table."""

import sys
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any

import typer

from relaymodel.checks import Number, show
from relaymodel.cli.numbers import MOST_POINTS, nearest, numbers, whole
from relaymodel.cli.options import DEEPEST, Csv, Force, Json, LastTime, Points, Times, build_times
from relaymodel.cli.output import Output, print_json, print_table
from relaymodel.model import RelayModel

COLUMNS = ("prompt", "depth", "relay", "residual", "position", "t", "influence", "local_exponent")

Prompts = Annotated[str, typer.Option("--prompt", metavar="P[,P...]", help="Numbers of prompt tokens.")]
Depths = Annotated[str, typer.Option("--depth", metavar="L[,L...]", help="Numbers of layers.")]
Relays = Annotated[str, typer.Option("--relay", metavar="X[,X...]", help="Relay strengths, each of all layers.")]
Residuals = Annotated[str, typer.Option("--residual", metavar="X[,X...]", help="Residual strengths, likewise.")]
Positions = Annotated[str, typer.Option("--position", metavar="X[,X...]", help="Position exponents g > -1, likewise.")]


def sweep(
    prompt: Prompts = "64",
    depth: Depths = "1,2,4,8,12",
    relay: Relays = "1/2,1",
    residual: Residuals = "1",
    position: Positions = "0",
    t: Times = None,
    t_max: LastTime = None,
    points: Points = None,
    json: Json = False,
    csv: Csv = None,
    force: Force = False,
) -> None:
    """Evaluate many models at once.

    Every combination of depth, prompt and strength, one row for each model of equal layers and each continuation token:
    prompt, depth, relay, residual, position, t, influence, local_exponent. --csv writes them as plain CSV, without
    comments, for any table program.
    """
    output = Output(json, csv, None, force)
    times = build_times(t, t_max, points)
    prompts = [whole("--prompt", part) for part in prompt.split(",")]
    depths = [whole("--depth", part, most=DEEPEST) for part in depth.split(",")]
    strengths = numbers("--relay", relay), numbers("--residual", residual), numbers("--position", position)
    combinations = list(product(prompts, depths, *strengths))
    if len(combinations) * len(times) > MOST_POINTS:
        raise ValueError(
            f"the sweep must have at most {MOST_POINTS} rows, got {len(combinations)} models at {len(times)} t; "
            "give fewer values or --points"
        )
    models = [RelayModel.uniform(*combination) for combination in combinations]
    rows = [
        (*combination, *row)
        for combination, model in zip(combinations, models, strict=True)
        for row in _evaluate(model, times)
    ]
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    output.write_table(columns, {})
    if json:
        print_json({name: list(values) for name, values in columns.items()})
    else:
        print_table(columns, thin=True)


def _evaluate(model: RelayModel, times: list[Number]) -> Iterator[tuple[Number, Any, float]]:
    """Yield t, D and its local exponent; D as a decimal number where it is beyond the range of float64."""
    from relaymodel.exact import influence, influence_ball, local_exponent

    if not any(relay for relay, _, _ in model.rational):
        raise ValueError(f"--relay must not be 0: nothing is passed on and there is no exponent, got {show(model)}")
    given: Any = times
    alpha = local_exponent(model, given).tolist()
    try:
        D = influence(model, given).tolist()
    except OverflowError:
        D = [0.0] * len(times)
    for at, value, exponent in zip(times, D, alpha, strict=True):
        sure = abs(value) >= sys.float_info.min
        yield at, value if sure else nearest(influence_ball(model, at, digits=25)), exponent
