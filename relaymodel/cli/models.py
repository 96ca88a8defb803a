"""Commands that evaluate a model: exactly, by its bound, by its recursion."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.checks import Number
from relaymodel.cli.numbers import nearest, outward, text
from relaymodel.cli.options import (
    Csv,
    Depth,
    Force,
    Json,
    LastTime,
    Plot,
    Points,
    Position,
    Prompt,
    Relay,
    Residual,
    Times,
    build_model,
    build_times,
    describe_layers,
)
from relaymodel.cli.output import Output, print_json, print_table
from relaymodel.model import RelayModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def influence(
    prompt: Prompt = "64",
    depth: Depth = None,
    relay: Relay = "1",
    residual: Residual = "1",
    position: Position = "0",
    t: Times = None,
    t_max: LastTime = None,
    points: Points = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Evaluate D(t) and its local exponent.

    D(t) is the influence of the prompt on continuation token t, in units of the prompts' per-token difference; the
    local exponent is -dlogD/dlogt. Both are exact to 12 digits, at any t.
    """
    from relaymodel.exact import influence, influence_ball, local_exponent

    output = Output(json, csv, plot, force)
    model = build_model(prompt, depth, relay, residual, position)
    times = build_times(t, t_max, points)
    _drawable(output, times)
    given: Any = times
    alpha = local_exponent(model, given).tolist()
    try:
        D = influence(model, given).tolist()
    except OverflowError:
        D = [0.0] * len(times)
    # beyond the range of float64, decimal numbers from balls
    D = [
        value if abs(value) >= sys.float_info.min else nearest(influence_ball(model, at, digits=25))
        for at, value in zip(times, D, strict=True)
    ]
    provenance = {"source": "exact influence", **_describe(model)}
    if any(value < 0 for value in D):
        provenance["negative"] = "the influence changes sign; the distance is its size"
    output.write_table({"t": times, "distance": list(map(abs, D)), "local_exponent": alpha}, provenance)

    def draw(panels: "Figure", at: Any) -> None:
        from relaymodel.plotting import plot_influence, plot_local_exponent

        plot_influence(model, at, ax=panels.axes[0])
        plot_local_exponent(model, at, ax=panels.axes[1])

    output.write_figure(lambda: _panels(times, draw))
    _show(json, model, {"t": times, "influence": D, "local_exponent": alpha})


def bound(
    prompt: Prompt = "64",
    depth: Depth = None,
    relay: Relay = "1",
    residual: Residual = "1",
    position: Position = "0",
    t: Times = None,
    t_max: LastTime = None,
    points: Points = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Bound D(t) from both sides.

    The bound holds for position 0 and strengths that are not negative; its tightness upper/lower tends to 1.
    """
    from relaymodel.bounds import bracket_ball
    from relaymodel.exact import influence_ball

    output = Output(json, csv, plot, force)
    model = build_model(prompt, depth, relay, residual, position)
    times = build_times(t, t_max, points)
    _drawable(output, times)
    brackets = [bracket_ball(model, at, digits=30) for at in times]
    columns: dict[str, Sequence[Any]] = {
        "t": times,
        "lower": [outward(sides.lower, up=False) for sides in brackets],
        "value": [nearest(influence_ball(model, at, digits=30)) for at in times],
        "upper": [outward(sides.upper, up=True) for sides in brackets],
        "tightness": [nearest(sides.tightness) for sides in brackets],
    }
    output.write_table(columns, {"source": "two-sided bound", **_describe(model)})

    def draw(panels: "Figure", at: Any) -> None:
        from relaymodel.plotting import plot_bracket, plot_rate, plot_tightness

        plot_bracket(model, at, ax=panels.axes[0])
        if model.depth > 2:
            plot_tightness(model, at, ax=panels.axes[1])
        else:
            plot_rate(model, at[at > 1], ax=panels.axes[1])

    output.write_figure(lambda: _panels(times, draw))
    _show(json, model, columns, digits={"tightness": 9})


def simulate(
    prompt: Prompt = "64",
    depth: Depth = None,
    relay: Relay = "1",
    residual: Residual = "1",
    position: Position = "0",
    t: Times = None,
    t_max: LastTime = None,
    points: Annotated[
        str | None, typer.Option("--points", metavar="N", help="Points of that grid.  [default: 64 per decade]")
    ] = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Run the recursion token by token.

    What comes out is compared with the exact values; --csv writes a curve that the command exponent reads.
    """
    from relaymodel.exact import influence
    from relaymodel.simulation import simulate

    output = Output(json, csv, plot, force)
    model = build_model(prompt, depth, relay, residual, position)
    times = sorted(set(build_times(t, t_max, points)))
    if len(times) < 2 or not all(isinstance(at, int) for at in times):
        raise ValueError(f"--t must be at least two different whole numbers for a simulation, got {t}")
    steps = int(times[-1])
    samples: Any = 64 if t is None and points is None else times
    curve = simulate(model, steps, samples=samples, progress=True)
    exact = abs(influence(model, curve.t))
    if output.csv is not None:
        output.written(curve.to_csv(output.csv, overwrite=force))

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_curve, plot_difference, plot_influence

        figure = panels(2)
        plot_curve({"simulation": curve}, ax=figure.axes[0])
        plot_influence({"exact": model}, curve.t, ax=figure.axes[0])
        plot_difference(curve, model, ax=figure.axes[1])
        return figure

    output.write_figure(draw)
    columns = {
        "t": [int(at) for at in curve.t],
        "distance": curve.distance.tolist(),
        "exact": exact.tolist(),
        "relative_difference": (abs(curve.distance - exact) / exact).tolist(),
    }
    _show(json, model, columns, digits={"distance": 12, "exact": 12, "relative_difference": 2}, thin=samples == 64)


def _describe(model: RelayModel) -> dict[str, str]:
    """Return what a CSV file says of its model."""
    return {"prompt": str(model.prompt), "layers": describe_layers(model)}


def _show(
    json: bool,
    model: RelayModel,
    columns: Mapping[str, Sequence[Any]],
    digits: Mapping[str, int] | None = None,
    *,
    thin: bool = False,
) -> None:
    """Print the columns, as JSON or as a table below what the model is."""
    if json:
        print_json(columns)
    else:
        print(f"prompt of {text(model.prompt)} tokens, {describe_layers(model)}\n")
        print_table(columns, digits, thin=thin)


def _drawable(output: Output, times: Sequence[Number]) -> None:
    """Refuse a figure that cannot be drawn, before any work."""
    if output.plot is not None and (len(set(times)) < 2 or max(times) > 10**300):
        raise ValueError("--plot must have at least two different t, none above 1e300, to draw")


def _panels(times: Sequence[Number], draw: "Callable[[Figure, Any], None]") -> "Figure":
    """Return a figure of two panels, drawn at many t between the least and the largest."""
    from relaymodel.plotting import grid, panels

    figure = panels(2)
    draw(figure, grid(float(min(times)), float(max(times))))
    return figure
