"""Commands that evaluate a model: exactly, by its bound, by its recursion."""

import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import Number
from relaymodel.cli.inputs import announce, duration
from relaymodel.cli.numbers import nearest, outward, text
from relaymodel.cli.options import GridOptions, ModelOptions
from relaymodel.cli.output import Listing, Output
from relaymodel.model import RelayModel, describe_layers

SIMULATION_PATIENCE = 1800.0  # seconds of simulation


def influence(
    *, model: ModelOptions = ModelOptions(), grid: GridOptions = GridOptions(), output: Output = Output()
) -> None:
    """Evaluate D(t) and its local exponent.

    D(t) is the influence of the prompt on continuation token t, in units of the prompts' per-token difference; the
    local exponent is -dlogD/dlogt. Both are exact to 12 digits, at any t.  With several depths, such as --depth 2,4,6,
    --plot lays their curves over each other, and the table has a column depth.
    """
    output.check()
    models, times = model.builds(), grid.times(drawn=output.plot is not None)
    found = {L: evaluate(relay, times) for L, relay in models.items()}
    columns: dict[str, list[Any]] = {"depth": [L for L in found for _ in times], "t": [*times] * len(found)}
    for k, name in enumerate(("influence", "local_exponent")):
        columns[name] = [value for values in found.values() for value in values[k]]
    named: Any = {f"$L = {L}$": relay for L, relay in models.items()}
    if len(models) == 1:
        del columns["depth"]
        named = list(models.values())
    at = drawn(times)
    output.give(
        columns,
        {"source": "exact influence", **described(*models.values())},
        body=[*heading(*models.values()), Listing(columns)],
        draw=[
            lambda ax: plotting.plot_influence(named, at(), ax=ax),
            lambda ax: plotting.plot_local_exponent(named, at(), ax=ax),
        ],
    )


def evaluate(model: RelayModel, times: Sequence[Number]) -> tuple[list[float | Decimal], list[float]]:
    """Return D and the local exponent at each t; D as a decimal number where it is beyond the range of float64."""
    from relaymodel.exact.promise import DEEPEST

    given: Any = times
    if model.depth > DEEPEST and len(times) > 1:  # every value is a ball
        begun = time.perf_counter()
        rm.influence(model, given[-1]), rm.local_exponent(model, given[-1])
        announce((time.perf_counter() - begun) * len(times))
    alpha = rm.local_exponent(model, given).tolist()
    try:
        values = rm.influence(model, given).tolist()
    except OverflowError:
        values = [0.0] * len(times)
    D = [
        value if abs(value) >= sys.float_info.min else nearest(rm.influence_ball(model, at, digits=25))
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

    output.check()
    relay, times = model.build(), grid.times(drawn=output.plot is not None)
    brackets = [bracket_ball(relay, at, digits=30) for at in times]
    columns: dict[str, Sequence[Any]] = {
        "t": times,
        "lower": [outward(sides.lower, up=False) for sides in brackets],
        "influence": [nearest(rm.influence_ball(relay, at, digits=30)) for at in times],
        "upper": [outward(sides.upper, up=True) for sides in brackets],
        "tightness": [nearest(sides.tightness) for sides in brackets],
    }
    at = drawn(times)

    def second(ax: Any) -> None:
        if relay.depth > 2:
            plotting.plot_tightness(relay, at(), ax=ax)
        else:  # both sides are equal
            plotting.plot_rate(relay, [t for t in at() if t > 1], ax=ax)

    output.give(
        columns,
        {"source": "two-sided bound", **described(relay)},
        body=[*heading(relay), Listing(columns, {"tightness": 9})],
        draw=[lambda ax: plotting.plot_bracket(relay, at(), ax=ax), second],
    )


def simulate(
    *, model: ModelOptions = ModelOptions(), grid: GridOptions = GridOptions(), output: Output = Output()
) -> None:
    """Run the recursion token by token.

    What comes out is compared with the exact values; --csv writes a curve that the command exponent reads. Without
    --t and --points it has 64 points per decade.
    """
    output.check()
    times: Any
    relay, times = model.build(), sorted(set(grid.times()))
    if len(times) < 2 or not all(isinstance(at, int) for at in times):
        named = ",".join(map(str, grid.t or times))
        raise ValueError(f"--t must be at least two different whole numbers for a simulation, got {named}")
    steps, every = int(times[-1]), grid.t is None and grid.points is None
    demand_time(relay, steps)
    curve = rm.simulate(relay, steps, samples=64 if every else times, progress=True)
    exact = abs(rm.influence(relay, curve.t))
    columns = {
        "t": [int(at) for at in curve.t],
        "distance": curve.distance.tolist(),
        "influence": exact.tolist(),
        "relative_difference": (abs(curve.distance - exact) / exact).tolist(),
    }

    def first(ax: Any) -> None:
        plotting.plot_curve({"simulation": curve}, ax=ax)
        plotting.plot_influence({"exact": relay}, curve.t, ax=ax)

    digits = {"distance": 12, "influence": 12, "relative_difference": 2}
    output.give(
        columns,
        {},
        csv=curve.to_csv,
        body=[*heading(relay), Listing(columns, digits, thin=every)],
        draw=[first, lambda ax: plotting.plot_difference(curve, relay, ax=ax)],
    )


def demand_time(model: RelayModel, steps: int) -> None:
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
    announce(seconds)


def described(*models: RelayModel) -> dict[str, str]:
    """Return what a file says of the models."""
    layers = dict.fromkeys(describe_layers(model.layers) for model in models)
    return {"prompt": str(models[0].prompt), "layers": "; ".join(layers)}


def heading(*models: RelayModel) -> list[str]:
    """Return what stands above a table: a line for each model."""
    return [*(f"prompt of {text(model.prompt)} tokens, {describe_layers(model.layers)}" for model in models), ""]


def drawn(times: Sequence[Number]) -> Any:
    """Return what returns many t to draw at, between the least and the largest."""
    return lambda: plotting.grid(float(min(times)), float(max(times)))
