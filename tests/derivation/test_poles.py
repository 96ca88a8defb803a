"""Closed forms and exact exponents: against the recursion in fractions and contour integrals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.derivation import P, derive, t
from tests.derivation.cases import (
    MODELS,
    RELAY,
    RESIDUAL,
    assert_near,
    assigned,
    at,
    contour,
    contour_exponent,
    derivation_of,
    exact,
    number,
    rational,
)

POINTS = [(1, 1), (1, 9), (2, 3), (5, 1), (4, 12)]
"""Prompt lengths and continuation tokens at which identities are tried."""


POSITION = [Fraction(0), Fraction(1, 2), Fraction(-1, 3), Fraction(2), Fraction(1), Fraction(-3, 4)]


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(
    ("relay", "residual"), [("equal", 1), ("equal", "equal"), ("different", 1), ("different", "different")]
)
def test_closed_forms_are_the_recursion_exactly(depth, relay, residual):
    d = derive(depth, relay=relay, residual=residual)
    relays = RELAY[:depth] if relay == "different" else [Fraction(-3, 7)] * depth
    residuals = (
        RESIDUAL[:depth] if residual == "different" else [Fraction(1) if residual == 1 else Fraction(4, 5)] * depth
    )
    layers = [(a, b, Fraction(0)) for a, b in zip(relays, residuals, strict=True)]
    for prompt, token in POINTS:
        values = assigned(d, layers) | {P: prompt, t: token}
        expected = exact(layers, prompt, token)
        for form in (d.closed_form, d.harmonic_form):
            value = at(form, values)
            assert value.is_Rational
            assert value == rational(expected)
        assert d.evaluate(prompt, token, relay=relays, residual=residuals) == rational(expected)


@pytest.mark.parametrize(
    "position",
    [
        [Fraction(0)] * 3 + [Fraction(1)] * 2,
        [Fraction(2), Fraction(0), Fraction(1)],
        [Fraction(3)] * 4,
        [Fraction(0), Fraction(1), Fraction(0)],
    ],
)
def test_whole_positions_give_rationals(position):
    depth = len(position)
    d = derive(depth, relay="different", residual="different", position=position)
    layers = list(zip(RELAY[:depth], RESIDUAL[:depth], position, strict=True))
    for prompt, token in POINTS:
        values = assigned(d, layers) | {P: prompt, t: token}
        for form in (d.closed_form, d.harmonic_form):
            assert at(form, values) == rational(exact(layers, prompt, token))


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
@pytest.mark.parametrize("relay", ["equal", "different"])
def test_symbolic_different_positions(depth, relay):
    d = derive(depth, relay=relay, residual="different", position="different")
    relays = RELAY[:depth] if relay == "different" else [Fraction(5, 3)] * depth
    layers = list(zip(relays, RESIDUAL[:depth], POSITION[:depth], strict=True))
    for prompt, token in POINTS:
        expected = rational(exact(layers, prompt, token))
        values = assigned(d, layers) | {P: prompt, t: token}
        assert_near(at(d.closed_form, values), expected)
        assert_near(at(d.harmonic_form, values), expected)
        assert d.evaluate(prompt, token, relay=relays, residual=RESIDUAL[:depth], position=POSITION[:depth]) == expected


@pytest.mark.parametrize("g", [Fraction(0), Fraction(-2, 3), Fraction(1, 2), Fraction(3)])
def test_one_symbol_for_all_positions(g):
    d = derive(4, relay="different", position="equal")
    layers = [(relay, Fraction(1), g) for relay in RELAY[:4]]
    for prompt, token in POINTS:
        expected = rational(exact(layers, prompt, token))
        values = assigned(d, layers) | {P: prompt, t: token}
        assert_near(at(d.closed_form, values), expected)
        assert_near(at(d.harmonic_form, values), expected)


def test_mixed_positions_symbolic_and_not_with_several_layers_each():
    g = sympy.Symbol("g")
    d = derive(5, residual="equal", position=[g, 0, g, 0, g])
    layers = [(Fraction(3, 2), Fraction(2, 3), x) for x in [Fraction(2, 7), Fraction(0)] * 2 + [Fraction(2, 7)]]
    for prompt, token in POINTS:
        expected = exact(layers, prompt, token)
        assert d.evaluate(
            prompt, token, relay=Fraction(3, 2), residual=Fraction(2, 3), position=[x[2] for x in layers]
        ) == rational(expected)
        assert_near(at(d.closed_form, assigned(d, layers) | {P: prompt, t: token}), rational(expected))


@pytest.mark.parametrize(("depth", "relay"), [(9, "different"), (12, "equal"), (16, "equal"), (18, "different")])
def test_deep_stacks(depth, relay):
    d = derive(depth, relay=relay, residual=Fraction(1, 2))
    relays = [Fraction(i + 2, 5) for i in range(depth)] if relay == "different" else [Fraction(3, 4)] * depth
    layers = [(a, Fraction(1, 2), Fraction(0)) for a in relays]
    for prompt, token in [(2, 5), (7, 2)]:
        expected = rational(exact(layers, prompt, token))
        assert d.evaluate(prompt, token, relay=relays) == expected
        if depth < 18:  # the names of 18 strengths in every term make the substitution slow, not the derivation
            assert at(d.closed_form, assigned(d, layers) | {P: prompt, t: token}) == expected


@pytest.mark.slow
@given(data=st.data())
def test_any_rational_model(data):
    fractions = st.fractions(-3, 3, max_denominator=6)
    layer = st.builds(Layer, fractions, fractions, st.sampled_from(POSITION))
    model = RelayModel(data.draw(st.integers(1, 5)), data.draw(st.lists(layer, min_size=1, max_size=5)))
    token = data.draw(st.integers(1, 6))
    d = derive(model)
    expected = rational(model.differences(model.prompt + token)[-1])
    assert d.evaluate(model.prompt, token) == expected
    assert_near(d.closed_form.subs({P: model.prompt, t: token}), expected, 1e-25)
    assert d.closed_form.free_symbols <= {P, t}


def test_floats_keep_their_binary_value():
    model = RelayModel.uniform(prompt=3, depth=2, relay=0.1, position=0.5)
    assert derive(model).evaluate(3, 4) == rational(model.differences(7)[-1])
    assert derive(2, relay=0.1, position=np.float64(0.5)) == derive(model)
    assert derive(2, relay=sympy.Float(0.1), position=sympy.Rational(1, 2)) == derive(model)


def test_a_pole_that_another_layer_cancels_is_none():
    # (1 + 1/z) vanishes at z = -1, the pole of the second layer
    layers = [(Fraction(1), Fraction(1), Fraction(0)), (Fraction(3), Fraction(2), Fraction(1))]
    d = derive(RelayModel(1, tuple(Layer(*layer) for layer in layers)))
    assert [pole.position for pole in d.poles] == [0]
    for prompt, token in POINTS:
        assert d.closed_form.subs({P: prompt, t: token}) == rational(exact(layers, prompt, token))
    assert d.limit.exponent == 1


def test_a_layer_without_relay_is_no_pole():
    d = derive(3, relay=[2, 0, 1], residual=[1, Fraction(1, 3), 1], position=[0, -Fraction(1, 2), 0])
    layers = [(2, 1, 0), (0, Fraction(1, 3), -Fraction(1, 2)), (1, 1, 0)]
    assert d.closed_form.subs({P: 3, t: 4}) == rational(exact(layers, 3, 4))
    assert (d.limit.exponent, d.limit.log_power) == (1, 1)


def test_order_of_layers_does_not_matter():
    forward = derive(4, relay=RELAY[:4], residual=RESIDUAL[:4], position=POSITION[:4])
    backward = derive(4, relay=RELAY[3::-1], residual=RESIDUAL[3::-1], position=POSITION[3::-1])
    assert sympy.expand(forward.closed_form - backward.closed_form) == 0


def test_real_t():
    layers = [(Fraction(1, 2), Fraction(1), Fraction(0))] * 3 + [(Fraction(2), Fraction(1), Fraction(3, 2))]
    d = derive(4, relay=[a for a, _, _ in layers], position=[g for _, _, g in layers])
    with mpmath.workdps(40):
        token = mpmath.mpf(17) / 7
        value = number(d.closed_form.subs({P: 6, t: sympy.Rational(17, 7)}))
        assert abs(value - contour(layers, 6, 6 + token)) < 1e-35


def test_lambdify_on_arrays():
    d = derive(5, residual="equal")
    f = sympy.lambdify((P, t, d.relay[0], d.residual[0]), d.closed_form, cse=True)
    tokens = np.arange(1, 8)
    layers = [(Fraction(1, 2), Fraction(3, 4), Fraction(0))] * 5
    expected = [float(exact(layers, 4, int(token))) for token in tokens]
    np.testing.assert_allclose(f(4, tokens, 0.5, 0.75), expected, rtol=1e-12)
    d = derive(2, relay=1, position=[0, Fraction(1, 2)])
    layers = [(Fraction(1), Fraction(1), Fraction(0)), (Fraction(1), Fraction(1), Fraction(1, 2))]
    for modules in ("scipy", "mpmath"):
        value = sympy.lambdify((P, t), d.closed_form, modules)(4, 7)
        assert float(value) == pytest.approx(float(exact(layers, 4, 7)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_local_exponent_is_the_derivative(name):
    layers = MODELS[name]
    d = derivation_of(layers)
    with mpmath.workdps(40):
        for prompt, token in [(1, 2), (5, 40), (30, 7)]:
            value = number(d.local_exponent.subs({P: prompt, t: token}), 60)
            h = mpmath.mpf(10) ** -12
            up, down = (mpmath.log(contour(layers, prompt, prompt + token * mpmath.exp(u))) for u in (h, -h))
            assert abs(value + (up - down) / (2 * h)) < 1e-20


def test_local_exponent_with_symbols():
    d = derive(3, relay="different", residual="equal", position="different")
    layers = [(RELAY[i], Fraction(2, 3), POSITION[i]) for i in range(3)]
    with mpmath.workdps(40):
        value = number(d.local_exponent.subs(assigned(d, layers) | {P: 3, t: 11}))
        assert abs(value - contour_exponent(layers, 3, 11)) < 1e-25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "expected"),
    [(2, (0.811, 0.868, 0.899, 0.931)), (6, (0.368, 0.517, 0.609, 0.716)), (12, (0.093, 0.221, 0.331, 0.485))],
)
def test_local_exponents_of_the_theory(depth, expected):
    """THEORY section 3: P = 10, lambda = 1.  Its figures are -dlogD/dlogn at positions n = 1e2, 1e3, 1e4, 1e6."""
    f = sympy.lambdify((P, t), derive(depth, relay=1).local_exponent, "mpmath", cse=True)
    values = [float(f(10, mpmath.mpf(n - 10))) * n / (n - 10) for n in (10**2, 10**3, 10**4, 10**6)]
    assert values == pytest.approx(expected, abs=6e-4)
