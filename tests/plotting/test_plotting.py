"""Figures: what they show, how it is labelled, and that drawing them leaves no trace."""

import sys
from fractions import Fraction

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.special import eval_genlaguerre, iv

from relaymodel import Curve, Layer, RelayModel, influence, plotting
from relaymodel.inference import estimate_exponent, fit_power_law

MODEL = RelayModel.uniform(prompt=10, depth=6, relay=1)
STACK = [RelayModel.uniform(prompt=10, depth=L, relay=Fraction(1, 2)) for L in (1, 3, 6)]
T = np.array([1.0, 3.0, 10.0, 40.0])
GRID = np.geomspace(1, 1e4, 60)
CURVE = Curve(GRID, GRID**-0.5 * np.exp(0.01 * np.sin(GRID)), GRID**-0.5 / 20)
ESTIMATE, FIT = estimate_exponent(CURVE), fit_power_law(CURVE, t_min=10, t_max=1000)

EVERY_PLOT = {
    "influence": lambda ax=None: plotting.plot_influence(STACK, T, ax=ax),
    "curve": lambda ax=None: plotting.plot_curve({"a": CURVE, "b": CURVE}, ax=ax),
    "difference": lambda ax=None: plotting.plot_difference(
        Curve([1, 2], [1 / 2, 0.34]), RelayModel(1, [Layer(1)]), ax=ax
    ),
    "exponent": lambda ax=None: plotting.plot_local_exponent(STACK, T, ax=ax),
    "estimate": lambda ax=None: plotting.plot_local_exponent(ESTIMATE, label="layer 3", ax=ax),
    "bracket": lambda ax=None: plotting.plot_bracket(MODEL, T, ax=ax),
    "tightness": lambda ax=None: plotting.plot_tightness(STACK, T, ax=ax),
    "rate": lambda ax=None: plotting.plot_rate(STACK, T[1:], ax=ax),
    "power law": lambda ax=None: plotting.plot_power_law(CURVE, FIT, ax=ax),
    "tokens": lambda ax=None: plotting.plot_token_influence(STACK, 100, ax=ax),
    "continuum": lambda ax=None: plotting.plot_continuum(STACK[1], 1000, ax=ax),
}
every_plot = pytest.mark.parametrize("draw", EVERY_PLOT.values(), ids=EVERY_PLOT.keys())


def exact(model, t):
    """D(t) by the exact recursion."""
    values = model.differences(model.prompt + int(max(t)))
    return np.array([float(values[model.prompt + int(x) - 1]) for x in t])


def lines(ax):
    """The labelled lines: {label: (x, y)}."""
    return {line.get_label(): line.get_data() for line in ax.get_lines() if not line.get_label().startswith("_")}


def settings():
    """matplotlib's, but for the backend: asking for that one loads pyplot."""
    return {key: matplotlib.rcParams[key] for key in matplotlib.rcParams if key != "backend"}


@every_plot
def test_draws_into_given_axes_and_touches_nothing_else(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    before = settings()
    ax = Figure().subplots()
    assert draw(ax) is ax
    assert ax.has_data()
    assert settings() == before


@pytest.mark.slow
@every_plot
def test_is_labelled_and_legible(draw):
    ax = draw()
    assert isinstance(ax, Axes)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    if "token" in ax.get_xlabel():
        assert "(tokens)" in ax.get_xlabel()
    canvas = ax.figure.bbox
    for text in ax.figure.findobj(Text):
        if text.get_text() and text.get_visible():
            assert text.get_fontsize() >= 11
            box = text.get_window_extent()
            inside = canvas.x0 <= box.x0 and box.x1 <= canvas.x1 and canvas.y0 <= box.y0 and box.y1 <= canvas.y1
            # ticks beyond the limits exist as texts, but are not drawn
            assert inside or text in [*ax.get_xticklabels(which="both"), *ax.get_yticklabels(which="both")]
    legend = ax.get_legend()
    if legend is not None:
        assert legend.get_window_extent().y0 >= ax.get_window_extent().y1 - 3, "the legend covers data"
    # no two lines that the legend names look the same
    looks = [(line.get_color(), str(line._dash_pattern), line.get_marker()) for line in legend.get_lines()]
    assert len(set(looks)) == len(looks)
    assert all(line.get_linewidth() >= 1.2 for line in ax.get_lines())


def test_influence_is_the_recursion():
    drawn = lines(plotting.plot_influence({"a": STACK[0], "b": STACK[2]}, T[::-1]))
    assert list(drawn) == ["a", "b", "dilution $P/(P+t)$"]
    for label, model in (("a", STACK[0]), ("b", STACK[2])):
        np.testing.assert_array_equal(drawn[label][0], T)
        np.testing.assert_allclose(drawn[label][1], exact(model, T), rtol=1e-12)
    np.testing.assert_allclose(drawn["dilution $P/(P+t)$"][1], 10 / (10 + T), rtol=1e-15)


def test_negative_influence_is_drawn_by_its_size_and_said_so():
    model = RelayModel(1, [Layer(-1)])
    ax = plotting.plot_influence(model, [1, 3])
    np.testing.assert_allclose(next(iter(lines(ax).values()))[1], [1 / 2, 1 / 4])
    assert "|D(t)|" in ax.get_ylabel()
    with pytest.raises(ValueError, match="influence must be other than 0"):
        plotting.plot_influence(RelayModel(1, [Layer(0)]), [1, 3])


def test_equal_labels_do_not_hide_a_model():
    nearly = [RelayModel.uniform(prompt=10, depth=2, relay=relay) for relay in (1, 1 + 1e-9)]
    assert len(lines(plotting.plot_influence(nearly, T))) == 3


def test_labels_name_what_differs():
    models = [RelayModel(4, [Layer(1), Layer(2)]), RelayModel(10**6, [Layer(1, Fraction(1, 2), 1)])]
    assert list(lines(plotting.plot_influence(models, T)))[:2] == [
        r"$P = 4$, $L = 2$, $\lambda = 1\ldots2$, $\rho = 1$, $g = 0$",
        r"$P = 10^{6}$, $L = 1$, $\lambda = 1$, $\rho = 0.5$, $g = 1$",
    ]


def test_curve_has_a_band_of_one_standard_error():
    ax = plotting.plot_curve(Curve([1, 2], [4.0, 2.0], stderr=[0.4, 2.0]))
    (band,) = ax.collections
    vertices = band.get_paths()[0].vertices
    low, high = 2 * np.exp(-1), 2 * np.exp(1)
    assert {round(y, 12) for x, y in vertices if x == 2} == {round(low, 12), round(high, 12)}
    assert not plotting.plot_curve(Curve([1, 2], [4.0, 2.0])).collections


def test_difference_shows_zeros_apart():
    model = RelayModel(1, [Layer(1)])
    ax = plotting.plot_difference(Curve([1, 2, 3], [*influence(model, [1, 2]), 0.26]), model)
    some, none = ax.get_lines()[:2]
    np.testing.assert_allclose(some.get_ydata(), [0.04], rtol=1e-12)
    assert none.get_label() == "no difference"
    assert len(none.get_ydata()) == 2
    assert none.get_ydata()[0] < 1e-16


def test_local_exponent_is_the_slope_of_the_recursion():
    model = RelayModel.uniform(prompt=50, depth=2, relay=1)
    t = np.array([400.0])
    step = 4  # central difference in t; its error is of order (step/t)^2
    D = exact(model, np.array([400 - step, 400, 400 + step]))
    slope = -400 * (D[2] - D[0]) / (2 * step) / D[1]
    ax = plotting.plot_local_exponent({"two layers": model}, t)
    assert lines(ax)["two layers"][1] == pytest.approx(slope, rel=1e-4)
    assert lines(ax)[r"limit for $t \to \infty$"][1] == [1.0, 1.0]
    shifted = RelayModel(5, [Layer(1, position=Fraction(1, 2)), Layer(1, position=2)])
    assert lines(plotting.plot_local_exponent(shifted, T))[r"limit for $t \to \infty$"][1] == [1.5, 1.5]


def test_local_exponent_of_model_and_data_together():
    ax = plotting.plot_local_exponent({"model": MODEL}, T)
    plotting.plot_local_exponent(ESTIMATE, label="data", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model", r"limit for $t \to \infty$", "data"]
    (container,) = ax.containers
    np.testing.assert_array_equal(container[0].get_ydata(), ESTIMATE.alpha)
    (bars,) = container[2]
    heights = [np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments()]
    np.testing.assert_allclose(heights, ESTIMATE.stderr, atol=1e-12)


def test_bracket_holds_the_value_inside():
    ax = plotting.plot_bracket(MODEL, T)
    upper, lower = (line.get_ydata() for line in ax.get_lines()[:2])
    # the sides of THEORY section 4, written out for E_k = sum over m > k of binom(6, m)
    E = [63, 57, 42, 22, 7, 1]
    for i, t in enumerate(T):
        p1 = float(sum(Fraction(1, n) for n in range(11, 11 + int(t))))
        low = high = 0.0
        for k in range(6):
            low += E[k] * p1**k / np.prod(np.arange(1, k + 1), dtype=float)
            high += E[k] * np.prod([p1 + j / 11 for j in range(k)]) / np.prod(np.arange(1, k + 1), dtype=float)
        D = exact(MODEL, [t])[0] * (10 + t) / 10
        assert lower[i] == pytest.approx(low / D, rel=1e-12)
        assert upper[i] == pytest.approx(high / D, rel=1e-12)
        assert lower[i] <= 1 <= upper[i]


def test_equal_sides_are_drawn_as_one_line():
    ax = plotting.plot_bracket(RelayModel.uniform(prompt=10, depth=2, relay=1), T)
    upper, lower = (line.get_ydata() for line in ax.get_lines()[:2])
    assert np.ptp([upper, lower]) < 1e-5 * np.ptp(ax.get_ylim())
    ax.figure.draw_without_rendering()
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_tightness_needs_three_layers_and_shrinks():
    t = np.array([1e3, 1e10, 1e100, 1e300])
    ax = plotting.plot_tightness({"two": STACK[0], "six": MODEL}, t)
    assert "two" not in lines(ax)
    width = lines(ax)["six"][1]
    p1 = np.log(t / 10)  # within 5 % here
    assert np.all(np.diff(width) < 0)
    np.testing.assert_allclose(width[2:], np.expm1(20 / (2 * 11 * p1[2:])), rtol=0.1)
    with pytest.raises(ValueError, match="depth 3 or more"):
        plotting.plot_tightness(STACK[:1], t)


def test_rate_tends_to_one():
    ax = plotting.plot_rate({"two layers": RelayModel.uniform(prompt=1, depth=2, relay=1)}, [1e3, 1e100])
    ratio = lines(ax)["two layers"][1]
    assert ratio[1] == pytest.approx(1, abs=0.02)
    # D = (2 + 1 + p_1)/(1 + t), leading term log t/t
    p1 = sum(1 / n for n in range(2, 1002))
    assert ratio[0] == pytest.approx((3 + p1) / 1001 * 1000 / np.log(1e3), rel=1e-12)


def test_power_law_is_drawn_where_it_was_fitted():
    ax = plotting.plot_power_law(CURVE, FIT)
    label = next(name for name in lines(ax) if "alpha" in name)
    assert rf"\alpha = {FIT.alpha:.3f} \pm {FIT.stderr:.3f}" in label
    x, y = lines(ax)[label]
    assert list(x) == list(FIT.window)
    assert (9, 900) < FIT.window < (12, 1000)
    np.testing.assert_allclose(y, np.array(FIT.window) ** -0.5, rtol=0.02)
    (span,) = ax.patches
    np.testing.assert_allclose([span.get_x(), span.get_x() + span.get_width()], FIT.window)


def test_token_influence_is_the_recursion_from_one_token():
    n, model = 12, RelayModel(1, [Layer(1), Layer(Fraction(1, 2), position=1)])
    x, y = next(iter(lines(plotting.plot_token_influence(model, n)).values()))
    np.testing.assert_allclose(x * n, np.arange(1, n))
    for s in range(1, n):
        values = [Fraction(int(k == s)) for k in range(1, n + 1)]
        for layer in model.layers:
            values = list(layer.apply(values))
        assert y[s - 1] == pytest.approx(float(n * values[-1]), rel=1e-12)


def test_continuum_densities_are_laguerre_and_bessel():
    relay, L = 0.5, 4
    ax = plotting.plot_continuum(RelayModel.uniform(prompt=1, depth=L, relay=relay), 10**6)
    _, laguerre, bessel = ax.get_lines()
    r, q = laguerre.get_data()
    np.testing.assert_allclose(q, relay * eval_genlaguerre(L - 1, 1, -relay * np.log(1 / r)), rtol=1e-12)
    tau, c = np.log(1 / r), L * relay
    np.testing.assert_allclose(bessel.get_ydata(), np.sqrt(c / tau) * iv(1, 2 * np.sqrt(c * tau)), rtol=1e-11)
    assert len(plotting.plot_continuum(RelayModel(1, [Layer(1), Layer(2)]), 1000).get_lines()) == 2


@pytest.mark.parametrize("last", [1e60, 1e300])
@pytest.mark.parametrize(
    "plot", [plotting.plot_influence, plotting.plot_local_exponent, plotting.plot_bracket, plotting.plot_rate]
)
def test_astronomical_t_can_be_drawn(plot, last, tmp_path):
    # matplotlib's logarithmic axes overflow here by themselves, and warnings are errors
    ax = plot(MODEL, plotting.grid(1.5, last))
    assert ax.get_xlim()[1] >= last * (1 - 1e-12)
    plotting.save(ax, tmp_path / "far.png")


def test_grid_ends_exactly():
    for last in (1e3, 1e60, 1e300):
        t = plotting.grid(1, last)
        assert (t[0], t[-1]) == (1, last)
        assert np.all(np.diff(t) > 0)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_files_are_the_same_every_time(tmp_path, suffix):
    first, second = (
        plotting.save(EVERY_PLOT["bracket"](), tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b")
    )
    assert first == second
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    assert first.startswith(start)
    assert b"<dc:date>" not in first
    assert b"CreationDate" not in first


def test_save_writes_all_panels(tmp_path):
    draw = (lambda ax, label=label: plotting.plot_curve({label: CURVE}, ax=ax) for label in ("left", "right"))
    figure = plotting.panels(*draw, title="two of them, $a_1$", size=(9, 4))
    assert figure.get_size_inches().tolist() == [9, 4]
    assert figure.get_suptitle() == "two of them, $a_1$"
    text = plotting.save(figure.axes[1], tmp_path / "both.svg").read_text()
    assert "<!-- left -->" in text
    assert "<!-- right -->" in text


def test_nothing_is_overwritten_or_half_written(tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        plotting.save(EVERY_PLOT["bracket"](), path)
    ax = EVERY_PLOT["bracket"]()

    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        plotting.save(ax, path, overwrite=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plotting.plot_influence("model", T), TypeError, "models must be"),
        (lambda: plotting.plot_influence(3, T), TypeError, "models must be a RelayModel, a list or a dictionary"),
        (lambda: plotting.plot_influence([], T), ValueError, "at least one RelayModel"),
        (lambda: plotting.plot_influence([MODEL, 3], T), TypeError, "got 3 at 'index 1'"),
        (lambda: plotting.plot_influence(MODEL, [1, 0]), ValueError, "t must be positive"),
        (lambda: plotting.plot_influence(MODEL, [1, 1e301]), ValueError, "at most 1e300"),
        (lambda: plotting.plot_influence(MODEL, [1, float("nan")]), ValueError, "t must be finite"),
        (lambda: plotting.plot_influence(MODEL, T, ax="axes"), TypeError, "ax must be matplotlib Axes"),
        (lambda: plotting.plot_curve([1, 2]), TypeError, "curves must be a Curve or a dictionary"),
        (lambda: plotting.plot_curve({"a": 1}), TypeError, "got 1 at 'a'"),
        (lambda: plotting.plot_local_exponent(MODEL), ValueError, "t must be given with models"),
        (lambda: plotting.plot_local_exponent(MODEL, T, label="a"), ValueError, "label must be None with models"),
        (lambda: plotting.plot_local_exponent(ESTIMATE, T), ValueError, "t must be None"),
        (lambda: plotting.plot_bracket(RelayModel(1, [Layer(-1)]), T), ValueError, "no negative strength"),
        (lambda: plotting.plot_token_influence(MODEL, 2.5), TypeError, "target must be an integer"),
        (lambda: plotting.plot_continuum(MODEL, 2), ValueError, "target must be at least 3"),
        (lambda: plotting.panels(size=(0, 3)), ValueError, "size must be a width and a height of at most 47 inches"),
        (lambda: plotting.panels(size=(3, 48)), ValueError, r"got \(3, 48\)"),
        (lambda: plotting.panels(title=r"$\no{$"), ValueError, "title must be text with formulas that matplotlib can"),
        (lambda: plotting.panels(title="\u4e2d"), ValueError, "title must be text with formulas that matplotlib can"),
        (lambda: plotting.save(EVERY_PLOT["curve"](), "a.png", kind="jpg"), ValueError, "kind must be one of 'png'"),
        (lambda: plotting.save(EVERY_PLOT["curve"](), "figure.jpg"), ValueError, "must be one of '.png'"),
        (lambda: plotting.save("figure", "figure.png"), TypeError, "figure must be a matplotlib Figure"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
