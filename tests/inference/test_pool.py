"""Curves of independent pairs."""

import numpy as np
import pytest

from relaymodel import Curve
from relaymodel.inference import (
    estimate_exponent,
    extrapolate_exponent,
    fit_power_law,
)
from relaymodel.inference.pool import pool
from tests.inference.curves import fewest, log_integers, relay_curve


class TestPairs:
    t = log_integers(4, 2048, 48)

    def curves(self, rng, n):
        """Pairs that turn and wave over the whole curve, which leaves no scatter along t."""
        x = np.log(self.t)
        waves = np.sin(x[None, :] * 1.5 + rng.uniform(0, 6, (n, 1))) + rng.standard_normal((n, 1)) * (x - x.mean()) / 2
        return [Curve(self.t, self.t**-0.5 * np.exp(0.05 * w + 0.01 * rng.standard_normal(x.size))) for w in waves]

    @pytest.mark.slow
    @pytest.mark.parametrize("n", [3, 12])
    def test_errors_from_pairs_cover(self, rng, n):
        hits, local = [], []
        for _ in range(30):
            curves = self.curves(rng, n)
            fit = fit_power_law(curves)
            hits.append(abs(fit.alpha - 0.5) < 1.96 * fit.stderr)
            found = estimate_exponent(curves, [30.0, 300.0])
            local.append(np.abs(found.alpha - 0.5) < 1.96 * found.stderr)
        assert np.sum(hits) >= fewest(30)
        assert np.all(np.sum(local, axis=0) >= fewest(30))

    def test_the_mean_is_geometric_and_names_the_pairs(self):
        one, two = Curve(self.t, self.t**-0.4), Curve(self.t, 9 * self.t**-0.6)
        fit = fit_power_law([one, two])
        assert fit.alpha == pytest.approx(0.5, abs=1e-9)
        assert fit.amplitude == pytest.approx(3, rel=1e-8)
        assert fit.provenance["pairs"] == "2"
        assert fit.noise_stderr == pytest.approx(12.7062 / 1.96 * 0.1, rel=1e-3)  # Student's t, 1 degree of freedom

    def test_limits_take_pairs(self, rng):
        curves = self.curves(rng, 8)
        assert extrapolate_exponent(curves).noise_stderr > 0
        one = Curve(self.t, self.t**-0.5 * np.exp(0.02 * rng.standard_normal(self.t.size)))
        assert extrapolate_exponent([one]).value == extrapolate_exponent(one).value

    @pytest.mark.parametrize("spread", [0.1, 1.5])
    def test_a_factor_of_each_pair_changes_no_exponent(self, rng, spread):
        D, noise = relay_curve(64, 6, 0.5, self.t)[0], 0.02 * rng.standard_normal((4, self.t.size))
        factors = np.array([-1, -0.3, 0.4, 0.9])[:, None]
        plain, moved = ([Curve(self.t, D * np.exp(row)) for row in noise + s * factors] for s in (0, spread))
        before, after = fit_power_law(plain), fit_power_law(moved)
        assert not after.adequate
        for name in ("alpha", "stderr", "noise_stderr", "drift", "drift_stderr"):
            assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-6)
        one, other = (extrapolate_exponent(curves, prompt=64) for curves in (plain, moved))
        assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-4)

    def test_the_same_curve_twice_has_no_error(self):
        curve = Curve(self.t, self.t**-0.5)
        with pytest.raises(ValueError, match="must differ"):
            fit_power_law([curve, curve])

    def test_pairs_share_their_t(self):
        with pytest.raises(ValueError, match="same t"):
            fit_power_law([Curve(self.t, self.t), Curve(self.t + 1, self.t)])

    @pytest.mark.parametrize("factor", [1, 4, 1e300])
    @pytest.mark.parametrize("estimate", [fit_power_law, estimate_exponent, extrapolate_exponent])
    def test_curves_that_differ_by_factors_have_no_error(self, factor, estimate):
        one = Curve(self.t, self.t**-0.5)
        with pytest.raises(ValueError, match="the pairs' curves must differ by more than factors"):
            estimate([one, Curve(self.t, factor * one.distance)])

    def test_the_stated_error_is_that_of_a_mean(self):
        """Of log D, with n - 1 degrees of freedom, in the unit of the distance."""
        curves = [Curve(self.t, scale * self.t**-alpha) for scale, alpha in ((1, 0.5), (np.e, 0.6), (np.e**3, 0.4))]
        x = np.log(self.t)
        logs = [-0.5 * x, 1 - 0.6 * x, 3 - 0.4 * x]
        mean = sum(logs) / 3
        sample = np.sqrt(sum((log - mean) ** 2 for log in logs) / 2)
        found = pool(curves)
        assert found.stderr / found.distance == pytest.approx(sample / np.sqrt(3))
