"""Commands that evaluate a model: exactly, by its bound, by its recursion."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaymodel.checks import Number
from relaymodel.cli.inputs import duration
from relaymodel.cli.numbers import nearest, outward, text
from relaymodel.cli.options import GridOptions, ModelOptions
from relaymodel.cli.output import Output, print_table, say
from relaymodel.model import RelayModel, describe_layers

if TYPE_CHECKING:
    from decimal import Decimal

    from matplotlib.figure import Figure

SIMULATION_PATIENCE = 1800.0  # seconds of simulation


def influence(
    *, model: ModelOptions = ModelOptions(), grid: GridOptions = GridOptions(), output: Output = Output()
) -> None:
    """Evaluate D(t) and its local exponent.

    D(t) is the influence of the prompt on continuation token t, in units of the prompts' per-token difference; the
    local exponent is -dlogD/dlogt. Both are exact to 12 digits, at any t.
    """
    output.check()
    relay, times = model.build(), grid.times()
    _drawable(output, times)
    D, alpha = evaluate(relay, times)
    columns = {"t": times, "influence": D, "local_exponent": alpha}
    output.write_table(columns, {"source": "exact influence", **_describe(relay)})

    def draw(panels: "Figure", at: Any) -> None:
        from relaymodel.plotting import plot_influence, plot_local_exponent

        plot_influence(relay, at, ax=panels.axes[0])
        plot_local_exponent(relay, at, ax=panels.axes[1])

    output.write_figure(lambda: _panels(times, draw))
    _show(output, relay, columns)


def evaluate(model: RelayModel, times: Sequence[Number]) -> "tuple[list[float | Decimal], list[float]]":
    """Return D and the local exponent at each t; D as a decimal number where it is beyond the range of float64."""
    from relaymodel.exact import influence, influence_ball, local_exponent

    given: Any = times
    alpha = local_exponent(model, given).tolist()
    try:
        values = influence(model, given).tolist()
    except OverflowError:
        values = [0.0] * len(times)
    D = [
        value if abs(value) >= sys.float_info.min else nearest(influence_ball(model, at, digits=25))
        for at, value in zip(times, values, strict=True)
    ]
    return D, alpha


def bound(
    *, model: ModelOptions = ModelOptions(), grid: GridOptions = GridOptions(), output: Output = Output()
) -> None:
    """Bound D(t) from both sides.

    The bound holds for position 0 and strengths that are not negative; its tightness upper/lower tends to 1.
    """
    from relaymodel.bounds import bracket_ball
    from relaymodel.exact import influence_ball

    output.check()
    relay, times = model.build(), grid.times()
    _drawable(output, times)
    brackets = [bracket_ball(relay, at, digits=30) for at in times]
    columns: dict[str, Sequence[Any]] = {
        "t": times,
        "lower": [outward(sides.lower, up=False) for sides in brackets],
        "influence": [nearest(influence_ball(relay, at, digits=30)) for at in times],
        "upper": [outward(sides.upper, up=True) for sides in brackets],
        "tightness": [nearest(sides.tightness) for sides in brackets],
    }
    output.write_table(columns, {"source": "two-sided bound", **_describe(relay)})

    def draw(panels: "Figure", at: Any) -> None:
        from relaymodel.plotting import plot_bracket, plot_rate, plot_tightness

        plot_bracket(relay, at, ax=panels.axes[0])
        if relay.depth > 2:
            plot_tightness(relay, at, ax=panels.axes[1])
        else:
            plot_rate(relay, at[at > 1], ax=panels.axes[1])

    output.write_figure(lambda: _panels(times, draw))
    _show(output, relay, columns, digits={"tightness": 9})


def simulate(
    *, model: ModelOptions = ModelOptions(), grid: GridOptions = GridOptions(), output: Output = Output()
) -> None:
    """Run the recursion token by token.

    What comes out is compared with the exact values; --csv writes a curve that the command exponent reads. Without
    --t and --points it has 64 points per decade.
    """
    from relaymodel.exact import influence
    from relaymodel.simulation import simulate

    output.check()
    relay, times = model.build(), sorted(set(grid.times()))
    if len(times) < 2 or not all(isinstance(at, int) for at in times):
        named = ",".join(map(str, grid.t or times))
        raise ValueError(f"--t must be at least two different whole numbers for a simulation, got {named}")
    steps, samples = int(times[-1]), _samples(grid, times)
    _demand_time(relay, steps)
    curve = simulate(relay, steps, samples=samples, progress=True)
    exact = abs(influence(relay, curve.t))
    output.write_csv(lambda path, overwrite: curve.to_csv(path, overwrite=overwrite))

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_curve, plot_difference, plot_influence

        figure = panels(2)
        plot_curve({"simulation": curve}, ax=figure.axes[0])
        plot_influence({"exact": relay}, curve.t, ax=figure.axes[0])
        plot_difference(curve, relay, ax=figure.axes[1])
        return figure

    output.write_figure(draw)
    columns = {
        "t": [int(at) for at in curve.t],
        "distance": curve.distance.tolist(),
        "influence": exact.tolist(),
        "relative_difference": (abs(curve.distance - exact) / exact).tolist(),
    }
    digits = {"distance": 12, "influence": 12, "relative_difference": 2}
    _show(output, relay, columns, digits, thin=samples == 64)


def _samples(grid: GridOptions, times: Sequence[Number]) -> Any:
    return 64 if grid.t is None and grid.points is None else times


def _demand_time(model: RelayModel, steps: int) -> None:
    """Refuse a simulation of hours, from the speed of one chunk."""
    from relaymodel.simulation import expected_seconds

    if steps > 2**52:  # refused in its own words
        return
    seconds = expected_seconds(model, steps)
    if seconds > SIMULATION_PATIENCE:
        raise ValueError(
            f"--t-max must be smaller: simulating {steps:.3g} tokens would take about {duration(seconds)}; the "
            "command influence has the exact values at any t"
        )


def _describe(model: RelayModel) -> dict[str, str]:
    """Return what a CSV file says of its model."""
    return {"prompt": str(model.prompt), "layers": describe_layers(model.layers)}


def _show(
    output: Output,
    model: RelayModel,
    columns: Mapping[str, Sequence[Any]],
    digits: Mapping[str, int] | None = None,
    *,
    thin: bool = False,
) -> None:
    """Print the columns, as JSON or as a table below what the model is."""

    def lines() -> None:
        say(f"prompt of {text(model.prompt)} tokens, {describe_layers(model.layers)}\n")
        print_table(columns, digits, thin=thin)

    output.show(columns, lines)


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
