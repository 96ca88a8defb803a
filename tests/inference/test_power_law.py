"""The power law of a window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaymodel import Curve
from relaymodel.inference import (
    extrapolate_exponent,
    fit_power_law,
)
from tests.inference.curves import SPARSE, fewest, log_integers, noise, relay_curve


class TestPowerLaw:
    def test_exact(self):
        t = np.geomspace(20, 1e5, 50)
        fit = fit_power_law(Curve(t, 3 * t**-0.55))
        assert fit.alpha == pytest.approx(0.55, abs=1e-12)
        assert fit.amplitude == pytest.approx(3, rel=1e-11)
        assert fit.drift == pytest.approx(0, abs=1e-11)
        assert fit.adequate
        assert fit.stderr < 1e-12

    def test_on_log_spaced_points_it_is_polyfit(self, rng):
        t = np.geomspace(16, 1e4, 60)
        D = t**-0.5 * np.exp(0.1 * rng.standard_normal(60))
        (slope, intercept), covariance = np.polyfit(np.log(t), np.log(D), 1, cov=True)
        fit = fit_power_law(Curve(t, D))
        assert fit.alpha == pytest.approx(-slope, abs=1e-9)
        assert fit.amplitude == pytest.approx(np.exp(intercept), rel=1e-8)
        assert fit.naive_stderr == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-6)
        assert (fit.lower, fit.upper) == pytest.approx((-slope - 1.96 * fit.stderr, -slope + 1.96 * fit.stderr))

    def test_every_length_of_log_t_weighs_the_same(self):
        # alpha = 0.1 in the first half of log t and 0.9 in the second; 97 % of the points lie in the second
        t = np.arange(1.0, 1025.0)
        D = np.where(t < 32, t**-0.1, 32**0.8 * t**-0.9)
        fit = fit_power_law(Curve(t, D), t_min=1.0)
        assert fit.alpha == pytest.approx(0.5, abs=0.03)
        assert -np.polyfit(np.log(t), np.log(D), 1)[0] > 0.8

    @pytest.mark.slow
    @given(prompt=st.integers(1, 64), depth=st.integers(1, 12), relay=st.floats(0.2, 2), first=st.floats(16, 1e4))
    @settings(max_examples=25)
    def test_noise_free_curvature_is_confessed(self, prompt, depth, relay, first):
        t = np.geomspace(first, first * 1e3, 40)
        D, alpha = relay_curve(prompt, depth, relay, t)
        fit = fit_power_law(Curve(t, D))
        assert alpha.min() < fit.alpha < alpha.max()
        assert fit.drift == pytest.approx(alpha[-1] - alpha[0], rel=0.6, abs=1e-6)
        if abs(fit.alpha - 1) > 4 * fit.stderr:  # the limit is 1
            assert not fit.adequate
        if alpha[-1] - alpha[0] > 1e-4:
            assert fit.stderr > (alpha[-1] - alpha[0]) / 10
            # the line turns about its middle, and D at t = 1 with it
            assert fit.amplitude_stderr > 0.95 * fit.amplitude * fit.stderr * np.mean(np.log(t))

    @pytest.mark.slow
    def test_honest_error_is_the_actual_spread(self, rng):
        t = np.arange(1.0, 513.0)
        scores = {"stderr": [], "naive_stderr": []}
        adequate = []
        for _ in range(40):
            fit = fit_power_law(Curve(t, t**-0.5 * np.exp(0.1 * noise(rng, t.size, 0.8, 20.0))))
            for name, found in scores.items():
                found.append((fit.alpha - 0.5) / getattr(fit, name))
            adequate.append(fit.adequate)
        typical = {name: np.median(np.abs(found)) / 0.674 for name, found in scores.items()}  # 1 if the error is right
        assert typical["naive_stderr"] > 2
        assert 0.35 < typical["stderr"] < 1.6
        assert np.mean(np.abs(scores["stderr"]) < 1.96) > 0.8
        assert np.mean(adequate) > 0.65

    @pytest.mark.slow
    @pytest.mark.parametrize("correlated", [0.0, 0.8])
    def test_noise_of_a_bent_window_is_that_of_its_line(self, rng, correlated):
        t = np.arange(1.0, 1025.0)
        D = relay_curve(64, 6, 0.5, t)[0]
        exact, held, values, errors = fit_power_law(Curve(t, D)).alpha, [], [], []
        for _ in range(30):
            fit = fit_power_law(Curve(t, D * np.exp(0.05 * noise(rng, t.size, correlated, 20.0))))
            held.append(abs(fit.alpha - exact) < 1.96 * fit.noise_stderr)
            assert fit.stderr > 3 * fit.noise_stderr  # the drift
            values.append(fit.alpha)
            errors.append(fit.noise_stderr)
        assert np.median(errors) == pytest.approx(np.std(values), rel=0.4)
        assert np.sum(held) >= fewest(30)

    @pytest.mark.slow
    def test_adequacy_has_the_level_it_says(self, rng):
        t = log_integers(16, 4096, 50)
        fits = [fit_power_law(Curve(t, t**-0.5 * np.exp(0.05 * rng.standard_normal(t.size)))) for _ in range(60)]
        assert np.mean([fit.adequate for fit in fits]) > 0.85
        assert 0.35 < np.median([fit.p_value for fit in fits]) < 0.85
        bent = [
            fit_power_law(Curve(t, t**-0.5 * np.exp(0.05 * np.log(t) ** 2 + 0.05 * noise(rng, t.size))))
            for _ in range(5)
        ]
        assert not any(fit.adequate for fit in bent)

    @pytest.mark.parametrize(
        ("first", "last", "options", "expected"),
        [
            (1, 2048, {}, (16, 2048)),
            (1, 160, {}, (16, 160)),
            (1, 159, {}, (1, 159)),  # less than a decade from 16 on
            (100, 2048, {}, (100, 2048)),
            (1, 2048, {"t_max": 100}, (1, 100)),
            (1, 2048, {"t_min": 2}, (2, 2048)),
            (1, 2048, {"t_min": 30, "t_max": 300}, (30, 300)),
        ],
    )
    def test_default_window(self, first, last, options, expected):
        t = np.arange(float(first), last + 1)
        assert fit_power_law(Curve(t, t**-0.5), **options).window == expected

    def test_an_amplitude_beyond_float64_is_said_to_be(self):
        t = 1e6 + np.arange(30.0)
        fit = fit_power_law(Curve(t, np.exp(-(t - 1e6))))
        assert fit.alpha == pytest.approx(1e6, rel=1e-3)
        assert (fit.amplitude, fit.amplitude_stderr) == (np.inf, np.inf)

    def test_default_window_keeps_enough_points(self):
        t = np.array([1, 2, 3, 4, 6, 9, 20, 100, 1000.0])
        assert fit_power_law(Curve(t, t**-0.5)).window == (1, 1000)


def test_a_noise_free_power_law_with_stated_errors_is_a_power_law():
    """Its points agree far better than they claim: all of the error is one that they share."""
    t = np.geomspace(1, 1e4, 60)
    fit = fit_power_law(Curve(t, t**-0.5, t**-0.5 / 20))
    assert fit.alpha == pytest.approx(0.5, abs=1e-9)
    assert fit.adequate
    assert fit.stderr > 1e-3
    assert extrapolate_exponent(Curve(t, t**-0.5, t**-0.5 / 20)).value == pytest.approx(0.5, abs=0.1)


def test_the_power_law_of_the_window_points_here():
    assert "compare_laws" in fit_power_law.__doc__
    assert "compare_laws" in fit_power_law(Curve(SPARSE, 1 / SPARSE))._repr_html_()
