"""Arithmetic rounded outward: what it gives is on the right side, and close."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from relaymodel.certificate import rounding
from relaymodel.certificate.constants import times
from relaymodel.display import power


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30), st.sampled_from([1e-120, 1.0, 1e120]))
def test_operator_norms_are_above_and_close(seed, rows, columns, scale):
    """Integer matrices u v^T + w x^T: the largest singular value is that of a 2 x 2 matrix, and |W y|/|y| below it."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 10, (rows, columns)).astype(float)
    bound = rounding.operator_norm(matrix * scale) / scale
    y = np.linalg.svd(matrix)[2][0] if np.any(matrix) else np.ones(columns)
    exact = [Fraction(value) for value in y]
    image = [sum(Fraction(w) * x for w, x in zip(row, exact, strict=True)) for row in matrix.tolist()]
    quotient = sum(x * x for x in image) / sum(x * x for x in exact)
    assert Fraction(bound) ** 2 * (1 + Fraction(1, 10**15)) >= quotient
    assert bound <= math.sqrt(quotient) * (1 + 1e-7) + 1e-300 / scale


def test_an_unproven_norm_falls_back_to_frobenius(monkeypatch, rng):
    def fails(matrix):
        raise np.linalg.LinAlgError

    matrix = rng.standard_normal((6, 4))
    monkeypatch.setattr(np.linalg, "cholesky", fails)
    assert_allclose(rounding.operator_norm(matrix), np.linalg.norm(matrix), rtol=1e-9)


def test_an_eigenvalue_that_is_too_small_is_not_believed(monkeypatch, rng):
    matrix = rng.standard_normal((6, 4))
    true = np.linalg.norm(matrix, 2)
    honest = rounding.scipy.linalg.eigvalsh
    monkeypatch.setattr(rounding.scipy.linalg, "eigvalsh", lambda *args, **more: honest(*args, **more) * 0.999)
    assert rounding.operator_norm(matrix) >= true


def test_norms_of_products_and_with_errors(rng):
    for d, r in ((20, 3), (3, 20), (8, 8)):
        left, right = rng.standard_normal((d, r)), rng.standard_normal((r, d))
        true = np.linalg.norm(left @ right, 2)
        assert true <= rounding.product_norm(left, right) <= true * (1 + 1e-6)
    assert rounding.operator_norm(np.eye(3), 0.5) >= 1.5


def test_numbers_of_any_size():
    assert rounding.exponential(1.0) >= math.e
    huge = rounding.exponential(1e4)
    assert abs(math.log(huge) - 1e4) < 1e-9
    assert math.log(huge) >= 1e4 * (1 - 1e-15)
    for factor in (3.7, 1e-20, 1e300):
        for number in (2.5, 10**400, huge, 1e200):
            product = times(factor, number)
            exact = Fraction(factor) * Fraction(number)
            assert exact <= product
            assert Fraction(product) <= exact * (1 + Fraction(1, 10**11)) + 1
    assert times(0.0, huge) == 0
    for number in (huge, 10**400 + 1, 3, 2.5, Fraction(1, 3)):
        power_ = rounding.log2(number)
        assert Fraction(number) < Fraction(2) ** power_
        assert Fraction(number) <= Fraction(rounding.scaled(number, power_)) * Fraction(2) ** power_
        assert rounding.scaled(number, power_) * (1 + 1e-15) > 0.25
    assert [power(x, 3) for x in (0.5, 1000.25, -1000.25, math.inf)] == ["3.16", "1.78e+1000", "5.62e-1001", "∞"]


def test_distances_are_enclosed(rng):
    states = rng.standard_normal((2, 5, 7)) * 10.0 ** rng.integers(-3, 4, (5, 1))
    states[1, 2] = states[0, 2]
    low, high = rounding.distances(states)
    for n in range(5):
        square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*states[:, n].tolist(), strict=True))
        assert Fraction(low[n]) ** 2 <= square <= Fraction(high[n]) ** 2
    assert low[2] == high[2] == 0
    assert np.all(high <= low * (1 + 1e-13))


def test_what_is_not_finite_has_no_bound_and_columns_have_theirs(rng):
    for bad in (np.inf, np.nan):
        array = np.array([[1.0, bad], [0.0, 1.0]])
        assert rounding.operator_norm(array) == math.inf
        assert rounding.product_norm(array, np.eye(2)) == rounding.product_norm(np.eye(2), array) == math.inf
        assert rounding.frobenius(array) == math.inf
        assert np.all(rounding.lengths(array) == math.inf)
    for scale in (1e-200, 1.0, 1e200):
        array = rng.standard_normal((5, 3)) * scale
        array[:, 1] = 0
        true = np.linalg.norm(array / scale, axis=0) * scale
        found = rounding.lengths(array)
        assert np.all(found >= true)
        assert_allclose(found, true, rtol=1e-11)
        assert found[1] == 0


def test_an_exponential_between_floats_and_integers():
    for exponent in (644.0, 645.0, 700.0, 709.5, 800.0):
        value = rounding.exponential(exponent)
        assert abs(math.log(value) - exponent) < 1e-12 * exponent
        assert isinstance(value, float) == (exponent < 644.8)
    assert rounding.exponential(1e6) > 0
    assert rounding.exponential(1.1e6) == rounding.exponential(math.inf) == math.inf


def test_norms_of_matrices_with_one_large_entry_are_close():
    for large in (1.0, 1.9, 0.6):
        assert rounding.operator_norm(np.diag([large, large / 10])) < large * (1 + 1e-8)
