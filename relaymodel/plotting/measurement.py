"""Figures of measurements on networks: distances against t, exponents against depth."""

from collections.abc import Mapping, Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from relaymodel.networks.protocol import Measurement
from relaymodel.plotting.figure import REFERENCE, against_t, axes, band, finish, labelled, styled

UNITS = {"euclidean": "units of the residual stream", "relative": "units of the state's norm", "cosine": "1 − cos"}


@styled
def plot_measurement(
    measured: Measurement, layers: Sequence[int] | None = None, *, metric: str = "euclidean", ax: Axes | None = None
) -> Axes:
    """Plot the distances at some layers against t, log-log, with bands of one standard error over pairs.

    The grey line is the dilution P/(P+t), through the first point of the last of these layers.  Tokens that are not
    clear of rounding are left out.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=16, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> plot_measurement(measure(network, ([1, 2], [3, 4], RandomTokens(50)))).get_yscale()
    'log'
    """
    ax = axes(ax)
    if layers is None:
        layers = [layer for layer in measured.curves(metric=metric) if layer]
    curves = {layer: measured.curve(layer, metric=metric) for layer in layers}
    curve = None
    for i, (layer, curve) in enumerate(curves.items()):
        colour = graded_colour(i, len(curves))
        ax.plot(curve.t, curve.distance, label=_name(measured, layer), color=colour, linestyle="-", linewidth=1.6)
        band(ax, curve, colour, alpha=0.2)
    if curve is not None:
        P, power = measured.prompt, 2 if metric == "cosine" else 1
        dilution = (P / (P + curve.t)) ** power
        ax.plot(curve.t, curve.distance[0] * dilution / dilution[0], label="dilution $P/(P+t)$", **REFERENCE)
    return against_t(ax, f"distance between the two runs\n({UNITS[metric]})")


@styled
def plot_layer_exponents(
    measurements: Mapping[str, Measurement],
    *,
    metric: str = "euclidean",
    t_min: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the exponent of each layer, with standard errors over pairs, for one or several measurements {label: ...}.

    The grey line is the exponent of dilution, 1.  Layers without an exponent are left out.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=16, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> measured = measure(network, ([1, 2], [3, 4], RandomTokens(50)))
    >>> plot_layer_exponents({"untrained": measured}).get_xlabel()
    'layer (blocks passed)'
    """
    ax = axes(ax)
    for label, measured in labelled("measurements", measurements, Measurement).items():
        fits, _ = measured.alphas(metric=metric, t_min=t_min)
        ax.errorbar(
            list(fits),
            [fit.value for fit in fits.values()],
            yerr=[fit.noise_stderr for fit in fits.values()],
            marker="o",
            markersize=5,
            capsize=3,
            linewidth=1.4,
            label=label,
        )
    ax.axhline(2 if metric == "cosine" else 1, label="dilution", **REFERENCE)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return finish(ax, xlabel="layer (blocks passed)", ylabel=r"exponent $\alpha$ of $t^{-\alpha}$")


def _name(measured: Measurement, layer: int) -> str:
    return "after the final norm" if layer > measured.depth else f"layer {layer}"


def graded_colour(index: int, count: int) -> tuple[float, float, float, float]:
    """Return a colour from dark to light, which stays legible on white.

    >>> len(graded_colour(0, 3))
    4
    """
    red, green, blue, alpha = colormaps["viridis"](0.85 * index / max(1, count - 1))
    return float(red), float(green), float(blue), float(alpha)
