"""Local exponents: values against THEORY section 3, errors against the spread they claim to describe."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaymodel import Curve
from relaymodel.inference import (
    estimate_exponent,
)
from relaymodel.inference.cells import Cells
from relaymodel.inference.local import inflation
from relaymodel.inference.spline import slopes
from tests.inference.curves import log_integers, noise, relay_curve

GRIDS = {
    "log": np.geomspace(1e2, 1e7, 121),
    "dense": np.arange(4.0, 2049.0),
    "more points than cells": np.geomspace(10, 1e7, 1000),
    "gaps": np.concatenate([np.geomspace(20, 200, 25), np.geomspace(500, 2e3, 15), np.geomspace(1e4, 1e6, 50)]),
    "few": np.geomspace(1e3, 1e5, 12),
}


class TestLocal:
    @pytest.mark.parametrize("grid", GRIDS)
    @pytest.mark.parametrize("depth", [1, 12])
    def test_noise_free_curves_give_the_exact_local_exponent(self, grid, depth):
        t = GRIDS[grid]
        local = estimate_exponent(Curve(t, relay_curve(10, depth, 1.0, t)[0]))
        exact = relay_curve(10, depth, 1.0, local.t)[1]
        assert np.max(np.abs(local.alpha - exact)) < 1.2e-3
        assert np.max(local.stderr) < 2e-3
        assert np.all(np.abs(local.alpha - exact) < 5 * local.stderr + 1e-5)

    def test_first_tokens_are_sparse_and_the_error_says_so(self):
        t = np.arange(1.0, 2049.0)
        local = estimate_exponent(Curve(t, relay_curve(10, 1, 1.0, t)[0]), [1.0, 1000.0])
        error = np.abs(local.alpha - relay_curve(10, 1, 1.0, local.t)[1])
        assert error[0] < 3 * local.stderr[0]
        assert local.stderr[0] > 5 * local.stderr[1]

    @pytest.mark.parametrize(
        ("depth", "expected"),
        [(2, [0.811, 0.868, 0.899, 0.931]), (6, [0.368, 0.517, 0.609, 0.716]), (12, [0.093, 0.221, 0.331, 0.485])],
    )
    def test_table_of_theory(self, depth, expected):
        # section 3 tabulates -dlog D/dlog n at position n = P + t, P = 10
        n = np.geomspace(20, 2e6, 150)
        local = estimate_exponent(Curve(n, relay_curve(10, depth, 1.0, n - 10)[0]), [1e2, 1e3, 1e4, 1e6])
        assert local.alpha == pytest.approx(expected, abs=6e-4)

    @pytest.mark.slow
    @given(
        factor=st.floats(1e-200, 1e200),
        stretch=st.sampled_from([0.125, 2.0, 1024.0]),
        power=st.floats(-3, 3),
        seed=st.integers(0, 9),
    )
    @settings(max_examples=15)
    def test_units_do_not_matter_and_powers_add(self, factor, stretch, power, seed):
        t = log_integers(4, 3000, 50)
        D = relay_curve(10, 3, 0.5, t)[0] * np.exp(0.02 * np.random.default_rng(seed).standard_normal(t.size))
        before = estimate_exponent(Curve(t, D), [10.0, 100.0, 1000.0])
        after = estimate_exponent(Curve(t * stretch, factor * D * t**-power), before.t * stretch)
        assert after.alpha == pytest.approx(before.alpha + power, abs=1e-5)
        assert after.stderr == pytest.approx(before.stderr, rel=1e-3)

    @pytest.mark.parametrize(
        ("depth", "correlated", "t", "sets"),
        [
            (2, 0.0, log_integers(4, 2048, 64), 30),
            (2, 0.6, log_integers(4, 2048, 64), 30),
            pytest.param(6, 0.0, log_integers(16, 2048, 12), 100, marks=pytest.mark.exhaustive),
            (6, 0.6, np.arange(1.0, 2049.0), 16),  # bends less than the noise shows, more than it may be ignored
        ],
    )
    def test_errors_cover(self, rng, depth, correlated, t, sets):
        at = np.array([20.0, 60.0, 200.0, 1000.0, 2000.0])
        D, truth = relay_curve(10, depth, 1.0, t)[0], relay_curve(10, depth, 1.0, at)[1]
        scores = []
        for _ in range(sets):
            wiggle = 0.05 * noise(rng, 2048, correlated, 10.0)[t.astype(int) - 1]
            local = estimate_exponent(Curve(t, D * np.exp(wiggle)), at)
            scores.append((local.alpha - truth) / local.stderr)
        covered = np.mean(np.abs(scores) < 1.96)
        spread = np.sqrt(np.mean(np.square(scores), axis=0))
        assert covered > 0.9
        assert 0.7 < np.mean(spread) < 1.25  # 1 but for Student's tails
        assert np.max(spread) < 1.7

    def test_correlated_noise_is_recognised(self, rng):
        t = np.arange(1.0, 1025.0)
        lengths = {}
        for share in (0.0, 0.8):
            runs = [
                estimate_exponent(Curve(t, t**-0.5 * np.exp(0.1 * noise(rng, 1024, share, 20.0)))) for _ in range(5)
            ]
            lengths[share] = np.median([run.correlation_length for run in runs])
            assert np.median([run.scatter for run in runs]) == pytest.approx(0.1, rel=0.3)
        assert lengths[0.0] < 4
        assert 10 < lengths[0.8] < 100  # 0.2 + 2 * 0.8 * 20 = 32

    def test_rising_and_constant_curves(self):
        t = np.geomspace(2, 1e5, 30)
        assert estimate_exponent(Curve(t, t**0.3)).alpha == pytest.approx(-0.3, abs=1e-9)
        assert estimate_exponent(Curve(t, np.full(30, 7.0))).alpha == pytest.approx(0, abs=1e-9)

    def test_default_grid_spans_the_curve(self):
        t = np.geomspace(3, 1e4, 40)
        local = estimate_exponent(Curve(t, t**-0.5))
        assert local.t[[0, -1]] == pytest.approx(t[[0, -1]], rel=1e-15)
        assert np.diff(np.log(local.t)) == pytest.approx(np.log(1e4 / 3) / (local.t.size - 1))

    def test_window_leaves_the_rest_out(self):
        t = np.geomspace(1, 1e4, 80)
        D = np.where(t < 30, 1.0, t**-0.7)
        assert estimate_exponent(Curve(t, D), t_min=30.0).alpha == pytest.approx(0.7, abs=1e-9)


class TestCalibration:
    @pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
    def test_errors_too_small_are_stretched_and_too_large_shrunk(self, rng, monkeypatch, factor):
        t = log_integers(4, 4096, 70)
        cells, y = Cells.of(Curve(t, t**-0.5)), -0.5 * np.log(t) + 0.05 * rng.standard_normal(t.size)
        at = cells.along(np.array([30.0, 300.0]))
        right = inflation(cells, y, at)
        assert np.all((right > 0.6) & (right < 1.5))

        def wrong(*arguments):
            alpha, variance = slopes(*arguments)
            return alpha, variance * factor**2

        monkeypatch.setattr("relaymodel.inference.local.slopes", wrong)
        assert inflation(cells, y, at) * factor == pytest.approx(np.maximum(right, 0.6 * factor), rel=1e-6)
