"""The two-sided bound, how tight it is, and the rate that it attains."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from relaymodel.bounds import bracket, rate, tightness_bound
from relaymodel.exact import influence
from relaymodel.model import RelayModel
from relaymodel.plotting.figure import (
    BLUE,
    RED,
    REFERENCE,
    SKY,
    Models,
    against_t,
    axes,
    named_models,
    styled,
    times,
)


@styled
def plot_bracket(model: RelayModel, t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Plot both sides of the bound divided by D(t), which lies between them (THEORY section 4).

    `t` has shape (T,), positive up to 1e300, in tokens.  Errors as `bracket`.

    >>> ax = plot_bracket(RelayModel.uniform(prompt=10, depth=6, relay=1), [1e0, 1e3, 1e6])
    >>> bool((ax.get_lines()[0].get_ydata() >= 1).all())
    True
    """
    ax, at = axes(ax), times(t)
    sides, D = bracket(model, at), influence(model, at)
    ax.fill_between(at, sides.lower / D, sides.upper / D, color=SKY, alpha=0.3, linewidth=0)
    ax.plot(at, sides.upper / D, color=RED, linestyle="--", label="upper bound $/\\ D(t)$")
    ax.plot(at, sides.lower / D, color=BLUE, linestyle="-.", label="lower bound $/\\ D(t)$")
    ax.axhline(1, color="black", linewidth=1.6, label="exact value $D(t)\\ /\\ D(t)$")
    ax.ticklabel_format(axis="y", useOffset=False)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, 1 - 1e-6), max(high, 1 + 1e-6))  # rounding is not worth a picture
    return against_t(ax, "bound divided by the exact value", yscale="linear", far=True)


@styled
def plot_tightness(models: Models, t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    r"""Plot the relative width of the bracket, upper/lower - 1, log-log (THEORY section 4).

    The thin line of each model is its proven limit $\exp\frac{(L-1)(L-2)}{2(P+1)p_1} - 1$, drawn where
    it is within three times the largest width.  Arguments as `plot_influence`.  For depth 1 and 2 both sides are
    equal, and there is nothing to draw: at least one model must be deeper.
    """
    ax, at = axes(ax), times(t)
    named = {label: model for label, model in named_models(models).items() if model.depth > 2}
    if not named:
        raise ValueError("models must hold one of depth 3 or more: for depth 1 and 2 both sides are equal")
    widest = 0.0
    for label, model in named.items():
        width = bracket(model, at).tightness - 1
        (line,) = ax.plot(at, width, label=label)
        widest = max(widest, 3 * width.max())
        proven = np.array([float(tightness_bound(model, x)) - 1 if x >= 1 else np.nan for x in at.tolist()])
        ax.plot(at, np.where(proven < widest, proven, np.nan), color=line.get_color(), linestyle=":", linewidth=1.4)
    ax.plot([], [], label=r"proven limits, $\exp\,\frac{(L-1)(L-2)}{2\,(P+1)\,p_1} - 1$", **REFERENCE)
    return against_t(ax, "relative width, upper / lower $-$ 1", far=True)


@styled
def plot_rate(models: Models, t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Plot D(t) divided by its leading term, for position 0 A P (log t)^(L-1)/t; it tends to 1 (THEORY section 3).

    Arguments as `plot_influence`, with t > 1.

    >>> ax = plot_rate(RelayModel.uniform(prompt=1, depth=1, relay=1), [9, 99, 999])  # t/(1 + t)
    >>> ax.get_lines()[0].get_ydata()
    array([0.9  , 0.99 , 0.999])
    """
    ax, at = axes(ax), times(t)
    for label, model in named_models(models).items():
        leading = rate(model)
        ax.plot(at, influence(model, at) / [float(leading.ball(x, digits=17)) for x in at.tolist()], label=label)
    ax.axhline(1, label=r"limit for $t \to \infty$", **REFERENCE)
    return against_t(ax, "$D(t)$ divided by its leading term", far=True)
