"""Each step of a derivation is a true equation."""

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod

import mpmath
import pytest
import sympy
from sympy.utilities.iterables import partitions

import relaymodel.derivation as package
from relaymodel import Layer
from relaymodel.derivation import AsymptoticSeries, Derivation, P, derive, t
from tests.derivation.cases import (
    STEP_CASES,
    assert_near,
    assigned,
    at,
    contour_exponent,
    exact,
    number,
    rational,
)


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


@pytest.mark.slow
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


@pytest.mark.slow
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
