"""The command that fits the relay model to a curve in a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relaymodel.checks import show
from relaymodel.cli.numbers import number, time, whole
from relaymodel.cli.options import Csv, Force, Json, Plot
from relaymodel.cli.output import Output, print_json
from relaymodel.curve import Curve, read_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.inference import Comparison, Estimate, RelayFit

FREE = "fit"
NAMES = ("relay", "depth", "position", "bias")


def fit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file with columns t and distance.")],
    layer: Annotated[
        str | None, typer.Option("--layer", metavar="K", help="Which layer, if the file holds several.")
    ] = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Fit all layers of the file at once, layer K with depth K.")
    ] = False,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="P", help="Number of prompt tokens.  [default: the file's]")
    ] = None,
    relay: Annotated[str, typer.Option("--relay", metavar="X", help="Relay strength to hold, or fit.")] = FREE,
    depth: Annotated[str, typer.Option("--depth", metavar="L", help="Depth to hold, or fit.")] = FREE,
    position: Annotated[str, typer.Option("--position", metavar="X", help="Position exponent, or fit.")] = "0",
    bias: Annotated[str, typer.Option("--bias", metavar="X", help="Prompt-key bias beta, or fit.")] = "0",
    t_min: Annotated[
        str | None, typer.Option("--t-min", metavar="T", help="Start of the fit.  [default: 16, if the curve allows]")
    ] = None,
    t_max: Annotated[str | None, typer.Option("--t-max", metavar="T", help="End of the fit.")] = None,
    robust: Annotated[bool, typer.Option("--robust", help="Let outliers count for little.")] = False,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Fit the relay model to a curve in a file, and compare it with other laws.

    Relay strength and effective depth are fitted; position exponent and prompt-key bias too, if their option says fit.
    All come with 95 % intervals, and with what the curve cannot tell.
    """
    from relaymodel.inference import UnderdeterminedError, compare_laws, fit_power_law
    from relaymodel.inference import fit as fit_relay

    output = Output(json, csv, plot, force)
    if all_layers and layer is not None:
        raise ValueError("--layer must not be given together with --all-layers; choose one")
    if all_layers and depth != FREE:
        raise ValueError("--depth must not be given together with --all-layers, where layer K has depth K")
    chosen = None if layer is None else whole("--layer", layer, least=-(10**9))
    values = {"relay": relay, "depth": depth, "position": position, "bias": bias}
    held = {name: _held(f"--{name}", text) for name, text in values.items()}
    P = None if prompt is None else whole("--prompt", prompt)
    span = {
        "t_min": None if t_min is None else time("--t-min", t_min),
        "t_max": None if t_max is None else time("--t-max", t_max),
    }
    if not file.is_file():
        raise FileNotFoundError(f"FILE must be a CSV file with columns t and distance, and there is none at {file}")
    curves = _layers(file) if all_layers else {1: Curve.from_csv(file, layer=chosen)}
    curve = next(iter(curves.values()))
    found = fit_relay(curves if all_layers else curve, prompt=P, **held, **span, robust=robust)
    laws = reason = None
    try:
        laws = None if all_layers else compare_laws(curve, prompt=P, **span)
    except UnderdeterminedError as error:
        reason = str(error)
    law = fit_power_law(curve, **span)
    output.write_table(
        _table(curves, found, layered=all_layers), {**curve.provenance, "source": f"relay fit of {file}"}
    )

    def draw() -> "Figure":
        from relaymodel.plotting import panels, plot_fit, plot_residuals

        figure = panels(2)
        plot_fit(curve, found, law, ax=figure.axes[0])
        plot_residuals(curve, found, law, ax=figure.axes[1])
        return figure

    output.write_figure(draw)
    if json:
        print_json(_json(found, laws))
        return
    for name in NAMES:
        print(f"{name:<13}{getattr(found, name)}")
    for k, amplitude in zip(curves, found.amplitude, strict=True):
        print(f"{f'factor {k}' if all_layers else 'factor':<13}{amplitude}")
    verdict = "describes" if found.adequate else "does not describe"
    print(f"window       t = {found.window[0]:.6g} to {found.window[1]:.6g}, {found.points} points")
    print(f"noise        {found.scatter:.2g} in log D, correlated over {found.correlation_length:.3g} tokens")
    print(f"adequacy     the relay model {verdict} the window (p = {found.p_value:.2g})")
    print(f"             {found.identifiability}")
    if reason is not None:
        print(f"\nlaws         {reason}")
    if laws is not None:
        print(f"\n{'law':<26}{'AICc':>9}  {'weight':>8}  parameters")
        for fitted in laws.fits:
            listed = ", ".join(f"{key} = {value:.4g}" for key, value in fitted.parameters.items())
            print(f"{fitted.name:<26}{fitted.aicc - laws.best.aicc:>+9.2f}  {fitted.weight:>8.2g}  {listed}")
        print(laws.verdict)


def _held(option: str, text: str) -> float | None:
    """Return the value to hold, or None to fit."""
    return None if text == FREE else float(number(option, text))


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
