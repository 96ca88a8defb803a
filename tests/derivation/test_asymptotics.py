"""Series at large t: errors of the order stated, and the leading term of the theorem."""

from fractions import Fraction
from math import prod

import mpmath
import pytest
import sympy

from relaymodel.derivation import AsymptoticSeries, P, derive, t
from tests.derivation.cases import LARGE, MODELS, RELAY, assigned, derivation_of, number, truth


def at_large_t(expression, digits=260):
    """Values at P = 2, t = 10^50, 10^100, 10^200."""
    f = sympy.lambdify((P, t), expression, "mpmath", cse=True)
    with mpmath.workdps(digits):
        return [f(mpmath.mpf(2), mpmath.mpf(10) ** k) for k in LARGE]


def assert_error_is_of_order(errors, scale, where):
    """The error divided by its claimed order settles to a constant: it neither grows nor falls away.

    Each step doubles log t, so a wrong power of log t shows as a factor of 2, a wrong power of t as one of 10^50 at
    least.  The next term of the series moves the quotient by O(1/log t).
    """
    ratios = [abs(error / s) for error, s in zip(errors, scale, strict=True)]
    assert all(ratios), where
    assert 0.75 < ratios[2] / ratios[1] < 1.35, (where, ratios)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 3, 6])
def test_series_of_the_influence(name, order):
    series = derivation_of(MODELS[name]).asymptotic_series(order)
    with mpmath.workdps(260):
        errors = [a - b for a, b in zip(at_large_t(series.expression), truth(name)[0], strict=True)]
        assert_error_is_of_order(errors, at_large_t(series.error), name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 2, 7])
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
