"""The smoothing spline."""

import numpy as np
import pytest
from scipy.integrate import quad

from relaymodel import Curve
from relaymodel.inference import estimate_exponent
from relaymodel.inference.cells import Cells
from relaymodel.inference.gls import rounding
from relaymodel.inference.spline import (
    _integrated,
    _prepared,
    _read,
    _readers,
    _shared,
    _sloped,
    _Target,
    _walk,
    smooth,
)
from tests.inference.curves import log_integers, relay_curve


class TestSpline:
    @pytest.mark.parametrize(("s", "t"), [(0.3, 0.8), (0.8, 0.3), (0.5, 0.5), (0.2, 0.0)])
    def test_kernels_are_their_integrals(self, s, t):
        end = min(s, t)
        assert _integrated(s, t) == pytest.approx(quad(lambda u: (s - u) ** 2 * (t - u) ** 2 / 4, 0, end)[0])
        assert _sloped(s, t) == pytest.approx(quad(lambda u: (s - u) * (t - u) ** 2 / 2, 0, end)[0])

    def test_quadratics_pass_unsmoothed(self, rng):
        # the spline leaves a quadratic in log t alone at any bandwidth, noise or not
        t = log_integers(2, 500, 30)
        x = np.log(t)
        noisy = 0.1 * rng.standard_normal(t.size)
        cells = Cells.of(Curve(t, np.exp(noisy)))
        plain = smooth(cells, noisy, cells.x).alpha
        bent = smooth(cells, noisy - 0.4 * x - 0.05 * x**2, cells.x).alpha
        assert bent - plain == pytest.approx(0.4 + 0.1 * x, abs=1e-8)

    def test_the_walk_and_the_quadratic_are_averaged_over_cells(self):
        t = np.concatenate([np.arange(1.0, 40.0), np.arange(60.0, 900.0)])
        cells = Cells.of(Curve(t, t**-0.5))
        powers, kernel = _walk(cells)
        scaled = (np.log(t) - cells.x[0]) / (cells.x[-1] - cells.x[0])
        assert powers == pytest.approx(np.stack([cells.mean(scaled**k) for k in range(3)], axis=1), abs=1e-9)
        dense = _integrated(scaled[:, None], scaled[None, :])
        averaged = np.stack([cells.mean(row) for row in np.stack([cells.mean(row) for row in dense]).T])
        inner = slice(1, None)  # the walk starts within the first cell
        assert kernel[inner, inner] == pytest.approx(averaged[inner, inner], rel=2e-3, abs=1e-8)

    def test_errors_without_noise_hold_where_points_are_few_and_the_curve_bends(self, rng):
        """Random t below 2000: of errors even along the curve, 13 in 100 would be too small."""
        off = []
        for _ in range(3):
            t = np.sort(rng.choice(np.arange(1.0, 2000.0), 300, replace=False))
            local = estimate_exponent(Curve(t, relay_curve(10, 6, 1.0, t)[0]))
            off.append(np.abs(local.value - relay_curve(10, 6, 1.0, local.t)[1]) / local.stderr)
        assert np.mean(np.array(off) > 1.96) < 0.03

    def test_stated_errors_count_where_they_exceed_the_scatter_by_two_of_its_errors(self):
        t = np.geomspace(10, 1000, 20)
        cells = Cells.of(Curve(t, 1 / t, 0.1 / t))
        just = 1 / (1 + 2 * np.sqrt(2 / 32))  # the scatter's variance is known to sqrt(2/32)
        assert not _shared(cells, just * 1.001, 32).any()
        shared = _shared(cells, 0.9 * just, 32)
        assert np.diag(shared) == pytest.approx(0.1 * 0.1**2)
        apart = np.log(t[3] / t[0])
        assert shared[0, 3] == pytest.approx(shared[0, 0] * np.exp(-0.5 * apart**2))

    def test_the_variance_holds_how_far_apart_the_answers_lie(self):
        rng, t = np.random.default_rng(5), np.geomspace(10, 1000, 12)  # of this noise half the variance at one point
        cells = Cells.of(Curve(t, 1 / t))
        y = (0.1 * np.sin(1.5 * np.log(t)) - 0.5 * np.log(t) + 0.05 * rng.standard_normal(12))[:, None]
        target, posterior = _Target.of(cells, cells.x, ()), _prepared(cells).posterior(y - y[:1], floor=rounding(y))
        readers = _readers(target, posterior)
        added = [np.swapaxes(reader.added, 1, 2) @ posterior.data[c] for c, (_, reader) in readers.items()]
        added = np.concatenate(added)[..., 0]
        share = np.concatenate([posterior.weights[c, rows, 0] for c, (rows, _) in readers.items()])
        apart = share @ (added - share @ added) ** 2
        assert np.all(_read(target, posterior, readers, y)[1][:, 0] > 1.01 * apart)
