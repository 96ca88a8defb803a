"""One self-contained HTML file, joined from the template beside this module."""

import json
import re
from collections.abc import Mapping
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import numpy as np

from relaymodel import files
from relaymodel.checks import show
from relaymodel.curve import Curve
from relaymodel.explore.setting import LAST, RANGES, Setting

CURVE_POINTS, LEAST_CURVE = 400, 24
"""Most points of a curve, and fewest where there are many curves."""
ALL_POINTS = 6000
"""Points of all curves together, so that the page stays small."""
MOST_CURVES, SHOWN_CURVES = 100, 6
"""Most curves, and how many of them are drawn at first."""


def write_page(
    out: files.PathLike,
    *,
    curves: Curve | Mapping[str, Curve] | None = None,
    setting: Setting | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a page on which the model's D(t) and alpha(t) follow sliders (THEORY sections 1-4, 7 and 10).

    The page is one HTML file below 400 kB that asks nothing of any server: it opens from a mail and on a phone.  Its
    curves are computed in the browser, in float64: the closed form where there is one, otherwise the recursion to
    t = 10^5; they agree with `influence` and `simulate` to 1e-6.

    Parameters
    ----------
    out
        The file.
    curves
        Measured curves to lay over the model's: one, or several by name, at most 100.  They are moved up or down to
        meet the model, which leaves their slopes as they are.  Of more than 400 points (fewer, if there are many
        curves), those nearest to a grid equal in log t are kept.
    setting
        Where the sliders stand at first.
    overwrite
        Replace a file that is there.

    Raises
    ------
    OSError
        If the file exists (`FileExistsError`) or cannot be written.
    TypeError, ValueError
        For curves and a setting that cannot be shown.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder) / "page.html", setting=Setting(depth=6)).name
    'page.html'
    """
    target = files.claim(out, overwrite=overwrite)
    return files.write_text(target, render(curves=curves, setting=setting), overwrite=overwrite)


def render(*, curves: Curve | Mapping[str, Curve] | None = None, setting: Setting | None = None) -> str:
    """Return the page as text; arguments as for `write_page`.

    >>> "</html>" in render()
    True
    """
    chosen = Setting() if setting is None else setting
    if not isinstance(chosen, Setting):
        raise TypeError(f"setting must be a relaymodel.explore.Setting, got {show(setting)}")
    data = {"setting": chosen.to_dict(), "bounds": RANGES, "last": LAST, "curves": _curves(curves)}
    folder = resources("relaymodel.explore")
    # what ends a script must not stand in a curve's name
    parts = {"data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")}

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        return parts.get(name) or folder.joinpath(name).read_text(encoding="utf-8").strip()

    return re.sub(r"\{\{([a-z.]+)\}\}", fill, folder.joinpath("page.html").read_text(encoding="utf-8"))


def _curves(curves: Curve | Mapping[str, Curve] | None) -> list[dict[str, Any]]:
    """Return what the page's script draws of the measured curves."""
    named = {"measured": curves} if isinstance(curves, Curve) else dict(curves or {})
    for name, curve in named.items():
        if not isinstance(curve, Curve):
            raise TypeError(f"curves must be Curve objects by name, got {show(curve)} for {show(name)}")
        if not np.any(curve.t <= LAST):
            raise ValueError(f"curves must have points up to t = {LAST}, where the page ends, got none in {show(name)}")
    if len(named) > MOST_CURVES:
        raise ValueError(f"curves must be at most {MOST_CURVES}, got {len(named)}; choose some of the layers")
    points = max(LEAST_CURVE, min(CURVE_POINTS, ALL_POINTS // max(1, len(named))))
    # with more curves than can be told apart, first and last and those evenly between
    shown = {round(i) for i in np.linspace(0, len(named) - 1, min(SHOWN_CURVES, len(named)))}
    return [
        {"name": str(name), "shown": i in shown, **_thinned(curve, points)}
        for i, (name, curve) in enumerate(named.items())
    ]


def _thinned(curve: Curve, points: int) -> dict[str, list[float]]:
    """Return t and distance of about that many points of a curve up to LAST, equal in log t, to seven digits."""
    t = curve.t[curve.t <= LAST]
    kept = np.arange(t.size)
    if t.size > points:
        x, grid = np.log(t), np.linspace(np.log(t[0]), np.log(t[-1]), points)
        right = np.searchsorted(x, grid).clip(1, t.size - 1)
        kept = np.unique(right - (grid - x[right - 1] < x[right] - grid))
    return {
        name: [float(f"{value:.7g}") for value in values[kept]]
        for name, values in (("t", t), ("distance", curve.distance[: t.size]))
    }
