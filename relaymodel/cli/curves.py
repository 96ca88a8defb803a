"""The command that estimates exponents of a curve in a file, and what it shares with others that read curves."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import show
from relaymodel.cli.inputs import Start
from relaymodel.cli.numbers import parts, time, whole
from relaymodel.cli.options import FIT, option, options
from relaymodel.cli.output import Listing, Output, filename
from relaymodel.curve import COLUMNS, SIGNED, Curve
from relaymodel.display import figure
from relaymodel.files import STDIO
from relaymodel.progress import Clock

CurveFile = Annotated[
    Path,
    option(
        "FILE",
        "A table with columns t and distance (or influence): CSV, TSV, numpy.savetxt, NPZ, Parquet; - is stdin.",
        filename,
    ),
]


def _columns(name: str, text: str) -> dict[str, str]:
    """Return what columns are called.

    >>> _columns("--columns", "t=tokens,distance=dist")
    {'t': 'tokens', 'distance': 'dist'}
    """
    found = {}
    for part in parts(text):
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in (*COLUMNS, SIGNED) or not equals or not value:
            known = ", ".join((*COLUMNS, SIGNED))
            raise ValueError(f"{name} must be NAME=COLUMN with names among {known}, got {show(part)}")
        if key in found:
            raise ValueError(f"{name} must give each name once, got {show(text)}")
        found[key] = value
    return found


Renamed = Annotated[
    Mapping[str, str] | None,
    option("NAME=COLUMN,...", "What the file calls its columns, such as t=tokens.", _columns, FIT),
]


@options(FIT)
class WindowOptions:
    """Which curve of a file, and from where to where."""

    layer: Annotated[
        int | None,
        option("K", "Which layer, if the file holds several.", whole(least=-(10**9))),
    ] = None
    columns: Renamed = None
    t_min: Start = None
    t_max: Annotated[float | None, option("T", "End of the fit.", time)] = None

    @property
    def span(self) -> dict[str, Any]:
        """The window, as estimators take it."""
        return {"t_min": self.t_min, "t_max": self.t_max}

    def read(self, path: Path) -> Curve:
        """Return the curve."""
        return Curve.from_csv(demand_file(path), layer=self.layer, columns=self.columns)


def demand_file(path: Path) -> Path:
    """Return the path; `FileNotFoundError` unless there is something to read."""
    if path != STDIO and (path.is_dir() or not path.exists()):
        raise FileNotFoundError(f"FILE must be a table with columns t and distance, and there is none at {path}")
    return path


def exponent(file: CurveFile, /, *, window: WindowOptions = WindowOptions(), output: Output = Output()) -> None:
    """Estimate exponents of a curve in a file.

    A power law is fitted to a window, local exponents -dlogD/dlogt are estimated, and their limit at t to infinity is
    extrapolated where the curve allows it; all with standard errors, and with what the curve could not tell.
    """
    from relaymodel.inference import UnderdeterminedError

    output.check()
    curve = window.read(file)
    Clock.stage("fitting a power law")
    law = rm.fit_power_law(curve, **window.span)
    Clock.stage("estimating local exponents")
    local = rm.estimate_exponent(curve, **window.span)
    Clock.stage("extrapolating the limit at t to infinity")
    limit, found = None, ""
    try:
        limit = rm.extrapolate_exponent(curve, **window.span)
        found = f"alpha = {figured(limit.value, limit.stderr)} (95 %: {limit.lower:.3g} to {limit.upper:.3g})"
    except UnderdeterminedError as error:
        found = str(error)
    columns = {"t": local.t.tolist(), "alpha": local.alpha.tolist(), "stderr": local.stderr.tolist()}
    if not all(map(math.isfinite, (law.value, law.stderr, *columns["alpha"], *columns["stderr"]))):
        raise ValueError(f"{file} must hold a curve that determines an exponent and its error, and it does not")
    caveats = list(dict.fromkeys([*law.caveats, *local.caveats, *(limit.caveats if limit else ())]))
    verdict = "describes the window" if law.adequate else "does not describe the window"
    power, drift = figured(law.value, law.stderr), figured(law.drift, law.drift_stderr)
    output.give(
        columns,
        {**curve.provenance, "source": f"local exponents of {file}"},
        body=[
            f"power law    alpha = {power} from t = {law.window[0]:.6g} to {law.window[1]:.6g}",
            f"             noise alone: {law.noise_stderr:.2g}; a pure power law {verdict} (p = {law.p_value:.2g}),",
            f"             alpha drifts by {drift} from its start to its end",
            f"limit        {found}",
            *(f"note         {caveat}" for caveat in caveats),
            "",
            Listing(columns, {"alpha": 4, "stderr": 2}, thin=True),
        ],
        result={
            "alpha": law.value,
            "stderr": law.stderr,
            "window": list(law.window),
            "adequate": bool(law.adequate),
            "local": columns,
            "limit": None if limit is None else {"value": limit.value, "stderr": limit.stderr},
            **({} if limit else {"limit_reason": found}),
            "caveats": caveats,
        },
        draw=[
            lambda ax: plotting.plot_power_law(curve, law, ax=ax),
            lambda ax: plotting.plot_local_exponent(local, ax=ax),
        ],
    )


def figured(value: float, error: float) -> str:
    """Return value +- error in characters that every terminal has."""
    return figure(value, error).replace("±", "+-")
