"""Formulas as functions of numbers: lambdify in every module, and `Derivation.function`, against exact values."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from relaymodel import Layer, RelayModel, influence, influence_ball, local_exponent
from relaymodel.derivation import derive, infinite_depth_density
from relaymodel.derivation.functions import harmonic
from tests.derivation.cases import MODELS

FORMS = {"closed_form": influence, "harmonic_form": influence, "local_exponent": local_exponent}
STACKS = {
    "one layer": [(Fraction(1, 2), 1, 0)],
    "two": [(Fraction(1, 2), 1, 0)] * 2,
    "three": [(Fraction(1, 2), 1, 0)] * 3,
    "six": [(Fraction(1, 3), Fraction(1, 2), 0)] * 6,
    "positions": [(1, 1, Fraction(-1, 2)), (1, 1, Fraction(-1, 2)), (2, 1, 1), (1, 0, Fraction(1, 3))],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layers", STACKS.values(), ids=STACKS)
@pytest.mark.parametrize("module", ["scipy", "mpmath", "sympy"])
def test_lambdify_gives_the_value(form, layers, module):
    model = RelayModel(3, [Layer(*layer) for layer in layers])
    d = derive(model)
    f = sympy.lambdify((d.P, d.t), getattr(d, form), module)
    for prompt, token in ((3, 7), (5, 1), (2, 60)):
        expected = FORMS[form](model.with_prompt(prompt), token)
        value = f(sympy.Integer(prompt), sympy.Integer(token)) if module == "sympy" else f(prompt, token)
        assert float(value) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("module", ["numpy", "math"])
@pytest.mark.parametrize("form", FORMS)
def test_modules_without_special_functions_say_so(module, form):
    d = derive(3)
    with pytest.raises(NameError, match="harmonic|polygamma"):
        sympy.lambdify(d.arguments, getattr(d, form), module)(3, 7.0, 0.5)
    one = derive(1)
    assert sympy.lambdify(one.arguments, getattr(one, form), module)(3.0, 9.0, 0.5) == pytest.approx(
        0.75 if form == "local_exponent" else 0.125
    )


@pytest.mark.parametrize("form", FORMS)
def test_function_of_arrays_and_of_many_digits(form):
    d = derive(4, relay="different", residual="equal", position=[0, 0, 0, Fraction(1, 2)])
    assert [str(symbol) for symbol in d.arguments] == ["P", "t", *(f"lambda_{l}" for l in range(1, 5)), "rho"]
    relays, residual = (0.5, 1.0, 0.25, 2.0), 0.75
    model = RelayModel(6, [Layer(l, residual, g) for l, g in zip(relays, (0, 0, 0, Fraction(1, 2)), strict=True)])
    t = np.array([0.5, 1.0, 20.25, 100.0])
    np.testing.assert_allclose(d.function(form)(6, t, *relays, residual), FORMS[form](model, t), rtol=1e-11)
    if form != "local_exponent":
        value = d.function(form, digits=40)(6, Fraction(1, 3), *relays, residual)
        with mpmath.workdps(60):
            exact = mpmath.mpf(influence_ball(model, Fraction(1, 3), 50).str(45, radius=False))
            assert abs(value / exact - 1) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize("name", MODELS)
def test_what_else_is_derived_can_be_computed(name):
    """Series, leading terms and densities: SciPy's value is the one that SymPy computes with 30 digits."""
    d = derive(RelayModel(7, [Layer(*layer) for layer in MODELS[name]]))
    density = d.continuum_density
    forms = [d.asymptotic.expression, d.exponent_series(3).expression, d.limit.leading, density.influence]
    for form in forms:
        exact = form.subs({d.P: 7, d.t: 1000}).evalf(30)
        assert d.function(form)(7, 1000.0) == pytest.approx(float(exact), rel=1e-12)
        assert float(d.function(form, digits=25)(7, 1000)) == pytest.approx(float(exact), rel=1e-14)
    q = sympy.lambdify(density.variable, density.density, "scipy")
    assert q(0.125) == pytest.approx(float(density.density.subs(density.variable, sympy.Rational(1, 8)).evalf(30)))


def test_infinite_depth_can_be_computed():
    deep = infinite_depth_density(2)
    q = sympy.lambdify(deep.variable, deep.density, "scipy")
    assert q(0.2) == pytest.approx(float(deep.density.subs(deep.variable, sympy.Rational(1, 5)).evalf(30)), rel=1e-12)


def test_harmonic_numbers_are_sympys_otherwise():
    n = sympy.Symbol("n")
    assert harmonic(4) == sympy.Rational(25, 12)
    assert harmonic(3, 2) == sympy.Rational(49, 36)
    assert harmonic(n).rewrite(sympy.polygamma) == sympy.harmonic(n).rewrite(sympy.polygamma)
    assert (2 * harmonic(n)).has(sympy.harmonic)
    for m in (1, 2, 3, 4):
        expected = float(sum(Fraction(1, s**m) for s in range(1, 6)))
        for module in ("scipy", "mpmath"):
            assert float(sympy.lambdify(n, 3 * harmonic(n, m), module)(5)) == pytest.approx(3 * expected, rel=1e-14)


def test_what_function_refuses():
    with pytest.raises(ValueError, match="form must be one of 'closed_form'"):
        derive(2).function("limit")
    with pytest.raises(ValueError, match="form must be in P, t, lambda"):
        derive(2).function(sympy.Symbol("x") + 1)
    with pytest.raises(ValueError, match="digits must be at least 1"):
        derive(2).function(digits=0)
