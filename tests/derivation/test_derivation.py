"""The derivation against the recursion in exact rationals, and against contour integrals in hundreds of digits."""

import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement
from math import prod

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser
from scipy.special import eval_genlaguerre
from sympy.utilities.iterables import partitions

import relaymodel.derivation as package
from relaymodel import Layer, RelayModel
from relaymodel.derivation import AsymptoticSeries, Derivation, P, derive, infinite_depth_density, t

POINTS = [(1, 1), (1, 9), (2, 3), (5, 1), (4, 12)]
"""Prompt lengths and continuation tokens at which identities are tried."""
RELAY = [Fraction(1, 2), Fraction(3), Fraction(-2, 3), Fraction(5, 4), Fraction(1), Fraction(7, 5)]
RESIDUAL = [Fraction(1), Fraction(2, 3), Fraction(-1, 2), Fraction(3, 2), Fraction(0), Fraction(1, 3)]
POSITION = [Fraction(0), Fraction(1, 2), Fraction(-1, 3), Fraction(2), Fraction(1), Fraction(-3, 4)]


@cache
def recursion(model, length):
    return model.differences(length)


def exact(layers, prompt, token):
    """D from the recursion, for layers given as (relay, residual, position)."""
    model = RelayModel(prompt, tuple(Layer(*layer) for layer in layers))
    return recursion(model, prompt + token)[-1]


def rational(value):
    return sympy.Rational(value.numerator, value.denominator)


def assigned(derivation, layers):
    """The substitution that gives the derivation's symbols the values of the layers."""
    values = {}
    for symbols, column in zip(
        (derivation.relay, derivation.residual, derivation.position), zip(*layers, strict=True), strict=True
    ):
        values |= {symbol: rational(v) for symbol, v in zip(symbols, column, strict=True) if not symbol.is_number}
    return values


@cache
def circle(centre, radius, count, prompt, digits):
    """Points of the upper half of a circle, with Gamma(P+1-z)/Gamma(P) there."""
    with mpmath.workdps(digits):
        points = [centre + radius * mpmath.expjpi(mpmath.mpf(2 * i + 1) / (2 * count)) for i in range(count)]
        return [(z, mpmath.gamma(prompt + 1 - z) / mpmath.gamma(prompt)) for z in points]


def contour(layers, prompt, N, *, radius=None, count=60, slope=False):
    """D by THEORY section 2, as the integral of f(z) Phi(-z); or dD/dt, with psi(N) - psi(N+1-z) under the integral.

    Circles around each pole, by the trapezoid rule, which converges geometrically.  In mpmath's current precision.
    """
    layers = [[mpmath.mpf(x.numerator) / x.denominator for x in map(Fraction, layer)] for layer in layers]
    centres = {-g for _, _, g in layers}
    if radius is None:
        radius = min([abs(a - b) for a, b in combinations(centres, 2)] + [1 - c for c in centres]) / 4
    total = mpmath.mpf(0)
    for centre in centres:
        for z, gamma in circle(centre, radius, count, prompt, mpmath.mp.dps):
            with mpmath.extradps(int(mpmath.log10(N)) + 10):  # z is small beside N, and the logarithms are large
                value = gamma * mpmath.exp(mpmath.loggamma(N) - mpmath.loggamma(N + 1 - z))
                if slope:
                    value *= mpmath.psi(0, N) - mpmath.psi(0, N + 1 - z)
            for relay, residual, g in layers:
                value *= residual + relay * (1 + g) / (z + g)
            total += (value / (1 - z) * (z - centre) / count).real
    return total


def contour_exponent(layers, prompt, token, **options):
    """The local exponent by THEORY section 3."""
    N = prompt + token
    return -token * contour(layers, prompt, N, slope=True, **options) / contour(layers, prompt, N, **options)


def number(expression, digits=40):
    """The value of a SymPy number as mpmath's."""
    value = sympy.N(expression, digits)
    with mpmath.workdps(digits):
        return mpmath.mpf(value._mpf_) if value.is_Float else mpmath.mpf(value.p) / value.q


def at(expression, values):
    """All substitutions at once: the same value as `subs`, sooner."""
    return expression.xreplace({symbol: sympy.sympify(value) for symbol, value in values.items()})


def assert_near(value, expected, tolerance=1e-30):
    """Compare a SymPy number, evaluated to 40 digits, with an exact one."""
    with mpmath.workdps(40):
        assert abs(number(value) - number(sympy.sympify(expected))) < tolerance


# ------------------------------------------------------------------ closed forms


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


# ------------------------------------------------------------------ local exponent


MODELS = {
    "one layer": [(1, 1, 0)],
    "uniform": [(Fraction(1, 2), 1, 0)] * 4,
    "different": [(1, 1, 0), (Fraction(1, 3), Fraction(1, 2), 0), (2, 1, 0)],
    "moved": [(1, 1, Fraction(1, 2))] * 3,
    "whole": [(1, 1, 1)] * 3,
    "near": [(1, 1, 0), (1, 1, Fraction(1, 2)), (2, 1, Fraction(1, 2)), (Fraction(1, 2), 1, 0)],
    "far": [(1, 1, 2), (1, 1, 0), (1, 1, 0), (1, 1, 2), (1, 1, 2)],
    "next": [(1, 1, 1), (2, 1, 0), (1, 1, 1)],
    "early keys": [(1, 1, Fraction(-1, 2)), (1, 1, 0), (1, 1, 0)],
}
MODELS = {name: [tuple(map(Fraction, layer)) for layer in layers] for name, layers in MODELS.items()}


def derivation_of(layers):
    return derive(RelayModel(1, tuple(Layer(*layer) for layer in layers)))


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


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(2, (0.811, 0.868, 0.899, 0.931)), (6, (0.368, 0.517, 0.609, 0.716)), (12, (0.093, 0.221, 0.331, 0.485))],
)
def test_local_exponents_of_the_theory(depth, expected):
    """THEORY section 3: P = 10, lambda = 1.  Its figures are -dlogD/dlogn at positions n = 1e2, 1e3, 1e4, 1e6."""
    f = sympy.lambdify((P, t), derive(depth, relay=1).local_exponent, "mpmath", cse=True)
    values = [float(f(10, mpmath.mpf(n - 10))) * n / (n - 10) for n in (10**2, 10**3, 10**4, 10**6)]
    assert values == pytest.approx(expected, abs=6e-4)


# ------------------------------------------------------------------ large t


LARGE = (50, 100, 200)


def at_large_t(expression, digits=260):
    """Values at P = 2, t = 10^50, 10^100, 10^200."""
    f = sympy.lambdify((P, t), expression, "mpmath", cse=True)
    with mpmath.workdps(digits):
        return [f(mpmath.mpf(2), mpmath.mpf(10) ** k) for k in LARGE]


@cache
def truth(name):
    """D and the local exponent of a model at P = 2, t = 10^50, 10^100, 10^200, by contours of small radius."""
    with mpmath.workdps(260):
        options = {"radius": mpmath.mpf(1) / 1024, "count": 60}
        tokens = [mpmath.mpf(10) ** k for k in LARGE]
        values = [contour(MODELS[name], 2, 2 + token, **options) for token in tokens]
        slopes = [contour(MODELS[name], 2, 2 + token, slope=True, **options) for token in tokens]
        return values, [-x * slope / value for x, slope, value in zip(tokens, slopes, values, strict=True)]


def assert_error_is_of_order(errors, scale, where):
    """The error divided by its claimed order settles to a constant: it neither grows nor falls away.

    Each step doubles log t, so a wrong power of log t shows as a factor of 2, a wrong power of t as one of 10^50 at
    least.  The next term of the series moves the quotient by O(1/log t).
    """
    ratios = [abs(error / s) for error, s in zip(errors, scale, strict=True)]
    assert all(ratios), where
    assert 0.75 < ratios[2] / ratios[1] < 1.35, (where, ratios)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_series_of_the_influence(name, order):
    series = derivation_of(MODELS[name]).asymptotic_series(order)
    with mpmath.workdps(260):
        errors = [a - b for a, b in zip(at_large_t(series.expression), truth(name)[0], strict=True)]
        assert_error_is_of_order(errors, at_large_t(series.error), name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 7])
def test_series_of_the_exponent(name, order):
    series = derivation_of(MODELS[name]).exponent_series(order)
    with mpmath.workdps(260):
        errors = [a - b for a, b in zip(at_large_t(series.expression), truth(name)[1], strict=True)]
        assert_error_is_of_order(errors, at_large_t(series.error), name)


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_limit_is_the_theorem(depth):
    """THEORY section 3: D ~ A P (log t)^(L-1)/t with A = prod lambda/(L-1)!."""
    d = derive(depth, relay="different", residual="equal")
    A = prod(d.relay) / sympy.factorial(depth - 1)
    assert d.limit.A == A
    assert d.limit.exponent == 1
    assert d.limit.log_power == depth - 1
    assert d.limit.leading == A * P * sympy.log(t) ** (depth - 1) / t


def test_limit_with_positions_is_the_theorem():
    """THEORY section 3: a/(m-1)! Gamma(P+1+g)/(Gamma(P)(1+g)) (log t)^(m-1) t^-(1+g), a = lim (z+g)^m f(z)."""
    d = derive(3, relay="different", position=[1, Fraction(1, 2), Fraction(1, 2)])
    l1, l2, l3 = d.relay
    g = sympy.Rational(1, 2)
    a = (1 + g) ** 2 * l2 * l3 * (1 + l1 * 2 / (1 - g))
    expected = a * sympy.gamma(P + 1 + g) / (sympy.gamma(P) * (1 + g)) * sympy.log(t) * t ** -(1 + g)
    assert sympy.expand(d.limit.leading - expected) == 0
    assert (d.limit.exponent, d.limit.log_power) == (1 + g, 1)


def test_symbolic_series_is_the_numeric_one():
    d = derive(3, relay="different", residual="different", position="equal")
    layers = [(RELAY[i], Fraction(1 + i, 2), Fraction(1, 2)) for i in range(3)]
    numeric = derivation_of(layers)
    values = assigned(d, layers)
    for method in ("asymptotic_series", "exponent_series"):
        for order in (1, 2, 3, 5):
            ours, theirs = (getattr(x, method)(order).expression for x in (d, numeric))
            difference = (ours.subs(values) - theirs).subs({P: 3, t: sympy.Integer(10) ** 9})
            assert abs(number(difference)) < 1e-30


def test_first_correction_of_the_exponent():
    """THEORY section 3: alpha = 1 + g* - (m*-1)/log t + O(1/log^2 t)."""
    g = sympy.Symbol("g")
    series = derive(4, position=g).exponent_series(2)
    assert series.coefficients == (1 + g, -3)
    assert series.error == sympy.log(t) ** -2


def test_default_series_and_printing():
    d = derive(3, relay=1)
    assert isinstance(d.asymptotic, AsymptoticSeries)
    assert d.asymptotic == d.asymptotic_series(3)
    assert str(derive(1).asymptotic_series(1)) == "D(t) = P*lambda/t + O(t**(-2))"
    assert str(d.exponent_series(2)) == "alpha(t) = 1 - 2/log(t) + O(log(t)**(-2))"
    assert sympy.latex(d.exponent_series(2)).startswith(
        r"\alpha{\left(t \right)} = 1 - \frac{2}{\log{\left(t \right)}}"
    )


def test_order_of_positions():
    a, b = sympy.symbols("a b")
    assert derive(2, position=[b, a]).limit.exponent == 1 + b  # taken to be increasing as given
    assert derive(2, position="different").limit.exponent == 1 + sympy.Symbol("g_1", real=True)
    assert derive(3, position=[2, Fraction(-1, 2), 1]).limit.exponent == sympy.Rational(1, 2)
    p = sympy.Symbol("p", positive=True)
    assert derive(2, position=[p, 0]).limit.exponent == 1
    d = derive(3, position=[1, b, 0])
    assert len(d.poles) == 3
    for result in ("limit", "asymptotic", "steps"):
        with pytest.raises(ValueError, match=r"position must be listed in increasing order .* got 1, b, 0; reorder"):
            getattr(d, result)


# ------------------------------------------------------------------ continuum


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_continuum_density_is_laguerre(depth):
    """THEORY section 6: q = lambda rho^(L-1) L^(1)_(L-1)(-lambda tau/rho)."""
    density = derive(depth, relay=0.75, residual=0.5).continuum_density
    assert density.atom == sympy.Rational(1, 2) ** depth
    r = np.array([1e-9, 1e-3, 0.1, 0.9])
    q = sympy.lambdify(density.variable, density.density)(r) * np.ones(4)
    np.testing.assert_allclose(
        q, 0.75 * 0.5 ** (depth - 1) * eval_genlaguerre(depth - 1, 1, 1.5 * np.log(r)), rtol=1e-12
    )


def test_continuum_is_as_far_off_as_the_theory_says():
    """THEORY section 6: at n = 10^6, L = 12, a = 1/2 the continuum is 14 % off the exact first-token weight."""
    d = derive(12, relay=0.5, residual=0.5)
    weight = sympy.lambdify(t, d.closed_form.subs(P, 1), "mpmath", cse=True)(mpmath.mpf(10**6 - 1))
    continuum = sympy.lambdify((P, t), d.continuum_density.influence)(1, 10**6 - 1)
    assert continuum / float(weight) - 1 == pytest.approx(0.14, abs=0.005)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "one layer"])  # there it is exact
def test_continuum_influence_is_the_integral_and_the_limit(name):
    layers = MODELS[name]
    density = derivation_of(layers).continuum_density
    with mpmath.workdps(20):
        q = sympy.lambdify(density.variable, density.density, "mpmath")
        influence = sympy.lambdify((P, t), density.influence, "mpmath")
        integral = mpmath.quad(q, mpmath.linspace(0, mpmath.mpf(1) / 4, 5))
        assert abs(influence(1, 3) - integral) < 1e-8
        errors = [contour(layers, n, 4 * n, count=40) / influence(n, 3 * n) - 1 for n in (1000, 2000)]
        assert abs(errors[0]) < 0.05
        assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)  # falls as 1/n


@pytest.mark.parametrize("g", [Fraction(0), Fraction(1, 2)])
def test_infinite_depth_is_the_limit_of_finite_depth(g):
    """THEORY section 6: q = sqrt(c/tau) I_1(2 sqrt(c tau)) for g = 0; depth L is off by O(1/L)."""
    limit = infinite_depth_density(2, position=g)
    q = float(limit.density.subs(limit.variable, 0.2).evalf())
    if g == 0:
        tau = mpmath.log(5)
        assert q == pytest.approx(float(mpmath.sqrt(2 / tau) * mpmath.besseli(1, 2 * mpmath.sqrt(2 * tau))), rel=1e-14)
    influence = sympy.lambdify((P, t), limit.influence)(64, 1000)
    for value, name in ((q, "density"), (influence, "influence")):
        errors = []
        for depth in (50, 100):
            finite = derive(depth, relay=Fraction(2, depth), position=g).continuum_density
            values = {finite.variable: sympy.Rational(1, 5), P: 64, t: 1000}
            errors.append(float(at(getattr(finite, name), values).evalf()) / value - 1)
        assert abs(errors[0]) < 0.15, name
        assert errors[0] / errors[1] == pytest.approx(2, abs=0.1), name
    assert limit.atom == 1


def test_infinite_depth_with_a_symbol():
    c = sympy.Symbol("c", positive=True)
    density = infinite_depth_density(c)
    assert density == infinite_depth_density()
    values = {c: 3, density.variable: sympy.Rational(1, 10)}
    assert (
        abs(
            number(
                density.density.subs(values)
                - infinite_depth_density(3).density.subs(density.variable, values[density.variable])
            )
        )
        < 1e-30
    )


# ------------------------------------------------------------------ steps


STEP_CASES = {
    "equal": (derive(3), [(Fraction(3, 2), Fraction(1), Fraction(0))] * 3),
    "deep": (derive(6, residual="equal"), [(Fraction(3, 2), Fraction(1, 2), Fraction(0))] * 6),
    "different": (
        derive(3, relay="different", residual="different"),
        [(RELAY[i], RESIDUAL[i], Fraction(0)) for i in range(3)],
    ),
    "symbol g": (derive(3, position="equal"), [(Fraction(3, 2), Fraction(1), Fraction(1, 2))] * 3),
    "two poles": (
        derive(4, relay="different", position=[0, Fraction(1, 2), 0, Fraction(1, 2)]),
        [(RELAY[i], Fraction(1), Fraction(i % 2, 2)) for i in range(4)],
    ),
    "all different": (
        derive(3, relay="different", residual="different", position="different"),
        [(RELAY[i], Fraction(1), Fraction(i, 2)) for i in range(3)],
    ),
    "numbers": (
        derive(2, relay=[2, 3], position=1),
        [(Fraction(2), Fraction(1), Fraction(1)), (Fraction(3), Fraction(1), Fraction(1))],
    ),
}


def complete_homogeneous(values, k):
    return sum((prod(chosen) for chosen in combinations_with_replacement(values, k)), start=Fraction(0))


def principal_part(layers, g):
    """Coefficients of 1/(z+g), 1/(z+g)^2, ... in f, by contour integrals."""
    m = Counter(layer[2] for layer in layers)[g]
    others = {layer[2] for layer in layers} - {g}
    radius = mpmath.mpf(1) / 4 if others else mpmath.mpf(1) / 2
    coefficients = []
    for j in range(1, m + 1):
        total = mpmath.mpc(0)
        for i in range(120):
            step = radius * mpmath.expjpi(mpmath.mpf(2 * i + 1) / 120)
            value = step**j / 120
            for relay, residual, h in layers:
                value *= mpmath.mpf(residual.numerator) / residual.denominator + mpmath.mpf(
                    relay.numerator
                ) / relay.denominator * (1 + mpmath.mpf(h.numerator) / h.denominator) / (
                    step - mpmath.mpf(g.numerator) / g.denominator + mpmath.mpf(h.numerator) / h.denominator
                )
            total += value
        coefficients.append(total.real)
    return coefficients


def meanings(layers, prompt, token):
    """The value of every symbol and function in the steps' equations, found without the package's derivation."""
    N = prompt + token
    values = {}
    positions = list(dict.fromkeys(layer[2] for layer in layers))
    for a, g in enumerate(positions):
        m = Counter(layer[2] for layer in layers)[g]
        label = f"{{{a + 1}," if len(positions) > 1 else ""
        close = "}" if label else ""
        shifted = [1 / (s + g) for s in range(prompt + 1, N + 1)]
        c = principal_part(layers, g)
        scale = mpmath.mpf((1 + g).numerator) / (1 + g).denominator
        for k in range(m):
            values[f"E_{label}{k}{close}"] = sum(c[j] / scale ** (j + 1) for j in range(k, m))
            values[f"h_{label}{k}{close}"] = rational(complete_homogeneous(shifted, k))
            if k:
                values[f"p_{label}{k}{close}"] = rational(sum(x**k for x in shifted))
    return values


@pytest.mark.parametrize("case", STEP_CASES)
def test_steps_are_true(case):
    """Every equation, evaluated at points, with independent values for what it names."""
    derivation, layers = STEP_CASES[case]
    prompt, token, index, length = 2, 4, 3, 6
    N = prompt + token
    g = layers[0][2]  # of the steps that speak of one mean
    x, y, z = map(sympy.Symbol, "xyz")
    l, n, j = (sympy.Symbol(name, integer=True, positive=True) for name in "lnj")
    sequences = [[Fraction(int(i < prompt)) for i in range(length)]]
    for layer in layers:
        sequences.append(list(Layer(*layer).apply(sequences[-1])))
    weights = [prod((i + g) / i for i in range(1, s)) for s in range(1, length + 1)]  # w_s up to a factor
    inputs = [Fraction(i * i + 1, i + 2) for i in range(1, length + 1)]
    means = [
        sum(w * v for w, v in zip(weights[:i], inputs[:i], strict=True)) / sum(weights[:i])
        for i in range(1, length + 1)
    ]
    point = Fraction(13, 5)
    stack = prod((residual + relay * (1 + h) / (point + h) for relay, residual, h in layers), start=Fraction(1))

    def applied(function):
        name, arguments = function.func.__name__, [int(a) if a.is_Integer else a for a in function.args]
        if name == "x" and len(arguments) == 2:
            return rational(sequences[arguments[0]][arguments[1] - 1])
        if name == "x":
            return rational(inputs[arguments[0] - 1])
        if name == "m":
            return rational(means[arguments[0] - 1])
        if name == "f":
            return rational(stack)
        if name == "h":
            return rational(complete_homogeneous([1 / (s + g) for s in range(prompt + 1, N + 1)], arguments[0]))
        if name == "S":  # the power of the mean, by the recursion
            return rational(exact([(1, 0, g)] * arguments[0], prompt, token))
        if name == "D":
            return rational(exact(layers, prompt, token))
        assert name == "alpha"
        with mpmath.workdps(40):
            return sympy.Float(contour_exponent(layers, prompt, token), 40)

    with mpmath.workdps(40):
        named = {
            name: value if isinstance(value, sympy.Basic) else sympy.Float(value, 40)
            for name, value in meanings(layers, prompt, token).items()
        }
    numbers = {
        l: index - 1,
        n: 5,
        j: 3,
        z: rational(point),
        y: sympy.Rational(1, 7),
        x: sympy.Rational(2, 9),
        P: prompt,
        t: token,
    }
    numbers |= assigned(derivation, layers)
    numbers |= {sympy.Symbol("g", real=True): rational(g)}

    def evaluate(side):
        side = side.subs(numbers).doit()
        side = side.replace(lambda e: isinstance(e, sympy.core.function.AppliedUndef), applied).doit()
        side = side.replace(
            lambda e: isinstance(e, sympy.Indexed),
            lambda e: rational(layers[int(e.indices[0]) - 1][["lambda", "rho", "g"].index(str(e.base))]),
        ).doit()
        return side.subs({symbol: named[symbol.name] for symbol in side.free_symbols})

    checked = 0
    for step in derivation.steps:
        assert step.title
        assert step.text.endswith((".", ".)"))
        assert step.equations
        for equation in step.equations:
            if isinstance(equation, AsymptoticSeries):
                continue  # see the tests of the series
            left, right = evaluate(equation.lhs), evaluate(equation.rhs)
            assert abs(number(left - right)) < 1e-25, (step.title, equation)
            checked += 1
    assert checked >= 9


@pytest.mark.parametrize("case", STEP_CASES)
def test_large_t_step(case):
    """What the step on large t says of the prefactor and the power sums."""
    derivation, layers = STEP_CASES[case]
    (step,) = [step for step in derivation.steps if step.title == "Large t"]
    g = min(layer[2] for layer in layers)
    values = assigned(derivation, layers) | {P: 3}
    with mpmath.workdps(30):
        shift = mpmath.mpf(g.numerator) / g.denominator
        for series in step.equations:
            errors = []
            for token in (10**6, 10**7):
                if str(series.quantity).startswith("p_"):
                    i = int(re.findall(r"\d+", str(series.quantity))[-1])
                    truth = (
                        mpmath.zeta(i, 4 + shift) - mpmath.zeta(i, 4 + token + shift)
                        if i > 1
                        else mpmath.psi(0, 4 + token + shift) - mpmath.psi(0, 4 + shift)
                    )
                else:
                    truth = mpmath.gammaprod([4 + shift, 3 + token], [3, 4 + token + shift])
                    assert abs(number(series.quantity.subs(values | {t: sympy.Float(token, 40)})) - truth) < 1e-25
                error = number(series.expression.subs(values | {t: token})) - truth
                errors.append(error / number(series.error.subs(values | {t: token})))
            assert 0.01 < abs(errors[0]) < 100
            assert errors[0] / errors[1] == pytest.approx(1, abs=0.01)


def test_last_steps_are_the_series():
    d = derive(4, relay="different")
    assert d.steps[-2].equations == (d.asymptotic_series(1), d.asymptotic_series(3))
    assert d.steps[-1].equations == (d.exponent_series(3),)
    assert d.recursion == d.steps[0].equations[0]


def test_steps_name_what_varies():
    text = derive(2, relay=[1, Fraction(1, 2)]).steps[0].text
    assert r"${\lambda}_{l} = 1, \frac{1}{2}$" in text
    assert "Layer by layer" not in derive(2).steps[0].text


def test_definitions_lead_to_the_closed_form():
    for derivation, _ in STEP_CASES.values():
        symbols = sorted(derivation.closed_form.free_symbols, key=str)
        values = {symbol: sympy.Rational(i + 5, 7) for i, symbol in enumerate(symbols)} | {P: 3, t: 4}
        expected = at(derivation.closed_form, values)
        for definition in derivation.definitions:
            values[definition.lhs] = at(definition.rhs, values)
        assert_near(at(derivation.compact_form.rhs, values), number(expected))


def test_compact_form_at_depth_64():
    d = derive(64)
    assert len(d.definitions) == 64 + 63 + 63
    values = {d.relay[0]: Fraction(1, 16), P: 2, t: 3}
    for definition in d.definitions:
        values[definition.lhs] = at(definition.rhs, values)
    assert at(d.compact_form.rhs, values) == rational(exact([(Fraction(1, 16), 1, 0)] * 64, 2, 3))
    for form in ("closed_form", "harmonic_form", "local_exponent"):
        with pytest.raises(
            ValueError, match=r"at most 32 layers may share a position exponent .* got 64; use compact_form"
        ):
            getattr(d, form)


def test_sizes_that_the_documentation_states():
    terms = package.poles.complete_homogeneous(sympy.symbols("p_1:12"))
    assert sum(len(sympy.Add.make_args(h)) for h in terms) == 195
    assert sum(1 for k in range(32) for _ in partitions(k)) == 35471
    assert "195 for m = 12, 35 471 for m = 32" in Derivation.closed_form.__doc__


# ------------------------------------------------------------------ LaTeX


def formulas(derivation):
    for step in derivation.steps:
        body = step.latex().split("\\begin{align*}\n")[1].split("\n\\end{align*}")[0]
        yield from (line.removeprefix("& ").removesuffix(" \\\\") for line in body.split("\n"))
        yield from re.findall(r"\$(.+?)\$", step.text)
    yield from re.findall(r"& (.+?)(?: \\\\)?\n", derivation._repr_latex_())
    yield derivation.asymptotic._repr_latex_().strip("$").removeprefix("\\displaystyle ")


def assert_sound(tex):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", tex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0, tex
    assert depth == 0, tex
    assert "{}" not in tex
    assert tex.count(r"\left") == tex.count(r"\right"), tex
    assert "polygamma" not in tex
    assert "harmonic" not in tex


@pytest.mark.parametrize("case", STEP_CASES)
def test_latex_is_sound(case):
    derivation, _ = STEP_CASES[case]
    found = [assert_sound(tex) for tex in formulas(derivation)]
    assert len(found) > 15
    for step in derivation.steps:
        assert step._repr_markdown_().count("$") % 2 == 0


@pytest.mark.parametrize("case", ["equal", "two poles"])
def test_latex_renders(case):
    parser = MathTextParser("agg")
    for tex in formulas(STEP_CASES[case][0]):
        parser.parse(f"${tex}$")


def test_latex_of_powers_and_names():
    assert r"{\left(\psi" not in derive(2).latex()
    text = package.notation.latex(derive(3, relay=1).harmonic_form)
    assert r"H_{P}^{\left(2\right)}" in text
    assert r"H_{P + t}" in text
    assert derive(2).latex().count("\\paragraph") == len(derive(2).steps)


# ------------------------------------------------------------------ the object


def test_repr_and_attributes():
    d = derive(2, relay="different", residual=Fraction(1, 2))
    assert repr(d) == "Derivation(depth 2; relay lambda_1, lambda_2; residual 1/2; position 0)"
    assert (d.P, d.t, d.depth) == (P, t, 2)
    assert d == derive(2, relay="different", residual=0.5)
    assert d != derive(2)
    assert len({d, derive(2, relay="different", residual=0.5)}) == 1
    with pytest.raises(AttributeError):
        d.layers = ()


def test_results_are_worked_out_on_demand():
    d = derive(12)
    assert d.closed_form is d.closed_form
    assert {"closed_form", "poles"} <= vars(d).keys()
    assert not {"local_exponent", "steps", "harmonic_form"} & vars(d).keys()


def test_symbols_given_by_the_user():
    a, b = sympy.symbols("a b", positive=True)
    d = derive(2, relay=[a + b, 2 * a])
    layers = [(Fraction(7, 3), 1, 0), (Fraction(2), 1, 0)]
    assert d.closed_form.subs({a: 1, b: sympy.Rational(4, 3), P: 2, t: 5}) == rational(exact(layers, 2, 5))
    assert d.evaluate(2, 5).subs({a: 1, b: sympy.Rational(4, 3)}) == rational(exact(layers, 2, 5))


def test_evaluate_with_symbols_left():
    d = derive(3, residual="equal")
    value = d.evaluate(2, 5)
    assert value.free_symbols == {d.relay[0], d.residual[0]}
    layers = [(Fraction(2, 3), Fraction(1, 5), Fraction(0))] * 3
    assert value.subs(assigned(d, layers)) == rational(exact(layers, 2, 5))


def test_a_model_without_any_relay():
    d = derive(RelayModel.uniform(prompt=3, depth=2, relay=0))
    assert d.closed_form == 0
    assert d.evaluate(3, 4) == 0
    assert "There is no pole" in d.steps[-1].text
    assert_sound(d.latex().replace(r"\begin{align*}", "").replace(r"\end{align*}", ""))
    for result in ("local_exponent", "limit", "asymptotic"):
        with pytest.raises(ValueError, match="relay strengths must not all vanish"):
            getattr(d, result)


def test_import_does_not_load_sympy_before_it_is_used():
    code = "import sys, relaymodel; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("depth", [True, 2.5, 2.0, "3", None, Fraction(2), [2], Layer(1)])
def test_depth_must_be_an_integer_or_a_model(depth):
    with pytest.raises(TypeError, match=r"depth must be an integer, got .*; pass a number of layers or a RelayModel"):
        derive(depth)


@pytest.mark.parametrize("depth", [0, -3])
def test_depth_must_be_positive(depth):
    with pytest.raises(ValueError, match=f"depth must be at least 1, got {depth}"):
        derive(depth)


@pytest.mark.parametrize("name", ["relay", "residual", "position"])
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("same", ValueError, "must be 'equal' or 'different', a number, .* got 'same'"),
        ("", ValueError, "must be 'equal' or 'different'"),
        (True, TypeError, "must be a number, not a boolean, got True"),
        (None, TypeError, "must be an int, float, Fraction or NumPy scalar, got None"),
        (1j, TypeError, "must be an int, float, Fraction or NumPy scalar"),
        ({1, 2}, TypeError, "must be an int, float, Fraction or NumPy scalar"),
        (sympy.true, TypeError, "must be an int, float, Fraction or NumPy scalar"),
        (float("nan"), ValueError, "must be finite, got nan"),
        (np.inf, ValueError, "must be finite, got inf"),
        (sympy.nan, ValueError, "must be a finite real number, got nan"),
        (sympy.oo, ValueError, "must be a finite real number, got oo"),
        (sympy.I, ValueError, "must be a finite real number, got I"),
        (1 / t, ValueError, "must not depend on t, got 1/t"),
        ([1, 2, 3], ValueError, "must have one value for each of the 2 layers, got 3"),
        ([], ValueError, "must have one value for each of the 2 layers, got 0"),
        ([1, "2"], TypeError, r"\[1\] must be an int, float, Fraction or NumPy scalar, got '2'"),
        (np.ones((2, 2)), TypeError, "must be an int, float, Fraction or NumPy scalar"),
    ],
)
def test_parameters_that_are_refused(name, value, error, message):
    with pytest.raises(error, match=f"{name}.*{message}"):
        derive(2, **{name: value})


@pytest.mark.parametrize(
    "value", [-1, -1.5, Fraction(-4, 3), sympy.Integer(-1), -1 - sympy.Symbol("a", nonnegative=True)]
)
def test_position_must_be_above_minus_one(value):
    with pytest.raises(ValueError, match="position must be greater than -1, got"):
        derive(2, position=value)
    with pytest.raises(ValueError, match=r"position\[1\] must be greater than -1, got"):
        derive(2, position=[0, value])
    with pytest.raises(ValueError, match="position must be greater than -1, got"):
        infinite_depth_density(position=value)


@pytest.mark.parametrize("option", [{"relay": 1}, {"residual": "equal"}, {"position": [0, 0]}, {"relay": np.ones(2)}])
def test_a_model_has_its_own_parameters(option):
    (name,) = option
    with pytest.raises(TypeError, match=f"{name} must not be given beside a RelayModel"):
        derive(RelayModel.uniform(3, 2, 1), **option)


def test_unknown_option():
    with pytest.raises(TypeError, match="unexpected keyword argument 'strength'"):
        derive(2, strength="equal")
    with pytest.raises(TypeError, match="positional argument"):
        derive(2, "equal")


@pytest.mark.parametrize("method", ["asymptotic_series", "exponent_series"])
@pytest.mark.parametrize(
    ("order", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError), ("2", TypeError)]
)
def test_order_must_be_a_positive_integer(method, order, error):
    with pytest.raises(error, match="order must be"):
        getattr(derive(3), method)(order)


@pytest.mark.parametrize(
    ("prompt", "token", "name"), [(0, 1, "P"), (1, 0, "t"), (1.0, 1, "P"), (1, 2.5, "t"), (True, 1, "P"), (1, "2", "t")]
)
def test_evaluate_needs_positive_integers(prompt, token, name):
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        derive(2).evaluate(prompt, token)


def test_evaluate_needs_rational_positions():
    with pytest.raises(ValueError, match=r"position must be rational for an exact value, got g; pass position=\.\.\."):
        derive(2, position="equal").evaluate(1, 1)
    with pytest.raises(ValueError, match="position must be rational"):
        derive(2).evaluate(1, 1, position=sympy.sqrt(2))
    with pytest.raises(ValueError, match="relay must have one value for each of the 2 layers, got 3"):
        derive(2).evaluate(1, 1, relay=[1, 2, 3])


@pytest.mark.parametrize(
    ("strength", "error"),
    [(0, ValueError), (-1, ValueError), ("c", TypeError), (True, TypeError), (np.nan, ValueError)],
)
def test_infinite_depth_needs_a_positive_strength(strength, error):
    with pytest.raises(error, match="strength must be"):
        infinite_depth_density(strength)
