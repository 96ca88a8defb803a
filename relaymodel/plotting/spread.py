"""How the influence on one token is spread over the tokens before it: position bias and its continuum limits."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from relaymodel.checks import positive_integer
from relaymodel.exact import token_influence
from relaymodel.model import RelayModel
from relaymodel.plotting.figure import BLUE, GREEN, GREY, RED, Array, Models, axes, finish, named_models, styled, tidy
from relaymodel.simulation import token_weights


@styled
def plot_token_influence(models: Models, target: int, *, ax: Axes | None = None) -> Axes:
    """Plot n times the weight of token s on token n against s/n, so that the area is a weight (THEORY section 6).

    Parameters
    ----------
    models
        A model, a list of models, or a dictionary {label: model}; their prompt lengths play no role.
    target
        The token n that reads, an integer of at least 3.
    ax
        Where to draw; None makes a new figure.

    The dot at s = n is the weight of the token on itself, not multiplied by n.

    >>> ax = plot_token_influence(RelayModel.uniform(prompt=1, depth=1, relay=1), 100)  # each 1/n
    >>> sorted(set(ax.get_lines()[0].get_ydata().round(12).tolist()))
    [1.0]
    """
    ax = axes(ax)
    n = positive_integer("target", target, least=3)
    sources = _sources(n)
    lowest = np.inf
    for label, model in named_models(models, prompt=False).items():
        found = _weights(model, np.append(sources, n), n)
        weights, own = n * found[:-1], found[-1]
        (line,) = ax.plot(sources / n, weights, label=label)
        ax.plot([1], [own], color=line.get_color(), linestyle="", marker="o", markersize=9, clip_on=False)
        lowest = min(lowest, weights.min(), own)
    ax.plot([], [], color=GREY, linestyle="", marker="o", markersize=9, label="weight of token $n$ on itself")
    ax.set(yscale="log" if lowest > 0 else "linear", xlim=(-0.02, 1.02))
    where = f"relative position of the source $s/n$,  $n = {tidy(n)}$"
    return finish(ax, xlabel=where, ylabel=r"$n \times$ weight of token $s$ on token $n$")


def _weights(model: RelayModel, sources: NDArray[np.int64], n: int) -> Array:
    """Return the weights of the sources on n; heads with a decay have them as a whole row only."""
    if any(head.decay < 1 for layer in model.layers for head in layer.heads):
        return token_weights(model, n)[sources - 1]
    return token_influence(model, sources, n)


@styled
def plot_continuum(model: RelayModel, target: int, *, ax: Axes | None = None) -> Axes:
    """Plot exact token weights against their continuum densities q(r), r = s/n, log-log (THEORY section 6).

    The dashed line is the limit n to infinity at this depth, for position 0 a Laguerre polynomial in log 1/r.
    The dotted one, for equal layers with residual 1, is that of infinitely many layers of the same total strength.

    Parameters
    ----------
    model
        Any model with a relaying layer; its prompt length plays no role.
    target
        The token n that reads, an integer of at least 3.
    ax
        Where to draw; None makes a new figure.

    >>> len(plot_continuum(RelayModel.uniform(prompt=1, depth=12, relay=0.5), 10**6).get_lines())
    3
    """
    from relaymodel.derivation import derive, infinite_depth_density

    ax = axes(ax)
    n = positive_integer("target", target, least=3)
    sources = _sources(n)
    ax.plot(sources / n, n * token_influence(model, sources, n), color=BLUE, label=f"exact, $n = {tidy(n)}$")
    r = np.geomspace(1 / n, 1 - 1 / n, 48)
    kind = "Laguerre" if all(g == 0 for _, _, g in model.rational) else "powers of $r$ and $\\log\\,r$"
    label = rf"$n \to \infty$, $L = {model.depth}$ ({kind})"
    model.demand_plain("the continuum density")
    ax.plot(r, _density(derive(model).continuum_density, r), color=RED, linestyle="--", label=label)
    relay, residual, g = model.rational[0]
    if len(set(model.rational)) == 1 and residual == 1 and relay > 0:
        limit = infinite_depth_density(model.depth * relay, position=g)
        ax.plot(r, _density(limit, r), color=GREEN, linestyle=":", label=r"$n, L \to \infty$ (Bessel)")
    ax.set(xscale="log", yscale="log")
    where = "relative position of the source $r = s/n$"
    return finish(ax, xlabel=where, ylabel="density of the influence (per unit of $r$)")


def _density(limit: Any, r: Array) -> list[float]:
    """Return the values (R,) of a `derivation.Density`."""
    return [float(limit.density.evalf(17, subs={limit.variable: x})) for x in r.tolist()]


def _sources(n: int) -> NDArray[np.int64]:
    """Return tokens 1..n-1 to draw at, dense at both ends on a linear and on a logarithmic axis."""
    near = np.geomspace(1, n - 1, 200)
    return np.unique(np.concatenate([near, n - near, np.linspace(1, n - 1, 200)]).round().astype(np.int64))
