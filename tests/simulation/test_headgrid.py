"""Sums over tokens for heads of any recency: rules and pieces against sums over every token."""

from fractions import Fraction

import numpy as np
import pytest

from relaymodel.exact.gauss import sum_rule
from relaymodel.model import Head
from relaymodel.simulation.headgrid import GAUSS, LARGEST_GRID, HeadGrid, pieces, rising


@pytest.mark.parametrize("count", [1, GAUSS, GAUSS + 1, 40, 1000])
def test_the_rule_sums_polynomials_exactly(count):
    points, weights = sum_rule(count, GAUSS)
    x = 2 * points / max(count - 1, 1) - 1
    every = 2 * np.arange(count) / max(count - 1, 1) - 1
    for degree in range(2 * GAUSS):
        assert weights @ x**degree == pytest.approx(np.sum(every**degree), abs=1e-12 * count)


@pytest.mark.parametrize(("start", "end", "last"), [(1, 10**9, 10**9), (65, 256, 256), (65, 256, 10**6), (7, 7, 7)])
def test_pieces_cover_every_token_once(start, end, last):
    found = list(pieces(start, end, last))
    assert [a for a, _ in found] == [start, *(b + 1 for _, b in found[:-1])]
    assert found[-1][1] == end
    assert all(b - a < max(GAUSS, min(a, last - b + 1)) for a, b in found)
    assert len(found) < 80


@pytest.mark.parametrize("prompt", [1, 7, 60])
@pytest.mark.parametrize(("position", "recency"), [("0", "1/2"), ("-9/10", "-4"), ("4", "99/100")])
def test_means_are_those_of_the_head(prompt, position, recency):
    head = Head(1, Fraction(position), Fraction(recency))
    last = 300
    grid = HeadGrid(prompt, last)
    prompt_sums, matrix = grid.attention(float(head.position), float(head.recency))
    values = 1 / (3 + grid.nodes / 10)
    t = np.arange(1, last + 1)
    found = (prompt_sums + matrix @ values) / (prompt_sums + matrix.sum(axis=1))
    found = grid.read(found, t.astype(float))
    n = np.arange(1.0, prompt + last + 1)
    by_position, by_distance = rising(n, float(head.position)), rising(n, -float(head.recency))
    x = np.concatenate([np.ones(prompt), 1 / (3 + t / 10)])
    for k in (0, 1, 62, 63, 64, 65, 100, last - 1):
        w = by_position[: prompt + k + 1] * by_distance[prompt + k :: -1]
        assert found[k] == pytest.approx(w @ x[: w.size] / w.sum(), rel=1e-12)
    few = [Fraction(1)] * prompt + [Fraction(10, 31)]
    assert found[0] == pytest.approx(float(list(head.means(few))[-1]), rel=1e-13)


def test_gamma_functions_are_those_of_exact_products():
    for a in (Fraction(-99, 100), Fraction(1, 10**12), Fraction(7, 3), Fraction(5)):
        value = Fraction(1)  # Gamma(x+a)/Gamma(x) relative to x = 1
        first = rising(np.ones(1), float(a))[0]
        for x in range(1, 60):
            assert rising(np.array([float(x)]), float(a))[0] / first == pytest.approx(float(value), rel=2e-14)
            value *= (x + a) / x


def test_a_grid_ends():
    with pytest.raises(ValueError, match=r"t must be at most 2\^40"):
        HeadGrid(1, 2.0 * LARGEST_GRID)
