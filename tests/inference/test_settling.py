"""Ways in which an exponent may settle, averaged."""

import numpy as np
import pytest
from scipy.stats import t as student

from relaymodel import Curve
from relaymodel.inference.cells import Cells
from relaymodel.inference.noise import WHITE, Noise
from relaymodel.inference.settling import BENDS, DELTAS, KINDS, LIKELY, SHIFTS, SIZES, settling
from relaymodel.inference.spline import smooth
from tests.inference.curves import relay_curve


class TestSettling:
    def test_the_average_is_that_of_the_restricted_likelihoods(self, rng):
        """Against dense matrices, with the coefficients integrated out; the two forms count alike."""
        t = np.geomspace(16, 4096, 24)
        noise = 0.05 * np.linalg.cholesky(np.exp(-np.abs(np.subtract.outer(np.log(t), np.log(t))) / 0.3))
        cells = Cells.of(Curve(t, t**-0.5))
        y = np.log(relay_curve(64, 3, 0.5, t)[0]) + noise @ rng.standard_normal(24)
        fit = smooth(cells, y, np.empty(0))
        logarithm = np.log(t / t[0])
        found = settling(cells, y, [logarithm], 1, fit, 3)
        assert found.forms == ("log t", "t")
        kinds = [fit.candidates[i] for i in np.argsort(-fit.shares)[:KINDS]]
        variance = np.median(np.diag(fit.noise))
        u = {b: b / (b + logarithm) for b in SHIFTS}
        logs = [
            np.stack([b * np.log(logarithm + b), 0.5 * b * u[b] / -1, 0.5 * b * u[b] ** 2 / -2], axis=1) for b in SHIFTS
        ]
        powers = []
        for delta in DELTAS:
            for bend in BENDS:
                v = 1 / (1 + np.exp(delta * (logarithm - bend * logarithm[-1])))
                powers.append(np.stack([np.log1p(-v), 0.5 * (np.log1p(-v) + v)], axis=1) / delta)
        fixed = np.stack([np.ones(24), -logarithm], axis=1)
        limits, errors, shares = [], [], []
        for form in (logs, powers):
            weights = []
            for terms in form:
                for c in kinds:
                    for size, likely in zip(SIZES, LIKELY, strict=True):
                        R = Noise.of(cells).covariances[c] + WHITE * np.eye(24)
                        inverse = np.linalg.inv(R + terms @ terms.T * size**2 / variance)
                        normal = fixed.T @ inverse @ fixed
                        beta = np.linalg.solve(normal, fixed.T @ inverse @ y)
                        square = (y - fixed @ beta) @ inverse @ (y - fixed @ beta)
                        log = 0.5 * np.linalg.slogdet(inverse)[1] - 0.5 * np.linalg.slogdet(normal)[1]
                        weights.append(log + likely + Noise.of(cells).prior[c] - 0.5 * 22 * np.log(square))
                        limits.append(beta[1])
                        errors.append(np.sqrt(square / 22 * np.linalg.inv(normal)[1, 1]))
            weights = np.exp(np.array(weights) - np.max(weights))
            shares.append(weights / weights.sum() / 2)
        shares = np.concatenate(shares)
        for level, end in ((0.0125, found.lower), (0.5, found.value), (0.9875, found.upper)):
            reached = shares @ student.cdf((end - np.array(limits)) / np.array(errors), 22)
            assert reached == pytest.approx(level, abs=4e-4)
