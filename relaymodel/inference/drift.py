"""A limit that noise hides: drifts of the exponent in 1/log t with a prior, averaged over what is not known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relaymodel.inference.adequacy import smooth_misfit
from relaymodel.inference.cells import ROUNDING, Array, Cells
from relaymodel.inference.noise import Noise, quantile
from relaymodel.inference.smoothing import Smooth

SHIFTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""What is added to the logarithm: log t of one unit of time is as good as that of another."""

SIZES = np.geomspace(0.3, 30, 8)
"""Standard deviations of the coefficient of 1/log t that are tried: it is the number of layers less one, or smaller."""

DAMPING = 0.5
"""Coefficients of higher powers, in units of the first and of powers of the shift."""

IGNORED_ANSWER = 1e-5
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
    variance = float(np.mean(np.diag(fit.noise)))  # the sizes are those of exponents, not in units of the noise
    noise = Noise.of(cells).only(fit.candidates).plus(fit.shared / variance)
    ridge = np.zeros((SIZES.size, degree + 2))
    ridge[:, 2:] = np.sqrt(variance) / SIZES[:, None]
    answers = [
        _Answers.of(noise, y, _design(cells, logarithm + shift, shift, degree), ridge)
        for logarithm in logarithms
        for shift in SHIFTS
    ]
    best = max(answers, key=lambda a: float(a.evidence.max()))
    weights = np.exp(np.concatenate([a.evidence.ravel() for a in answers]) - best.evidence.max())
    kept = weights > IGNORED_ANSWER
    weights = weights[kept] / weights[kept].sum()
    limit, error, share = (
        np.concatenate([part.ravel() for part in parts])[kept]
        for parts in zip(*((a.theta[..., 1], a.error, a.share) for a in answers), strict=True)
    )
    lower, value, upper = (
        float(quantile(level, weights, limit[:, None], error[:, None], y.size - 2)[0]) for level in (0.025, 0.5, 0.975)
    )
    theta = best.theta[np.unravel_index(int(np.argmax(best.evidence)), best.evidence.shape)]
    return Drift(
        value=value,
        lower=lower,
        upper=upper,
        noise=float(np.sqrt(weights @ share)),
        p_value=smooth_misfit(cells, fit, best.design, y - best.design @ theta),
    )


@dataclass(frozen=True, eq=False)
class _Answers:
    """Fits of one design (K, q) with priors of S sizes under C kinds of noise.

    evidence (S, C), theta (S, C, q), error, share (S, C)
        Restricted log likelihood, coefficients, standard error of the limit, and its variance from noise alone.
    """

    design: Array
    evidence: Array
    theta: Array
    error: Array
    share: Array

    @classmethod
    def of(cls, noise: Noise, y: Array, design: Array, ridge: Array) -> "_Answers":
        """Fit cell means y (K,); `ridge` (S, q) are the roots of the prior's precisions, 0 for the flat ones."""
        (K, q), S = design.shape, len(ridge)
        white = (noise.inverses @ y)[..., None]
        frame, upper = np.linalg.qr(noise.inverses @ design)  # (C, K, q), (C, q, q)
        data = np.swapaxes(frame, 1, 2) @ white
        prior = np.broadcast_to((ridge[:, :, None] * np.eye(q))[:, None], (S, *upper.shape))
        turn, R = np.linalg.qr(np.concatenate([np.broadcast_to(upper, prior.shape), prior], axis=2))
        theta = np.linalg.solve(R, np.swapaxes(turn[:, :, :q], 2, 3) @ data)
        rounding = ROUNDING * max(1.0, float(np.abs(y).max()))
        square = np.sum((white - frame @ data) ** 2, axis=(1, 2)) + K * rounding**2
        square = square + np.sum((data - upper @ theta) ** 2, axis=(2, 3))
        square += np.sum((ridge[:, None] * theta[..., 0]) ** 2, axis=2)
        determinant = np.log(np.abs(np.diagonal(R, axis1=2, axis2=3))).sum(axis=2)
        proper = np.log(ridge, out=np.zeros_like(ridge), where=ridge > 0).sum(axis=1)[:, None]
        evidence = noise.prior - noise.logdet - determinant + proper - 0.5 * (K - 2) * np.log(square)
        unit = np.broadcast_to(np.eye(q)[:, 1:2], theta.shape)
        row = np.linalg.solve(np.swapaxes(R, 2, 3), unit)
        scale = square / (K - 2)
        error = np.sqrt(scale * np.sum(row**2, axis=(2, 3)))
        share = scale * np.sum((upper @ np.linalg.solve(R, row)) ** 2, axis=(2, 3))
        return cls(design, evidence, theta[..., 0], error, share)


def _design(cells: Cells, x: Array, shift: float, degree: int) -> Array:
    """Return the integrals over log t of the limit and the powers of 1/x, cell by cell (K, degree + 2)."""
    powers = [DAMPING * (shift / x) ** (k - 1) / (k - 1) for k in range(2, degree + 1)]
    return np.stack([cells.mean(term) for term in (np.ones_like(x), -x, -np.log(x), *powers)], axis=1)
