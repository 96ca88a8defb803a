"""What all figures share: style, new figures, files, labels, legends, limits of axes."""

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike, NDArray

from relaymodel import files
from relaymodel.checks import choice, demand, series, show
from relaymodel.curve import Curve
from relaymodel.model import RelayModel

Array = NDArray[np.float64]
Models = RelayModel | Sequence[RelayModel] | Mapping[str, RelayModel]

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow, too pale for a slide
BLUE, RED, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "0.35"
# which tell lines apart where colours do not
LINES = ["-", "--", "-.", (0, (1, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (3, 1))]

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 13,
    "axes.prop_cycle": cycler(color=[BLUE, RED, GREEN, PURPLE, ORANGE, SKY]) + cycler(linestyle=LINES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 12,
    "grid.color": "0.88",
    "legend.fontsize": 12,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 2.2,
    "savefig.dpi": 160,
    "svg.hashsalt": "relaymodel",  # otherwise the identifiers in an SVG file are random
}

REFERENCE: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.6}
"""How lines look that the others are to be compared with."""

POSTER = 47  # inches, the longer side of A0
LONGEST_TITLE = 1000  # characters; matplotlib takes its time for more, and no figure shows them
SUFFIXES = (".png", ".svg", ".pdf")
METADATA: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

LATEST_DRAWN = 1e300  # that of exact values
ASTRONOMICAL = 1e40  # where the axis of t becomes logarithmic in log t, if a figure is about the approach to a limit
T_LABEL = "continuation token $t$ (tokens)"

Parameters = ParamSpec("Parameters")


def style() -> AbstractContextManager[None]:
    """Return a context in which what is drawn looks like this package's figures; it leaves no trace."""
    return matplotlib.style.context(["default", STYLE])


def styled(draw: Callable[Parameters, Axes]) -> Callable[Parameters, Axes]:
    """Let a function draw in this package's style."""

    @functools.wraps(draw)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Axes:
        with style():
            return draw(*args, **kwargs)

    return wrapper


def panels(
    *draw: Callable[[Axes], object], title: str | None = None, size: tuple[float, float] | None = None
) -> Figure:
    r"""Return a new figure with a panel for each function `draw`, which is called with its axes, side by side.

    `title` stands above them, with formulas between dollars; `size` is width and height in inches, together at most
    those of a poster.  `ValueError` for a title that matplotlib cannot set, sizes that are not positive or larger.

    >>> len(panels(lambda ax: ax.plot([1, 2]), lambda ax: ax.plot([2, 1])).axes)
    2
    >>> panels(title=r"$\nonsense$")
    Traceback (most recent call last):
    ValueError: title must be text with formulas that matplotlib can set, got '$\\nonsense$'
    """
    columns = max(1, len(draw))
    width, height = (6.8 if columns == 1 else 6.0 * columns, 4.8) if size is None else size
    if not (0 < width <= POSTER and 0 < height <= POSTER):
        raise ValueError(f"size must be a width and a height of at most {POSTER} inches, got {show(size)}")
    with style():
        figure = Figure(figsize=(width, height))
        for function, ax in zip(draw, figure.subplots(1, columns, squeeze=False).flat, strict=False):
            function(ax)
        if title is not None and len(title) > LONGEST_TITLE:
            raise ValueError(f"title must be at most {LONGEST_TITLE} characters, got {len(title)}")
        if title is not None:
            with warnings.catch_warnings(action="error"):  # of glyphs that the font lacks
                try:
                    figure.suptitle(title).get_window_extent()
                except (ValueError, UserWarning):
                    raise ValueError(
                        f"title must be text with formulas that matplotlib can set, got {show(title)}"
                    ) from None
    return figure


def save(figure: Figure | Axes, path: files.PathLike, *, kind: str | None = None, overwrite: bool = False) -> Path:
    """Write a figure, or the figure around some axes, to a PNG, SVG or PDF file, whole or not at all.

    `kind`, one of "png", "svg" and "pdf", or else the suffix of `path` decides; a path of - is standard output.  A
    figure drawn anew gives the same bytes: no dates, no random identifiers.

    Raises `ValueError` for another suffix, `TypeError` for what is not a figure, and `OSError` (`FileExistsError`
    among them) if the file cannot be written.
    """
    suffix = check_suffix(path) if kind is None else f".{choice('kind', kind, [known[1:] for known in SUFFIXES])}"
    whole = figure.get_figure(root=True) if isinstance(figure, Axes) else figure
    if not isinstance(whole, Figure):
        raise TypeError(f"figure must be a matplotlib Figure or Axes, got {show(figure)}")

    def fill(temporary: Path) -> None:
        with style(), warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied")
            try:
                whole.savefig(temporary, format=suffix[1:], metadata=METADATA.get(suffix))
            except UserWarning:
                got = tuple(float(side) for side in whole.get_size_inches())
                raise ValueError(f"size must leave room for the axes and their labels, got {got}") from None

    return files.write(path, fill, overwrite=overwrite)


def check_suffix(path: files.PathLike) -> str:
    """Return the suffix of a figure's file, if it is one that `save` can write.

    >>> check_suffix("decay.jpg")
    Traceback (most recent call last):
    ValueError: the suffix of a figure's file must be one of '.png', '.svg', '.pdf', got '.jpg'
    """
    return choice("the suffix of a figure's file", Path(path).suffix.lower(), SUFFIXES)


def axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    if ax is None:
        return panels().axes[0]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes or None, got {show(ax)}")
    return ax


def times(t: ArrayLike) -> Array:
    """Return t as a float64 array (T,) in increasing order."""
    values = series("t", t)
    demand("t", values, (values > 0) & (values <= LATEST_DRAWN), "positive and at most 1e300 in a figure")
    return np.sort(values)


def against_t(ax: Axes, ylabel: str, *, yscale: str = "log", far: bool = False) -> Axes:
    """Finish axes of t, which is logarithmic; if `far` and t is astronomical, logarithmic in log t."""
    # in proportion to hundreds of decades the usual margins would leave the float range
    ax.margins(0 if ax.dataLim.x1 > ASTRONOMICAL else 0.02)
    if ax.get_yscale() != yscale:  # to set a scale again takes its formatter away
        ax.set_yscale(yscale)
    if far and ax.dataLim.x1 > ASTRONOMICAL:
        ax.set_xscale("function", functions=(_squeeze, _stretch))
        first, last = ax.dataLim.intervalx
        ticks = [t for t in (1, 10, 1e3, 1e10, 1e30, 1e100, 1e300) if first <= t <= last * (1 + 1e-9)]
        ax.set_xticks(ticks, [f"${tidy(t)}$" for t in ticks])
    else:
        ax.set_xscale("log")
    return finish(ax, xlabel=T_LABEL, ylabel=ylabel)


def grid(first: float, last: float, points: int = 200) -> Array:
    """Return numbers from `first` to `last`, equally spaced on the axis of t that a figure of them has.

    >>> grid(1, 100, 3)
    array([  1.,  10., 100.])
    >>> f"{grid(1, 1e300, 3)[1]:.1e}"  # the ends far apart, it is log log t
    '2.7e+14'
    """
    values: Array
    if last > ASTRONOMICAL:
        values = _stretch(np.linspace(_squeeze(first), _squeeze(last), points))
    else:
        values = np.geomspace(first, last, points)
    values[[0, -1]] = first, last
    return values


def _squeeze(t: Any) -> Any:
    return np.log1p(np.log1p(t))


def _stretch(u: Any) -> Any:
    return np.expm1(np.expm1(u))


def band(ax: Axes, curve: Curve, colour: Any, alpha: float = 0.25) -> None:
    r"""Shade one standard error about a curve that has them, $D\,e^{\pm\sigma/D}$, which stays positive."""
    if curve.stderr is not None:
        factor = np.exp(curve.stderr / curve.distance)
        low, high = curve.distance / factor, curve.distance * factor
        ax.fill_between(curve.t, low, high, color=colour, alpha=alpha, linewidth=0)


def finish(ax: Axes, **labels: str) -> Axes:
    """Label axes, put the legend above them, where it covers no data, and readable ticks on long and short ones."""
    ax.set(**labels)
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() != "log":
            continue
        first, last = np.log10(limits)
        if last - first > 120:
            # matplotlib's own locator looks one tick too far, beyond the float range
            axis.set_ticks([10.0**e for e in range(-350, 351, 50) if first <= e <= last])
            axis.set_minor_locator(NullLocator())
        elif last - first < 2 and -4 < first < last < 5:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    count = len(ax.get_legend_handles_labels()[0])
    for columns in (2, 1)[count < 2 :] if count else ():
        legend = ax.legend(
            loc="lower left", bbox_to_anchor=(-0.02, 1.0), borderaxespad=0.2, ncols=columns, columnspacing=1.2
        )
        # a legend wider than the axes would make the layout narrow the axes, and never settle
        if legend.get_window_extent().width <= ax.get_window_extent().width:
            break
    return ax


def named_models(models: Any, *, prompt: bool = True) -> dict[str, RelayModel]:
    r"""Return {label: model}, with labels made of the parameters where none are given.

    Parameters that have their default in all models are left out, and the prompt length if `prompt` is false.

    >>> a, b = RelayModel.uniform(prompt=64, depth=2, relay=1), RelayModel.uniform(prompt=64, depth=2, relay=0.5)
    >>> list(named_models([a, b]))
    ['$P = 64$, $L = 2$, $\\lambda = 1$', '$P = 64$, $L = 2$, $\\lambda = 0.5$']
    """
    if isinstance(models, Mapping):
        return labelled("models", models, RelayModel)
    if not isinstance(models, (RelayModel, Iterable)):
        raise TypeError(f"models must be a RelayModel, a list or a dictionary of them, got {show(models)}")
    listed = [models] if isinstance(models, RelayModel) else list(models)
    labelled("models", {f"index {i}": model for i, model in enumerate(listed)}, RelayModel)
    defaults = [(r"\lambda", None), (r"\rho", 1), ("g", 0), (r"\gamma", 0), (r"\sigma", 0)]
    shown = {
        k for k, (_, default) in enumerate(defaults) for model in listed for row in _rows(model) if row[k] != default
    }
    named = {}
    for i, model in enumerate(listed):
        parts = [f"$P = {tidy(model.prompt)}$"] * prompt + [f"$L = {model.depth}$"]
        for k in sorted(shown):
            values = [float(row[k]) for row in _rows(model)]
            ends = dict.fromkeys((tidy(min(values)), tidy(max(values))))  # one, if all layers are equal
            parts.append(rf"${defaults[k][0]} = " + r"\ldots".join(ends) + "$")
        label = ", ".join(parts)
        named[label if label not in named else f"{label} ({i})"] = model
    return named


def _rows(model: RelayModel) -> list[tuple[Any, ...]]:
    """Return relay, residual, position, recency and sink of every head."""
    return [(h.relay, l.residual, h.position, h.recency, l.sink) for l in model.layers for h in l.heads]


def labelled(name: str, items: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return a dictionary of objects of one kind, checked."""
    if not items:
        raise ValueError(f"{name} must hold at least one {kind.__name__}, got none")
    for label, item in items.items():
        if not isinstance(item, kind):
            raise TypeError(f"{name} must be {kind.__name__} objects, got {show(item)} at {label!r}")
    return dict(items)


def tidy(value: float) -> str:
    """Return a number in mathtext, large and small ones with a power of ten.

    >>> tidy(10**6), tidy(2048), tidy(0.25)
    ('10^{6}', '2048', '0.25')
    """
    text = f"{value:.4g}" if abs(value) < 1e5 else f"{value:.4e}"
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else rf"{mantissa}\times {power}"
