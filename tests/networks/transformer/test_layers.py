"""Activations and norms against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

from relaymodel.networks.transformer.layers import activate, normalise
from tests.networks.transformer.shapes import EPS


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20))
def test_activations_are_their_definitions(values):
    x = np.array(values)
    silu, gelu, tanh = (activate(x.copy(), kind) for kind in ("silu", "gelu", "gelu_tanh"))
    scale = 8 * EPS * np.maximum(np.abs(x), 1)  # x times a probability right to a few ulp of 1
    assert np.all(np.abs(silu - x / (1 + np.exp(-x))) <= scale)
    assert np.all(np.abs(tanh - 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))) <= scale)
    assert np.all(np.abs(gelu - tanh) < 5e-4)  # how good the approximation is (Hendrycks and Gimpel 2016)


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 0.7, 2.0])
def test_gelu_is_x_times_the_normal_distribution(x):
    below = quad(lambda z: np.exp(-z * z / 2) / np.sqrt(2 * np.pi), -12, x, epsabs=1e-14)[0]
    assert abs(activate(np.array([x]), "gelu")[0] - x * below) < 1e-12


def test_norms(rng):
    x, gain, shift = rng.standard_normal((5, 40)) * 3 + 2, rng.uniform(0.5, 2, 40), rng.standard_normal(40)
    bare = normalise(x, np.ones(40), None, 0.25, centred=True)
    assert_allclose(bare.mean(axis=-1), 0, atol=10 * EPS)
    assert_allclose(np.mean(bare**2, axis=-1), x.var(axis=-1) / (x.var(axis=-1) + 0.25), rtol=100 * EPS)
    assert_allclose(normalise(x, gain, shift, 0.25, centred=True), bare * gain + shift, rtol=0, atol=100 * EPS)
    square = np.mean(x**2, axis=-1, keepdims=True)
    assert_allclose(normalise(x, gain, None, 0.25, centred=False), x / np.sqrt(square + 0.25) * gain, rtol=100 * EPS)
