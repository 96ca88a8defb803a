"""The page in a real browser: its values against the package's, its controls, its width, its link, its Python code."""

import itertools

import numpy as np
import pytest

from relaymodel import Curve, PromptBias, RelayModel, Reminders, influence, local_exponent, simulate
from relaymodel.bounds import bracket
from relaymodel.explore import Setting
from relaymodel.explore.setting import LAST, RANGES

KINDS = ("closed", "bias", "reminders", "recency", "recency and bias", "recency and reminders", "all")


def draw(rng, kind):
    """A random setting of a kind, within the sliders' bounds."""

    def number(name):
        low, high = RANGES[name]
        return round(float(rng.uniform(low, high)), 3)

    def integer(name, most=None):
        low, high = RANGES[name][0], most or RANGES[name][1]
        return round(low * (high / low) ** rng.uniform())

    recent, biased = "recency" in kind or kind == "all", "bias" in kind or kind == "all"
    bias = PromptBias(number("strength"), number("offset")) if biased else None
    reminders = None
    if "reminders" in kind or kind == "all":
        every = integer("every")
        reminders = Reminders(every, integer("length", min(every, 4096)))
    return Setting(
        prompt=integer("prompt"),
        depth=integer("depth"),
        relay=number("relay"),
        residual=number("residual"),
        position=0 if rng.uniform() < 0.3 else number("position"),
        recency=number("recency") if recent else 0,
        bias=bias,
        reminders=reminders,
    )


def expected(setting, times):
    names = ("prompt", "depth", "relay", "residual", "position", "recency")
    model = RelayModel.uniform(**{name: getattr(setting, name) for name in names})
    if setting.bias is None and setting.reminders is None and setting.recency == 0:
        return influence(model, times)
    return simulate(model, int(times[-1]), samples=times, bias=setting.bias, reminders=setting.reminders).distance


def evaluate(page, settings, times):
    """The page's D and alpha at tokens of their own for each setting, shape (settings, 2, T)."""
    both = page.evaluate(
        """([settings, times]) => settings.map((setting, i) => {
             const { influence, alpha } = relaymodel.evaluate(setting, times[i]);
             return [Array.from(influence), Array.from(alpha)];
           })""",
        [[setting.to_dict() for setting in settings], [list(map(int, each)) for each in times]],
    )
    return np.array(both)


@pytest.mark.slow
def test_300_random_settings_agree_with_the_package(visit, rng):
    settings = [draw(rng, KINDS[i % len(KINDS)]) for i in range(300)]
    # every fourth to the page's last token, the others to any, which takes the recursion less time
    ends = [LAST ** (1 if i % 4 == 0 else rng.uniform(0.3, 1)) for i in range(300)]
    times = [np.sort(np.rint(np.append(last ** rng.uniform(size=7), last))) for last in ends]
    found = evaluate(visit(), settings, times)[:, 0]
    errors = dict.fromkeys(KINDS, 0.0)
    for i, (setting, each) in enumerate(zip(settings, times, strict=True)):
        tokens, back = np.unique(each.astype(int), return_inverse=True)
        error = np.max(np.abs(found[i] / expected(setting, tokens)[back] - 1))
        errors[KINDS[i % len(KINDS)]] = max(error, errors[KINDS[i % len(KINDS)]])
        assert error < 1e-6, (setting, each, error)
    print({kind: f"{error:.1e}" for kind, error in errors.items()})
    assert errors["closed"] < 1e-11
    assert errors["bias"] < 1e-9
    assert errors["reminders"] < 1e-9


def test_a_bias_with_any_position_and_recency(visit, rng):
    settings = [
        Setting(200, 6, 0.7, 0.9, position, recency, PromptBias(1.5, -0.5))
        for position in (-0.85, 0, 1)
        for recency in (-1, -0.999, -0.4, 0, 0.001, 0.5, 0.95)
    ]
    times = np.array([1, 2, 17, 511, 512, 513, 1024, 1500, 30_000, LAST])
    found = evaluate(visit(), settings, [times] * len(settings))[:, 0]
    for setting, D in zip(settings, found, strict=True):
        np.testing.assert_allclose(D, expected(setting, times), rtol=1e-7, err_msg=str(setting))


def test_local_exponents_bounds_and_lines_agree_with_the_package(visit, rng):
    page, times = visit(), np.unique(np.rint(np.geomspace(1, LAST, 30)))
    for depth, prompt, relay in ((1, 64, 0.2), (6, 10, 1), (32, 1000, 0.1)):
        setting, model = Setting(prompt, depth, relay), RelayModel.uniform(prompt, depth, relay)
        alpha = evaluate(page, [setting], [times])[0, 1]
        np.testing.assert_allclose(alpha, local_exponent(model, times), atol=1e-10)
        sides = page.evaluate(
            "([s, t]) => { const b = relaymodel.bracket(s, t); return [[...b.lower], [...b.upper]]; }",
            [setting.to_dict(), times.tolist()],
        )
        np.testing.assert_allclose(sides, list(bracket(model, times)), rtol=1e-11)
        recursion = page.evaluate(
            "([s, t]) => [...relaymodel.sample(relaymodel.recursion(s), t).alpha]", [setting.to_dict(), times.tolist()]
        )
        np.testing.assert_allclose(recursion[1:], alpha[1:], atol=1e-4)
        straight = page.evaluate(
            "([t, D]) => relaymodel.straightLine(t, D).alpha", [times.tolist(), influence(model, times).tolist()]
        )
        line = np.polyfit(np.log(times[12:]), np.log(influence(model, times[12:])), 1)[0]
        other = page.evaluate(
            "([t, D]) => relaymodel.straightLine(t, D).alpha",
            [times[12:].tolist(), influence(model, times[12:]).tolist()],
        )
        assert other == pytest.approx(-line, abs=0.01)
        assert 0 < straight < 1


@pytest.mark.parametrize(
    ("name", "alpha"), [("Untrained", 0.27), ("Trained", 0.69), ("Stopped", -0.01), ("Reversed", -0.23)]
)
def test_the_examples_show_what_the_theory_says(visit, name, alpha):
    page = visit("#P=5&L=3")
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_function("name => document.querySelector('[aria-pressed=true]')?.textContent === name", arg=name)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    # THEORY section 10: L = 12, relay .2, P = 64, t = 16 to 1024
    assert page.evaluate("explore.view.line.alpha") == pytest.approx(alpha, abs=0.015)


def test_the_limit_is_where_the_local_exponent_goes(visit):
    page = visit()
    for position, recency, strength in itertools.product((-0.2, 0, 0.4), (-0.5, 0, 0.5), (None, 0.2, 0.4, 2)):
        bias = None if strength is None else PromptBias(strength)
        setting = Setting(4, 1, position=position, recency=recency, bias=bias)  # one layer: no logarithm
        limit, alpha = page.evaluate(
            "s => [relaymodel.limit(s), relaymodel.evaluate(s, [1e5]).alpha[0]]", setting.to_dict()
        )
        assert limit == pytest.approx(max(0, 1 + position - (strength or 0)), abs=1e-12), setting
        assert alpha == pytest.approx(limit, abs=0.03), setting


def test_a_link_carries_the_setting(visit):
    setting = Setting(100, 7, 0.35, 0.9, -0.25, 0.5, PromptBias(1.25, 0.5), Reminders(600, 30), (10, 5000))
    page = visit(setting.fragment)
    assert page.evaluate("explore.fragment()") == setting.fragment
    state = page.evaluate("explore.state")
    assert {name: state[name] for name in setting.to_dict()} == setting.to_dict()
    page.locator("#depth-value").fill("9")
    page.locator("#depth-value").press("Enter")
    page.wait_for_function("location.hash.includes('L=9')")
    assert page.evaluate("location.hash") == setting.fragment.replace("L=7", "L=9")


def test_a_link_that_is_wrong_says_so(visit):
    page = visit("#P=64&L=100&colour=red&relay=%E0%A4")
    assert page.inner_text("#copied") == (
        "Left out of the link: L: from 1 to 32 only, got 100; colour is not known here; "
        "relay: a number is needed, got %E0%A4"
    )
    assert page.evaluate("explore.state.depth") == 12


def test_values_that_depend_on_each_other_stay_together(visit):
    page = visit("#from=500&to=600&every=10&length=50")
    names = "['from', 'to', 'every', 'length'].map(name => explore.state[name])"
    assert page.evaluate(names) == [300, 600, 10, 10]
    page.evaluate("explore.change('from', 2000)")
    page.evaluate("explore.change('length', 70)")
    assert page.evaluate(names) == [2000, 4000, 70, 70]
    page.evaluate("explore.change('to', 100)")
    page.evaluate("explore.change('every', 20)")
    assert page.evaluate(names) == [50, 100, 20, 20]


@pytest.mark.parametrize(
    "setting",
    [
        Setting(10, 6, 1),
        Setting(position=0.5, window=(100, 10_000)),
        Setting(bias=PromptBias(2 / 3, 0.5)),
        Setting(recency=0.9, position=-0.25, bias=PromptBias(3)),
        Setting(32, 4, 0.5, reminders=Reminders(500, 20)),
    ],
    ids=["closed", "position", "bias", "recency", "reminders"],
)
def test_the_python_code_runs_and_gives_the_same(visit, setting, capsys):
    page = visit(setting.fragment)
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_function("document.getElementById('copied').textContent !== ''")
    assert page.inner_text("#copied") == "Python code copied"
    code, names = page.evaluate("explore.python()"), {}
    exec(code, names)
    assert capsys.readouterr().out.startswith("PowerLaw(")
    curve = names["curve"]
    assert curve.t[-1] == LAST
    some = curve.t[::40]
    np.testing.assert_allclose(evaluate(page, [setting], [some])[0, 0], curve.distance[::40], rtol=1e-9)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_nothing_is_wider_than_the_window(visit, width, dark):
    t = np.arange(1, 2000)
    page = visit(
        "#P=64&bias=1&every=512&length=64",
        width=width,
        dark=dark,
        curves={"a rather long name of a curve, layer 12": Curve(t, 1 / t)},
    )
    for details in page.locator("details > summary").all():
        details.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    texts = page.evaluate(
        "[...document.querySelectorAll('#plot text')].map(x => x.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    assert min(left for left, _ in texts) >= 0
    assert max(right for _, right in texts) <= width


def test_every_control_has_a_name_and_moves_by_keys(visit):
    page = visit()
    page.locator("#bias").check()
    page.locator("#remind").check()
    nameless = page.evaluate(
        """[...document.querySelectorAll('input, button, summary, svg')].filter(x => !(x.labels?.length
           || x.ariaLabel || x.textContent.trim() || x.getAttribute('aria-labelledby'))).map(x => x.outerHTML)"""
    )
    assert nameless == []
    for name in RANGES:
        slider = page.locator(f"#{name}")
        before = page.evaluate("name => explore.state[name]", name)
        slider.focus()
        slider.press("ArrowLeft" if name in ("recency", "to") else "ArrowRight")
        after = page.evaluate("name => explore.state[name]", name)
        assert after != before, name
        assert slider.get_attribute("aria-valuetext") is not None
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.wait_for_function("document.getElementById('announcement').textContent.includes('straight line')")


def test_a_number_that_cannot_be_is_refused_beside_it(visit):
    page = visit()
    entry = page.locator("#relay-value")
    entry.fill("7")
    entry.press("Enter")
    assert page.inner_text("#relay-error") == "from 0.01 to 2 only, got 7"
    assert entry.get_attribute("aria-invalid") == "true"
    assert page.evaluate("explore.state.relay") == 0.2
    entry.fill("2/3")
    entry.press("Enter")
    assert page.evaluate("explore.state.relay") == 2 / 3
    assert page.inner_text("#relay-error") == ""


def test_measured_curves_meet_the_model_and_keep_their_slopes(visit):
    t = np.unique(np.rint(np.geomspace(1, 2000, 80)))
    page = visit(curves={"half <b>": Curve(t, 7 * t**-0.5), "one": Curve(t, 3e-5 / t)})
    assert "half <b>" in page.inner_text("#legend")
    first, second = page.evaluate("explore.view.measured.map(curve => [curve.factor, curve.line.alpha])")
    assert first[1] == pytest.approx(0.5, abs=1e-6)
    assert second[1] == pytest.approx(1, abs=1e-6)
    assert second[0] / first[0] > 1000
    assert page.evaluate("explore.view.measured.map(curve => curve.colour)") == [0, 1]
    page.locator("#legend input").first.uncheck()
    page.wait_for_function("explore.view.measured.length === 1")
    assert page.locator("#plot .measured.c0").count() == 0


def test_settings_at_the_ends_of_the_sliders_draw_finite_curves(visit):
    page = visit()
    wrong = page.evaluate(
        """() => {
          const ends = explore.fields.map(c => [c.key, [c.min, c.max]]), bad = [];
          for (const [key, values] of ends) for (const value of values) for (const on of [false, true]) {
            Object.assign(explore.state, { ...explore.presets[0].set, bias: on, remind: on });
            explore.change(key, value);
            explore.redraw();
            const v = explore.view;
            if (![...v.influence, ...v.alpha].every(Number.isFinite) || /NaN|Infinity|undefined/.test(
                document.body.innerHTML.replace(/<script[^]*?<\\/script>/g, ''))) bad.push([key, value, on]);
          }
          return bad;
        }"""
    )
    assert wrong == []
