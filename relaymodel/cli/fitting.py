"""The command that fits the relay model to a curve in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import floating, show
from relaymodel.cli.curves import CurveFile, WindowOptions, demand_file
from relaymodel.cli.numbers import number, whole
from relaymodel.cli.options import FIT, flag, option, options
from relaymodel.cli.output import Listing, Output
from relaymodel.curve import Curve, read_curves

if TYPE_CHECKING:
    from relaymodel.inference import Comparison, Estimate, RelayFit

FREE = "fit"
NAMES = ("relay", "depth", "position", "bias", "recency", "sink")


def _held(name: str, text: str) -> float | None:
    """Return the value to hold, or None to fit."""
    return None if text == FREE else floating(name, number(name, text))


@options(FIT)
class FitOptions:
    """What is held and what is fitted."""

    all_layers: Annotated[bool, flag("Fit all layers of the file at once, layer K with depth K.")] = False
    prompt: Annotated[int | None, option("P", "Number of prompt tokens.  [default: the file's]", whole())] = None
    relay: Annotated[float | None, option("X|fit", "Relay strength to hold.  [default: fit]", _held)] = None
    depth: Annotated[float | None, option("L|fit", "Depth to hold.  [default: fit]", _held)] = None
    position: Annotated[float | None, option("X|fit", "Position exponent to hold.", _held)] = 0
    bias: Annotated[float | None, option("X|fit", "Prompt-key bias beta to hold.", _held)] = 0
    recency: Annotated[float | None, option("X|fit", "Recency exponent to hold.", _held)] = 0
    sink: Annotated[float | None, option("X|fit", "Sink to hold.", _held)] = 0
    robust: Annotated[bool, flag("Let outliers count for little.")] = False


def fit(
    file: CurveFile,
    /,
    *,
    window: WindowOptions = WindowOptions(),
    options: FitOptions = FitOptions(),
    output: Output = Output(),
) -> None:
    """Fit the relay model to a curve in a file, and compare it with other laws.

    Relay strength and effective depth are fitted; position and recency exponent, sink and prompt-key bias too, if their
    option says fit.
    All come with 95 % intervals, and with what the curve cannot tell.
    """
    from relaymodel.inference import UnderdeterminedError

    output.check()
    if options.all_layers and window.layer is not None:
        raise ValueError("--layer must not be given together with --all-layers; choose one")
    if options.all_layers and options.depth is not None:
        raise ValueError("--depth must not be given together with --all-layers, where layer K has depth K")
    held = {name: getattr(options, name) for name in NAMES}
    curves = _layers(file, window) if options.all_layers else {1: window.read(file)}
    curve = next(iter(curves.values()))
    given = curves if options.all_layers else curve
    found = rm.fit(given, prompt=options.prompt, **held, **window.span, robust=options.robust)
    laws, body = None, []
    try:
        laws = None if options.all_layers else rm.compare_laws(curve, prompt=options.prompt, **window.span)
    except UnderdeterminedError as error:
        body = [f"\nlaws         {error}"]
    law = rm.fit_power_law(curve, **window.span)
    output.give(
        _table(curves, found, layered=options.all_layers),
        {**curve.provenance, "source": f"relay fit of {file}"},
        body=[
            *(f"{name:<13}{getattr(found, name)}" for name in NAMES),
            *(
                f"{f'factor {k}' if options.all_layers else 'factor':<13}{amplitude}"
                for k, amplitude in zip(curves, found.amplitude, strict=True)
            ),
            f"window       t = {found.window[0]:.6g} to {found.window[1]:.6g}, {found.points} points",
            f"noise        {found.scatter:.2g} in log D, correlated over {found.correlation_length:.3g} tokens",
            f"adequacy     the relay model {'describes' if found.adequate else 'does not describe'} the window "
            f"(p = {found.p_value:.2g})",
            f"             {found.identifiability}",
            *(body if laws is None else _compared(laws)),
        ],
        result=_json(found, laws),
        draw=[
            lambda ax: plotting.plot_fit(curve, found, law, ax=ax),
            lambda ax: plotting.plot_residuals(curve, found, law, ax=ax),
        ],
    )


def _compared(laws: "Comparison") -> list[str | Listing]:
    """Return how other laws describe the curve."""
    columns = {
        "law": [fitted.name for fitted in laws.fits],
        "AICc": [f"{fitted.aicc - laws.best.aicc:+.2f}" for fitted in laws.fits],
        "weight": [f"{fitted.weight:.2g}" for fitted in laws.fits],
        "parameters": [fitted.listed for fitted in laws.fits],
    }
    title = "\nother laws, each with all its parameters fitted, the relay model's too, whatever is held above"
    return [title, Listing(columns), laws.verdict]


def _layers(file: Path, window: WindowOptions) -> dict[int, Curve]:
    """Return all layers of a file but the embedding, layer 0."""
    found = read_curves(demand_file(file), window.columns)
    curves = {key: curve for key, curve in found.items() if key is not None and key > 0}
    if not curves:
        raise ValueError(
            f"--all-layers must be left out for {show(str(file))}, which has no column of layers from 1 on"
        )
    return curves


def _table(curves: dict[int, Curve], found: "RelayFit", *, layered: bool) -> dict[str, list[Any]]:
    """Return the columns of the CSV file: the window's points with the fit and its local exponent."""
    columns: dict[str, list[Any]] = {"t": [], "layer": [], "distance": [], "fit": [], "local_exponent": []}
    for i, (key, curve) in enumerate(curves.items()):
        part = curve.window(*found.window)
        columns["t"] += part.t.tolist()
        columns["layer"] += [key] * len(part)
        columns["distance"] += part.distance.tolist()
        columns["fit"] += found.predict(part.t, curve=i).tolist()
        columns["local_exponent"] += found.local_exponent(part.t, curve=i).tolist()
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
