"""Candidates for the noise."""

import numpy as np
import pytest

from relaymodel import Curve
from relaymodel.inference.cells import COUNT, Cells
from relaymodel.inference.noise import Noise, _candidates
from tests.inference.curves import log_integers


class TestNoise:
    @pytest.mark.slow
    def test_cell_correlations_are_averages_over_pairs(self):
        t = np.concatenate([np.arange(1.0, 40.0), np.arange(60.0, 900.0)])
        cells = Cells.of(Curve(t, t**-0.5, 0.1 * t**-0.5))
        assert cells.x.size < COUNT < t.size
        owner = np.repeat(np.arange(cells.x.size), cells.sizes.astype(int))
        average = (owner[:, None] == np.arange(cells.x.size)) / cells.sizes
        candidates = [(length, 0.01 * found) for length, _, found in _candidates(cells)]
        assert len(candidates) == 1 + 6 * 4 + 5 * 4
        for k, tau in enumerate(np.geomspace(2, (899 - 1) / 8, 6)):
            for phi, (length, found) in zip((0.25, 0.5, 0.75, 1), candidates[1 + 4 * k : 5 + 4 * k], strict=True):
                dense = (1 - phi) * np.eye(t.size) + phi * np.exp(-np.abs(t[:, None] - t) / tau)
                assert found == pytest.approx(0.01 * average.T @ dense @ average, rel=1e-9)
                assert length == pytest.approx(1 - phi + 2 * phi * tau)
        widths = np.geomspace(np.median(np.diff(cells.x)), np.ptp(cells.x) / 6, 5)
        for k, (phi, width) in enumerate((phi, width) for width in widths for phi in (0.25, 0.5, 0.75, 1)):
            distance = np.abs(cells.x[:, None] - cells.x)
            fades = (1 - phi) * np.diag(1 / cells.sizes) + phi * np.exp(-distance / width)
            assert candidates[25 + k][1] == pytest.approx(0.01 * fades)

    def test_equal_grids_are_prepared_once(self):
        t = log_integers(2, 500, 30)
        one, other = Cells.of(Curve(t, t**-0.5)), Cells.of(Curve(t, t**-0.7))
        assert one == other
        assert hash(one) == hash(other)
        assert Noise.of(one) is Noise.of(other)
        assert Cells.of(Curve(t, t**-0.5, 0.1 * t**-0.5)) != one
        assert Cells.of(Curve(t + 1, t**-0.5)) != one
        assert one != 3

    def test_noise_with_deviations_added(self, rng):
        t = log_integers(2, 500, 30)
        noise = Noise.of(Cells.of(Curve(t, t**-0.5)))
        K = noise.inverses.shape[1]
        extra = np.outer(np.ones(K), np.ones(K))
        part, more = noise.only([0, 3]), noise.only([0, 3]).plus(extra)
        for a, b in zip(part.inverses, more.inverses, strict=True):
            before, after = (np.linalg.inv(m) @ np.linalg.inv(m).T for m in (a, b))
            assert after - before == pytest.approx(extra, abs=1e-8)
        assert part.plus(0 * extra) is part
