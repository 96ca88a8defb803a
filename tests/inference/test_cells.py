"""Curves grouped into cells, with what they state of their errors."""

import numpy as np
import pytest

from relaymodel import Curve, RelayModel, influence
from relaymodel.inference import estimate_exponent, extrapolate_exponent, fit, fit_power_law
from relaymodel.inference.cells import Cells
from tests.inference.curves import log_integers


class TestCells:
    def test_unit_runs_from_one_end_to_the_other(self):
        cells = Cells.of(Curve([1, 3, 7, 20, 50, 60, 400], np.ones(7)))
        assert cells.length == pytest.approx(np.log(400))
        assert cells.unit == pytest.approx(2 * np.log([1, 3, 7, 20, 50, 60, 400]) / np.log(400) - 1, abs=1e-14)


class TestStatedErrors:
    t = np.arange(1.0, 513.0)

    @pytest.mark.slow
    def test_a_slope_is_hardly_known_from_seven_points(self, rng):
        scores = []
        for _ in range(60):
            t = np.geomspace(16, 160, 7)
            local = estimate_exponent(Curve(t, t**-0.5 * np.exp(0.05 * rng.standard_normal(7))), [16.0, 50.0])
            scores.append((local.alpha - 0.5) / local.stderr)
        assert np.all(np.mean(np.abs(scores) < 1.96, axis=0) > 0.84)

    def test_the_calibration_multiplies_the_error(self, rng, monkeypatch):
        curve = Curve(self.t, self.t**-0.4 * np.exp(0.1 * rng.standard_normal(self.t.size)))
        errors = []
        for factor in (1.0, 2.0):
            monkeypatch.setattr("relaymodel.inference.local.inflation", lambda *_, factor=factor: factor)
            errors.append(estimate_exponent(curve, [30.0, 300.0]).stderr)
        assert errors[1] == pytest.approx(2 * errors[0])

    def test_noisy_part_weighs_less(self, rng):
        relative = np.where(self.t < 100, 0.003, 0.3)
        D = self.t**-0.4 * np.exp(relative * rng.standard_normal(self.t.size))
        told = estimate_exponent(Curve(self.t, D, relative * D), [20.0])
        untold = estimate_exponent(Curve(self.t, D), [20.0])
        assert told.stderr[0] < untold.stderr[0] / 3
        assert abs(told.alpha[0] - 0.4) < 3 * told.stderr[0]

    @pytest.mark.slow
    @pytest.mark.parametrize("estimate", [fit_power_law, extrapolate_exponent])
    def test_deviations_common_to_all_t_count(self, rng, estimate):
        # pairs differ by a factor each: a stderr of 10 %, of which the scatter along t shows 1 % only
        D = self.t**-0.4 * np.exp(0.01 * rng.standard_normal(self.t.size))
        narrow, wide = estimate(Curve(self.t, D, 0.01 * D)), estimate(Curve(self.t, D, 0.1 * D))
        assert wide.noise_stderr > 3 * narrow.noise_stderr
        assert wide.noise_stderr < 0.5

    @pytest.mark.slow
    def test_stated_errors_from_few_pairs_are_smoothed(self, rng):
        # from two pairs a stderr scatters over decades, and is 0 now and then; the weights must not follow it
        t, ratios = log_integers(1, 2048, 50), []
        for _ in range(15):
            scatter = np.abs(rng.standard_normal(t.size))
            scatter[[7, 30]] = 0
            D = t**-0.4 * np.exp(0.05 * rng.standard_normal(t.size))
            told, untold = estimate_exponent(Curve(t, D, 0.05 * scatter * D)), estimate_exponent(Curve(t, D))
            ratios.append(told.stderr / untold.stderr)
        assert np.mean((np.array(ratios) > 0.4) & (np.array(ratios) < 2.5)) > 0.9

    @pytest.mark.slow
    @pytest.mark.parametrize("part", [slice(0, 100), slice(30, 31)])
    @pytest.mark.parametrize("factor", [1e-100, 1e-8, 1e8])
    def test_absurdly_uneven_errors_break_nothing(self, rng, part, factor):
        D = self.t**-0.4 * np.exp(0.02 * rng.standard_normal(self.t.size))
        stated = 0.02 * D
        stated[part] *= factor
        assert np.all(np.isfinite(estimate_exponent(Curve(self.t, D, stated)).stderr))
        assert fit_power_law(Curve(self.t, D, stated)).alpha == pytest.approx(0.4, abs=0.3)

    def test_a_stderr_of_zero_everywhere_is_none(self):
        D = self.t**-0.4
        assert repr(fit_power_law(Curve(self.t, D, 0 * D))) == repr(fit_power_law(Curve(self.t, D)))


class TestExtremes:
    """Curves at the ends of what float64 holds: finite answers, and right ones."""

    @pytest.mark.parametrize("estimate", [estimate_exponent, fit_power_law, extrapolate_exponent])
    @pytest.mark.parametrize("last", [1e18, 1e20, 1e300])
    def test_t_beyond_what_counts_tokens(self, rng, estimate, last):
        t = np.geomspace(16, last, 60)
        for sigma in (0, 0.05):
            found = estimate(Curve(t, t**-0.5 * np.exp(sigma * rng.standard_normal(60))))
            value = np.atleast_1d(found.value)
            assert np.all(np.abs(value - 0.5) < 4 * np.atleast_1d(found.stderr) + 1e-9)
            assert np.all(np.isfinite(found.stderr))

    @pytest.mark.parametrize("last", [1e100, 1e300])
    @pytest.mark.parametrize("law", [lambda t: t**-0.3, lambda t: 1 + 0 * t, lambda t: t**-2.0 + 0.02])
    def test_few_points_over_hundreds_of_decades(self, rng, last, law):
        """Powers of t that are tried for corrections have decayed below rounding within the window's first points."""
        t = np.geomspace(1, last, 12)
        D = np.maximum(law(t), 1e-290)
        for curve in (Curve(t, D), Curve(t, D * np.exp(1e-12 * rng.standard_normal(12))), Curve(t, D, 0.05 * D)):
            found = extrapolate_exponent(curve)
            limit = 0 if D[-1] > 0.01 else 0.3
            assert abs(found.value - limit) <= 1.96 * found.stderr + 1e-6
            assert np.isfinite(found.stderr)

    def test_errors_from_next_to_nothing_to_far_too_much(self, rng):
        t = np.geomspace(1e17, 1e300, 300)
        stated = 1e-132 * 10 ** rng.uniform(-12, 12, 300)
        found = estimate_exponent(Curve(t, np.full(300, 1e-132), stated))
        assert np.all(np.isfinite(found.stderr))
        assert np.all(found.stderr > 0)
        assert np.all(np.abs(found.value) <= 3 * found.stderr)

    @pytest.mark.parametrize("start", [1.7e9, 1e6])
    def test_a_constant_on_time_stamps_has_the_exponent_0(self, start):
        t = start + 60.0 * np.arange(200)
        curve = Curve(t, np.full(200, 0.37))
        assert fit_power_law(curve).value == 0
        assert estimate_exponent(curve).value.tolist() == [0.0] * 41

    @pytest.mark.parametrize("where", [0, 30, 59])
    @pytest.mark.parametrize("factor", [30.0, 1e12])
    def test_one_point_with_a_huge_error_does_not_ruin_the_rest(self, rng, where, factor):
        t = np.geomspace(16, 1e4, 60)
        D = t**-0.6 * np.exp(0.02 * rng.standard_normal(60))
        stated = 0.02 * D
        stated[where] *= factor
        D[where] *= np.exp(0.02 * min(factor, 200) * 1.5)
        found, local = fit_power_law(Curve(t, D, stated)), estimate_exponent(Curve(t, D, stated), [100.0])
        assert abs(found.value - 0.6) < 4 * found.stderr < 0.06
        assert found.provenance["left out of the fit"].startswith("1 points")
        assert abs(local.value[0] - 0.6) < 4 * local.stderr[0] < 0.3

    @pytest.mark.slow
    def test_a_million_points_are_grouped_first(self):
        t = np.arange(1.0, 1e6 + 1)
        found = fit(Curve(t, influence(RelayModel.uniform(64, 6, 0.5), t), provenance={"prompt": "64"}), depth=6)
        assert found.relay.value == pytest.approx(0.5, rel=1e-4)
        assert found.predict(t).shape == t.shape

    def test_errors_far_from_the_median_count_as_if_they_were_not(self):
        t = np.geomspace(16, 1e4, 60)
        for far in (1e9, 1e-9):
            stated = np.where(np.arange(60) < 50, 0.01, 0.01 * far) / t
            relative = Cells.of(Curve(t, 1 / t, stated)).relative
            ratio = relative.max() / relative.min()
            assert 1e4 < ratio < 1.01e5

    def test_eight_times_the_neighbours_error_is_where_points_are_left_out(self):
        t = np.geomspace(16, 1e4, 60)
        for factor, out in ((7.5, False), (8.5, True)):
            stated = np.where(np.arange(60) == 30, factor, 1) * 0.01 * t**-0.5
            assert ("left out of the fit" in fit_power_law(Curve(t, t**-0.5, stated)).provenance) == out
