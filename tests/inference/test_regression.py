"""Nonlinear least squares under noise of unknown kind."""

import numpy as np
import pytest

from relaymodel import Curve
from relaymodel.inference.cells import Cells
from relaymodel.inference.noise import Noise
from relaymodel.inference.regression import Problem, solve


class TestRegression:
    def test_a_straight_line_under_white_noise_is_least_squares(self, rng):
        x = np.linspace(0, 5, 40)
        curve = Curve(np.exp(x), np.exp(-0.7 * x + 0.1 * rng.standard_normal(40)))
        cells = Cells.of(curve)
        y = cells.log(curve)
        problem = Problem(
            cells,
            y[:, None],
            lambda theta: (-x[:, None] * theta[0])[:, None, :],
            np.array([-9.0]),
            np.array([9.0]),
        )
        found = solve(problem, Noise.of(cells).only([0]), [np.array([0.1])])
        (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
        assert found.theta[0] == pytest.approx(-slope, abs=1e-7)
        assert found.covariance[0, 0] == pytest.approx(covariance[0, 0] * 38 / 36, rel=1e-4)  # of Student's t
        reach = 2.0243941 * np.sqrt(covariance[0, 0])  # its quantile with 38 degrees of freedom
        assert found.upper[0] - found.theta[0] == pytest.approx(reach, rel=1e-4)
