"""Figures of what else a pass shows: predictions of the next token, attention, responses to single tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from relaymodel.curve import Curve
from relaymodel.networks.protocol import Measurement
from relaymodel.plotting.figure import REFERENCE, against_t, axes, band, finish, styled
from relaymodel.plotting.measurement import graded_colour

DIVERGENCE_LABELS = {
    "total_variation": "total variation",
    "jensen_shannon": "Jensen–Shannon (nats)",
    "kl": "Kullback–Leibler (nats)",
}


CELLS = 8  # in a factor of 2 of t: single tokens scatter by a factor of 10 with what the text says there


def _in_cells(curve: Curve) -> Curve:
    """Return the geometric means of a curve over cells of log t, with its errors over pairs."""
    cell = np.floor(CELLS * np.log2(curve.t)).astype(np.int64)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    counts = np.diff(starts, append=len(curve))

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(np.add.reduceat(np.log(values), starts, axis=-1) / counts))

    if curve.pairs is None:
        return Curve(mean(curve.t), mean(curve.distance))
    pairs = mean(curve.pairs)
    error = np.log(pairs).std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return Curve(mean(curve.t), mean(curve.distance), error * mean(curve.distance), pairs=pairs)


@styled
def plot_next_token(
    measured: Measurement, kinds: Sequence[str] = tuple(DIVERGENCE_LABELS), ax: Axes | None = None
) -> Axes:
    """Plot how the predictions of the next token differ against t, log-log, with bands of one standard error.

    Geometric means over cells of log t, eight in each factor of 2.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> network = Transformer.random(Architecture(2, 32, 4, vocabulary=16, positions="none"), np.random.default_rng(0))
    >>> pairs = [1, 2], [3, 4], RandomTokens(50)
    >>> plot_next_token(measure(network, pairs, instruments=["next_token"])).get_xscale()
    'log'
    """
    ax = axes(ax)
    for kind in kinds:
        curve = _in_cells(measured.next_token.curve(kind))
        (line,) = ax.plot(curve.t, curve.distance, label=DIVERGENCE_LABELS.get(kind, "|Δ log p| (nats)"), linewidth=1.6)
        band(ax, curve, line.get_color())
    against_t(ax, "between the two runs' predictions")
    return finish(ax)


@styled
def plot_attention(
    measured: Measurement, *, layer: int | None = None, head: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the shares of attention on the prompt, the first token and the token itself against t, log-log.

    The mean over heads and layers unless one is named; the grey line is P/(P+t), uniform attention's on the prompt.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> network = Transformer.random(Architecture(2, 32, 4, vocabulary=16, positions="none"), np.random.default_rng(0))
    >>> pairs = [1, 2], [3, 4], RandomTokens(50)
    >>> len(plot_attention(measure(network, pairs, instruments=["attention"])).get_lines())
    4
    """
    ax = axes(ax)
    found = measured.attention
    for part, label in (("prompt", "prompt"), ("first", "first token"), ("own", "the token itself")):
        curve = found.curve(part, layer=layer, head=head)
        (line,) = ax.plot(curve.t, curve.distance, label=label, linewidth=1.6)
        band(ax, curve, line.get_color())
    uniform = found.prompt / (found.prompt + found.t)
    ax.plot(found.t, uniform, label="$P/(P+t)$", **REFERENCE)
    against_t(ax, "share of the attention")
    return finish(ax)


@styled
def plot_profile(
    measured: Measurement, *, layer: int | None = None, head: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the density of attention over relative position u = s/n, one line for each factor of 2 in n.

    Where attention is a function of u (THEORY section 10) the lines lie on each other.  Without the token itself and
    the sink; uniform attention is the grey line at 1.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> network = Transformer.random(Architecture(2, 32, 4, vocabulary=16, positions="none"), np.random.default_rng(0))
    >>> pairs = [1, 2], [3, 4], RandomTokens(250)
    >>> len(plot_profile(measure(network, pairs, instruments=["attention"])).patches)
    2
    """
    ax = axes(ax)
    collapse = measured.attention.collapse(layer, head)
    edges = measured.attention.edges
    for i, (n, profile) in enumerate(zip(collapse.n, collapse.profiles, strict=True)):
        density = profile / np.diff(edges)
        label = f"$n = {n // 2}..{n}$"
        ax.stairs(density, edges, baseline=None, label=label, color=graded_colour(i, len(collapse.n)), linewidth=1.6)
    ax.axhline(1, label="uniform", **REFERENCE)
    ax.set(xlabel="relative position of the key $u = s/n$", ylabel="density of attention", yscale="log", xlim=(0, 1))
    return finish(ax)


@styled
def plot_response(measured: Measurement, layers: Sequence[int] | None = None, ax: Axes | None = None) -> Axes:
    """Plot the response to a change of one token against the number of tokens since, log-log, at some layers.

    >>> import numpy as np
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> from relaymodel.networks.protocol import RandomTokens, measure
    >>> network = Transformer.random(Architecture(2, 32, 4, vocabulary=16, positions="none"), np.random.default_rng(0))
    >>> pairs = [1, 2], [3, 4], RandomTokens(50)
    >>> plot_response(measure(network, pairs, instruments=["response"]), [1, 2]).get_yscale()
    'log'
    """
    ax = axes(ax)
    shown = [(measured.depth + 1) // 2, measured.depth] if layers is None else list(layers)
    for i, layer in enumerate(shown):
        curve, colour = measured.response.profile(layer), graded_colour(i, len(shown))
        ax.plot(curve.t, curve.distance, label=f"layer {layer}", color=colour, linestyle="-", linewidth=1.6)
        band(ax, curve, colour)
    against_t(ax, r"response $|J_{ns}\delta_s|/|\delta_s|$")
    ax.set_xlabel("tokens since the changed one, $n - s + 1$")
    return finish(ax)
