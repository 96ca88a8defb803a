"""Waves in log t: found where they are, nowhere else, and their slopes held by the intervals."""

import numpy as np
import pytest

from relaymodel import Curve
from relaymodel.inference import estimate_exponent, fit_power_law
from relaymodel.inference.cells import Cells
from relaymodel.inference.spline import find_waves
from relaymodel.inference.waves import columns, overtone, slopes, unseen
from tests.inference.curves import log_integers

T = log_integers(1, 10**6, 100)
X = np.log(T)


def waved(rng, omega, sigma, t=T):
    phase = rng.uniform(0, 2 * np.pi)
    log = -0.5 * np.log(t) + np.log1p(0.1 * np.cos(omega * np.log(t) + phase))
    curve = Curve(t, np.exp(log + sigma * rng.standard_normal(t.size)))

    def truth(x):
        return 0.5 + 0.1 * omega * np.sin(omega * x + phase) / (1 + 0.1 * np.cos(omega * x + phase))

    return curve, truth


class TestWaves:
    @pytest.mark.parametrize(("known", "beside"), [((20.0,), ()), ((20.0, 47.0), (40.0,))])
    def test_slopes_are_derivatives(self, known, beside):
        unit, h = np.linspace(0, 1, 30), 1e-6
        difference = (columns(unit + h, known, beside) - columns(unit - h, known, beside)) / (2 * h)
        assert slopes(unit, known, beside) == pytest.approx(difference, abs=1e-6)

    def test_the_overtone_is_the_first_that_is_not_known_and_points_tell(self):
        unit = (X - X[0]) / (X[-1] - X[0])
        assert overtone(unit, (30.0,)) == (60.0,)
        assert overtone(unit, (30.0, 60.1)) == (90.0,)
        even = np.linspace(0, 1, 60)
        assert overtone(even, (59 * np.pi / 2,)) == ()  # its overtone has two points a period, all of them zeros

    @pytest.mark.parametrize("sigma", [0.0, 0.01, 0.05])
    @pytest.mark.parametrize("omega", [3.3, 9.0])
    def test_exponents_hold_the_waves(self, rng, omega, sigma):
        covered, lengths = [], []
        for _ in range(2):
            curve, truth = waved(rng, omega, sigma)
            local = estimate_exponent(curve, np.geomspace(3, 3e5, 25))
            assert not local.adequate
            assert float(local.caveats[0].split("factor of ")[1].split()[0].rstrip(",")) == pytest.approx(
                np.exp(2 * np.pi / omega), rel=0.02
            )
            covered.append(np.abs(local.value - truth(np.log(local.t))) < 1.96 * local.stderr)
            lengths.append(np.median(local.upper - local.lower))
        assert np.mean(covered) > 0.85
        assert np.median(lengths) < 0.1 * omega  # half of what the exponent varies by

    def test_the_power_of_a_window_with_waves_holds_the_mean(self, rng):
        for omega in (1.0, 3.0, 8.0):  # the first is a bend that a spline follows
            law = fit_power_law(waved(rng, omega, 0.02)[0])
            assert not law.adequate
            assert bool(law.caveats) == (omega > 1)
            assert law.lower < 0.5 < law.upper

    def test_overtones_that_are_not_fitted_are_allowed_for(self):
        omega, r = 40.0, 0.1  # log(1 + A cos) has overtones 2 r^k/k, with A = 2 r/(1 + r^2)
        unit = np.linspace(0, 1, 80)
        design = np.concatenate([np.ones((80, 1)), columns(unit, (omega,), (2 * omega,))], axis=1)
        y = np.log1p(2 * r / (1 + r * r) * np.cos(omega * unit))
        third = (2 * r**3 * omega) ** 2 / 2  # the variance of its slope
        found = unseen(unit, (omega,), np.linalg.lstsq(design, y)[0])
        assert found == pytest.approx(
            9 * third, rel=0.1
        )  # three times its slope: 2 r times r^2, three times the frequency

    @pytest.mark.parametrize("share", [0.0, 0.7])
    def test_noise_makes_no_waves(self, rng, share):
        t = log_integers(4, 4096, 70)
        fading = np.linalg.cholesky(np.exp(-4 * np.abs(np.subtract.outer(np.log(t), np.log(t)))))
        found = 0
        for _ in range(12):
            noise = np.sqrt(1 - share) * rng.standard_normal(t.size) + np.sqrt(share) * fading @ rng.standard_normal(
                t.size
            )
            found += bool(find_waves(Cells.of(Curve(t, t**-0.5)), -0.5 * np.log(t) + 0.05 * noise)[0])
        assert found <= 1  # one in a hundred at the most

    def test_rounding_makes_no_waves(self):
        for factor in (3.0, 1e-5, 1e200):
            t = np.geomspace(20, 1e5, 50)
            assert not find_waves(Cells.of(Curve(t, t)), np.log(factor * t**-0.55))[0]

    def test_an_alternation_is_noise(self):
        """At two points a period a wave's slope is anything."""
        t = np.geomspace(1, 1e4, 60)
        curve = Curve(t, t**-0.5 * np.where(np.arange(60) % 2, 2, 1))
        local = estimate_exponent(curve)
        assert local.adequate
        assert np.all(np.abs(local.alpha - 0.5) < 1.96 * local.stderr)
        assert local.stderr.min() > 0.01

    @pytest.mark.parametrize("spacing", [1e-6, 1e-4, 1e-2])
    def test_two_clusters_tell_nothing_of_what_lies_between(self, spacing):
        """The mean exponent there is 0.5, and a quintic that is flat at both ends has 15/16 in the middle."""
        x = spacing * np.arange(20)
        ends = np.concatenate([x, np.log(1e4) + x])
        local = estimate_exponent(Curve(np.exp(ends), np.repeat([1, 0.01], 20)), [100])
        assert local.adequate
        assert local.alpha[0] == pytest.approx(15 / 16, abs=0.25)
        assert local.stderr[0] > 0.01
