"""Commands that read a measured or simulated curve from a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.cli.numbers import time, whole
from relaymodel.cli.options import Csv, Force, Json, Plot
from relaymodel.cli.output import Output, print_json, print_table
from relaymodel.curve import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def exponent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with columns t and distance.")],
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="K", help="Which layer, if the file holds several.")
    ] = None,
    t_min: Annotated[
        str | None, typer.Option("--t-min", metavar="T", help="Start of the fit.  [default: 16, if the curve allows]")
    ] = None,
    t_max: Annotated[str | None, typer.Option("--t-max", metavar="T", help="End of the fit.")] = None,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Estimate exponents of a curve in a file.

    A power law is fitted to a window, local exponents -dlogD/dlogt are estimated, and their limit at t to infinity is
    extrapolated where the curve allows it; all with standard errors.
    """
    from relaymodel.inference import UnderdeterminedError, estimate_exponent, extrapolate_exponent, fit_power_law

    output = Output(json, csv, plot, force)
    chosen = None if layer is None else whole("--layer", layer, least=-(10**9))
    start = None if t_min is None else time("--t-min", t_min)
    end = None if t_max is None else time("--t-max", t_max)
    if not file.is_file():
        raise FileNotFoundError(f"FILE must be a CSV file with columns t and distance, and there is none at {file}")
    curve = Curve.from_csv(file, layer=chosen)
    law = fit_power_law(curve, t_min=start, t_max=end)
    local = estimate_exponent(curve, t_min=start, t_max=end)
    limit = reason = None
    try:
        limit = extrapolate_exponent(curve, t_min=start, t_max=end)
    except UnderdeterminedError as error:
        reason = str(error)
    columns = {"t": local.t.tolist(), "alpha": local.alpha.tolist(), "stderr": local.stderr.tolist()}
    output.write_table(columns, {**curve.provenance, "source": f"local exponents of {file}"})

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_local_exponent, plot_power_law

        figure = panels(2)
        plot_power_law(curve, law, ax=figure.axes[0])
        plot_local_exponent(local, ax=figure.axes[1])
        return figure

    output.write_figure(draw)
    if json:
        result: dict[str, Any] = {"alpha": law.alpha, "stderr": law.stderr, "window": list(law.window)}
        result |= {"adequate": bool(law.adequate), "local": columns}
        result["limit"] = None if limit is None else {"value": limit.value, "stderr": limit.stderr}
        print_json(result if reason is None else {**result, "limit_reason": reason})
        return
    verdict = "describes the window" if law.adequate else "does not describe the window"
    print(f"power law    alpha = {_figure(law.alpha, law.stderr)} from t = {law.window[0]:.6g} to {law.window[1]:.6g}")
    print(f"             noise alone: {law.noise_stderr:.2g}; a pure power law {verdict} (p = {law.p_value:.2g}),")
    print(f"             alpha drifts by {_figure(law.drift, law.drift_stderr)} from its start to its end")
    found = (
        reason
        if limit is None
        else f"alpha = {_figure(limit.value, limit.stderr)} (95 %: {limit.lower:.3g} to {limit.upper:.3g})"
    )
    print(f"limit        {found}\n")
    table = {"t": columns["t"], "local_alpha": columns["alpha"], "stderr": columns["stderr"]}
    print_table(table, {"local_alpha": 4, "stderr": 2}, thin=True)


def _figure(value: float, error: float) -> str:
    """Return value +- error in characters that every terminal has."""
    from relaymodel.display import figure

    return figure(value, error).replace("±", "+-")
