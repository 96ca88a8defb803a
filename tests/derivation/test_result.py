"""The object that derive returns, and what it refuses."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import sympy

from relaymodel import Layer, RelayModel
from relaymodel.derivation import P, derive, infinite_depth_density, t
from tests.derivation.cases import assert_sound, assigned, exact, rational


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
