"""Models, and two independent ways to their values: the recursion in fractions and contour integrals."""

import re
from fractions import Fraction
from functools import cache
from itertools import combinations

import mpmath
import sympy

from relaymodel import Layer, RelayModel
from relaymodel.derivation import derive

RELAY = [Fraction(1, 2), Fraction(3), Fraction(-2, 3), Fraction(5, 4), Fraction(1), Fraction(7, 5)]


RESIDUAL = [Fraction(1), Fraction(2, 3), Fraction(-1, 2), Fraction(3, 2), Fraction(0), Fraction(1, 3)]


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


LARGE = (50, 100, 200)


@cache
def truth(name):
    """D and the local exponent of a model at P = 2, t = 10^50, 10^100, 10^200, by contours of small radius."""
    with mpmath.workdps(260):
        options = {"radius": mpmath.mpf(1) / 1024, "count": 60}
        tokens = [mpmath.mpf(10) ** k for k in LARGE]
        values = [contour(MODELS[name], 2, 2 + token, **options) for token in tokens]
        slopes = [contour(MODELS[name], 2, 2 + token, slope=True, **options) for token in tokens]
        return values, [-x * slope / value for x, slope, value in zip(tokens, slopes, values, strict=True)]


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


def assert_sound(tex):
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", tex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0, tex
    assert depth == 0, tex
    assert "{}" not in tex.replace(r"\qquad {}", "")  # as a broken line begins
    assert tex.count(r"\left") == tex.count(r"\right"), tex
    assert "polygamma" not in tex
    assert "harmonic" not in tex
