"""Local exponents: exact ones of models, and those estimated from curves."""

from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from relaymodel.bounds import rate
from relaymodel.exact import local_exponent
from relaymodel.inference import LocalExponent
from relaymodel.model import RelayModel
from relaymodel.plotting.figure import RED, REFERENCE, Models, against_t, axes, named_models, styled, times


@styled
def plot_local_exponent(
    source: Models | LocalExponent, t: ArrayLike | None = None, *, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot local exponents against t on a logarithmic axis (THEORY section 3).

    Parameters
    ----------
    source
        A model, a list of models or a dictionary {label: model}; or what `estimate_exponent` returns, which is
        drawn as points with bars of one standard error.
    t
        Shape (T,) with models, positive up to 1e300, in tokens; None with an estimate, which has its own.
    label
        What the legend calls an estimate; models are labelled by a dictionary.
    ax
        Where to draw; None makes a new figure.  Drawn into the same axes, both kinds can be compared.

    The dotted lines are the limits 1 + g* of the models.

    >>> from relaymodel import RelayModel
    >>> ax = plot_local_exponent(RelayModel.uniform(prompt=10, depth=6, relay=1), [1e2, 1e4, 1e6])
    >>> ax.get_lines()[0].get_ydata().round(3)
    array([0.342, 0.609, 0.716])
    """
    ax = axes(ax)
    if isinstance(source, LocalExponent):
        if t is not None:
            raise ValueError("t must be None with an estimate, which has its own; pass t to estimate_exponent")
        name = "estimated" if label is None else label
        ax.errorbar(
            source.t, source.alpha, source.stderr, fmt="o", color=RED, ms=4.5, elinewidth=1.6, capsize=2.5, label=name
        )
    else:
        named = named_models(source)
        if t is None:
            raise ValueError("t must be given with models: the continuation tokens to draw at")
        if label is not None:
            raise ValueError("label must be None with models; pass a dictionary {label: model}")
        at = times(t)
        for name, model in named.items():
            ax.plot(at, local_exponent(model, at), label=name)
        for i, limit in enumerate(sorted({_limit(model) for model in named.values()})):
            ax.axhline(limit, label="_" * (i > 0) + r"limit for $t \to \infty$", **REFERENCE)
    return against_t(ax, r"local exponent $\alpha(t) = -d\,\log D\,/\,d\,\log t$", yscale="linear", far=True)


def _limit(model: RelayModel) -> float:
    """Return the limit of the exponent: 1 + g*, or 0 where sinks hold a plateau."""
    if model.plain:
        return float(rate(model).exponent)
    return 0.0 if model.plateau else 1 + float(min(h.position for l in model.layers for h in l.heads if h.relay))
