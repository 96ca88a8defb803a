"""Networks: what was measured on them, beside what was predicted."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from relaymodel.checks import show
from relaymodel.networks.calibration import Calibration
from relaymodel.networks.protocol import Measurement
from relaymodel.plotting.figure import against_t, axes, band, styled

MOST_LAYERS = 4  # layers drawn unless others are asked for


@styled
def plot_prediction(
    calibration: Calibration,
    measurement: Measurement,
    *,
    layers: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot the distance measured at several layers, and predicted from the weights, log-log (THEORY section 5).

    Measured is the geometric mean over pairs, with a band of one standard error over pairs; the predictions are the
    black dashes.  Distances are in the network's own units: nothing is scaled.

    Parameters
    ----------
    calibration, measurement
        What `calibrate` and `measure` return for the same network and prompts.
    layers
        Which layers, each measured; None: up to four, from the first to the last block.
    ax
        Where to draw; None makes a new figure.

    `ValueError` for different prompt lengths or depths, and for layers that were not measured.

    >>> from relaymodel.networks.calibration import calibrate
    >>> from relaymodel.networks.protocol import measure
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> texts = "To be, or not", "All the world", "to be, that is the question"
    >>> len(plot_prediction(calibrate(network, texts), measure(network, texts)).get_lines())
    4
    """
    ax = axes(ax)
    for name, item, kind in (("calibration", calibration, Calibration), ("measurement", measurement, Measurement)):
        if not isinstance(item, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {show(item)}")
    for name in ("prompt", "depth"):
        mine, other = getattr(calibration, name), getattr(measurement, name)
        if mine != other:
            raise ValueError(f"calibration and measurement must have one {name}, got {mine} and {other}")
    blocks = [layer for layer in measurement.layers if 1 <= layer <= measurement.depth]
    if layers is None:
        places = np.linspace(0, len(blocks) - 1, min(MOST_LAYERS, len(blocks))).round().astype(int)
        layers = [blocks[place] for place in places]
    if not layers or any(layer not in blocks for layer in layers):
        raise ValueError(f"layers must be among the blocks measured, {', '.join(map(str, blocks))}, got {show(layers)}")
    curves = {layer: measurement.curve(layer) for layer in sorted(layers, reverse=True)}  # the legend in their order
    for layer, curve in curves.items():
        label = f"measured, layer {layer}"
        (line,) = ax.plot(curve.t, curve.distance, linestyle="-", linewidth=3, alpha=0.65, label=label)
        band(ax, curve, line.get_color())
    for number, (layer, curve) in enumerate(curves.items()):
        label = "_" * (number > 0) + "predicted"
        predicted = calibration.predict(layer, curve.t)
        ax.plot(curve.t, predicted, color="black", linestyle=(0, (4, 2)), linewidth=1.4, label=label)
    return against_t(ax, "distance between the two runs")
