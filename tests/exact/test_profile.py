"""Profiles of attention as mixtures of Beta heads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc

from relaymodel import Head, RelayModel, fit_heads, influence
from relaymodel.model.profile import MIXTURE_POSITIONS, MIXTURE_RECENCIES

EDGES = np.linspace(0, 1, 33)


def profile(head):
    """The shares of a Beta head in equal bins."""
    return np.diff(betainc(1 + float(head.position), 1 - float(head.recency), EDGES))


@given(st.sampled_from(MIXTURE_POSITIONS), st.sampled_from(MIXTURE_RECENCIES), st.floats(0.1, 10))
def test_a_shape_of_the_dictionary_is_found_alone(g, gamma, size):
    found = fit_heads(size * profile(Head(1, g, gamma)))
    assert found.heads[0].position == g
    assert found.heads[0].recency == gamma
    assert found.heads[0].relay == pytest.approx(1, abs=1e-6)
    assert found.error < 1e-6


def test_a_mixture_predicts_the_influence_of_what_it_was_fitted_to():
    """A shape between those of the dictionary: D is within a few times the error, P/N not below the first bin."""
    truth = Head(1, 0.3, 0.35)
    found = fit_heads(profile(truth))
    assert 0 < found.error < 0.01
    t = np.geomspace(1, 900, 20)
    exact = influence(RelayModel.uniform(64, 3, 0.5, position=0.3, recency=0.35), t)
    mixed = influence(RelayModel(64, [found.layer(0.5)] * 3), t)
    assert np.max(np.abs(mixed / exact - 1)) < 10 * found.error


def attention(head, n, sink=0.0, own=0.0):
    """Causal attention of a Beta head, with shares of the first token and of the token itself."""
    rows = np.array([[float(x) for x in row] for row in _rows(head, n)])
    rows = (1 - sink - own) * rows
    rows[:, 0] += sink
    rows[np.arange(n), np.arange(n)] += own
    return rows


def _rows(head, n):
    for i in range(n):
        unit = np.arange(1, i + 2)
        g, gamma = float(head.position), float(head.recency)
        weights = unit**g * (i + 2.0 - unit) ** -gamma
        yield np.pad(weights / weights.sum(), (0, n - i - 1))


def test_attention_matrices_are_read_into_sink_own_and_profile():
    found = fit_heads(attention(Head(1, 0, 0), 200, sink=0.25, own=0.1))
    assert found.sink == pytest.approx(0.25, abs=0.01)
    assert found.own == pytest.approx(0.1, abs=0.01)
    assert found.sink + found.own + sum(head.relay for head in found.heads) == pytest.approx(1)
    assert sum(head.relay for head in found.heads) == pytest.approx(0.65, abs=0.02)
    assert found.error < 0.01
    assert found.density_at_start == pytest.approx(0.65, abs=0.05)
    stack = np.array([attention(Head(1, 0, gamma), 128) for gamma in (0.3, 0.7)])
    both = fit_heads(stack)  # (n-s+1)^-gamma itself is no Beta head: its last keys differ
    assert both.error < 0.03
    assert 0.4 < both.density_at_start < 0.7
    layer = found.layer(0.5, sink=True)
    assert layer.residual == pytest.approx(1.05, abs=0.005)
    assert layer.sink == pytest.approx(0.125, abs=0.005)
    assert found.layer(0.5).sink == 0


BAD = [
    (lambda: fit_heads([1.0]), ValueError, "attention must have at least 2 values"),
    (lambda: fit_heads([1, -1]), ValueError, "attention must be not negative, got -1.0 at index 1"),
    (lambda: fit_heads([0, 0]), ValueError, "attention must be positive somewhere"),
    (lambda: fit_heads([1, 1], [0, 0.5]), ValueError, "edges must have at least 3"),
    (lambda: fit_heads([1, 1], [0, 0.5, 2]), ValueError, "edges must rise from 0 to 1"),
    (lambda: fit_heads(np.eye(40), [0, 1]), ValueError, "edges must be None with attention matrices"),
    (lambda: fit_heads(np.ones((40, 40))), ValueError, "attention must be of rows that add up to 1"),
    (lambda: fit_heads(np.full((40, 40), 1 / 40)), ValueError, "attention must be causal"),
    (lambda: fit_heads(np.eye(8)), ValueError, "n >= 32, got shape"),
    (lambda: fit_heads("abc"), TypeError, "attention must be numbers"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[message[:50] for _, _, message in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
