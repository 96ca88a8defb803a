"""Sums over tokens on a grid in log t: against sums of every term, and against digamma functions far out."""

import mpmath
import numpy as np
import pytest

from relaymodel.simulation.grid import FIRST_NODES, LogGrid


@pytest.mark.parametrize("power", [-4, -1, -0.5, 0, 1, 3])
@pytest.mark.parametrize("prompt", [1, 50, 10**6])
def test_sums_are_the_sums_of_every_term(power, prompt):
    grid, tokens = LogGrid(20_000), np.arange(1, 20_001)
    every = np.cumsum((1 + tokens / prompt) ** power)
    found = grid.read(grid.sums((1 + grid.nodes / prompt) ** power), tokens.astype(float))
    np.testing.assert_allclose(found, every, rtol=1e-12)


def test_far_out_they_are_digamma_functions():
    grid = LogGrid(1e300)
    found = grid.sums(3 / (3 + grid.nodes))
    at = np.unique(np.linspace(0, grid.nodes.size - 1, 40).astype(int))
    with mpmath.workdps(340):
        exact = [float(3 * (mpmath.digamma(mpmath.mpf(t) + 4) - mpmath.digamma(4))) for t in grid.nodes[at]]
    np.testing.assert_allclose(found[at], exact, rtol=1e-13)


def test_columns_are_summed_each_by_itself():
    grid = LogGrid(1e6)
    f = 1 / (grid.nodes[:, None] + np.array([1.0, 10.0, 100.0]))
    for column, alone in zip(grid.sums(f).T, f.T, strict=True):
        np.testing.assert_allclose(column, grid.sums(alone.copy()), rtol=1e-15)


def test_values_and_slopes_are_read_between_nodes():
    grid = LogGrid(1e12)
    t = np.array([1.0, 7.0, 64.0, 65.0, 64.5, 1000.5, 3e7, 1e12])
    f = np.sqrt(1 + grid.nodes / 30)
    np.testing.assert_allclose(grid.read(f, t), np.sqrt(1 + t / 30), rtol=1e-13)
    slopes = grid.read(np.array([f, 2 * f]), t, slope=True)
    exact = t / 60 / np.sqrt(1 + t / 30)
    np.testing.assert_allclose(slopes[0, 3:], exact[3:], rtol=1e-11)
    np.testing.assert_array_equal(slopes[1], 2 * slopes[0])
    at = np.array([1.0, 6.0, 8.0, 63.0, 65.0, 2.0])
    values = np.sqrt(1 + at / 30)
    assert slopes[0, 0] == pytest.approx(values[5] - values[0], rel=1e-13)  # a forward difference
    assert slopes[0, 1] == pytest.approx(7 * (values[2] - values[1]) / 2, rel=1e-13)  # a central one


@pytest.mark.parametrize("last", [1, 5, FIRST_NODES, FIRST_NODES + 1, 256, 257])
def test_the_grid_reaches_the_last_token(last):
    grid = LogGrid(last)
    assert grid.nodes[0] == 1
    assert np.all(np.diff(grid.nodes) > 0)
    np.testing.assert_allclose(
        grid.read(grid.sums(np.ones_like(grid.nodes)), np.array([float(last)])), last, rtol=1e-14
    )


def test_panels_are_halved_where_a_function_is_rough():
    """A logistic step of width 1/200 in log t, summed with and without halving."""

    def step(t):
        return 1 / (1 + (t / 1e6) ** -200.0)

    with mpmath.workdps(30):
        exact = float(mpmath.quad(lambda u: 1 / (1 + (u / 10**6) ** -200), [1, 9e5, 1e6, 1.1e6, 2e6]))
    centre = np.log(1e6)
    grid = LogGrid(2e6, first=2**14, rough=lambda a, b: b - a > 0.01 and a - 0.7 < centre < b + 0.7)
    plain = LogGrid(2e6, first=2**14)
    with np.errstate(over="ignore"):
        fine, coarse = (g.read(g.sums(step(g.nodes)), np.array([2e6]))[0] for g in (grid, plain))
    assert fine == pytest.approx(exact + 0.5, rel=1e-12)  # the sum over tokens is the integral and half the last term
    assert abs(coarse / exact - 1) > 1e-8
