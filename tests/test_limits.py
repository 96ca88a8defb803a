"""Limits in which the answer is known without the package."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import special

from relaymodel import Layer, RelayModel, influence, influence_ball, influence_fraction, local_exponent, token_influence


@pytest.mark.parametrize("P", [1, 7, 64])
@pytest.mark.parametrize("t", [1, 50, 10**4])
def test_one_layer_is_dilution(P, t):
    """L = 1: the prompt's share of uniform attention, exactly."""
    assert influence_fraction(RelayModel.uniform(P, 1, Fraction(3, 7)), t) == Fraction(3, 7) * Fraction(P, P + t)


def test_two_layers_by_hand():
    """D = (P/N) (E_0 + E_1 (H_N - H_P)); at t = P this is about (3 + log 2)/2."""
    P = t = 1000
    harmonic = special.digamma(P + t + 1) - special.digamma(P + 1)
    assert influence(RelayModel.uniform(P, 2, 1), t) == pytest.approx((3 + harmonic) / 2, rel=1e-13)


def test_weak_relay_is_linear_in_the_strength():
    """lambda -> 0: D / lambda -> L P / N."""
    for relay in (1e-6, 1e-9, 1e-12):
        model = RelayModel.uniform(10, 5, relay)
        assert influence(model, 90) / relay == pytest.approx(5 * 10 / 100, rel=30 * relay + 1e-12)


def test_position_exponent_zero_is_continuous():
    model = [influence(RelayModel.uniform(10, 6, 1, 1, g), 1000.0) for g in (-1e-9, 0, 1e-9)]
    assert model[0] > model[1] > model[2]
    assert model[0] + model[2] == pytest.approx(2 * model[1], rel=1e-12)


@pytest.mark.parametrize("g", [Fraction(-9, 10), Fraction(-1, 2), 0, Fraction(3, 2)])
def test_exponent_tends_to_one_plus_g_with_logarithmic_correction(g):
    """alpha = 1 + g - (L-1)/log t + O(1/log^2 t) (THEORY section 3)."""
    model = RelayModel.uniform(10, 4, 1, 1, g)
    for digits in (1000, 10_000):
        log_t = digits * np.log(10)
        assert local_exponent(model, 10**digits) == pytest.approx(float(1 + g) - 3 / log_t, abs=200 / log_t**2)


def test_exponents_of_the_theory():
    """THEORY section 3 tabulates -dlog D/dlog n, at positions n rather than at tokens t = n - P."""
    tables = {2: (0.811, 0.868, 0.899, 0.931), 6: (0.368, 0.517, 0.609, 0.716), 12: (0.093, 0.221, 0.331, 0.485)}
    n = np.array([1e2, 1e3, 1e4, 1e6])
    for L, table in tables.items():
        alpha = local_exponent(RelayModel.uniform(10, L, 1), n - 10)
        np.testing.assert_allclose(alpha * n / (n - 10), table, atol=5.1e-4)


def test_continuum_density_of_token_influence():
    """q(r) = lambda rho^(L-1) L^(1)_{L-1}(-lambda tau / rho), tau = log 1/r, at large n (THEORY section 6)."""
    relay, residual, L, n = 0.5, 0.5, 12, 10**6
    model = RelayModel.uniform(1, L, relay, residual)
    s = np.array([1, 10, 1000, 10**5, 500_000])
    q = relay * residual ** (L - 1) * special.eval_genlaguerre(L - 1, 1, -relay * np.log(n / s) / residual)
    exact = n * token_influence(model, s, n)
    assert np.all(np.abs(exact[2:] / q[2:] - 1) < [0.002, 2e-5, 1e-5])
    # the first token's cell r < 1/n holds 14 % more of the continuum than its exact weight
    tau = np.linspace(np.log(n), 80, 200_001)
    cell = relay * residual ** (L - 1) * special.eval_genlaguerre(L - 1, 1, -relay * tau / residual) * np.exp(-tau)
    assert n * np.trapezoid(cell, tau) / exact[0] == pytest.approx(1.14, abs=0.005)
    one = RelayModel.uniform(1, 1, relay)
    assert token_influence(one, 1, n) * n == pytest.approx(relay, rel=1e-13)


def test_continuum_influence():
    """D -> integral of q over r < P/N as P grows at fixed P/N."""
    relay, L = 0.7, 5
    tau = np.linspace(np.log(8), 60, 200_001)
    q = relay * special.eval_genlaguerre(L - 1, 1, -relay * tau)
    integral = np.trapezoid(q * np.exp(-tau), tau)
    errors = [abs(influence(RelayModel.uniform(P, L, relay), 7 * P) / integral - 1) for P in (10, 100, 1000, 10**6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6


def test_infinite_depth():
    """lambda = c/L: D(t) -> integral of sqrt(c/tau) I_1(2 sqrt(c tau)) (THEORY section 6), first order in 1/L."""
    c, P, t = 2.0, 10**6, 99 * 10**6
    tau = np.linspace(np.log(100), 100, 400_001)
    q = np.sqrt(c / tau) * special.i1(2 * np.sqrt(c * tau))
    limit = np.trapezoid(q * np.exp(-tau), tau)
    errors = [influence(RelayModel.uniform(P, L, c / L), t) / limit - 1 for L in (8, 16, 32, 64)]
    ratios = np.array(errors[:-1]) / errors[1:]
    assert np.all(np.diff(ratios) > 0)
    assert 1.85 < ratios[-1] < 2


def test_fixed_strength_and_growing_depth_stop_the_decay():
    """At fixed t the exponent falls to 0 as L grows: finite depth is a real condition."""
    alpha = [local_exponent(RelayModel.uniform(10, L, 1), 1e3) for L in (1, 4, 16, 64)]
    assert alpha == sorted(alpha, reverse=True)
    assert alpha[-1] < 0.01


def test_towards_the_start_the_difference_is_that_of_the_prompt():
    """t -> 0: D -> f(1) - prod rho, everything but the token's own residual."""
    model = RelayModel(5, [Layer(1, Fraction(1, 2), 1), Layer(2, Fraction(1, 3), -Fraction(1, 2))])
    expected = model.saturation - Fraction(1, 6)
    assert float(influence_ball(model, Fraction(1, 10**12))) == pytest.approx(float(expected), rel=1e-11)
