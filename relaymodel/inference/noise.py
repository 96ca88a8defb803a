"""What the noise of a curve may be, and errors averaged over that."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from relaymodel.inference.cells import ROUNDING, Array, Cells


@dataclass(frozen=True, eq=False)
class Noise:
    """Candidates for the noise covariance of the cells: `inverses` (C, K, K) of their Cholesky factors."""

    inverses: Array
    logdet: Array
    lengths: Array
    prior: Array

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, cells: Cells) -> "Noise":
        """Prepare all candidates of the cells."""
        lengths, covariances = zip(*cells.correlations(), strict=True)
        stack = np.stack(covariances)
        stack = stack / np.mean(np.diagonal(stack, axis1=1, axis2=2), axis=1)[:, None, None]
        return cls._from(stack, np.array(lengths), cells.prior)

    @classmethod
    def _from(cls, covariances: Array, lengths: Array, prior: Array) -> "Noise":
        lower = np.linalg.cholesky(covariances + 1e-10 * np.eye(covariances.shape[1]))
        logdet = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return cls(np.linalg.inv(lower), logdet, lengths, prior)

    def only(self, candidates: Sequence[int]) -> "Noise":
        """Return some of the candidates."""
        part = list(candidates)
        return Noise(self.inverses[part], self.logdet[part], self.lengths[part], self.prior[part])

    def plus(self, covariance: Array) -> "Noise":
        """Return the candidates with deviations (K, K) added, in units of their mean variance."""
        if not covariance.any():
            return self
        lower = np.linalg.inv(self.inverses)
        return self._from(lower @ np.swapaxes(lower, 1, 2) + covariance, self.lengths, self.prior)


def quantile(level: float, share: Array, shift: Array, error: Array, freedom: float) -> Array:
    """Return a quantile (q,) of a mixture (C,) of Student's t, moved by `shift` and stretched by `error` (C, q)."""
    reach = abs(float(stdtrit(freedom, level)))
    low = np.min(shift - 1.001 * reach * error, axis=0) - 1e-300
    high = np.max(shift + 1.001 * reach * error, axis=0) + 1e-300
    for _ in range(60):
        middle = (low + high) / 2
        above = share @ stdtr(freedom, (middle - shift) / np.maximum(error, 1e-300)) > level
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    quantile: Array = (low + high) / 2
    return quantile


def linear_errors(cells: Cells, y: Array, design: Array, functional: Array) -> Array:
    """Return standard errors (M,) of what is linear in log D, `functional` (K, M), by the residuals of a linear fit.

    `design` (K, q) spans what is fitted.  1.96 errors are the 95 % interval of the mixture of Student's t over the
    candidates for the noise.
    """
    noise = Noise.of(cells)
    freedom = cells.x.size - design.shape[1]
    white = noise.inverses @ np.column_stack([design, y])
    frames, _ = np.linalg.qr(white[:, :, :-1])
    data = white[:, :, -1]
    inside = np.einsum("ckq,ck->cq", frames, data)
    rss = np.sum(data**2, axis=1) - np.sum(inside**2, axis=1)
    rss = np.maximum(rss, 0.0) + cells.x.size * ROUNDING**2
    normal = np.swapaxes(white[:, :, :-1], 1, 2) @ white[:, :, :-1]
    evidence = noise.prior - noise.logdet - 0.5 * np.linalg.slogdet(normal)[1] - 0.5 * freedom * np.log(rss)
    weights = np.exp(evidence - evidence.max())
    colored = np.linalg.solve(
        np.swapaxes(noise.inverses, 1, 2), np.broadcast_to(functional, (len(rss), *functional.shape))
    )
    errors = np.sqrt(np.sum(colored**2, axis=1) * (rss / freedom)[:, None])
    return quantile(0.975, weights / weights.sum(), np.zeros_like(errors), errors, freedom) / 1.96
