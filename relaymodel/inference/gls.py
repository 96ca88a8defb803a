r"""Generalised least squares under noise of unknown kind: the one kernel below every estimate.

$$ y = F b + Z u + \epsilon, \qquad u \sim N(0, \kappa \sigma^2), \quad \epsilon \sim N(0, \sigma^2 R_c) $$

The coefficients b have flat priors, the u normal ones, whose size kappa is tried on a grid, as are the candidates R_c
for the noise; $\sigma^2$ is integrated over.  Answers are weighted by the restricted likelihood.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import fdtrc, stdtr, stdtrit

from relaymodel.inference.cells import Array
from relaymodel.inference.noise import Noise

ROUNDING = 2.0**-51
"""Noise that any float64 log D has, in units of its size or 1; no scale is taken to be smaller."""

SINGULAR = 1e-9
"""Columns of a design that are this much weaker than the strongest, once whitened, are none."""

LEVEL = 0.05
"""A formula is adequate where what it leaves would be noise with at least this probability."""

IGNORED = 1e-3
"""Answers less likely than this, against the likeliest, are left out; together they move no quantile that is used."""


@dataclass(frozen=True, eq=False)
class Gls:
    """Least squares prepared for all noise candidates C, and for sizes (C, Q) of the prior; see the module.

    flat (C, f, K), normal (C, f, f)
        What makes of y the coefficients b, u left out, and their covariance in units of the noise's variance.
    contrasts (C, K, F)
        F = K - f combinations of y that b does not move, in which the noise is white.
    turn (C, F, r), values (C, r)
        The r combinations of contrasts in which u is diagonal, and the variances that it adds to them.
    mistaken (C, f, r)
        How much of u `flat` takes for b, for each of these per root of its size.
    shrunk (C, Q, r), determinant (C, Q)
        Variances of the combinations, and half the logarithm of the determinant in the restricted likelihood.
    """

    noise: Noise
    flat: Array
    normal: Array
    contrasts: Array
    turn: Array
    values: Array
    mistaken: Array
    sizes: Array
    shrunk: Array
    determinant: Array

    @property
    def freedom(self) -> int:
        """Degrees of freedom F."""
        return int(self.contrasts.shape[2])

    @cached_property
    def vectors(self) -> Array:
        """What makes of y the combinations of contrasts, shape (C, K, r)."""
        return np.asarray(self.contrasts @ self.turn)

    def loaded(self, loads: Array, sizes: Array | None = None) -> "Gls":
        """Return the same with coefficients u that have normal priors; `loads` (K, r) is what they do to y."""
        seen, r = np.swapaxes(self.contrasts, 1, 2) @ loads, loads.shape[1]  # (C, F, r)
        if r < self.freedom:
            frame, upper = np.linalg.qr(seen)
            turn, singular, other = np.linalg.svd(upper)
            found = replace(self, turn=frame @ turn, values=singular**2)
            found = replace(found, mistaken=self.flat @ loads @ np.swapaxes(other, 1, 2))
        else:  # as many directions as contrasts: b is not read off
            values, turn = np.linalg.eigh(seen @ np.swapaxes(seen, 1, 2))
            found = replace(self, turn=turn, values=np.maximum(values, 0), mistaken=np.zeros((*self.flat.shape[:2], 0)))
        return found if sizes is None else found.sized(sizes)

    def sized(self, sizes: Array) -> "Gls":
        """Return the same for sizes (Q,) or (C, Q) of the prior variance of u."""
        sizes = np.broadcast_to(sizes, (len(self.values), np.shape(sizes)[-1]))
        shrunk = 1 + sizes[:, :, None] * self.values[:, None]
        bare = self.determinant[:, :1] - 0.5 * np.log(self.shrunk[:, :1]).sum(axis=2)
        determinant = bare + 0.5 * np.log(shrunk).sum(axis=2)
        return replace(self, sizes=sizes, shrunk=shrunk, determinant=determinant)

    def posterior(self, y: Array, *, floor: Array | float) -> "Posterior":
        """Return what N curves y (K, N) say; `floor` (N,) is the least mean square of a contrast."""
        white = np.swapaxes(self.contrasts, 1, 2) @ y
        data = np.swapaxes(self.turn, 1, 2) @ white
        rest = np.sum((white - self.turn @ data) ** 2, axis=1) if data.shape[1] < self.freedom else 0 * white[:, 0]
        square = rest[:, None] + (1 / self.shrunk) @ data**2 + self.freedom * np.asarray(floor)
        evidence = (self.noise.prior[:, None] - self.determinant)[:, :, None] - 0.5 * self.freedom * np.log(square)
        return Posterior(self, y, data, square, evidence)


@dataclass(frozen=True, eq=False)
class Posterior:
    """N curves y (K, N): data (C, r, N), and for each size squares of residuals and log evidence (C, Q, N)."""

    gls: Gls
    y: Array
    data: Array
    square: Array
    evidence: Array

    @cached_property
    def weights(self) -> Array:
        """Probabilities (C, Q, N) of noise and size, for each curve; the unlikely are 0."""
        weights = np.exp(self.evidence - self.evidence.max(axis=(0, 1)))
        weights[weights < IGNORED] = 0
        return np.asarray(weights / weights.sum(axis=(0, 1)))

    def coefficient(self, index: int) -> tuple[Array, Array, Array]:
        """Return value, standard error and the error from noise alone of one coefficient b, shape (C, Q, N) each."""
        g = self.gls
        gain = g.sizes[:, :, None] * np.sqrt(g.values)[:, None] / g.shrunk  # by which u is read from its data
        mistaken = g.mistaken[:, None, index]
        value = (g.flat[:, index] @ self.y)[:, None] - (mistaken * gain) @ self.data
        scale = self.square / g.freedom
        own = g.normal[:, index, index, None, None]
        random = own + np.sum((mistaken * gain) ** 2, axis=2)[:, :, None]
        full = own + np.sum(mistaken**2 * g.sizes[:, :, None] / g.shrunk, axis=2)[:, :, None]
        return value, np.sqrt(scale * full), np.sqrt(scale * np.minimum(random, full))


def gls(design: Array, noise: Noise) -> Gls:
    """Prepare least squares with a design (K, f) of coefficients with flat priors, whatever the noise."""
    f = design.shape[1]
    frame, upper = np.linalg.qr(noise.inverses @ design, mode="complete")
    back, C = np.linalg.inv(upper[:, :f]), len(frame)
    determinant = noise.logdet + np.log(np.abs(np.diagonal(upper[:, :f], axis1=1, axis2=2))).sum(axis=1)
    return Gls(
        noise=noise,
        flat=back @ np.swapaxes(frame[:, :, :f], 1, 2) @ noise.inverses,
        normal=back @ np.swapaxes(back, 1, 2),
        contrasts=np.swapaxes(noise.inverses, 1, 2) @ frame[:, :, f:],
        turn=np.zeros((C, frame.shape[1] - f, 0)),
        values=np.zeros((C, 0)),
        mistaken=np.zeros((C, f, 0)),
        sizes=np.zeros((C, 1)),
        shrunk=np.ones((C, 1, 0)),
        determinant=determinant[:, None],
    )


def rounding(y: Array) -> Array:
    """Return the variance (N,) that rounding gives log D, y (K, N)."""
    return np.asarray((ROUNDING * np.maximum(1, np.abs(y).max(axis=0))) ** 2)


def quantile(level: Array | float, share: Array, shift: Array, error: Array, freedom: float) -> Array:
    """Return quantiles (q,) of a mixture (C,) of Student's t, moved by `shift` and stretched by `error`.

    Either `level` is a number and these are (C, q), or it is (q,) and they are (C,).
    """
    if np.ndim(level):
        shift, error = (np.broadcast_to(a[:, None], (a.size, np.size(level))) for a in (shift, error))
    levels = np.broadcast_to(level, shift.shape[1:])
    error = np.maximum(error, np.finfo(float).tiny)
    return np.array([_quantile(*one, share, freedom) for one in zip(levels.tolist(), shift.T, error.T, strict=True)])


def _quantile(level: float, shift: Array, error: Array, share: Array, freedom: float) -> float:
    reach = 1.001 * abs(float(stdtrit(freedom, level)))
    low, high = float(np.min(shift - reach * error)), float(np.max(shift + reach * error))

    def excess(x: float) -> float:
        return float(share @ stdtr(freedom, (x - shift) / error)) - level

    if excess(low) >= 0:  # a certain number has its quantiles at itself
        return low
    return high if excess(high) <= 0 else float(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000))


def linear_errors(noise: Noise, y: Array, design: Array, functional: Array, *, floor: float) -> Array:
    """Return standard errors (M,) of what is linear in log D, `functional` (K, M), by the residuals of a linear fit.

    `design` (K, f) spans what is fitted.  1.96 errors are the 95 % interval of the mixture of Student's t over the
    candidates for the noise.
    """
    found = gls(design, noise).posterior(y[:, None], floor=floor)
    freedom = found.gls.freedom
    variances = np.einsum("km,ckl,lm->cm", functional, noise.covariances, functional)
    errors = np.sqrt(variances * (found.square / freedom)[:, 0])
    return quantile(0.975, found.weights[:, 0, 0], np.zeros_like(errors), errors, freedom) / 1.96


def independent(design: Array, covariance: Array) -> Array:
    """Return columns (K, q) that span a design (K, p) under noise of a covariance, without those that it repeats."""
    white = Noise.single(covariance).inverses[0] @ design
    frame, size, _ = np.linalg.svd(white / np.maximum(np.linalg.norm(white, axis=0), 1e-300), full_matrices=False)
    return np.asarray(Noise.single(covariance).roots[0] @ frame[:, size > SINGULAR * size[0]])


def misfit(design: Array, residual: Array, unit: Array, covariance: Array, freedom: int) -> float:
    """Return the probability that noise alone would bend a curve away from a formula as smoothly and as far as this.

    `design` (K, q) holds the derivatives of the formula, `residual` (K,) is what it leaves, `unit` (K,) is log t from
    -1 to 1; the noise has a covariance (K, K), known to `freedom` degrees of freedom of the curve's own smooth fit.
    An F statistic for the gain from adding two more powers of log t, the lowest that the formula does not have.
    """
    noise = Noise.single(covariance)
    own = independent(design, covariance)
    q = own.shape[1]
    powers = np.polynomial.legendre.legvander(unit, q + 1)
    contrasts = gls(own, noise).contrasts[0].T
    rest = contrasts @ powers
    size = np.linalg.norm(noise.inverses[0] @ powers, axis=0)
    directions, _, _ = np.linalg.svd(rest / size, full_matrices=False)
    gain = float(np.sum((directions[:, :2].T @ (contrasts @ residual)) ** 2)) / 2
    return float(fdtrc(2, max(1, freedom - q + 2), gain))
