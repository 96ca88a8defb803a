"""A limit that noise hides: drifts of the exponent in 1/log t with a prior, averaged over what is not known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaymodel.exponent.adequacy import smooth_misfit
from relaymodel.exponent.cells import Array, Cells
from relaymodel.exponent.noise import FLOOR, Noise, quantile
from relaymodel.exponent.smoothing import Smooth

SHIFTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""What is added to the logarithm: log t of one unit of time is as good as that of another."""

SIZES = np.geomspace(0.3, 30, 8)
"""Standard deviations of the coefficient of 1/log t that are tried: it is the number of layers less one, or smaller."""

DAMPING = 0.5
"""Coefficients of higher powers, in units of the first and of powers of the shift."""

IGNORED = 1e-5
"""Answers less likely than this, against the likeliest, are left out."""


@dataclass(frozen=True)
class Drift:
    """The limit (median), its 95 % interval, the error that noise explains, and the p-value of such a lack of fit."""

    value: float
    lower: float
    upper: float
    noise: float
    p_value: float

    @property
    def stderr(self) -> float:
        """Length of the interval over 2 * 1.96."""
        return (self.upper - self.lower) / 3.92


def drifting(cells: Cells, y: Array, logarithms: Sequence[Array], fit: Smooth, degree: int) -> Drift:
    r"""Return the limit of the exponent of a curve with cell means y (K,) of log D.

    $$ \alpha = \alpha_\infty + \frac{c_1}{x} + \sum_{k=2}^d \frac{c_k b^{k-1}}{2 x^k}, \qquad x = b + \log(\cdot) $$

    with a flat prior on the limit and normal ones on the c_k, is fitted for each of the `logarithms` (T,), which are 0
    where they start, for each shift b, size of the coefficients and kind of noise; the answers are weighted by their
    restricted likelihood.  The spread of answers that fit alike is what cutting the series costs.
    """
    K, variance = y.size, float(np.mean(np.diag(fit.noise)))  # of the noise: the sizes are those of exponents
    noise = Noise.of(cells).only(fit.candidates).plus(fit.shared / variance)
    floor = K * (FLOOR * max(1.0, float(np.abs(y).max()))) ** 2
    white = noise.inverses @ y
    ridge = np.zeros((SIZES.size, degree + 2))
    ridge[:, 2:] = np.sqrt(variance) / SIZES[:, None]
    unit = np.zeros((degree + 2, 1))
    unit[1] = 1
    evidence, limits, errors, shares = [], [], [], []
    best, line, J = -np.inf, y, np.empty((K, 0))
    for logarithm in logarithms:
        for shift in SHIFTS:
            design = _design(cells, logarithm + shift, shift, degree)
            frame, upper = np.linalg.qr(noise.inverses @ design)  # (C, K, q), (C, q, q)
            data = np.swapaxes(frame, 1, 2) @ white[..., None]  # (C, q, 1)
            misfit = np.sum((white[..., None] - frame @ data) ** 2, axis=(1, 2)) + floor
            # all sizes at once: (S, C, 2q, q)
            prior = np.broadcast_to((ridge[:, :, None] * np.eye(degree + 2))[:, None], (SIZES.size, *upper.shape))
            turn, R = np.linalg.qr(np.concatenate([np.broadcast_to(upper, prior.shape), prior], axis=2))
            theta = np.linalg.solve(R, np.swapaxes(turn[:, :, : degree + 2], 2, 3) @ data)
            row = np.linalg.solve(np.swapaxes(R, 2, 3), np.broadcast_to(unit, theta.shape))
            back = np.linalg.solve(R, row)
            square = misfit + np.sum((data - upper @ theta) ** 2, axis=(2, 3))
            square += np.sum((ridge[:, None] * theta[..., 0]) ** 2, axis=2)
            log = noise.prior - noise.logdet - np.log(np.abs(np.diagonal(R, axis1=2, axis2=3))).sum(axis=2)
            log += degree * np.log(ridge[:, -1:]) - 0.5 * (K - 2) * np.log(square)
            scale = square / (K - 2)
            evidence.append(log.ravel())
            limits.append(theta[:, :, 1, 0].ravel())
            errors.append(np.sqrt(scale * np.sum(row[..., 0] ** 2, axis=2)).ravel())
            shares.append((scale * np.sum((upper @ back)[..., 0] ** 2, axis=2)).ravel())
            if log.max() > best:
                best, J = float(log.max()), design
                line = design @ theta[np.unravel_index(int(np.argmax(log)), log.shape)][:, 0]
    weights = np.exp(np.concatenate(evidence) - best)
    kept = weights > IGNORED
    weights = weights[kept] / weights[kept].sum()
    limit, error = np.concatenate(limits)[kept], np.concatenate(errors)[kept]
    value, lower, higher = (
        float(quantile(level, weights, limit[:, None], error[:, None], K - 2)[0]) for level in (0.5, 0.025, 0.975)
    )
    return Drift(
        value=value,
        lower=lower,
        upper=higher,
        noise=float(np.sqrt(weights @ np.concatenate(shares)[kept])),
        p_value=smooth_misfit(cells, fit, J, y - line),
    )


def _design(cells: Cells, x: Array, shift: float, degree: int) -> Array:
    """Return the integrals over log t of the limit and the powers of 1/x, cell by cell (K, degree + 2)."""
    powers = [DAMPING * (shift / x) ** (k - 1) / (k - 1) for k in range(2, degree + 1)]
    return np.stack([cells.mean(term) for term in (np.ones_like(x), -x, -np.log(x), *powers)], axis=1)
