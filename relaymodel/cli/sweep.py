"""The command that evaluates many models at once and writes one tidy table."""

from collections.abc import Sequence
from itertools import product
from typing import Annotated

from relaymodel.checks import Number, show
from relaymodel.cli.models import evaluate
from relaymodel.cli.numbers import numbers, parts, whole
from relaymodel.cli.options import MAX_DEPTH, MODEL, MOST_POINTS, GridOptions, option, options
from relaymodel.cli.output import Files, print_table
from relaymodel.model import RelayModel

PARAMETERS = ("prompt", "depth", "relay", "residual", "position", "recency", "sink")
SWEEP_COLUMNS = (*PARAMETERS, "t", "influence", "local_exponent")


def _prompts(name: str, text: str) -> Sequence[int]:
    return [whole()(name, part) for part in parts(text)]


def _depths(name: str, text: str) -> Sequence[int]:
    return [whole(MAX_DEPTH)(name, part) for part in parts(text)]


@options
class SweepOptions:
    """Models of equal layers: every combination of these."""

    prompt: Annotated[Sequence[int], option("--prompt", "P[,P...]", "Numbers of prompt tokens.", _prompts, MODEL)] = (
        64,
    )
    depth: Annotated[Sequence[int], option("--depth", "L[,L...]", "Numbers of layers.", _depths, MODEL)] = (
        1,
        2,
        4,
        8,
        12,
    )
    relay: Annotated[
        Sequence[Number], option("--relay", "X[,X...]", "Relay strengths, each of all layers.", numbers, MODEL)
    ] = (0.5, 1)
    residual: Annotated[
        Sequence[Number], option("--residual", "X[,X...]", "Residual strengths, likewise.", numbers, MODEL)
    ] = (1,)
    position: Annotated[
        Sequence[Number], option("--position", "X[,X...]", "Position exponents g > -1, likewise.", numbers, MODEL)
    ] = (0,)
    recency: Annotated[
        Sequence[Number], option("--recency", "X[,X...]", "Recency exponents gamma < 1, likewise.", numbers, MODEL)
    ] = (0,)
    sink: Annotated[
        Sequence[Number], option("--sink", "X[,X...]", "Weights of the first token, likewise.", numbers, MODEL)
    ] = (0,)


def sweep(*, models: SweepOptions = SweepOptions(), grid: GridOptions = GridOptions(), output: Files = Files()) -> None:
    """Evaluate many models at once.

    Every combination of depth, prompt and strength, one row for each model of equal layers and each continuation token:
    the model, t, influence, local_exponent. --csv writes them as plain CSV, without comments, for any table program.
    """
    output.check()
    times = grid.times()
    combinations = list(product(*(getattr(models, name) for name in PARAMETERS)))
    if len(combinations) * len(times) > MOST_POINTS:
        raise ValueError(
            f"the sweep must have at most {MOST_POINTS} rows, got {len(combinations)} models at {len(times)} t; "
            "give fewer values or --points"
        )
    rows: list[tuple[object, ...]] = []
    for combination, model in [(values, RelayModel.uniform(*values)) for values in combinations]:
        if not any(layer.relays for layer in model.layers):
            raise ValueError(f"--relay must not be 0: nothing is passed on and there is no exponent, got {show(model)}")
        rows += [(*combination, *row) for row in zip(times, *evaluate(model, times), strict=True)]
    columns = {name: list(column) for name, column in zip(SWEEP_COLUMNS, zip(*rows, strict=True), strict=True)}
    for name in ("recency", "sink"):  # they joined later: a table without them is as it was
        if not any(columns[name]):
            del columns[name]
    output.write_table(columns, {})
    output.show(columns, lambda: print_table(columns, thin=True))
