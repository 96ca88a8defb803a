"""Networks while they learn: the exponent against training steps."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from relaymodel.checks import show
from relaymodel.networks.training import Training
from relaymodel.plotting.figure import REFERENCE, axes, finish, styled

MARKERS = "osD^"
CLOSEST = 0.09  # of the axis: ticks nearer than this would touch


@styled
def plot_training(
    training: Training, *, layer: int | None = None, arms: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    r"""Plot the exponent against training steps, one line an arm, with standard errors over seeds (THEORY section 7).

    The axis of steps is logarithmic, log(1 + step/s) with s the first step measured after 0, so that step 0 is on it.
    With one seed the errors are over pairs of prompts.  The grey line is alpha = 0: below it the distance grows.

    Parameters
    ----------
    training
        What `train` returns or `Training.read` reads.
    layer
        Which layer; None: the last but one.
    arms
        Which arms; None: plain, with the bias in training, and with the bias added when a plain training is measured,
        as far as they are there.
    ax
        Where to draw; None makes a new figure.

    Raises `ValueError` for arms or layers that were not measured.

    >>> from relaymodel.networks.training.result import Row
    >>> rows = [Row("plain", 0, step, 1, 0.4 + step / 50, 0.01, 16, 480, None, 2.0) for step in (0, 1, 4, 10)]
    >>> plot_training(Training(None, {}, tuple(rows))).get_xlabel()
    'training step'
    """
    ax = axes(ax)
    if not isinstance(training, Training):
        raise TypeError(f"training must be a Training, got {show(training)}")
    known: Mapping[str, str] = LABELS
    chosen = [arm for arm in training.arms if arm in known] if arms is None else list(arms)
    found = [training.alpha(arm, layer=layer) for arm in chosen]
    if not found:
        raise ValueError(f"arms must name at least one of {', '.join(training.arms)}, got none")
    steps = np.unique(np.concatenate([one.steps for one in found]))
    scale = float(steps[steps > 0].min()) if np.any(steps > 0) else 1.0
    for number, one in enumerate(found):
        ax.errorbar(
            one.steps,
            one.alpha,
            yerr=one.stderr,
            marker=MARKERS[number % len(MARKERS)],
            markersize=5.5,
            capsize=3,
            linewidth=1.8,
            label=known.get(one.arm, one.arm),
        )
    ax.axhline(0, label="no decay", **REFERENCE)
    ax.set_xscale("function", functions=(lambda x: np.log1p(x / scale), lambda y: scale * np.expm1(y)))
    ax.set_xlim(-0.08 * scale, steps.max() * 1.1)
    ax.xaxis.set_major_locator(FixedLocator(_ticks(steps, scale)))
    ax.xaxis.set_minor_locator(NullLocator())
    ylabel = rf"exponent $\alpha$ of $t^{{-\alpha}}$, layer {found[0].layer}"
    return finish(ax, xlabel="training step", ylabel=ylabel)


LABELS = {
    "plain": "plain",
    "bias in training": "bias in training",
    "bias at measurement": "bias at measurement only",
}


def _ticks(steps: np.ndarray[tuple[int], np.dtype[np.int64]], scale: float) -> list[float]:
    """Return step 0, the last, and round ones between that do not touch their neighbours."""
    last = float(steps.max())
    place = np.log1p(np.array([0.0, last]) / scale)
    kept = [0.0, last]
    for step in sorted((m * 10**e for e in range(9) for m in (1, 2, 5)), reverse=True):
        if not scale <= step < last:
            continue
        where = np.log1p(step / scale)
        if min(abs(where - np.log1p(other / scale)) for other in kept) > CLOSEST * (place[1] - place[0]):
            kept.append(float(step))
    return sorted(kept)
