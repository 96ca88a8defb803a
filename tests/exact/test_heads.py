"""Several heads, recency and sinks: reference values, every way to a number against every other, the whole domain."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import acb, arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from relaymodel import (
    Head,
    Layer,
    RelayModel,
    influence,
    influence_ball,
    influence_fraction,
    local_exponent,
    token_influence,
)
from relaymodel.exact import PrecisionError, bands, finite, local_exponent_ball, token_influence_ball, values
from relaymodel.exact.contour import factors, log_gamma_quotient
from relaymodel.exact.hyperbola import Hyperbola
from relaymodel.exact.kernel import GammaKernel
from relaymodel.exact.ladder import PoleLadder, residue_sum
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import symbol
from tests.exact.test_values import difference
from tests.strategies import models, models_of_heads, positive_heads, signed

CASES = json.loads((Path(__file__).parents[1] / "reference" / "heads.json").read_text())


def load(case):
    """The model of a row and its t."""
    layers = [
        Layer(
            heads=[Head(*map(Fraction, head)) for head in layer["heads"]],
            residual=Fraction(layer["residual"]),
            sink=Fraction(layer["sink"]),
        )
        for layer in case["layers"]
    ]
    return RelayModel(case["prompt"], layers), int(case["t"])


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['method']}" for i, case in enumerate(CASES)])
def test_reference(case):
    model, t = load(case)
    assert difference(influence_ball(model, t, 30), case["influence"]) < 1e-25
    assert difference(influence(model, t), case["influence"]) < 1e-12
    if case["local_exponent"] is not None:
        assert difference(local_exponent_ball(model, t, 30), case["local_exponent"], absolute=True) < 1e-25
        assert difference(local_exponent(model, t), case["local_exponent"], absolute=True) < 1e-12
    if t < 500:
        assert difference(influence_fraction(model, t), case["influence"]) < 1e-25


@pytest.mark.slow
@settings(max_examples=25)
@given(models_of_heads(), st.integers(1, 8))
def test_four_ways_to_one_number(model, t):
    recursion = model.differences(model.prompt + t)[-1]
    assert influence_fraction(model, t) == recursion
    if recursion == 0:
        assert influence(model, t) == 0
        assert influence_ball(model, t) == 0
        return
    assert difference(recursion, influence_ball(model, t, 20)) < 1e-20
    assert influence(model, t) == pytest.approx(float(recursion), rel=1e-12, abs=0)


@pytest.mark.slow
@settings(max_examples=25)
@given(positive_heads, st.floats(1, 1e300))
def test_floats_agree_with_balls(model, t):
    exact = influence_ball(model, t, 20)
    if abs(float(exact.mid())) >= np.finfo(float).tiny:
        assert difference(influence(model, t), exact) < 1e-12
    assert difference(local_exponent(model, t), local_exponent_ball(model, t, 20), absolute=True) < 1e-12


@pytest.mark.slow
@settings(max_examples=15)
@given(models_of_heads(), st.integers(1, 9))
def test_weights_are_the_rows_of_the_product(model, n):
    rows = []
    for s in range(1, n + 1):
        x = [int(k == s) for k in range(1, n + 1)]
        for layer in model.layers:
            x = list(layer.apply(x))
        rows.append(x[-1])
    assert sum(rows) == model.saturation
    np.testing.assert_allclose(token_influence(model, np.arange(1, n + 1), n), np.array(rows, float), rtol=1e-12)
    ball = token_influence_ball(model, 1, n, 20)
    assert ball == 0 if rows[0] == 0 else difference(rows[0], ball) < 1e-20


@settings(max_examples=15)
@given(models_of_heads(), st.integers(1, 6), st.fractions(-3, 3, max_denominator=4))
def test_scaling_a_layer_scales_everything(model, t, factor):
    first, *others = model.layers
    heads = [Head(factor * h.relay, h.position, h.recency) for h in first.heads]
    scaled = Layer(heads=heads, residual=factor * first.residual, sink=factor * first.sink)
    assert influence_fraction(RelayModel(model.prompt, [scaled, *others]), t) == factor * influence_fraction(model, t)


@settings(max_examples=30)
@given(signed, st.integers(1, 10**6))
def test_one_head_without_recency_is_todays_model_bit_for_bit(model, t):
    """Written with heads, or as equal heads that share the strength by halves."""
    same = RelayModel(model.prompt, [Layer(heads=l.heads, residual=l.residual) for l in model.layers])
    halves = [Layer(heads=[Head(Fraction(l.relay) / 2, l.position, 0)] * 2, residual=l.residual) for l in model.layers]
    for other in (same, RelayModel(model.prompt, halves)):
        assert influence(other, t) == influence(model, t)
        assert influence_fraction(other, min(t, 50)) == influence_fraction(model, min(t, 50))


KINDS = {
    "near uniform": [Layer(0.7, recency=1e-12), Layer(0.5, recency=-1e-12)],
    "near the token": [Layer(0.7, recency=1 - 1e-9), Layer(0.5, recency=0.999)],
    "far keys": [Layer(0.7, recency=-4), Layer(0.5, recency=-3.3, position=0.5)],
    "whole recencies": [Layer(0.7, recency=-1), Layer(0.5, recency=-2)],
    "close poles": [Layer(0.7, recency=0.5, position=k * 1e-12) for k in range(5)],
    "poles one apart": [Layer(0.7, recency=0.5), Layer(0.5, recency=0.3, position=1 + 1e-12)],
    "several heads": [Layer(heads=[Head(0.3, recency=0.7), Head(0.2, 0.5), Head(0.1, -0.9, -2)], sink=0.1)] * 3,
    "early keys": [Layer(0.7, recency=0.4, position=-0.999)] * 2,
    "deep": [Layer(0.3, recency=0.7)] * 64,
    "strong": [Layer(8, recency=0.3, position=4)] * 12,
}


@pytest.mark.parametrize("prompt", [1, pytest.param(64, marks=pytest.mark.exhaustive), 10**9])
@pytest.mark.parametrize("kind", KINDS)
def test_the_domain(kind, prompt):
    """t far below and far above P, whole and not, to 1e300."""
    model = RelayModel(prompt, KINDS[kind])
    t = [1, 2, 7.5, 1e3 + 0.25, 1e6, 1e20] if prompt < 10**9 else [1, 2, 250, 1e12]
    if prompt == 1:
        t.append(1e300)
    for at, value, alpha in zip(t, influence(model, t), local_exponent(model, t), strict=True):
        exact = influence_ball(model, at, 20)
        if abs(float(exact.mid())) > np.finfo(float).tiny:
            assert difference(value, exact) < 1e-12, at
        if at in (2, 1e3 + 0.25, 1e20):
            assert difference(alpha, local_exponent_ball(model, at, 20), absolute=True) < 1e-12, at


@settings(max_examples=10)
@given(models_of_heads(depth=2), st.integers(3, 40))
def test_the_three_kinds_of_balls_meet(model, t):
    """Residues, eigenvalues and the trapezoidal rule enclose one number."""
    found = symbol(model)
    if found.constant:
        return
    kernel = GammaKernel(fmpq(model.prompt + 1), fmpq(model.prompt + 1 + t))
    with working(bits=400, order=8):
        whole = finite.ball(found, kernel, found.value_at_one)
        curve = Hyperbola(found, kernel).integral(60, max(1e-3, abs(float(whole.mid()))))
        assert curve.overlaps(whole)
        assert curve.rad() < arb(2) ** -50 * (1 + abs(whole))
        if t > 2 * model.prompt + 6:
            residues = residue_sum(found, kernel, 20)
            assert residues.overlaps(whole)


@pytest.mark.parametrize("line", [6, 9, 14])
def test_what_is_left_of_a_line_is_within_its_bound(line):
    """The bound on omitted residues holds and is not vacuous: within a factor 1e4 of the truth."""
    model = RelayModel(4, [Layer(0.7, recency=0.3), Layer(heads=[Head(0.5, 0.25, 0.6), Head(0.2, 0, -1.5)])])
    found, kernel = symbol(model), GammaKernel(fmpq(5), fmpq(25))
    with working(bits=400, order=8):
        ladder = PoleLadder(found, kernel)
        X = ladder.line(line)
        summed = sum((ladder.cluster(poles) for poles in ladder.clusters(fmpq(-1), X)), arb(0))
        left = abs(finite.ball(found, kernel, found.value_at_one) - summed)
        bound = PoleLadder(found, kernel).remainder(X)
        assert left < bound
        assert bound < 1e4 * left


@pytest.mark.slow
def test_clusters_of_nearly_equal_exponents_cost_no_precision():
    """A gap of 1e-300 or of the least float: at once, and the limit of equal exponents."""
    equal = RelayModel.uniform(5, 24, 1)
    for gap in (1e-300, 5e-324):
        model = RelayModel(5, [Layer(1, position=gap)] * 12 + [Layer(1)] * 12)
        assert influence(model, 1e4) == pytest.approx(influence(equal, 1e4), rel=1e-13)
        assert local_exponent(model, 1e4) == pytest.approx(local_exponent(equal, 1e4), abs=1e-13)
        assert difference(influence_ball(model, 10**4, 60), influence_ball(equal, 10**4, 60)) < 1e-55
    near = RelayModel(5, [Layer(1, position=Fraction(k, 2**70), recency=Fraction(1, 2)) for k in range(6)])
    with working(bits=700, order=12):
        kernel = GammaKernel(fmpq(6), fmpq(106))
        whole = finite.ball(symbol(near), kernel, symbol(near).value_at_one)
        cluster = residue_sum(symbol(near), kernel, 250)
        assert cluster.overlaps(whole)
        assert cluster.rel_accuracy_bits() > 200


def test_many_points_and_one_agree():
    model = RelayModel(64, KINDS["several heads"])
    t = np.geomspace(0.5, 1e15, 3000)
    for function in (influence, local_exponent):
        together = function(model, t)
        bands.table.cache_clear()
        alone = np.array([function(model, x) for x in t[::97]])
        np.testing.assert_allclose(together[::97], alone, rtol=2e-13, atol=1e-14)


def test_a_contour_serves_mixed_positions():
    """Where residues cancel, many points take a contour: the same values as from balls."""
    model = RelayModel(64, [Layer(0.5, position=x) for x in np.linspace(-0.5, 1, 12).tolist()])
    t = np.geomspace(1, 1e8, 400)
    values = influence(model, t)
    for i in range(0, 400, 37):
        assert difference(values[i], influence_ball(model, t[i], 20)) < 1e-12


def test_the_plateau_of_sinks_is_reached():
    model = RelayModel(4, [Layer(0.5, recency=0.5, sink=0.25), Layer(0.25, 1, sink=Fraction(1, 8))])
    assert influence(model, 1e300) == float(model.plateau)
    assert 0 < local_exponent(model, 1e30) < 1e-20
    still = RelayModel(4, [Layer(0, 1, sink=0.5)])
    assert influence(still, [1, 9]).tolist() == [0.5, 0.5]
    assert local_exponent(still, 5) == 0
    assert token_influence(still, [1, 2, 3], 3).tolist() == [0.5, 0, 1]
    assert influence_ball(still, 10**40) == 0.5


def test_recency_weakens_the_relay_by_its_density_at_the_beginning():
    """D of gamma over D of 0 tends to prod p(0) = (1 - gamma)^L (THEORY section 10), as 1/log t."""
    for gamma in (0.5, -1.5):
        ratio = [
            influence(RelayModel.uniform(1, 2, 1, 0, recency=gamma), t) / influence(RelayModel.uniform(1, 2, 1, 0), t)
            for t in (1e100, 1e200)
        ]
        limit = (1 - gamma) ** 2
        assert 2 * ratio[1] - ratio[0] == pytest.approx(limit, rel=1e-4)


@given(st.floats(0.01, 6), st.floats(-3, 3), st.floats(0.1, 3))
def test_quotients_of_gamma_functions(delta, phase, size):
    """Against balls, in every direction that the contour takes."""
    x = 10**size * np.exp(1j * phase * 0.7)
    value = np.exp(log_gamma_quotient(np.array([x]), delta)[0])
    with working(bits=200):
        w = acb(x.real, x.imag)
        exact = complex(w.gamma() * (w + delta).rgamma())
    assert abs(value / exact - 1) < 1e-13


@given(models(depth=3))
def test_factors_at_real_points_are_the_eigenvalues(model):
    found = symbol(model)
    if found.constant:
        return
    values, *_ = factors(found, np.array([2 + float(found.lowest) + 0j]))
    for value, layer in zip(values, model.layers, strict=True):
        assert value[0].real == pytest.approx(float(layer.eigenvalue(2)), rel=1e-13, abs=1e-13)


def test_what_is_too_large_for_a_fraction_is_refused():
    with pytest.raises(ValueError, match="prompt and t must be at most 20000 .* use influence_ball"):
        influence_fraction(RelayModel.uniform(10**6, 1, 1, recency=0.5), 1)
    assert influence_fraction(RelayModel.uniform(10**9, 1, 1, 0, recency=-1), 1) == 1 - Fraction(
        2, (10**9 + 1) * (10**9 + 2)
    )


def test_cancellation_within_and_between_layers_is_handed_to_balls():
    """Strengths of both signs, exponents near -1: the later weights are 1e-9 of what cancels to give them."""
    model = RelayModel(
        1611,
        [
            Layer(1.7466886933965076, 0.0, -0.99999999, 0.999),
            Layer(
                heads=[
                    Head(1.047355124649974, -0.99999, -4.0),
                    Head(0.5756931645972747, -0.9999, 0.999999999),
                    Head(-1.6979286005016063, -0.99999999, -1e-12),
                ],
                residual=-1.0,
                sink=-0.3,
            ),
            Layer(-1.345094243721919, -1.0, -0.999, 0.999999999999),
            Layer(-1.5292396329568416, 0.0, -0.9999, -4.0, sink=-0.3),
        ],
    )
    sums = bands.token_influence(model, np.array([2.0]), np.array([12.0]))
    assert sums.condition[0] > 1e4
    assert difference(token_influence(model, 2, 12), token_influence_ball(model, 2, 12, 20)) < 1e-15


@pytest.mark.parametrize("position", [0, 1])
def test_balls_say_where_no_contour_falls_fast_enough(position):
    model = RelayModel(100, [Layer(1.075, position=position, recency=1e-300)] * 3)
    assert influence(model, 1e-6) > 0
    for evaluate in (influence_ball, local_exponent_ball):
        with pytest.raises(PrecisionError, match="falls too slowly"):
            evaluate(model, 1e-6)


def test_many_weights_at_once_are_each_alone():
    """A contour serves many sources at once, in parts; single ones are balls."""
    layers = [Layer(heads=[Head(0.5, recency=0.7), Head(0.2, 0.5, -1)])] * 3
    model = RelayModel(1, layers)
    s = np.unique(np.geomspace(1, 30_000, 700).astype(int))
    found = token_influence(model, s, 30_000)
    for i in range(0, s.size, 41):
        assert difference(found[i], token_influence_ball(model, int(s[i]), 30_000, 20)) < 1e-12
    assert np.all(found > 0)


def test_balls_at_t_of_any_size():
    model = RelayModel.uniform(64, 3, 0.5, recency=0.7)
    # D t is a polynomial of degree 2 in log t but for terms of order 1/t
    with working(bits=160):
        a, b, c, d = (influence_ball(model, 10**k, 40) * arb(10) ** k for k in (200, 400, 600, 800))
        assert abs(d - 3 * c + 3 * b - a) < arb(10) ** -20


def test_an_error_beyond_the_domain_says_what_is_beyond(monkeypatch):
    def fails(*arguments):
        raise PrecisionError("the integral falls too slowly", arb(0))

    monkeypatch.setattr(values, "influence_ball", fails)
    monkeypatch.setattr(values, "DEEPEST", 0)  # no float path serves
    with pytest.raises(
        PrecisionError, match=r"too slowly; beyond the domain .* promised: \|relay\| 9 > 8, position 5 > 4$"
    ):
        influence(RelayModel.uniform(64, 2, -9, position=5, recency=0.5), 3)
    with pytest.raises(PrecisionError, match="too slowly$"):
        influence(RelayModel.uniform(64, 2, 1, recency=0.5), 3)
