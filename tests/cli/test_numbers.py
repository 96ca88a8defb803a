"""Numbers as they are typed and printed."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relaymodel.cli.numbers import LARGEST_EXPONENT, log_grid, number, outward, text
from tests.cli.cases import near


@given(st.fractions(max_denominator=10**9))
def test_fractions_are_read_exactly(value):
    read = number("--x", f"{value.numerator}/{value.denominator}")
    assert Fraction(read) == value
    assert isinstance(read, int) == (value.denominator == 1)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=None))
def test_decimals_are_read_exactly(value):
    if abs(value.as_tuple().exponent) <= LARGEST_EXPONENT:
        assert Fraction(number("--x", str(value))) == Fraction(value)


@given(st.integers(2, 10**6), st.integers(2, 60))
def test_grid_is_the_rounded_geometric_one(last, points):
    expected = sorted({round(x) for x in np.geomspace(1, last, points)})
    found = log_grid(last, points)
    assert (found[0], found[-1]) == (1, last)
    assert len(found) == len(expected)
    # a point may fall exactly between two whole numbers
    assert all(abs(a - b) <= 1 for a, b in zip(found, expected, strict=True))


@given(st.integers(100, 4000), st.integers(3, 40))
def test_grid_of_any_size(decades, points):
    found = log_grid(10**decades, points)
    assert (found[0], found[-1]) == (1, 10**decades)
    assert found == sorted(set(found))
    k = points // 2
    length = len(str(found[k])) if len(found) == points else None
    assert length is None or abs(length - 1 - k * decades / (points - 1)) <= 1


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9), st.sampled_from([0, 400, -400, -310]))
def test_outward_rounding_encloses(value, power):
    from flint import arb, ctx, fmpq

    exact_value = value * Fraction(10) ** power
    before, ctx.prec = ctx.prec, 200
    try:
        ball = arb(fmpq(exact_value.numerator, exact_value.denominator))
    finally:
        ctx.prec = before
    low, high = outward(ball, up=False), outward(ball, up=True)
    assert Fraction(low) < exact_value < Fraction(high)
    assert near(low, high, rel=1e-14)


def test_numbers_in_tables():
    assert [text(x) for x in (0, 0.0, 7, 123456789, 1.5, 1e-20)] == [
        "0",
        "0",
        "7",
        "123456789",
        "1.50000",
        "1.00000e-20",
    ]
    assert [text(x) for x in (1234567890, 10**400, Decimal("-2.5e-999"))] == ["1.23457e+9", "1e+400", "-2.50000e-999"]
