"""The two-sided bound: an inequality between exact rationals, and asymptotically an equality (THEORY section 4)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel, bracket, influence, influence_ball, influence_fraction
from relaymodel.bounds import bracket_ball, rate, tightness_bound
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import poles, rational
from tests.strategies import models, uniform_attention


@given(uniform_attention, st.integers(1, 200))
def test_the_bracket_holds_as_exact_inequalities(model, t):
    lower, upper = bracket(model, Fraction(t))
    assert isinstance(lower, Fraction)
    assert isinstance(upper, Fraction)
    assert lower <= influence_fraction(model, t) <= upper


@given(uniform_attention, st.integers(1, 60))
def test_the_bracket_is_what_the_theorem_says(model, t):
    """Both sides again from the definitions, with e_m by enumerating the subsets of layers."""
    P, N, L = model.prompt, model.prompt + t, model.depth
    e = [Fraction(0)] * (L + 1)
    for subset in range(2**L):
        weight = Fraction(1)
        for l, layer in enumerate(model.layers):
            weight *= Fraction(layer.relay if subset >> l & 1 else layer.residual)
        e[subset.bit_count()] += weight
    p1 = sum(Fraction(1, n) for n in range(P + 1, N + 1))
    lower = upper = Fraction(0)
    low = high = Fraction(1)
    for k in range(L):
        if k > 0:
            low, high = low * p1 / k, high * (p1 + Fraction(k - 1, P + 1)) / k
        lower += Fraction(P, N) * sum(e[k + 1 :]) * low
        upper += Fraction(P, N) * sum(e[k + 1 :]) * high
    assert tuple(bracket(model, Fraction(t))) == (lower, upper)


@given(uniform_attention, st.integers(1, 100), st.integers(1, 7))
def test_more_sums_bracket_closer_as_exact_inequalities(model, t, sums):
    value, sides = influence_fraction(model, t), bracket(model, Fraction(t), sums=sums)
    wider = bracket(model, Fraction(t), sums=max(1, sums - 1))
    assert wider.lower <= sides.lower <= value <= sides.upper <= wider.upper
    if model.depth <= sums + 1:
        assert sides.lower == value == sides.upper


@given(
    uniform_attention, st.fractions(min_value=Fraction(1, 1000), max_value=3, max_denominator=1000), st.integers(1, 7)
)
def test_the_bracket_holds_between_tokens_and_before_the_first(model, t, sums):
    """D is irrational there: the sides are fractions, and D a ball of 100 digits that must lie between them."""
    lower, upper = bracket(model, t, sums=sums)
    value = influence_ball(model, t, 100)
    assert isinstance(lower, Fraction)
    assert isinstance(upper, Fraction)
    # one layer, and whole t, leave nothing to round
    exact = model.depth == 1 or (t.denominator == 1 and model.depth <= sums + 1)
    with working(bits=500):
        low, high = arb(rational(lower)), arb(rational(upper))
        assert exact or (low < value < high)
        assert not value < low
        assert not value > high
    if model.depth <= sums + 1:
        assert upper / lower - 1 < Fraction(1, 10**44)


@given(uniform_attention, st.floats(1e-6, 4), st.integers(1, 4))
def test_floats_and_balls_are_the_fractions(model, t, sums):
    exact = bracket(model, Fraction(t), sums=sums)
    sides, balls = bracket(model, t, sums=sums), bracket_ball(model, t, 30, sums=sums)
    assert sides.lower <= exact.lower
    assert exact.upper <= sides.upper
    for side, ball, fraction in zip(sides, balls, exact, strict=True):
        assert side == pytest.approx(float(fraction), rel=1e-12)
        with working(bits=500):
            assert abs(ball / arb(rational(fraction)) - 1) < arb(1e-28)


def test_before_the_first_token_the_bound_for_later_ones_fails():
    """P = 1, L = 3, t = 1/4: with p_2 <= p_1/(P+1) the upper side would be 6.11816, below D = 6.12325."""
    model = RelayModel.uniform(1, 3, 1)
    p1 = influence(RelayModel.uniform(1, 2, 1), 0.25) * 1.25 - 3
    assert (7 + 4 * p1 + (p1**2 + p1 / 2) / 2) / 1.25 < influence(model, 0.25) <= bracket(model, 0.25).upper
    deep = RelayModel.uniform(1, 12, 3)
    assert bracket(deep, 0.5).lower <= 16746831.806820817 <= bracket(deep, 0.5).upper


@pytest.mark.parametrize(
    ("prompt", "quotients"), [(10, (1.0341508, 1.00029120, 1.00000256)), (1, (1.2371027, 1.0061766, 1.0002625))]
)
def test_quotients_of_the_theory(prompt, quotients):
    model = RelayModel.uniform(prompt, 6, 1)
    for sums, quotient in enumerate(quotients, start=1):
        assert float(bracket(model, Fraction(100), sums=sums).tightness) == pytest.approx(quotient, abs=6e-8)


@pytest.mark.slow
@given(uniform_attention, st.integers(1, 200))
def test_the_quotient_stays_below_its_bound(model, t):
    quotient = bracket(model, Fraction(t)).tightness
    assert quotient >= 1
    if model.depth <= 2:
        assert quotient == 1
    else:
        assert arb(fmpq(quotient.numerator, quotient.denominator)) <= tightness_bound(model, t)


def test_the_bound_of_the_quotient_is_the_formula():
    """A looser bound would hold as well; this one is exp((L-1)(L-2) / (2 (P+1) p_1)) from the definition of p_1."""
    for prompt, depth, t in [(1, 3, 1), (7, 6, 30), (2, 12, 400)]:
        p1 = sum(Fraction(1, n) for n in range(prompt + 1, prompt + t + 1))
        formula = math.exp(Fraction((depth - 1) * (depth - 2), 2 * (prompt + 1)) / p1)
        found = tightness_bound(RelayModel.uniform(prompt=prompt, depth=depth, relay=1), t)
        assert float(found.mid()) == pytest.approx(formula, rel=1e-13)
    assert found < tightness_bound(RelayModel.uniform(prompt=2, depth=12, relay=1), 1.5)  # any t from 1 on


def test_the_upper_side_for_early_t_is_attained_as_t_goes_to_0():
    """All p_i go to 0 as t i zeta(i+1, P+1) there, which is what the upper side puts for them (THEORY section 4)."""
    for prompt, depth in [(1, 4), (5, 7)]:
        model = RelayModel.uniform(prompt=prompt, depth=depth, relay=1)
        gaps = []
        for t in (Fraction(1, 100), Fraction(1, 1000)):
            lower, upper = bracket(model, t)
            D = Fraction(influence(model, float(t)))
            gaps.append((float(upper / D - 1), float(1 - lower / D)))
        assert 50 < gaps[0][0] / gaps[1][0] < 200  # of second order in t, where the lower side is off by first order
        assert 8 < gaps[0][1] / gaps[1][1] < 12


@given(uniform_attention, st.integers(1, 10**6))
def test_the_harmonic_sum_lies_between_logarithms(model, t):
    """log((N+1)/(P+1)) <= p_1 <= log(N/P), read off a two-layer model for which D = (P/N)(E_0 + E_1 p_1)."""
    P, N = model.prompt, model.prompt + t
    two = RelayModel.uniform(P, 2, 1)
    p1 = influence(two, t) * N / P - 3
    assert np.log((N + 1) / (P + 1)) * (1 - 1e-12) - 1e-12 <= p1 <= np.log(N / P) * (1 + 1e-12) + 1e-12


def test_the_quotient_of_balls_keeps_their_digits_whatever_the_precision_around():
    sides = bracket_ball(RelayModel.uniform(10, 6, Fraction(1, 3)), 10**6, 60)
    around = []
    for bits in (20, 53, 400):
        with working(bits=bits):
            around.append(sides.tightness)
    assert all(quotient.rel_accuracy_bits() > 180 for quotient in around)
    assert len({quotient.str(55, radius=False) for quotient in around}) == 1


@given(uniform_attention, st.integers(2, 60))
def test_the_bound_is_tight(model, exponent):
    """The quotient of the sides tends to 1 like 1/log t, so no bound of smaller order can hold."""
    t = 10 ** (10 * exponent)
    ball = bracket_ball(model, t, 30)
    value = influence_ball(model, t, 30)
    if model.depth > 2:  # with one or two layers both sides are equalities, which balls cannot order
        assert ball.lower < value
        assert value < ball.upper
    log_t = 10 * exponent * np.log(10)
    L = model.depth
    assert float(ball.tightness - 1) <= 1.2 * (L - 1) * (L - 2) / 2 / (model.prompt + 1) / (log_t - 3) + 1e-25


@given(models())
def test_the_rate_is_attained(model):
    """D over its leading term tends to 1 with an error of order 1/log t: ten times log t divides it by about ten."""
    if not poles(model):
        with pytest.raises(ValueError, match="an influence other than 0 for a rate"):
            rate(model)
        return
    gaps = sorted({layer.position for layer in model.layers if layer.relay})
    if len(gaps) > 1 and gaps[1] - gaps[0] < Fraction(1, 20):
        return  # two close exponents separate only at log t >> 1/gap
    leading = rate(model)
    errors = []
    for digits in (1_000, 10_000):
        t = 10**digits
        errors.append(abs(float(influence_ball(model, t, 20) / leading.ball(t, 20) - 1)))
    assert errors[1] < max(0.12 * errors[0], 1e-12)


@given(uniform_attention, st.lists(st.floats(1e-2, 1e300), min_size=1, max_size=4))
def test_float_bounds_are_rounded_outward(model, t):
    lower, upper = bracket(model, t)
    for i, time in enumerate(t):
        exact = bracket_ball(model, time, 25)
        if lower[i] > 1e-300:
            assert lower[i] <= exact.lower
            assert exact.upper <= upper[i]
            assert lower[i] == pytest.approx(float(exact.lower.mid()), rel=1e-12)
            assert upper[i] == pytest.approx(float(exact.upper.mid()), rel=1e-12)


def test_shapes():
    model = RelayModel.uniform(4, 3, 1)
    lower, upper = bracket(model, [[1, 2], [3, 4]])
    assert lower.shape == upper.shape == (2, 2)
    assert isinstance(bracket(model, 3).lower, float)


good = RelayModel.uniform(4, 3, 1)
BAD = [
    (lambda: bracket(good, 0), ValueError, "t must be positive"),
    (lambda: bracket(good, float("nan")), ValueError, "t must be finite"),
    (lambda: bracket(good, Fraction(-1)), ValueError, "t must be positive and at most 10\\^6 for exact bounds"),
    (lambda: bracket(good, Fraction(10**6 + 1)), ValueError, "t must be positive and at most 10\\^6 for exact bounds"),
    (lambda: bracket(good, 1, sums=0), ValueError, "sums must be at least 1"),
    (lambda: bracket(good, 1, sums=2.0), TypeError, "sums must be an integer"),
    (lambda: tightness_bound(good, 0.5), ValueError, "t must be at least 1 for this bound"),
    (lambda: bracket(good, 10**301), ValueError, "use bracket_ball"),
    (lambda: bracket("model", 1), TypeError, "model must be a RelayModel"),
    (lambda: bracket(RelayModel(4, [Layer(1), Layer(-1)]), 1), ValueError, "no negative strength .* in layer 2"),
    (lambda: bracket(RelayModel(4, [Layer(1, -1)]), 1), ValueError, "no negative strength"),
    (lambda: bracket(RelayModel(4, [Layer(1, 1, 0.5)]), 1), ValueError, "position 0"),
    (lambda: bracket(RelayModel(4, [Layer(0)]), 1), ValueError, "an influence other than 0 for the two-sided bound"),
    (lambda: bracket_ball(good, -1), ValueError, "t must be positive"),
    (lambda: rate(good).ball(1), ValueError, "t must be greater than 1, got 1"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:40] for _, _, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
