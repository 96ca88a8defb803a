"""What a simulation refuses."""

import math

import numpy as np
import pytest

from relaymodel.simulation import Simulation, simulate, stream
from tests.simulation.cases import MODEL


@pytest.mark.parametrize("function", [simulate, stream, lambda model, steps: Simulation(model).advance(steps)])
@pytest.mark.parametrize(
    ("steps", "error", "message"),
    [
        (0, ValueError, "steps must be at least 1, got 0"),
        (-3, ValueError, "steps must be at least 1, got -3"),
        (2.5, TypeError, "steps must be an integer, got 2.5"),
        (1e3, TypeError, "steps must be an integer, got 1000.0"),
        (True, TypeError, "steps must be an integer, got True"),
        (math.nan, TypeError, "steps must be an integer, got nan"),
        ("10", TypeError, "steps must be an integer, got '10'"),
        (10**400, ValueError, r"prompt \+ steps must be at most 2\^52"),
        (2**52, ValueError, r"prompt \+ steps must be at most 2\^52"),
    ],
)
def test_bad_steps(function, steps, error, message):
    with pytest.raises(error, match=message):
        function(MODEL, steps)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        (0, ValueError, "samples must be at least 1, got 0"),
        (True, TypeError, "samples must be an integer, got True"),
        (2.5, TypeError, "samples must be an integer, got 2.5"),
        (None, TypeError, "samples must be an integer, got None"),
        ([], ValueError, "samples must have at least 1 value, got 0|samples must be"),
        ([0, 5], ValueError, "samples must be from 1 to steps = 100, got 0.0 at index 0"),
        ([5, 101], ValueError, "samples must be from 1 to steps = 100, got 101.0 at index 1"),
        ([5, 4], ValueError, "samples must be strictly increasing, got 4.0 at index 1"),
        ([5, 5], ValueError, "samples must be strictly increasing, got 5.0 at index 1"),
        ([1, 2.5], ValueError, "samples must be whole numbers, got 2.5 at index 1"),
        ([1, math.nan], ValueError, "samples must be finite, got nan at index 1"),
        (["1", "2"], TypeError, "samples must be numbers"),
        ([[1, 2]], ValueError, "samples must be one-dimensional"),
        ([7], ValueError, "samples must be at least 2 points for a Curve, got 1; use stream"),
    ],
)
def test_bad_samples(samples, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, samples=samples)


@pytest.mark.parametrize(
    ("bias", "error", "message"),
    [
        (0.5, TypeError, "bias must be a function of t or have a method log_bias"),
        (lambda _: 0.5, ValueError, r"bias must return one value for each t, shape \(16,\), got shape \(\)"),
        (lambda t: t[1:], ValueError, r"got shape \(15,\)"),
        (lambda t: np.where(t == 3, np.nan, 0.0), ValueError, "bias must return finite values, got nan at t = 3"),
        (lambda t: np.where(t == 40, np.inf, 0.0), ValueError, "bias must return finite values, got inf at t = 40"),
        (lambda t: t * 1j, TypeError, "must be numbers"),
        (lambda t: t > 3, TypeError, "must be numbers"),
        (lambda t: t.astype(str), TypeError, "must be numbers"),
    ],
)
def test_bad_bias(bias, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, bias=bias)


def test_bias_is_asked_for_the_continuation_only_and_may_write_to_its_argument():
    asked = []

    def bias(t):
        asked.append(t.copy())
        t *= 0
        return t

    curve = simulate(MODEL, 100, bias=bias)
    assert curve.distance == pytest.approx(simulate(MODEL, 100).distance, rel=1e-14)
    assert {t.dtype for t in asked} == {np.dtype(np.float64)}
    assert set(np.concatenate(asked).tolist()) == set(range(1, 101))


@pytest.mark.parametrize(
    ("reminders", "error", "message"),
    [
        (5, TypeError, r"reminders must be pairs \(start, stop\) or have a method intervals"),
        ("12", TypeError, "reminders must be pairs"),
        ([5], TypeError, "reminders must be pairs .* got 5 at index 0"),
        ([(1, 2, 3)], TypeError, "reminders must be pairs"),
        ([(0, 2)], ValueError, r"reminders\[0\] must be at least 1, got 0"),
        ([(1.0, 2)], TypeError, r"reminders\[0\] must be an integer, got 1.0"),
        ([(True, 2)], TypeError, r"reminders\[0\] must be an integer, got True"),
        ([(1, 2**63)], ValueError, r"reminders\[0\] must be below 2\^63"),
        ([(1, 2), (5, 4)], ValueError, r"reminders \(stop\) must be at least their start, got 4 at index 1"),
        ([(1, 4), (4, 6)], ValueError, "must not overlap, got start 4 at index 1 after stop 4"),
        ([(8, 9), (1, 2)], ValueError, "must be sorted"),
        (np.array([[1.0, 2.0]]), TypeError, "reminders must be intervals of integers, got dtype float64"),
        (np.array([1, 2]), ValueError, r"shape \(K, 2\), got shape \(2,\)"),
        (np.array([[0, 2]]), ValueError, r"reminders \(start\) must be at least 1"),
    ],
)
def test_bad_reminders(reminders, error, message):
    with pytest.raises(error, match=message):
        simulate(MODEL, 100, reminders=reminders)


def test_bad_model():
    with pytest.raises(TypeError, match="model must be a RelayModel, got 3 of type int"):
        simulate(3, 100)
