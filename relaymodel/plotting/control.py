"""What stops the decay: prompt bias, reminders, and the phases of strength and depth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from relaymodel.checks import show
from relaymodel.control import (
    PhaseDiagram,
    bias_limit,
    biased_influence,
    reminder_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.control.limits import PHASES, REVERSAL
from relaymodel.exact import influence
from relaymodel.model import RelayModel
from relaymodel.plotting.decay import D_LABEL
from relaymodel.plotting.figure import GREY, REFERENCE, against_t, axes, finish, styled, tidy, times
from relaymodel.simulation import ConstantShare, EvenReminders, PromptBias, ReminderBlocks, Reminders

Bias = PromptBias | ConstantShare
Schedule = Reminders | EvenReminders | ReminderBlocks

PALE = ("#F3C9A6", "0.86", "#A9CFE8")  # of RED, GREY and BLUE, on which black lines and letters are legible


@styled
def plot_bias(model: RelayModel, biases: Bias | Mapping[str, Bias], t: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """Plot D(t) under one prompt bias, or several {label: bias}, with limits and turns (THEORY section 7).

    Both axes are logarithmic, that of D linear if all values are within a factor of three.

    A dotted line is the limit of a curve that has one other than 0, a dot the point at which a curve turns.  `t` has
    shape (T,), from 1 to 1e300, in tokens, and is rounded to whole ones.  Errors as `biased_influence`, and
    `ValueError` for an influence that is not positive.

    >>> model = RelayModel.uniform(prompt=64, depth=6, relay=0.5)
    >>> ax = plot_bias(model, {"share one quarter": ConstantShare(0.25)}, [1, 100, 10000])
    >>> ax.get_lines()[0].get_ydata().round(6)  # 1.5^6 - 1.375^6
    array([4.632656, 4.632656, 4.632656])
    """
    ax, at = axes(ax), _whole(t)
    named = {_bias_label(biases): biases} if isinstance(biases, (PromptBias, ConstantShare)) else biases
    if not isinstance(named, Mapping):
        raise TypeError(f"biases must be a PromptBias, a ConstantShare or a dictionary of them, got {show(biases)}")
    limits, least, most = False, np.inf, 0.0
    for label, bias in named.items():
        D = biased_influence(model, bias, at)
        if np.any(D <= 0):
            raise ValueError(f"the influence must be positive on a logarithmic axis, got {D.min():.6g} under {label}")
        (line,) = ax.plot(at, D, label=label)
        least, most = min(least, D.min()), max(most, D.max())
        if isinstance(bias, PromptBias) and bias.strength < 0:
            continue
        limit = bias_limit(model, bias)
        if limit.limit:
            ax.axhline(float(limit.limit), color=line.get_color(), linestyle=":", linewidth=1.4)
            limits, least, most = True, min(least, limit.limit), max(most, limit.limit)
        if limit.phase == REVERSAL:
            turn = turning_point(model, bias)
            if at[0] <= turn.t <= at[-1]:
                ax.plot(turn.t, turn.influence, color=line.get_color(), marker="o", markersize=8, linestyle="")
    if limits:
        ax.plot([], [], label=r"limits for $t \to \infty$", **REFERENCE)
    return against_t(ax, D_LABEL, yscale="log" if most > 3 * least else "linear")


@styled
def plot_reminders(
    model: RelayModel,
    reminders: Schedule | Mapping[str, Schedule],
    t: ArrayLike,
    *,
    level: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot D(t) with one schedule of reminders, or several {label: schedule}, log-log, and without (THEORY section 7).

    A dotted line is the plateau of a schedule that has one; `level` draws a line to be held.  Drawn are the tokens that
    are no reminders themselves, which have more.  `t` has shape (T,), in tokens, and is rounded to whole ones; errors
    as `reminder_influence`.

    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=1)
    >>> ax = plot_reminders(model, Reminders(every=64, length=8), [1, 10, 100, 1000])
    >>> len(ax.get_lines()[0].get_ydata())
    4
    """
    ax, at = axes(ax), _whole(t)
    one = isinstance(reminders, (Reminders, EvenReminders, ReminderBlocks))
    named: dict[str, Any] = {_schedule_label(reminders): reminders} if one else dict(reminders)  # type: ignore[arg-type]
    plateaus = False
    for label, schedule in named.items():
        blocks = schedule.intervals(int(at[-1]))
        inside = np.searchsorted(blocks[:, 0], at, side="right") - 1
        ordinary = (inside < 0) | (at > np.append(blocks[:, 1], 0)[inside])
        drawn = at[ordinary] if ordinary.any() else at
        (line,) = ax.plot(drawn, reminder_influence(model, schedule, drawn), label=label)
        plateau = float(reminder_limit(model, schedule).between)
        if plateau > 0:
            ax.axhline(plateau, color=line.get_color(), linestyle=":", linewidth=1.4)
            plateaus = True
    ax.plot(at, influence(model, at), color="black", linestyle=(0, (4, 2, 1, 2)), linewidth=1.6, label="no reminders")
    if plateaus:
        ax.plot([], [], label=r"plateaus, $(f(1) - \prod\rho)\,R/M$", **REFERENCE)
    if level is not None:
        ax.axhline(level, color=GREY, linestyle="-", linewidth=1.2, label=f"level to hold, {level:.4g}")
    return against_t(ax, D_LABEL)


@styled
def plot_phase_diagram(diagram: PhaseDiagram, *, ax: Axes | None = None) -> Axes:
    """Plot the phases of a `PhaseDiagram`: strength across, depth or recency upwards, contours of the local exponent.

    The black line at strength 1 is the boundary for t to infinity.  Errors: `ValueError` for fewer than two strengths.

    >>> from relaymodel.control import phase_diagram
    >>> diagram = phase_diagram(RelayModel.uniform(prompt=64, depth=3, relay=1), [0, 1, 2], horizon=1000)
    >>> plot_phase_diagram(diagram).get_ylabel()
    'depth $L$ (layers)'
    """
    ax = axes(ax)
    if not isinstance(diagram, PhaseDiagram):
        raise TypeError(f"diagram must be a PhaseDiagram, got {show(diagram)}")
    beta = diagram.strengths
    if beta.size < 2:
        raise ValueError(f"diagram must have at least two strengths to be drawn, got {beta.size}")
    by_depth = diagram.recencies is None
    rows = np.arange(1.0, diagram.model.depth + 1) if diagram.recencies is None else diagram.recencies
    index = np.array([PHASES.index(phase) for phase in diagram.phases.ravel()]).reshape(diagram.phases.shape)
    colours = ListedColormap(list(PALE))
    ends = _edges(rows, outside=by_depth)
    ax.pcolormesh(_edges(beta), ends, index, cmap=colours, vmin=-0.5, vmax=len(PHASES) - 0.5)
    if rows.size > 1:
        levels = [-0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 0.6, 0.9]
        lines = ax.contour(beta, rows, diagram.exponents, levels, colors=GREY, linewidths=1.4, linestyles="solid")
        ax.clabel(lines, fmt="%g", fontsize=11)
    ax.axvline(1, color="black", linestyle="--", linewidth=2)
    ax.set(
        xlabel=r"strength $\beta$ of the prompt bias", ylabel="depth $L$ (layers)" if by_depth else r"recency $\gamma$"
    )
    ax.set(xlim=(beta[0], beta[-1]), ylim=(ends[0], ends[-1]))
    if by_depth:
        step = max(1, -(-rows.size // 8))
        ax.set_yticks(rows[step - 1 :: step])
    ax.grid(False)
    seen = [Patch(facecolor=colour, label=phase) for colour, phase in zip(PALE, PHASES, strict=True)]
    (boundary,) = ax.plot([], [], color="black", linestyle="--", linewidth=2)
    (contour,) = ax.plot([], [], color=GREY, linewidth=1.4)
    handles = [*seen, boundary, contour]
    names = [*PHASES, r"boundary for $t \to \infty$", f"local exponent at $t = {tidy(diagram.horizon)}$"]
    ax.legend(handles, names, loc="lower left", bbox_to_anchor=(-0.02, 1.0), borderaxespad=0.2, ncols=2)
    return ax


def _edges(centres: Any, *, outside: bool = False) -> Any:
    """Return the edges between cells; the first and last cell end at their centre, or as far `outside` as inside."""
    middle = 0.5 * (centres[1:] + centres[:-1])
    first, last = (centres[0] - 0.5, centres[-1] + 0.5) if outside or centres.size == 1 else (centres[0], centres[-1])
    return np.concatenate([[first], middle, [last]])


def _whole(t: ArrayLike) -> Any:
    """Return whole tokens, in increasing order, each once."""
    return np.unique(np.maximum(1.0, np.rint(times(t))))


def _bias_label(bias: Bias) -> str:
    if isinstance(bias, ConstantShare):
        return f"share $c = {tidy(float(bias.share))}$"
    offset = f", offset ${tidy(float(bias.offset))}$" if bias.offset else ""
    return rf"strength $\beta = {tidy(float(bias.strength))}$" + offset


def _schedule_label(reminders: Any) -> str:
    if isinstance(reminders, Reminders):
        return f"$R = {reminders.length}$ in every $M = {tidy(reminders.every)}$"
    if isinstance(reminders, EvenReminders):
        return f"${tidy(float(reminders.density))}$ of all tokens, evenly"
    return f"{reminders.count} reminder tokens"


@styled
def plot_scaling_phases(points: Mapping[str, tuple[float, float]], *, gaps: float = 12, ax: Axes | None = None) -> Axes:
    r"""Plot what softmax with logits times s log n does to keys that stand out by a gap (THEORY section 7).

    The exponent of the share is 1 - s gap while it is small: keys fade below s gap = 1, keep their share at 1 and take
    all attention above.

    Parameters
    ----------
    points
        {label: (s, gap)} to mark.
    gaps
        How far the gap reaches.
    ax
        Where to draw; None makes a new figure.

    >>> plot_scaling_phases({"published": (0.43, 5.0)}).get_xlabel()
    'scale $s$ of $\\log\\,n$'
    """
    ax = axes(ax)
    s, gap = np.linspace(0, 1, 201), np.linspace(0, gaps, 201)
    exponent = np.maximum(1 - np.outer(gap, s), -1)
    shown = ax.contourf(s, gap, exponent, levels=np.linspace(-1, 1, 9), cmap="RdBu_r", extend="min")
    ax.figure.colorbar(shown, ax=ax, label=r"exponent of the share, $1 - s\,\Delta$ (cut at $-1$)")
    ax.plot(s[1:], np.minimum(1 / s[1:], 2 * gaps), color="black", label=r"$s\,\Delta = 1$: no fading")
    for label, (x, y) in points.items():
        ax.plot([x], [y], linestyle="", marker="o", markersize=9, label=label)
    ax.set(xlim=(0, 1), ylim=(0, gaps))
    return finish(ax, xlabel=r"scale $s$ of $\log\,n$", ylabel=r"gap $\Delta$ of the logits")
