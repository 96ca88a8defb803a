"""How the influence decays: exact values, simulated and measured curves, power laws."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from relaymodel.checks import demand, show
from relaymodel.curve import Curve
from relaymodel.exact import influence
from relaymodel.inference import PowerLaw
from relaymodel.model import RelayModel
from relaymodel.plotting.figure import (
    BLUE,
    ORANGE,
    RED,
    REFERENCE,
    SKY,
    Models,
    against_t,
    axes,
    band,
    finish,
    labelled,
    named_models,
    styled,
    times,
)

D_LABEL = "influence $D(t)$ (units of the\nprompts' per-token difference)"


@styled
def plot_influence(models: Models, t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Plot D(t) of one or several models, log-log, beside the dilution P/(P+t) (THEORY section 1).

    Parameters
    ----------
    models
        A model, a list of models, or a dictionary {label: model}.
    t
        Shape (T,): positive numbers up to 1e300, in tokens.
    ax
        Where to draw; None makes a new figure.

    Where D is negative, its size is drawn, and the axis says so.  `ValueError` for an influence of exactly 0.

    >>> plot_influence(RelayModel.uniform(prompt=64, depth=6, relay=1), [1, 100, 10000]).get_xscale()
    'log'
    """
    ax, at = axes(ax), times(t)
    named = named_models(models)
    label_y = D_LABEL
    for label, model in named.items():
        D = influence(model, at)
        demand("the influence", D, D != 0, "other than 0 on a logarithmic axis")
        if np.any(D < 0):
            label_y = D_LABEL.replace("D(t)", "|D(t)|")
        ax.plot(at, np.abs(D), label=label)
    for i, prompt in enumerate(sorted({model.prompt for model in named.values()})):
        ax.plot(at, prompt / (prompt + at), label="_" * (i > 0) + "dilution $P/(P+t)$", **REFERENCE)
    return against_t(ax, label_y)


@styled
def plot_curve(curves: Curve | Mapping[str, Curve], *, ax: Axes | None = None) -> Axes:
    r"""Plot the distances of one curve, or of a dictionary {label: curve}, log-log, with bands of one standard error.

    The band is $D\,e^{\pm\sigma/D}$, which stays positive.  Distances are in the curve's own unit.

    >>> len(plot_curve(Curve([1, 2, 4], [4, 2, 1], stderr=[1, 0.5, 0.5])).collections)
    1
    """
    ax = axes(ax)
    if not isinstance(curves, (Curve, Mapping)):
        raise TypeError(f"curves must be a Curve or a dictionary {{label: Curve}}, got {show(curves)}")
    named = labelled("curves", {"_": curves} if isinstance(curves, Curve) else curves, Curve)
    for label, curve in named.items():
        few = len(curve) <= 100
        (line,) = ax.plot(curve.t, curve.distance, label=label, marker="o" if few else "", markersize=5)
        band(ax, curve, line.get_color())
    return against_t(ax, "distance between the two runs")


@styled
def plot_difference(curve: Curve, model: RelayModel, *, ax: Axes | None = None) -> Axes:
    """Plot how far a curve is from a model's exact values, |distance/|D| - 1|, log-log.

    Where there is no difference, the dots lie at the lower end in another colour.  The line is the spacing of float64
    numbers at 1.

    >>> model = RelayModel.uniform(prompt=1, depth=1, relay=1)
    >>> plot_difference(Curve([1, 3], [0.52, 0.26]), model).get_lines()[0].get_ydata().round(2)
    array([0.04, 0.04])
    """
    ax = axes(ax)
    difference = np.abs(curve.distance / np.abs(influence(model, curve.t)) - 1)
    some = difference > 0
    bottom = min(1e-17, difference[some].min(initial=1) / 4)
    dots: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5}
    ax.plot(curve.t[some], difference[some], color=BLUE, label="_", **dots)
    if not some.all():
        ax.plot(curve.t[~some], np.full(np.sum(~some), bottom), color=SKY, label="no difference", **dots)
    ax.axhline(2.0**-52, label="spacing of float64 numbers", **REFERENCE)
    ax.set_ylim(bottom / 2, max(10 * difference.max(), 1e-14))
    return against_t(ax, "relative difference from the exact value")


@styled
def plot_power_law(curve: Curve, fit: PowerLaw, *, ax: Axes | None = None) -> Axes:
    """Plot a curve and the power law fitted to a window of it, log-log, the window shaded.

    `fit` is what `fit_power_law` returns.  The thin line continues it beyond its window.
    """
    ax = plot_curve({"curve": curve}, ax=ax)
    inside = np.array(fit.window)
    label = rf"$t^{{-\alpha}}$, $\alpha = {fit.alpha:.3f} \pm {fit.stderr:.3f}$"
    if not 0 < fit.amplitude < np.inf:
        raise ValueError(f"fit must have an amplitude within float64 to be drawn, got {fit.amplitude:.3g}")
    line = fit.amplitude * curve.t**-fit.alpha
    ax.plot(curve.t, line, color=RED, linestyle=(0, (2, 2)), linewidth=1.2, scaley=False)
    ax.plot(inside, fit.amplitude * inside**-fit.alpha, color=RED, linestyle="--", label=label)
    ax.axvspan(*fit.window, color=ORANGE, alpha=0.13, linewidth=0, label="window of the fit")
    return finish(ax)
