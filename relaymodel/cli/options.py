"""The options that commands share, and what they mean: a model, continuation tokens, files."""

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from relaymodel.checks import Number, show
from relaymodel.cli.numbers import MOST_POINTS, columns_of, log_grid, numbers, whole
from relaymodel.model import Layer, RelayModel

DEEPEST = 1000
DEFAULT_DEPTH = 6
DEFAULT_T_MAX = 10**6
DEFAULT_POINTS = 25

Prompt = Annotated[str, typer.Option("--prompt", metavar="P", help="Number of prompt tokens.")]
Depth = Annotated[
    str | None,
    typer.Option("--depth", metavar="L", help="Number of layers.  [default: 6, or as many as the lists have]"),
]
Relay = Annotated[str, typer.Option("--relay", metavar="X[,X...]", help="Relay strength, of all layers or of each.")]
Residual = Annotated[
    str, typer.Option("--residual", metavar="X[,X...]", help="Residual strength, of all layers or of each.")
]
Position = Annotated[
    str,
    typer.Option("--position", metavar="X[,X...]", help="Position exponent g > -1, of all layers or of each."),
]
Times = Annotated[str | None, typer.Option("--t", metavar="T[,T...]", help="Continuation tokens, such as 1e3,1e6.")]
LastTime = Annotated[
    str | None, typer.Option("--t-max", metavar="T", help="Last of a grid equal in log t.  [default: 1e6]")
]
Points = Annotated[str | None, typer.Option("--points", metavar="N", help="Points of that grid.  [default: 25]")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the numbers to a CSV file.")]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw a figure (.png, .svg or .pdf).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]


def build_model(prompt: str, depth: str | None, relay: str, residual: str, position: str) -> RelayModel:
    """Return the model that the options describe.

    >>> build_model("64", None, "1/2,1", "1", "0").layers
    (Layer(relay=0.5, residual=1, position=0), Layer(relay=1, residual=1, position=0))
    """
    P = whole("--prompt", prompt)
    given = None if depth is None else whole("--depth", depth, most=DEEPEST)
    strengths = [("--relay", numbers("--relay", relay)), ("--residual", numbers("--residual", residual))]
    strengths.append(("--position", numbers("--position", position)))
    L = columns_of(strengths, given, DEFAULT_DEPTH)
    columns = (values * L if len(values) == 1 else values for _, values in strengths)
    return RelayModel(P, tuple(Layer(*row) for row in zip(*columns, strict=True)))


def build_times(t: str | None, t_max: str | None, points: str | None) -> list[Number]:
    """Return the continuation tokens that the options name: those of `--t`, or a grid equal in log t.

    >>> build_times(None, "1e2", "3")
    [1, 10, 100]
    """
    if t is None:
        last = DEFAULT_T_MAX if t_max is None else whole("--t-max", t_max, least=2)
        count = DEFAULT_POINTS if points is None else whole("--points", points, least=2, most=MOST_POINTS)
        return list(log_grid(last, count))
    if t_max is not None or points is not None:
        raise ValueError(f"--t must not be given together with {'--t-max' if t_max else '--points'}; choose one")
    times = numbers("--t", t)
    for value, part in zip(times, t.split(","), strict=True):
        if value <= 0:
            raise ValueError(f"--t must be positive, since it counts the tokens after the prompt, got {show(part)}")
    return times


def describe_layers(model: RelayModel) -> str:
    """Return the layers in one line, equal neighbours counted together.

    >>> describe_layers(RelayModel.uniform(prompt=64, depth=6, relay=0.5))
    '6 x (relay 0.5, residual 1, position 0)'
    """
    groups = [(len(list(group)), layer) for layer, group in groupby(model.layers)]
    return ", ".join(f"{n} x (relay {l.relay}, residual {l.residual}, position {l.position})" for n, l in groups)
