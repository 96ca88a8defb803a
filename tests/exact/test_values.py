"""Exact values: reference, domain, the handing over to balls, bad input."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, arb_series, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import (
    Layer,
    RelayModel,
    influence,
    influence_ball,
    influence_fraction,
    local_exponent,
    rms_influence,
    token_influence,
)
from relaymodel.exact import PrecisionError, local_exponent_ball, residues, stirling, token_influence_ball, values
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import poles, rational
from tests.strategies import common_position, models, position_exponents, signed

CASES = json.loads((Path(__file__).parents[1] / "reference" / "influence.json").read_text())
NAMES = [f"{i}-{case['kind']}" for i, case in enumerate(CASES)]


def load(case):
    layers = [Layer(*(Fraction(x) for x in layer)) for layer in case["layers"]]
    return RelayModel(case["prompt"], layers), int(case["t"])


def difference(value, expected, *, absolute=False):
    """Relative (or absolute) difference of a float, ball or Fraction from a decimal string or ball, as float."""
    before = ctx.prec
    ctx.prec = 400
    try:
        value = arb(value.numerator) / value.denominator if isinstance(value, Fraction) else arb(value)
        error = abs(value - arb(expected))
        return float((error if absolute else error / abs(arb(expected))).upper())
    finally:
        ctx.prec = before


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_reference_by_balls_to_25_digits(case):
    model, t = load(case)
    assert difference(influence_ball(model, t, 30), case["influence"]) < 1e-25
    assert difference(local_exponent_ball(model, t, 30), case["local_exponent"], absolute=True) < 1e-25
    if "source" in case:
        ball = token_influence_ball(model, case["source"], model.prompt + t, 30)
        assert difference(ball, case["token_influence"]) < 1e-25


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_reference_by_floats_to_the_promise(case):
    model, t = load(case)
    tiny = np.finfo(float).tiny  # below it float64 has fewer digits: half a unit in the last place is all there is
    for value, expected in (
        (influence(model, t), case["influence"]),
        (token_influence(model, case.get("source", 1), model.prompt + t), case.get("token_influence")),
    ):
        if expected is not None and abs(float(arb(expected))) >= tiny:
            assert difference(value, expected) < 1e-12
        elif expected is not None:
            assert difference(value, expected, absolute=True) <= 2.5e-324
    assert difference(local_exponent(model, t), case["local_exponent"], absolute=True) < 1e-12


@given(signed, st.integers(1, 25))
def test_fraction_equals_the_recursion(model, t):
    assert influence_fraction(model, t) == model.differences(model.prompt + t)[-1]


@given(signed, st.integers(1, 25))
def test_ball_contains_the_fraction(model, t):
    exact = influence_fraction(model, t)
    ball = influence_ball(model, t, 20)
    assert ball == 0 if exact == 0 else difference(exact, ball) < 1e-20


@given(signed, st.integers(1, 12), st.integers(1, 12))
def test_token_influence_is_the_impulse_response(model, s, n):
    values_ = [int(k == s) for k in range(1, n + 1)]
    for layer in model.layers:
        values_ = layer.apply(values_)
    expected = list(values_)[-1]
    assert token_influence(model, s, n) == pytest.approx(float(expected), rel=1e-12, abs=0)


@given(common_position, st.lists(st.floats(1e-3, 1e300), min_size=1, max_size=5))
def test_floats_agree_with_balls(model, t):
    result, alpha = influence(model, t), local_exponent(model, t) if _relays(model) else None
    for i, time in enumerate(t):
        if not _relays(model):
            assert result[i] == 0
            continue
        exact = influence_ball(model, time, 25)
        if abs(float(exact.mid())) >= np.finfo(float).tiny:
            assert difference(result[i], exact) < 1e-12
        assert difference(alpha[i], local_exponent_ball(model, time, 25), absolute=True) < 1e-12


def _relays(model):
    return bool(poles(model))


@pytest.mark.slow
@given(models(depth=4, prompt=40, position=st.fractions(Fraction(-9, 10), 3, max_denominator=10)), st.integers(1, 30))
def test_rms_adds_squares(model, t):
    layers = tuple(Layer(l.relay, l.residual, model.layers[0].position) for l in model.layers)
    model = RelayModel(model.prompt, layers)
    N = model.prompt + t
    squares = [Fraction(1)]  # e_m of the squared strengths
    for layer in layers:
        passed = [e * Fraction(layer.residual) ** 2 for e in squares] + [Fraction(0)]
        relayed = [Fraction(0)] + [e * Fraction(layer.relay) ** 2 for e in squares]
        squares = [a + b for a, b in zip(passed, relayed, strict=True)]
    total = Fraction(0)
    for s in range(1, model.prompt + 1):
        power = [Fraction(int(k == s)) for k in range(1, N + 1)]
        for m in range(1, len(layers) + 1):
            power = list(Layer(1, 0, layers[0].position).apply(power))
            total += squares[m] * power[-1] ** 2
    assert rms_influence(model, t) == pytest.approx(float(total) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("prompt", [63, 64, 65, 80, 129, 1000])
def test_rms_quadrature_over_the_prompt_is_exact(prompt):
    model = RelayModel.uniform(prompt, 6, Fraction(7, 10))
    t = np.array([1.0, 50.0, 1e6])
    N = prompt + t
    source = np.arange(1, prompt + 1)
    e = np.polynomial.polynomial.polypow([1, 0.49], 6)
    total = np.zeros(3)
    for m in range(1, 7):
        pure = RelayModel.uniform(1, m, 1, 0)
        total += e[m] * (token_influence(pure, source[:, None], N[None, :]) ** 2).sum(axis=0)
    np.testing.assert_allclose(rms_influence(model, t), np.sqrt(total), rtol=1e-12)


def test_whole_domain_corners():
    """Deep, strong, long, near the edges: compared with balls, nothing overflows or underflows early."""
    corners = [
        (RelayModel.uniform(P, L, relay, residual, g), t)
        for P in (1, 10**9)
        for L in (1, 64)
        for relay in (8, 1e-3)
        for residual in (0, 1)
        for g in (0, -0.999999999, 4)
        for t in (1, 1e-3, 12345.678, 1e300)
    ]
    for model, t in corners:
        exact = influence_ball(model, t, 25)
        value = influence(model, t)
        if abs(float(exact.mid())) >= np.finfo(float).tiny:
            assert difference(value, exact) < 1e-12, (model, t)
        else:
            assert difference(value, exact, absolute=True) <= 2.5e-324, (model, t)
        assert difference(local_exponent(model, t), local_exponent_ball(model, t, 25), absolute=True) < 1e-12


@pytest.mark.parametrize("g", [0.1, -0.3, 1.7263430405970344, 3.9, Fraction(1, 3)])
def test_a_rounded_exponent_of_large_t_is_made_good(g):
    """1 + g rounded to float64 would alone cost t^(1+g) up to 1e-13 at the largest t."""
    model = RelayModel.uniform(7, 1, 1, 1, g)
    t = 10.0 ** min(300, 250 / (1 + float(g)))
    assert difference(influence(model, t), influence_ball(model, t, 25)) < 1e-14


def test_nearly_equal_positions():
    gaps = [Fraction(k, 10**12) for k in range(8)]
    apart = RelayModel(5, [Layer(1, 1, gap) for gap in gaps])
    together = RelayModel.uniform(5, 8, 1)
    assert influence(apart, 1000) == pytest.approx(influence(together, 1000), rel=1e-9)
    assert influence(apart, 30) == pytest.approx(float(apart.differences(35)[-1]), rel=1e-12)


def test_integers_of_any_size():
    model = RelayModel.uniform(10, 2, 1, position=-0.9)
    values_ = influence(model, [10**400, 10**20, 3])
    assert values_[0] == pytest.approx(float(influence_ball(model, 10**400).mid()), rel=1e-15)
    assert influence(RelayModel.uniform(10, 1, 1), 10**400) == 0  # 1e-399 rounds to 0
    assert local_exponent(model, 10**400) == pytest.approx(0.1 - 1 / (400 * np.log(10)), abs=1e-3)
    assert token_influence(model, 10**30, 10**31) > 0
    assert float(influence_ball(RelayModel.uniform(10**40, 3, 1), 10**10_000, 10).log()) < -22_000


@given(position_exponents, st.integers(1, 8), st.integers(0, 2**130))
def test_stirling_differences_contain_the_direct_ones(g, order, beyond):
    """At arguments just beyond 2^128 both ways are open: the balls of one must meet those of the other."""
    x, a = fmpq(stirling.HUGE + beyond), rational(g) + 1
    with working(bits=200, order=order):
        ratio, difference_ = stirling.log_gamma_ratio(x, a, order), stirling.digamma_difference(x, a, order)
    with working(bits=600, order=order):
        end = arb_series([arb(x + a), -1], order)
        direct = end.lgamma() - arb(x).lgamma()
        psi = [arb(x + a).digamma() - arb(x).digamma()] + [-arb(k + 1).zeta(arb(x + a)) for k in range(1, order)]
        for k in range(order):
            for one, two, scale in ((ratio[k], direct[k], 1), (difference_[k], psi[k], 1 / arb(x))):
                assert one.overlaps(two)
                assert one.rad() < scale * arb(2) ** -150


class TestHandingOver:
    """The decision for balls is a condition estimate; here it is seen to be taken, and to be right."""

    def count(self, monkeypatch, call):
        calls = []

        def counted(*arguments):
            calls.append(arguments)
            return influence_ball(*arguments)

        monkeypatch.setattr(values, "influence_ball", counted)
        call()
        return len(calls)

    def test_positive_models_stay_on_the_fast_path(self, monkeypatch):
        model = RelayModel.uniform(7, 64, 8, 1, 0.5)
        assert self.count(monkeypatch, lambda: influence(model, np.geomspace(1, 1e60, 500))) == 0

    def test_cancelling_models_go_to_balls_only_where_they_cancel(self, monkeypatch):
        model = RelayModel(7, [Layer(1), Layer(-1), Layer(2), Layer(Fraction(-3, 2))])
        t = np.geomspace(1, 1e12, 4000)
        handed = self.count(monkeypatch, lambda: influence(model, t))
        assert 0 < handed < 400
        signs = np.sign(influence(model, t))
        assert set(signs) == {-1.0, 1.0}  # it does change sign

    @given(models(relay=st.fractions(-8, 8, max_denominator=7)), st.floats(1, 1e12))
    def test_the_condition_number_bounds_the_error(self, model, t):
        if not _relays(model):
            return
        sums = residues.influence(model, np.array([t]), exponent=False)
        try:
            exact = influence_ball(model, t, 25)
        except PrecisionError:
            return
        if np.isfinite(sums.condition[0]):
            size = sums.condition[0] * abs(sums.value[0])  # what the terms' magnitudes add up to
            assert difference(sums.value[0], exact, absolute=True) <= size * values.rounding_error(model.depth)

    def test_a_small_error_bound_would_be_noticed(self):
        """With rounding_error a thousand times smaller the bound above fails: it is not vacuous."""
        model = RelayModel(3, [Layer(k - Fraction(5, 2)) for k in range(6)])
        t = np.geomspace(1, 1e6, 3000)
        sums = residues.influence(model, t, exponent=False)
        errors = [difference(v, influence_ball(model, time, 25)) for v, time in zip(sums.value, t, strict=True)]
        bound = sums.condition * values.rounding_error(model.depth)
        assert np.all(errors <= bound)
        assert np.any(errors > bound / 1000)


@pytest.mark.parametrize("order", [2, 3, 12, 64])
@pytest.mark.parametrize("position", [Fraction(-99, 100), 0, Fraction(1, 3), 4])
@pytest.mark.parametrize("prompt", [1, 5, 100])
def test_the_expansion_holds_from_where_it_is_used(prompt, position, order):
    """At the least y that each number of terms is used for, by itself, against balls; and so does its slope."""
    model = RelayModel.uniform(prompt, order, Fraction(3, 2), Fraction(1, 2), position)
    (expansion,) = residues.expansions(model)
    for y in expansion.front.reach.tolist():
        if (t := y * (1 + 1e-9) - expansion.front.start) > 1e-3:
            # the nearest of all t decides how many terms are needed
            sums = residues._influence(model, np.array([t, 1e6 * t]), exponent=True, far=True)
            assert difference(sums.value[0], influence_ball(model, t, 25)) < values.rounding_error(order), t
            assert difference(sums.alpha[0], local_exponent_ball(model, t, 25), absolute=True) < 1e-13, t


def test_exact_zero_is_recognised():
    zero = RelayModel(1, [Layer(0, 3), Layer(0)])
    dead = RelayModel(1, [Layer(1), Layer(0, 0)])
    constant = RelayModel(1, [Layer(1), Layer(Fraction(-1, 2), 1, 1)])  # f = (z+1)/z z/(z+1) = 1
    for model in (zero, dead, constant):
        assert influence(model, [1, 5]).tolist() == [0, 0]
        assert influence_ball(model, 5) == 0
        assert influence_fraction(model, 5) == model.differences(6)[-1] == 0
        assert token_influence(model, 1, 2) == 0
        assert token_influence(model, 2, 2) == float(model.eigenvalue(2))
        with pytest.raises(ValueError, match="an influence other than 0"):
            local_exponent(model, 5)
    assert rms_influence(zero, 5) == rms_influence(dead, 5) == 0
    with pytest.raises(ValueError, match="an influence other than 0"):
        local_exponent(zero, 5)
    # P = t = 1: D = (1/2) (E_0 + E_1 h_1), h_1 = 1/2, vanishes for relays 1 and r if 1 + r + r + r/2 = 0
    cancelling = RelayModel(1, [Layer(1), Layer(Fraction(-2, 5))])
    assert influence_fraction(cancelling, 1) == 0
    assert influence(cancelling, 1) == 0
    assert influence_ball(cancelling, 1) == 0
    with pytest.raises(PrecisionError, match="the influence is 0, so that it has no local exponent") as caught:
        local_exponent(cancelling, 1)
    assert not caught.value.ball.is_finite()


def test_shapes_and_types():
    model = RelayModel.uniform(4, 2, 1)
    assert isinstance(influence(model, 3), float)
    assert isinstance(influence(model, np.float32(3)), float)
    assert influence(model, [[1, 2], [3, 4]]).shape == (2, 2)
    assert influence(model, []).shape == (0,)
    assert influence(model, np.arange(1, 10001)).shape == (10000,)
    assert influence(model, [Fraction(1, 3), 0.5]).shape == (2,)
    assert token_influence(model, np.arange(1, 5)[:, None], np.arange(1, 8)).shape == (4, 7)
    assert isinstance(token_influence(model, 1, 2), float)


def test_real_t_interpolates():
    model = RelayModel.uniform(4, 3, 1)
    t = np.linspace(0.01, 5, 200)
    assert np.all(np.diff(influence(model, t)) < 0)
    assert influence(model, 1e-9) == pytest.approx(float(model.saturation) - 1, rel=1e-8)  # D(0) = f(1) - prod rho


model_ = RelayModel.uniform(4, 2, 1)
BAD = [
    (lambda: influence(model_, 0), ValueError, "t must be positive .*, got 0.0"),
    (lambda: influence(model_, [1, -2]), ValueError, "t must be positive .*, got -2.0 at index 1"),
    (lambda: influence(model_, float("nan")), ValueError, "t must be finite, got nan"),
    (lambda: influence(model_, [1, np.inf]), ValueError, "t must be finite, got inf at index 1"),
    (lambda: influence(model_, True), TypeError, "t must be numbers, not booleans"),
    (lambda: influence(model_, [1, True]), TypeError, "t must be numbers, not booleans"),
    (lambda: influence(model_, "1"), TypeError, "t must be numbers, got '1'"),
    (lambda: influence(model_, None), TypeError, "t must be numbers, got None"),
    (lambda: influence(model_, 1j), TypeError, "t must be numbers"),
    (lambda: influence(model_, [[1], [1, 2]]), ValueError, "rectangular array"),
    (lambda: influence(4, 1), TypeError, "model must be a RelayModel, got 4"),
    (lambda: influence(RelayModel.uniform(1, 2, 1e200), 1), OverflowError, "beyond the float range"),
    (lambda: influence_ball(model_, 0), ValueError, "t must be positive, got 0"),
    (lambda: influence_ball(model_, float("nan")), ValueError, "t must be finite"),
    (lambda: influence_ball(model_, 1, 0), ValueError, "digits must be at least 1, got 0"),
    (lambda: influence_ball(model_, "1"), TypeError, "t must be an int, float"),
    (lambda: influence_fraction(model_, 0), ValueError, "t must be at least 1, got 0"),
    (lambda: influence_fraction(model_, 2.0), TypeError, "t must be an integer, got 2.0"),
    (lambda: influence_fraction(model_, 10**8), ValueError, "use influence_ball"),
    (lambda: token_influence(model_, 0, 3), ValueError, "source must be at least 1, got 0"),
    (lambda: token_influence(model_, 1.5, 3), ValueError, "source must be a whole number, got 1.5"),
    (lambda: token_influence(model_, 1, [0, 2]), ValueError, "target must be at least 1, got 0 at index 0"),
    (lambda: token_influence(model_, [1, 2], [1, 2, 3]), ValueError, "must broadcast"),
    (lambda: token_influence(model_, True, 3), TypeError, "source must be numbers, not booleans"),
    (lambda: rms_influence(model_, 1e301), ValueError, "t must be at most"),
    (lambda: rms_influence(RelayModel(1, [Layer(1), Layer(1, 1, 1)]), 1), ValueError, "one position exponent"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:50] for _, _, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
