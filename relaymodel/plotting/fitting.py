"""A relay model fitted to a curve, beside the power law."""

import numpy as np
from matplotlib.axes import Axes

from relaymodel.curve import Curve
from relaymodel.inference import PowerLaw, RelayFit
from relaymodel.plotting.decay import plot_curve
from relaymodel.plotting.figure import BLUE, GREY, ORANGE, RED, against_t, axes, finish, grid, styled


@styled
def plot_fit(curve: Curve, fit: RelayFit, law: PowerLaw | None = None, *, ax: Axes | None = None) -> Axes:
    """Plot a curve and the relay model fitted to a window of it, log-log; with `law`, that power law beside it.

    Both lines continue beyond the window, which is shaded, as far as the curve goes.  A law whose amplitude at t = 1 is
    beyond float64 is left out.

    >>> from relaymodel.inference import fit
    >>> curve = Curve(range(1, 65), [8 / (8 + t) for t in range(1, 65)])
    >>> len(plot_fit(curve, fit(curve, prompt=8, relay=1, depth=None)).get_lines())
    2
    """
    ax = plot_curve({"curve": curve}, ax=ax)
    t = grid(curve.t[0], curve.t[-1])
    if law is not None and 0 < law.amplitude < np.inf:
        label = rf"power law, $\alpha = {law.alpha:.2f}$"
        ax.plot(t, law.amplitude * t**-law.alpha, color=GREY, linestyle=":", scaley=False, label=label)
    ax.plot(t, fit.predict(t), color=RED, linestyle="--", scaley=False, label=_label(fit))
    ax.axvspan(*fit.window, color=ORANGE, alpha=0.13, linewidth=0, label="window of the fit")
    return finish(ax)


@styled
def plot_residuals(curve: Curve, fit: RelayFit, law: PowerLaw | None = None, *, ax: Axes | None = None) -> Axes:
    """Plot the curve divided by the fit, minus 1, over the window; with `law`, divided by that as well.

    >>> from relaymodel.inference import fit
    >>> curve = Curve(range(1, 65), [8 / (8 + t) for t in range(1, 65)])
    >>> ax = plot_residuals(curve, fit(curve, prompt=8, relay=1))
    >>> bool(abs(ax.get_lines()[0].get_ydata()).max() < 1e-6)
    True
    """
    ax = axes(ax)
    part = curve.window(*fit.window)
    ax.plot(part.t, part.distance / fit.predict(part.t) - 1, color=BLUE, linestyle="-", label="relay model")
    if law is not None and 0 < law.amplitude < np.inf:
        ratio = part.distance / (law.amplitude * part.t**-law.alpha) - 1
        ax.plot(part.t, ratio, color=GREY, linestyle=":", label="power law")
    ax.axhline(0, color="black", linewidth=1)
    return against_t(ax, "distance / fit $-$ 1", yscale="linear")


def _label(fit: RelayFit) -> str:
    text = rf"relay model, $\lambda = {fit.relay.value:.3g}$, $L = {fit.depth.value:.3g}$"
    if fit.position.fitted or fit.position.value:
        text += rf", $g = {fit.position.value:.3g}$"
    if fit.bias.fitted or fit.bias.value:
        text += rf", $\beta = {fit.bias.value:.3g}$"
    return text
