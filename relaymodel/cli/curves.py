"""The command that estimates exponents of a curve in a file, and what it shares with the command that fits one."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel.cli.inputs import Start
from relaymodel.cli.numbers import time, whole
from relaymodel.cli.options import FIT, option, options
from relaymodel.cli.output import Output, filename, print_table, say
from relaymodel.curve import Curve
from relaymodel.display import figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CurveFile = Annotated[Path, option("FILE", "FILE", "A CSV file with columns t and distance (or influence).", filename)]


@options
class WindowOptions:
    """Which curve of a file, and from where to where."""

    layer: Annotated[
        int | None,
        option("--layer", "K", "Which layer, if the file holds several.", whole(least=-(10**9)), FIT),
    ] = None
    t_min: Start = None
    t_max: Annotated[float | None, option("--t-max", "T", "End of the fit.", time, FIT)] = None

    @property
    def span(self) -> dict[str, Any]:
        """The window, as estimators take it."""
        return {"t_min": self.t_min, "t_max": self.t_max}


def demand_file(path: Path) -> None:
    """Raise `FileNotFoundError` unless there is a file."""
    if not path.is_file():
        raise FileNotFoundError(f"FILE must be a CSV file with columns t and distance, and there is none at {path}")


def exponent(file: CurveFile, /, *, window: WindowOptions = WindowOptions(), output: Output = Output()) -> None:
    """Estimate exponents of a curve in a file.

    A power law is fitted to a window, local exponents -dlogD/dlogt are estimated, and their limit at t to infinity is
    extrapolated where the curve allows it; all with standard errors.
    """
    from relaymodel.inference import UnderdeterminedError, estimate_exponent, extrapolate_exponent, fit_power_law

    output.check()
    demand_file(file)
    curve = Curve.from_csv(file, layer=window.layer)
    law = fit_power_law(curve, **window.span)
    local = estimate_exponent(curve, **window.span)
    limit = reason = None
    try:
        limit = extrapolate_exponent(curve, **window.span)
    except UnderdeterminedError as error:
        reason = str(error)
    columns = {"t": local.t.tolist(), "alpha": local.alpha.tolist(), "stderr": local.stderr.tolist()}
    if not all(map(math.isfinite, (law.value, law.stderr, *columns["alpha"], *columns["stderr"]))):
        raise ValueError(f"{file} must hold a curve that determines an exponent and its error, and it does not")
    output.write_table(columns, {**curve.provenance, "source": f"local exponents of {file}"})

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_local_exponent, plot_power_law

        whole = panels(2)
        plot_power_law(curve, law, ax=whole.axes[0])
        plot_local_exponent(local, ax=whole.axes[1])
        return whole

    output.write_figure(draw)
    result: dict[str, Any] = {"alpha": law.value, "stderr": law.stderr, "window": list(law.window)}
    result |= {"adequate": bool(law.adequate), "local": columns}
    result["limit"] = None if limit is None else {"value": limit.value, "stderr": limit.stderr}
    result |= {} if reason is None else {"limit_reason": reason}

    def lines() -> None:
        verdict = "describes the window" if law.adequate else "does not describe the window"
        say(
            f"power law    alpha = {_figure(law.value, law.stderr)} from t = {law.window[0]:.6g} to {law.window[1]:.6g}"
        )
        say(f"             noise alone: {law.noise_stderr:.2g}; a pure power law {verdict} (p = {law.p_value:.2g}),")
        say(f"             alpha drifts by {_figure(law.drift, law.drift_stderr)} from its start to its end")
        found = reason
        if limit is not None:
            found = f"alpha = {_figure(limit.value, limit.stderr)} (95 %: {limit.lower:.3g} to {limit.upper:.3g})"
        say(f"limit        {found}\n")
        table = {"t": columns["t"], "local_alpha": columns["alpha"], "stderr": columns["stderr"]}
        print_table(table, {"local_alpha": 4, "stderr": 2}, thin=True)

    output.show(result, lines)


def _figure(value: float, error: float) -> str:
    """Return value +- error in characters that every terminal has."""
    return figure(value, error).replace("±", "+-")
