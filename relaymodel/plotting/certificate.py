"""The certificate of a network: its bounds above the distances that were measured."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from relaymodel.certificate import Certificate
from relaymodel.checks import show
from relaymodel.plotting.figure import against_t, axes, styled

DEFAULT = ("hypotheses", "prompts", "smallest_prompts")
MOST_DECADES = 300.0  # decades that an axis can show


@styled
def plot_certificate(
    certificate: Certificate,
    *,
    rungs: Sequence[str] = DEFAULT,
    layer: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Plot bounds of a certificate and the measured distance against t, log-log (THEORY section 8).

    By default the bound a priori (weights, floors and omega: for every text that meets these), the bound a posteriori
    (what the blocks do in these two runs) and the smallest relay layers above the measurement.

    Parameters
    ----------
    certificate
        What `certify` returns.
    rungs
        Names of rungs of its ladder.
    layer
        Behind which block; None: the last.
    ax
        Where to draw; None makes a new figure.

    `ValueError` for rungs and layers that it has not, for distances of exactly 0, and for bounds beyond 10^300.

    >>> from relaymodel.certificate import certify, sharp_network
    >>> certificate = certify(sharp_network(2), ([1, 1], [0, 0], [0] * 20))
    >>> [line.get_label() for line in plot_certificate(certificate).get_lines()]
    ['hypotheses', 'prompts', 'smallest prompts', 'measured']
    """
    ax = axes(ax)
    if not isinstance(certificate, Certificate):
        raise TypeError(f"certificate must be a Certificate, got {show(certificate)}")
    if not rungs:
        raise ValueError("rungs must name at least one rung, got none")
    measured = certificate.distance(layer)
    if not np.all(measured > 0):
        raise ValueError(f"the runs must differ at layer {show(layer)} to be drawn against log t; choose another layer")
    t = certificate.t
    for name in rungs:
        bound = certificate.log10_bound(name, layer)
        if np.max(bound) > MOST_DECADES:
            raise ValueError(f"rungs must be at most 10^300 to be drawn, {name!r} is 10^{np.max(bound):.0f}")
        ax.plot(t, 10**bound, label=name.replace("_", " "))
    ax.plot(t, measured, color="black", linestyle="-", linewidth=1.6, label="measured")
    return against_t(ax, "distance between the two runs")
