"""What the noise of a curve may be: candidates for its covariance, with their prior weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from relaymodel.inference.cells import Array, Cells

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Correlated parts of the variance that are tried."""

WIDTHS = (6, 5)
"""How many correlation lengths are tried, in tokens and in log t: a factor of 2 to 3 apart, which data hardly tell."""

WHITE = 1e-10
"""White noise that every candidate holds, in units of its variance: neighbours that share all of theirs leave float64
no inverse, and this changes nothing."""


@dataclass(frozen=True, eq=False)
class Noise:
    """C candidates for the noise of the cells: covariances (C, K, K) of median variance 1, and what they are.

    `units` (C,) are their median variances where a single point has the variance that its curve states, or 1; `lengths`
    (C,) correlation lengths, `prior` (C,) the logarithms of prior weights.
    """

    covariances: Array
    units: Array
    lengths: Array
    prior: Array

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, cells: Cells) -> "Noise":
        r"""Prepare all candidates of the cells.

        A point's noise is white in part, and in part correlated along t:
        $\langle \epsilon_t \epsilon_{t'} \rangle = (1-\phi)\,\delta_{tt'} + \phi\, e^{-d(t, t')/\tau}$, times the
        points' own variances if the curve has a stderr.  The distance d is in tokens, which is what the noise of one
        run is correlated in, or in log t, as with noise of the prompts that fades along the curve.  The correlation
        length is that of the first kind, the integral of the correlation: $(1 - \phi)$ times the spacing plus
        $2 \phi\tau$, the tokens that are worth one independent point; of the second kind likewise, in tokens at the
        middle of the curve.  Half of the prior is for white noise, a quarter for each kind.
        """
        lengths, weights, covariances = zip(*_candidates(cells), strict=True)
        stack = np.stack(covariances)
        if cells.relative is not None:
            stack = stack * np.outer(cells.relative, cells.relative)
        units = np.median(np.diagonal(stack, axis1=1, axis2=2), axis=1)
        return cls(stack / units[:, None, None], units, np.array(lengths), np.log(weights))

    @classmethod
    def single(cls, covariance: Array) -> "Noise":
        """Return noise of one kind, of covariance (K, K)."""
        return cls(covariance[None], np.ones(1), np.zeros(1), np.zeros(1))

    @cached_property
    def roots(self) -> Array:
        """Lower Cholesky factors (C, K, K)."""
        diagonal = np.diagonal(self.covariances, axis1=1, axis2=2)
        # in units of each cell's own deviation, lest what is small against the largest be lost to rounding
        own = np.sqrt(diagonal + WHITE * np.median(diagonal, axis=1)[:, None])
        scaled = self.covariances / (own[:, :, None] * own[:, None, :])
        return np.asarray(own[:, :, None] * np.linalg.cholesky(scaled + WHITE * np.eye(scaled.shape[1])))

    @cached_property
    def inverses(self) -> Array:
        """Their inverses (C, K, K), in whose coordinates the noise is white."""
        return np.asarray(np.linalg.inv(self.roots))

    @cached_property
    def logdet(self) -> Array:
        """Half the logarithms (C,) of the covariances' determinants."""
        return np.asarray(np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1))

    def only(self, candidates: Sequence[int]) -> "Noise":
        """Return some of the candidates."""
        part = list(candidates)
        return Noise(self.covariances[part], self.units[part], self.lengths[part], self.prior[part])

    def plus(self, covariance: Array) -> "Noise":
        """Return the candidates with deviations (K, K) added, in units of their variance."""
        return replace(self, covariances=self.covariances + covariance) if covariance.any() else self


def _candidates(cells: Cells) -> Iterator[tuple[float, float, Array]]:
    """Yield correlation length, prior weight and covariance (K, K) for points of variance 1."""
    white = np.diag(1 / cells.sizes)
    t, spacing = cells.t, float(np.min(np.diff(cells.t)))
    yield spacing, 0.5, white
    longest = (t[-1] - t[0]) / 8
    along = np.geomspace(2 * spacing, longest, WIDTHS[0]) if longest > 2 * spacing else np.empty(0)
    middle = t[0] * float(np.exp((cells.x[0] + cells.x[-1]) / 2))
    fades = np.geomspace(float(np.median(np.diff(cells.x))), cells.length / 6, WIDTHS[1])
    distance = np.abs(cells.x[:, None] - cells.x[None, :])
    for widths, unit, token in ((along, 1.0, True), (fades, middle, False)):
        for tau in widths.tolist():
            smooth = _averaged(cells, tau) if token else np.exp(-distance / tau)
            for phi in SHARES:
                length = (1 - phi) * spacing + 2 * phi * tau * unit
                yield length, 0.25 / (widths.size * len(SHARES)), (1 - phi) * white + phi * smooth


def _averaged(cells: Cells, tau: float) -> Array:
    """Return exp(-|t - t'|/tau) averaged over pairs of cells (K, K); the exponential factorises."""
    t, sizes = cells.t, cells.sizes
    ends = np.append(cells.starts[1:], t.size) - 1
    first, last = t[cells.starts], t[ends]
    cell = np.repeat(np.arange(sizes.size), sizes.astype(int))
    forward = cells.mean(np.exp((t - last[cell]) / tau))
    backward = cells.mean(np.exp((first[cell] - t) / tau))
    gap = np.maximum(first[None, :] - last[:, None], 0)  # from row cell to a later column cell
    upper = np.triu(forward[:, None] * np.exp(-gap / tau) * backward[None, :], 1)
    # within a cell the points are as good as equally spaced
    inside = np.ones_like(first)
    for k in np.flatnonzero(sizes > 1):
        n = int(sizes[k])
        lag = np.arange(1, n)
        inside[k] = (1 + 2 * np.sum((1 - lag / n) * np.exp(-lag * (last[k] - first[k]) / ((n - 1) * tau)))) / n
    averaged: Array = upper + upper.T + np.diag(inside)
    return averaged
