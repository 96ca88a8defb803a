"""Densities over relative positions, at finite and infinite depth."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from scipy.special import eval_genlaguerre

from relaymodel.derivation import P, derive, infinite_depth_density, t
from tests.derivation.cases import MODELS, at, contour, derivation_of, number


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("strength", "error"),
    [(0, ValueError), (-1, ValueError), ("c", TypeError), (True, TypeError), (np.nan, ValueError)],
)
def test_infinite_depth_needs_a_positive_strength(strength, error):
    with pytest.raises(error, match="strength must be"):
        infinite_depth_density(strength)
