"""Generalised least squares, against dense matrices."""

import numpy as np
import pytest
from scipy.stats import t as student

from relaymodel import Curve
from relaymodel.inference.cells import Cells
from relaymodel.inference.gls import gls, quantile
from relaymodel.inference.noise import Noise


@pytest.fixture
def cells():
    t = np.geomspace(10, 1000, 12)
    return Cells.of(Curve(t, 1 / t))


class TestGls:
    def test_coefficients_and_evidence_are_those_of_the_marginal_covariance(self, rng, cells):
        noise = Noise.of(cells).only([0, 7, 30])
        design, loads = np.stack([np.ones(12), cells.x], axis=1), np.stack([cells.x**2, cells.x**3], axis=1)
        sizes, y = np.array([0.0, 1e-3, 2.0]), rng.standard_normal((12, 2))
        found = gls(design, noise).loaded(loads, sizes).posterior(y, floor=0)
        value, error, random = found.coefficient(1)
        for c, R in enumerate(noise.covariances):
            for q, size in enumerate(sizes):
                inverse = np.linalg.inv(R + size * loads @ loads.T)
                normal = np.linalg.inv(design.T @ inverse @ design)
                functional = normal @ design.T @ inverse
                residual = y - design @ (functional @ y)
                square = np.sum(residual * (inverse @ residual), axis=0)
                log = 0.5 * np.linalg.slogdet(inverse)[1] + 0.5 * np.linalg.slogdet(normal)[1]
                assert found.square[c, q] == pytest.approx(square, rel=1e-6)
                assert found.evidence[c, q] == pytest.approx(log + noise.prior[c] - 5 * np.log(square), abs=1e-6)
                assert value[c, q] == pytest.approx((functional @ y)[1], rel=1e-6)
                assert error[c, q] == pytest.approx(np.sqrt(square / 10 * normal[1, 1]), rel=1e-6)
                own = functional[1] @ R @ functional[1]
                assert random[c, q] == pytest.approx(np.sqrt(square / 10 * own), rel=1e-6)

    def test_sizes_can_be_given_anew(self, cells):
        prepared = gls(np.ones((12, 1)), Noise.of(cells)).loaded(cells.x[:, None])
        once, twice = (start.sized(np.array([0.5, 3.0])) for start in (prepared, prepared.sized(np.array([1.0, 2.0]))))
        assert twice.determinant == pytest.approx(once.determinant, rel=1e-13)
        assert np.array_equal(once.shrunk, twice.shrunk)

    def test_quantiles_of_a_mixture(self):
        share, shift, error = np.array([0.3, 0.7]), np.array([1.0, -2.0]), np.array([0.5, 2.0])
        levels = np.array([0.025, 0.5, 0.975])
        found = quantile(levels, share, shift, error, 5)
        reached = share @ student.cdf((found - shift[:, None]) / error[:, None], 5)
        assert reached == pytest.approx(levels, abs=1e-12)
