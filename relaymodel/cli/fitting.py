"""The command that fits the relay model to a curve in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel.checks import show
from relaymodel.cli.curves import CurveFile, WindowOptions, demand_file
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import FIT, flag, option, options
from relaymodel.cli.output import Output, say
from relaymodel.curve import Curve, read_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.inference import Comparison, Estimate, RelayFit

FREE = "fit"
NAMES = ("relay", "depth", "position", "bias")


def _held(name: str, text: str) -> float | None:
    """Return the value to hold, or None to fit."""
    return None if text == FREE else float(number(name, text))


@options
class FitOptions:
    """What is held and what is fitted."""

    all_layers: Annotated[
        bool, flag("--all-layers", "Fit all layers of the file at once, layer K with depth K.", FIT)
    ] = False
    prompt: Annotated[
        int | None, option("--prompt", "P", "Number of prompt tokens.  [default: the file's]", whole(), FIT)
    ] = None
    relay: Annotated[
        float | None, option("--relay", "X|fit", "Relay strength to hold.  [default: fit]", _held, FIT)
    ] = None
    depth: Annotated[float | None, option("--depth", "L|fit", "Depth to hold.  [default: fit]", _held, FIT)] = None
    position: Annotated[float | None, option("--position", "X|fit", "Position exponent to hold.", _held, FIT)] = 0
    bias: Annotated[float | None, option("--bias", "X|fit", "Prompt-key bias beta to hold.", _held, FIT)] = 0
    robust: Annotated[bool, flag("--robust", "Let outliers count for little.", FIT)] = False


def fit(
    file: CurveFile,
    /,
    *,
    window: WindowOptions = WindowOptions(),
    options: FitOptions = FitOptions(),
    output: Output = Output(),
) -> None:
    """Fit the relay model to a curve in a file, and compare it with other laws.

    Relay strength and effective depth are fitted; position exponent and prompt-key bias too, if their option says fit.
    All come with 95 % intervals, and with what the curve cannot tell.
    """
    from relaymodel.inference import UnderdeterminedError, compare_laws, fit_power_law
    from relaymodel.inference import fit as fit_relay

    output.check()
    if options.all_layers and window.layer is not None:
        raise ValueError("--layer must not be given together with --all-layers; choose one")
    if options.all_layers and options.depth is not None:
        raise ValueError("--depth must not be given together with --all-layers, where layer K has depth K")
    held = {name: getattr(options, name) for name in NAMES}
    demand_file(file)
    curves = _layers(file) if options.all_layers else {1: Curve.from_csv(file, layer=window.layer)}
    curve = next(iter(curves.values()))
    given = curves if options.all_layers else curve
    found = fit_relay(given, prompt=options.prompt, **held, **window.span, robust=options.robust)
    laws = reason = None
    try:
        laws = None if options.all_layers else compare_laws(curve, prompt=options.prompt, **window.span)
    except UnderdeterminedError as error:
        reason = str(error)
    law = fit_power_law(curve, **window.span)
    table = _table(curves, found, layered=options.all_layers)
    output.write_table(table, {**curve.provenance, "source": f"relay fit of {file}"})

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_fit, plot_residuals

        figure = panels(2)
        plot_fit(curve, found, law, ax=figure.axes[0])
        plot_residuals(curve, found, law, ax=figure.axes[1])
        return figure

    def lines() -> None:
        for name in NAMES:
            say(f"{name:<13}{getattr(found, name)}")
        for k, amplitude in zip(curves, found.amplitude, strict=True):
            say(f"{f'factor {k}' if options.all_layers else 'factor':<13}{amplitude}")
        verdict = "describes" if found.adequate else "does not describe"
        say(f"window       t = {found.window[0]:.6g} to {found.window[1]:.6g}, {found.points} points")
        say(f"noise        {found.scatter:.2g} in log D, correlated over {found.correlation_length:.3g} tokens")
        say(f"adequacy     the relay model {verdict} the window (p = {found.p_value:.2g})")
        say(f"             {found.identifiability}")
        if reason is not None:
            say(f"\nlaws         {reason}")
        if laws is not None:
            say("\nother laws, each with all its parameters fitted, the relay model's too, whatever is held above")
            say(f"{'law':<26}{'AICc':>9}  {'weight':>8}  parameters")
            for fitted in laws.fits:
                listed = ", ".join(f"{key} = {value:.4g}" for key, value in fitted.parameters.items())
                say(f"{fitted.name:<26}{fitted.aicc - laws.best.aicc:>+9.2f}  {fitted.weight:>8.2g}  {listed}")
            say(laws.verdict)

    output.write_figure(draw)
    output.show(_json(found, laws), lines)


def _layers(file: Path) -> dict[int, Curve]:
    """Return all layers of a file but the embedding, layer 0."""
    curves = {key: curve for key, curve in read_curves(file).items() if key is not None and key > 0}
    if not curves:
        raise ValueError(
            f"--all-layers must be left out for {show(str(file))}, which has no column of layers from 1 on"
        )
    return curves


def _table(curves: dict[int, Curve], found: "RelayFit", *, layered: bool) -> dict[str, list[Any]]:
    """Return the columns of the CSV file: the window's points with the fit and its local exponent."""
    columns: dict[str, list[Any]] = {"t": [], "layer": [], "distance": [], "fit": [], "alpha": []}
    for i, (key, curve) in enumerate(curves.items()):
        part = curve.window(*found.window)
        columns["t"] += part.t.tolist()
        columns["layer"] += [key] * len(part)
        columns["distance"] += part.distance.tolist()
        columns["fit"] += found.predict(part.t, curve=i).tolist()
        columns["alpha"] += found.local_exponent(part.t, curve=i).tolist()
    if not layered:
        del columns["layer"]
    return columns


def _json(found: "RelayFit", laws: "Comparison | None") -> dict[str, Any]:
    result: dict[str, Any] = {name: _estimate(getattr(found, name)) for name in NAMES}
    result["amplitude"] = [_estimate(amplitude) for amplitude in found.amplitude]
    result["covariance"] = {"names": list(found.names), "matrix": found.covariance.tolist()}
    result |= {"window": list(found.window), "points": found.points, "prompt": found.prompt}
    result |= {"scatter": found.scatter, "correlation_length": found.correlation_length}
    result |= {"p_value": found.p_value, "adequate": found.adequate, "identifiability": found.identifiability}
    if laws is not None:
        result["laws"] = [
            {"name": l.name, "formula": l.formula, "parameters": dict(l.parameters), "aicc": l.aicc, "weight": l.weight}
            for l in laws.fits
        ]
        result["verdict"] = laws.verdict
    return result


def _estimate(estimate: "Estimate") -> dict[str, Any]:
    return {
        "value": estimate.value,
        "stderr": estimate.stderr,
        "lower": estimate.lower,
        "upper": estimate.upper,
        "fitted": estimate.fitted,
        "identified": estimate.identified,
    }
