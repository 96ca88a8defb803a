"""Derivations for layers of any heads: against exact values, contour integrals, and the theorem's constant."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from relaymodel import Layer, RelayModel, influence, influence_ball, local_exponent
from relaymodel.derivation import HeadDerivation, derive
from relaymodel.derivation.heads import z
from relaymodel.exact.precision import working
from relaymodel.model import Head
from tests.derivation.cases import assert_sound

RECENT = RelayModel(
    8, [Layer(Fraction(1, 2), recency=Fraction(7, 10)), Layer(Fraction(1, 3), Fraction(1, 2), 0, Fraction(-1, 2))]
)
SEVERAL = RelayModel(
    3,
    [
        Layer(heads=[Head(Fraction(1, 2), 0, Fraction(1, 2)), Head(1, Fraction(1, 2)), Head(Fraction(1, 4), 0, -1)]),
        Layer(1, 1, 1),
        Layer(0, Fraction(3, 2)),
        Layer(1, Fraction(1, 3), recency=Fraction(1, 4)),
    ],
)
LATE = RelayModel(4, [Layer(1, 1, Fraction(3, 2), Fraction(1, 3))])
SINK = RelayModel(5, [Layer(1, 1, 0, Fraction(1, 2), Fraction(1, 4)), Layer(heads=[Head(1), Head(1)])])
MODELS = {"recent": RECENT, "several": SEVERAL, "late": LATE, "sink": SINK}


def at(expression, model, t):
    return float(expression.subs({HeadDerivation.P: model.prompt, HeadDerivation.t: sympy.Float(t, 40)}).evalf(25))


def decaying(model, t):
    """D - plateau, with digits to spare."""
    with working(bits=1600):
        return float(influence_ball(model, t, 320) - _rational(model.plateau))


def _rational(value):
    from flint import fmpq

    return fmpq(value.numerator, value.denominator)


@pytest.mark.parametrize("name", MODELS)
def test_the_symbol_is_the_eigenvalue(name):
    model, d = MODELS[name], derive(MODELS[name])
    for n in (1, 2, 7):
        assert float(d.symbol.subs(z, n)) == pytest.approx(float(model.eigenvalue(n)), rel=1e-13)
    assert d.plateau == sympy.Rational(model.plateau)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recent", "several", "late"])
def test_the_contour_integral_is_the_influence(name):
    model, t = MODELS[name], 12
    f = sympy.lambdify(z, derive(model).integrand.subs({HeadDerivation.P: model.prompt, HeadDerivation.t: t}), "mpmath")
    with mpmath.workdps(20):
        line = mpmath.quad(lambda y: f(mpmath.mpc(0.5, y)), [-200, -30, -10, -3, 0, 3, 10, 30, 200]) / (2 * mpmath.pi)
    assert float(mpmath.re(line)) == pytest.approx(influence(model, t), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recent", "late", "sink"])
def test_residues_add_up_to_the_influence(name):
    model, d = MODELS[name], derive(MODELS[name])
    total = float(model.plateau) + sum(at(d.residue(k), model, 40) for k in range(30))
    assert total == pytest.approx(influence(model, 40.0), rel=1e-11)


def test_a_ladder_that_ends_is_the_whole_influence():
    model = RelayModel(4, [Layer(2, recency=-2)])
    d = derive(model)
    assert [d.residue(k) for k in (3, 4)] == [0, 0]
    total = sum(d.residue(k) for k in range(3)).subs({d.P: 4, d.t: 9})
    assert total == sympy.Rational(model.differences(13)[-1])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_series_have_errors_of_the_order_stated(name, order):
    model, d = MODELS[name], derive(MODELS[name])
    for series, truth in (
        (d.asymptotic_series(order), decaying),
        (d.exponent_series(order), None if model.plateau else local_exponent),
    ):
        if truth is None:
            continue
        scaled = []
        for t in (10**60, 10**240):
            error = abs(at(series.expression, model, t) - truth(model, t))
            bound = abs(at(series.error, model, t))
            scaled.append(error / bound if bound > 1e-250 else 0.0)
        assert scaled[1] < 1.5 * scaled[0] + 1e3  # beyond rounding nothing is left to compare
        if order < d.multiplicity:
            assert 1e-6 < scaled[1] < 1e3


def test_the_constant_is_the_density_at_the_beginning():
    d = derive(3, relay="different", recency="different")
    expected = sympy.Mul(*(h.relay * (1 - h.recency) for layer in d.layers for h in layer.heads)) / 2
    assert sympy.simplify(d.limit.A - expected) == 0
    assert (d.limit.exponent, d.limit.log_power) == (1, 2)
    plain = derive(3, relay="different")
    assert (
        sympy.simplify(d.limit.leading.subs({h.recency: 0 for l in d.layers for h in l.heads}) - plain.limit.leading)
        == 0
    )
    for order in (2, 3):
        ours, theirs = d.asymptotic_series(order).coefficients, plain.asymptotic_series(order).coefficients
        zero = {h.recency: 0 for l in d.layers for h in l.heads}
        values = {symbol: i + 2 for i, symbol in enumerate(plain.relay)} | {d.P: 7}
        for a, b in zip(ours, theirs, strict=True):
            assert float(a.subs(zero).subs(values)) == pytest.approx(float(b.subs(values)), rel=1e-12)


def test_symbols_of_all_kinds():
    d = derive(2, recency="equal", position="equal", sink="equal")
    assert {str(x) for x in d.symbol.free_symbols} == {"lambda", "g", "gamma", "z"}
    assert {str(x) for x in d.plateau.free_symbols} == {"lambda", "sigma"}
    model = RelayModel.uniform(6, 2, 0.5, 1, 0.25, 0.5)
    values = dict(zip(sorted(d.limit.leading.free_symbols - {d.P, d.t}, key=str), (0.25, 0.5, 0.5), strict=True))
    leading = d.asymptotic_series(2).expression.subs(values)
    assert at(leading, model, 1e80) == pytest.approx(influence(model, 1e80), rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_steps_are_sound(name):
    d = derive(MODELS[name])
    titles = [step.title for step in d.steps]
    assert titles[0] == "One head"
    assert ("Residues" in titles) == (name != "several")
    for step in d.steps:
        assert_sound(step.latex())
    assert d.latex().count("\\paragraph") == len(titles)
    assert d._repr_latex_().startswith("$$")


def test_the_first_steps_are_true_equations():
    step = derive(LATE).steps[0]
    weight, total = step.equations[1].args
    n = next(iter(total.free_symbols))
    assert float(weight.subs(n, 7).doit().evalf()) == pytest.approx(float(total.subs(n, 7).evalf()), rel=1e-12)
    moment, value = derive(LATE).steps[1].equations[1].args
    assert float(moment.subs(z, 3).evalf()) == pytest.approx(float(value.subs(z, 3).evalf()), rel=1e-10)


def test_what_is_refused():
    with pytest.raises(ValueError, match="recency must be less than 1"):
        derive(2, recency=1)
    with pytest.raises(TypeError, match="sink must not be given beside a RelayModel"):
        derive(RECENT, sink=1)
    with pytest.raises(ValueError, match="heads of one position exponent"):
        derive(SEVERAL).residue(0)
    with pytest.raises(ValueError, match="step must be at least 0"):
        derive(LATE).residue(-1)
    with pytest.raises(ValueError, match="must not all vanish"):
        _ = derive(RelayModel(4, [Layer(0, sink=1)])).limit
    assert not isinstance(derive(2, recency=0), HeadDerivation)
    np.testing.assert_equal(derive(2).depth, 2)
