"""Kernels of any recency as running sums and exponentials, and what they hold behind a prompt."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from relaymodel.simulation.kernels import LONGEST_RUN, Kernel, exponentials, rising

ORDERS = [
    Fraction(1, 10**9),
    Fraction(1, 100),
    Fraction(3, 10),
    Fraction(1, 2),
    Fraction(99, 100),
    1 - Fraction(1, 10**9),
]


def exact_kernel(order, d):
    f = mpmath.mpf(order.numerator) / order.denominator
    return mpmath.exp(mpmath.loggamma(d + f) - mpmath.loggamma(mpmath.mpf(d) + 1) - mpmath.loggamma(f))


@pytest.mark.parametrize("order", ORDERS, ids=float)
def test_exponentials_are_the_kernel_at_every_distance(order):
    found = exponentials(order)
    assert np.all(found.weights > 0)  # nothing can cancel
    with mpmath.workdps(40):
        for d in [*range(1, 40), *np.rint(np.geomspace(40, LONGEST_RUN, 60)).astype(int).tolist()]:
            value = float(np.sum(found.weights * np.exp(-found.rates * d)))
            assert value == pytest.approx(float(exact_kernel(order, d)), rel=1e-12)


@pytest.mark.parametrize("order", [*ORDERS, Fraction(1), Fraction(5, 2), Fraction(4)], ids=float)
def test_the_near_kernel_and_running_sums_are_the_weights(order):
    kernel = Kernel(Fraction(0), order)
    weights = kernel.near(50)
    for _ in range(kernel.sums):
        weights = np.cumsum(weights)
    with mpmath.workdps(40):
        expected = [float(exact_kernel(order, d)) for d in range(50)]
    np.testing.assert_allclose(weights, expected, rtol=1e-13)


@pytest.mark.parametrize("position", [Fraction(0), Fraction(-9, 10), Fraction(1, 2), Fraction(4)], ids=float)
@pytest.mark.parametrize("prompt", [1, 5, 128, 129, 1000])
def test_states_behind_a_prompt_are_sums_over_it(position, prompt):
    kernel = Kernel(position, Fraction(23, 10))
    states, sums = kernel.behind(prompt)
    g = mpmath.mpf(position.numerator) / position.denominator
    with mpmath.workdps(30):
        weights = [mpmath.gamma(s + g) / mpmath.gamma(s) for s in range(1, prompt + 1)]
        for j in range(0, states.size, 11):
            decay, total = mpmath.exp(-mpmath.mpf(float(kernel.exponentials.rates[j]))), mpmath.mpf(0)
            for weight in weights:
                total = total * decay + weight
            assert states[j] == pytest.approx(float(total), rel=1e-13)
        for i, value in enumerate(sums, start=1):
            order = Fraction(3, 10) + i
            expected = mpmath.fsum(w * exact_kernel(order, prompt - s) for s, w in enumerate(weights, start=1))
            assert value == pytest.approx(float(expected), rel=1e-13)


def test_a_prompt_of_a_billion_tokens_costs_nothing():
    """The states, put together, are the weight of the prompt on the next token, in closed form a difference."""
    kernel = Kernel(Fraction(1, 2), Fraction(3, 10))
    P = 10**9
    states, _ = kernel.behind(P)
    found = float(np.sum(kernel.exponentials.weights * np.exp(-kernel.exponentials.rates) * states))
    n = np.array([P + 1.0])
    assert found == pytest.approx(float(kernel.total(n)[0] - rising(n, 0.5)[0]), rel=1e-12)


@pytest.mark.parametrize("a", [-0.99, -0.5, 0, 0.3, 4, 17.5])
def test_rising_is_a_quotient_of_gamma_functions(a):
    n = np.array([1.0, 2, 31, 32, 33, 1e4, 1e9, 2.0**50])
    with mpmath.workdps(40):
        b = mpmath.mpf(a)
        expected = [float(mpmath.exp(mpmath.loggamma(mpmath.mpf(x) + b) - mpmath.loggamma(mpmath.mpf(x)))) for x in n]
    np.testing.assert_allclose(rising(n, a), expected, rtol=2e-15 * (2 + a))
