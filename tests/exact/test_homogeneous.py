"""Rational sums by binary splitting: against sums by definition."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import RelayModel, derive, influence_ball, influence_fraction
from relaymodel.exact.homogeneous import as_fraction, homogeneous, prefactor, product
from relaymodel.exact.precision import working


@pytest.mark.parametrize("g", [Fraction(0), Fraction(2), Fraction(-2, 3), Fraction(7, 5)])
def test_polynomials_are_sums_of_products(g):
    P, N = 3, 9
    found = homogeneous(4, P, N, fmpq(g.numerator, g.denominator))
    reciprocals = [1 / (s + g) for s in range(P + 1, N + 1)]
    for k, n in enumerate(found.numerators):
        wanted = sum(map(math.prod, combinations_with_replacement(reciprocals, k)), Fraction(0)) if k else 1
        assert Fraction(int(n), int(found.denominator) ** k) == wanted
    wanted = math.prod(((s - 1) / (s + g) for s in range(P + 1, N + 1)), start=Fraction(1))
    assert as_fraction(prefactor(P, N, fmpq(g.numerator, g.denominator))) == wanted


@given(st.integers(1, 50), st.integers(0, 100), st.integers(1, 5), st.integers(-4, 7))
def test_many_leaves_are_newtons_identities(P, steps, b, a):
    a = max(a, 1 - b)
    order, g, N = 5, fmpq(a, b), P + steps
    found, powers = homogeneous(order, P, N, g), [fmpq(0)] * order
    for s in range(P + 1, N + 1):
        powers = [p + 1 / (s + g) ** (i + 1) for i, p in enumerate(powers)]
    h = [fmpq(1)]
    for k in range(1, order):
        h.append(sum((powers[i] * h[k - 1 - i] for i in range(k)), fmpq(0)) / k)
    assert [fmpq(n, found.denominator**k) for k, n in enumerate(found.numerators)] == h
    weights = [fmpq(k, k + 3) for k in range(order)]
    assert found.combined(weights) == sum((w * x for w, x in zip(weights, h, strict=True)), fmpq(0))


def test_products():
    assert product(3, 3, lambda s: s) == 1
    assert product(1, 101, lambda s: s) == math.factorial(100)


def test_long_fractions_lie_in_their_balls():
    model = RelayModel.uniform(64, 3, Fraction(1, 3), position=Fraction(1, 2))
    exact = influence_fraction(model, 10**4)
    assert math.gcd(exact.numerator, exact.denominator) == 1
    ball = influence_ball(model, 10**4, 60)
    with working(bits=300):
        assert ball.contains(fmpq(exact.numerator, exact.denominator))
    evaluated = derive(3, position=Fraction(1, 2)).evaluate(64, 10**4, relay=Fraction(1, 3))
    assert Fraction(int(evaluated.p), int(evaluated.q)) == exact
