"""Curves fitted by formulas with parameters: nonlinear least squares, averaged over what the noise may be.

Its normal equations are not those of `gls`: several curves share parameters and noise, a parameter may lie on its
bound, and one that the data do not see keeps a vast variance, where `gls` needs a design of full rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, brentq, least_squares
from scipy.special import stdtrit

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.gls import IGNORED, quantile
from relaymodel.inference.noise import Noise

Means = Callable[[Array], Array]
"""From parameters (p, M) to log D of the cells, shape (K, B, M), for M sets of parameters at once."""

RIDGE = 1e-8
"""Noise in log D that is never undercut: formulas are not evaluated better."""

STEP = 1e-6  # of difference quotients, in coordinates of order 1
IDLE = 1e-12
"""A parameter that moves the fit by less than this, in units of another that moves it, does not move it."""

LEAP = 1.0  # along a profile at most, in the same coordinates


@dataclass(frozen=True, eq=False)
class Problem:
    """Cell means `y` (K, B) of B curves on the same cells, to be described by `means` up to a factor each.

    `low` and `high` (p,) bound the parameters, which should be of order 1.  Without `free`, the factors are 1.
    """

    cells: Cells
    y: Array
    means: Means
    low: Array
    high: Array
    free: bool = True

    @property
    def size(self) -> int:
        """Number of parameters, the factors left out."""
        return self.low.size


@dataclass(frozen=True, eq=False)
class Solution:
    """What a regression says.

    theta (p,), factors (B,)
        Best parameters and log factors, under the likeliest noise.
    covariance (p + B, p + B)
        Of the parameters and log factors, averaged over candidates for the noise.
    lower, upper (p + B,)
        95 % intervals, by the linearised model.
    residual (K, B), scatter (B,)
        y minus the fit, and the standard deviation of one cell's noise.
    likelihood
        Largest log likelihood over all candidates of the noise.
    freedom, best, weights (C,), jacobian (K, B, p + B)
        Degrees of freedom, index of the likeliest noise and weights of all, derivatives of the fit.
    """

    theta: Array
    factors: Array
    covariance: Array
    lower: Array
    upper: Array
    residual: Array
    scatter: Array
    likelihood: float
    freedom: float
    best: int
    weights: Array
    jacobian: Array


def derivatives(problem: Problem, theta: Array) -> tuple[Array, Array]:
    """Return the means (K, B) and their derivatives (K, B, p) by differences that stay within the bounds."""
    step = np.where(theta + STEP > problem.high, -STEP, STEP)
    points = np.concatenate([theta[:, None], theta[:, None] + np.diag(step)], axis=1)
    values = problem.means(points)
    return values[..., 0], (values[..., 1:] - values[..., :1]) / step


def solve(problem: Problem, noise: Noise, starts: Sequence[Array], *, restricted: bool = True) -> Solution:
    """Fit from each start under white noise, then under the noise that the residuals show, until it stays the same.

    The noise is chosen by restricted likelihood, or by the likelihood itself, which alone compares formulas.
    """
    first = [_minimise(problem, noise.inverses[0], np.ones(problem.y.shape[1]), start) for start in starts]
    theta = min(first, key=lambda found: float(found.cost)).x
    best, seen = 0, set()
    sigma = np.ones(problem.y.shape[1])
    for _ in range(6):
        scan = _Scan.at(problem, noise, theta, sigma)
        chosen = int(np.argmax(scan.evidence if restricted else scan.likelihood))
        if chosen in seen and chosen == best:
            break
        best, sigma = chosen, scan.sigma[chosen]
        seen.add(best)
        theta = _minimise(problem, noise.inverses[best], sigma, theta).x
    return _Scan.at(problem, noise, theta, sigma).solution(problem, noise, best)


def least_difference(problem: Problem, curve: Array, inverse: Array, start: Array) -> float:
    """Return the square sum, in units of the noise, by which a formula at its best misses a curve (K, 1)."""
    found = _minimise(replace(problem, y=curve), inverse, np.ones(curve.shape[1]), start)
    return 2 * float(found.cost)


def _whitened(problem: Problem, inverse: Array, sigma: Array, values: Array) -> Array:
    """Return values (K, B, ...) in which the noise is white, freed of what the factors can do, shape (K, B, ...)."""
    white = np.tensordot(inverse, values, axes=1)
    if problem.free:
        ones = inverse.sum(axis=1)
        ones /= np.linalg.norm(ones)
        white = white - np.multiply.outer(ones, np.tensordot(ones, white, axes=1))
    scaled: Array = white / sigma.reshape(-1, *[1] * (values.ndim - 2))
    return scaled


def _minimise(
    problem: Problem,
    inverse: Array,
    sigma: Array,
    start: Array,
    held: NDArray[np.intp] | None = None,
    *,
    precision: float = 1e-10,
) -> OptimizeResult:
    """Minimise the whitened residuals over all parameters but those `held`."""
    moving = np.setdiff1d(np.arange(problem.size), [] if held is None else held)
    theta = np.array(start, dtype=float)

    def full(part: Array) -> Array:
        theta[moving] = part
        return theta

    def residual(part: Array) -> Array:
        values = problem.means(full(part)[:, None])[..., 0]
        return _whitened(problem, inverse, sigma, values - problem.y).ravel()

    def jacobian(part: Array) -> Array:
        slopes = derivatives(problem, full(part))[1][..., moving]
        return _whitened(problem, inverse, sigma, slopes).reshape(problem.y.size, -1)

    if moving.size == 0:
        r = residual(theta[moving])
        return OptimizeResult(x=theta.copy(), cost=0.5 * float(r @ r))
    low, high = problem.low[moving], problem.high[moving]
    inside = np.clip(theta[moving], low + 1e-9 * (high - low), high - 1e-9 * (high - low))
    found = least_squares(residual, inside, jacobian, bounds=(low, high), x_scale=1.0, max_nfev=60, ftol=precision)
    found.x = full(found.x).copy()
    return found


@dataclass(frozen=True, eq=False)
class _Scan:
    """All candidates for the noise, with the formula linearised at one point.

    shift (C, p+B), covariance (C, p+B, p+B), evidence, likelihood (C,), sigma (C, B)
    """

    theta: Array
    residual: Array
    jacobian: Array
    shift: Array
    covariance: Array
    evidence: Array
    likelihood: Array
    sigma: Array
    freedom: float

    @classmethod
    def at(cls, problem: Problem, noise: Noise, theta: Array, sigma: Array) -> "_Scan":
        K, B = problem.y.shape
        values, slopes = derivatives(problem, theta)
        residual = problem.y - values
        jacobian = np.concatenate([slopes, np.broadcast_to(np.eye(B), (K, B, B))], axis=2) if problem.free else slopes
        q = jacobian.shape[2]
        freedom = max(K - q / B, 1.0)
        both = np.concatenate([jacobian, residual[..., None]], axis=2).reshape(K, -1)
        white = (noise.inverses @ both).reshape(-1, K, B, q + 1)
        J, r = white[..., :q], white[..., q]
        weighted = J / sigma[:, None]
        normal = np.einsum("ckbi,ckbj->cij", weighted, weighted)
        right = np.einsum("ckbi,ckb->ci", weighted, r / sigma)
        scaled, size = _scaled(normal)
        inverse = _inverted(normal)
        # a linear step is no guide beyond the bounds: what lies on one stays there
        edge = 1e-6 * (problem.high - problem.low)
        stuck = (theta - problem.low < edge) | (problem.high - theta < edge)
        moving = np.concatenate([np.flatnonzero(~stuck), np.arange(problem.size, q)])
        block = scaled[:, moving[:, None], moving]
        part = np.linalg.pinv(block, rcond=1e-13, hermitian=True)
        shift = np.zeros_like(right)
        shift[:, moving] = np.einsum("cij,cj->ci", part, right[:, moving] / size[:, moving]) / size[:, moving]
        rest = r - np.einsum("ckbi,ci->ckb", J, shift)
        floor = K * RIDGE**2
        rss = np.sum(rest**2, axis=1) + floor
        spread = np.sqrt(rss / freedom)
        logdet = np.linalg.slogdet(scaled + 1e-13 * np.eye(q))[1] + 2 * np.log(size).sum(axis=1)
        restricted = noise.prior - B * noise.logdet - 0.5 * logdet - 0.5 * freedom * np.log(rss).sum(axis=1)
        likelihood = -B * noise.logdet - 0.5 * K * np.sum(np.log(2 * np.pi * np.e * rss / K), axis=1)
        # curves of one network share their noise: a sandwich between the blocks' derivatives
        if B == 1:
            covariance = inverse * (rss / sigma**2 / freedom)[:, :, None]
        else:
            cross = np.einsum("ckb,ckd->cbd", rest, rest) / freedom
            scores = weighted / sigma[:, None]
            meat = np.einsum("ckbi,cbd,ckdj->cij", scores, cross, scores)
            covariance = inverse @ meat @ inverse
        return cls(theta, residual, jacobian, shift, covariance, restricted, likelihood, spread, freedom)

    def solution(self, problem: Problem, noise: Noise, best: int) -> Solution:
        """Return the average over candidates for the noise, about the optimum under the likeliest."""
        B = problem.y.shape[1]
        weights = np.exp(self.evidence - self.evidence.max())
        weights[weights < IGNORED] = 0
        weights /= weights.sum()
        kept = np.flatnonzero(weights)
        share, shift = weights[kept], self.shift[kept] - self.shift[best]
        error = np.sqrt(np.maximum(np.einsum("cii->ci", self.covariance[kept]), 0))
        # the variance of Student's t
        inflated = self.covariance[kept] * (self.freedom / max(self.freedom - 2, 0.5))
        covariance = np.einsum("c,cij->ij", share, inflated + shift[:, :, None] * shift[:, None, :])
        lower, upper = (quantile(side, share, shift, error, self.freedom) for side in (0.025, 0.975))
        factors = np.zeros(B)
        if problem.free:
            ones = noise.inverses[best].sum(axis=1)
            factors = ones @ (noise.inverses[best] @ self.residual) / (ones @ ones)
        centre = np.concatenate([self.theta, factors]) if problem.free else self.theta
        return Solution(
            theta=self.theta,
            factors=factors,
            covariance=covariance,
            lower=centre + lower,
            upper=centre + upper,
            residual=self.residual - factors,
            scatter=self.sigma[best],
            likelihood=float(self.likelihood.max()),
            freedom=self.freedom,
            best=best,
            weights=weights,
            jacobian=self.jacobian,
        )


def profile(problem: Problem, noise: Noise, solution: Solution, index: int) -> tuple[float, float]:
    """Return the 95 % interval of one parameter by profile likelihood; an end that is not reached is the bound.

    It is where the residuals, minimised over all else, have grown by as much as at the ends of the linearised
    interval, were the formula linear: noise of unknown kind widens both alike.
    """
    inverse, sigma = noise.inverses[solution.best], solution.scatter
    ends = []
    base = _minimise(problem, inverse, sigma, solution.theta, np.array([index]))
    slope = np.sqrt(np.diag(_linear(problem, inverse, sigma, solution.theta)))[index]
    for bound, edge in ((problem.low[index], solution.lower[index]), (problem.high[index], solution.upper[index])):
        distance = abs(edge - solution.theta[index])
        target = (distance / slope) ** 2 if slope > 0 else 4.0
        ends.append(_crossing(problem, inverse, sigma, solution, index, float(bound), target, float(base.cost)))
    return ends[0], ends[1]


def _linear(problem: Problem, inverse: Array, sigma: Array, theta: Array) -> Array:
    """Return the covariance (p, p) of the linearised problem in units of the noise."""
    J = _whitened(problem, inverse, sigma, derivatives(problem, theta)[1]).reshape(problem.y.size, -1)
    return _inverted(J.T @ J)


def _scaled(normal: Array) -> tuple[Array, Array]:
    """Return normal matrices (..., q, q) with the effect of each parameter as its unit, and these units (..., q)."""
    size = np.sqrt(np.diagonal(normal, axis1=-2, axis2=-1))
    size = np.maximum(size, IDLE * size.max(axis=-1, keepdims=True) + 1e-300)
    return normal / size[..., :, None] / size[..., None, :], size


def _inverted(normal: Array) -> Array:
    """Return the inverses of normal matrices (..., q, q); what the data do not see gets a vast variance."""
    scaled, size = _scaled(normal)
    values, vectors = np.linalg.eigh(scaled)
    inverse = (vectors / np.maximum(values, 1e-13)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    found: Array = inverse / size[..., :, None] / size[..., None, :]
    return found


def _crossing(
    problem: Problem,
    inverse: Array,
    sigma: Array,
    solution: Solution,
    index: int,
    bound: float,
    target: float,
    base: float,
) -> float:
    """Return where the profile has grown by `target` between the optimum and the bound; the bound if it does not."""
    best = float(solution.theta[index])
    if abs(bound - best) < 1e-8 or target == 0:
        return best
    known = {best: (solution.theta, -float(np.sqrt(target)))}
    covariance = _linear(problem, inverse, sigma, solution.theta)
    tangent = covariance[:, index] / covariance[index, index]

    def excess(value: float) -> float:
        if value not in known:
            near = sorted(known, key=lambda other: abs(other - value))[:2]
            start = known[near[0]][0].copy()
            if len(near) > 1:  # along the line through the nearest two
                start += (known[near[1]][0] - start) * (value - near[0]) / (near[1] - near[0])
            else:
                start += tangent * (value - near[0])
            start[index] = value
            found = _minimise(problem, inverse, sigma, start, np.array([index]), precision=1e-6)
            known[value] = found.x, float(np.sqrt(max(0.0, 2 * (found.cost - base))) - np.sqrt(target))
        return known[value][1]

    reach = abs((solution.upper if bound > best else solution.lower)[index] - best)
    near, step = best, min(max(reach, 1e-9), LEAP)
    while True:  # in leaps that the other parameters can follow
        far = bound if abs(bound - near) <= step else near + float(np.sign(bound - near)) * step
        if excess(far) >= 0:
            return float(brentq(excess, near, far, xtol=abs(far - best) * 0.01))
        if far == bound:
            return bound
        near, step = far, min(2 * step, LEAP)


def fixed(problem: Problem, noise: Noise, solution: Solution, theta: Array, index: int) -> Array:
    """Return the best parameters (p,) with one held at its value in `theta`."""
    found: Array = _minimise(problem, noise.inverses[solution.best], solution.scatter, theta, np.array([index])).x
    return found


def shifts(problem: Problem, noise: Noise, solution: Solution, deviations: Array) -> Solution:
    """Return the solution of one curve with errors from what each pair's deviation (n, K) from the mean does to it.

    The covariance of n such shifts, over n, is that of a bootstrap over pairs with infinitely many draws, without its
    bias of (n-1)/n; the intervals are Student's with n - 1 degrees of freedom.
    """
    n = deviations.shape[0]
    inverse = noise.inverses[solution.best]
    J, r = inverse @ solution.jacobian[:, 0], inverse @ deviations.T
    moved = np.linalg.pinv(J, rcond=1e-12) @ r  # (p + 1, n)
    scaled, size = _scaled(J.T @ J)
    unseen = _inverted(J.T @ J) - np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) / np.outer(size, size)
    covariance = moved @ moved.T / (n * (n - 1)) + solution.scatter[0] ** 2 * unseen
    reach = float(stdtrit(n - 1, 0.975)) * np.sqrt(np.diag(covariance))
    centre = np.concatenate([solution.theta, solution.factors]) if problem.free else solution.theta
    return replace(solution, covariance=covariance, lower=centre - reach, upper=centre + reach, freedom=n - 1.0)
