r"""The float64 fast path when all relaying layers share one position exponent g: sums of positive terms.

With $c = 1+g$ and $\hat h_k$ the complete homogeneous symmetric polynomial of degree k in
$c/(P+1+g), \dots, c/(N+g)$, THEORY section 2 reads, for every g,

$$ D(t) = \frac{\Gamma(P+c)\Gamma(N)}{\Gamma(P)\Gamma(N+c)} \sum_{k=0}^{L-1} E_k \hat h_k, \qquad
   k \hat h_k = \sum_{i=1}^{k} \hat p_i \hat h_{k-i}. $$

Its condition number with respect to every rounding error is that of $\sum E_k \hat h_k$: the same sum
with the magnitudes of all strengths in place of the strengths, over the sum itself.  It is 1 when no
strength is negative.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from relaymodel.exact.powersums import digamma_difference, log_gamma_ratio, power_sums, power_sums_near
from relaymodel.exact.spectrum import active_positions, path_coefficients, tail_sums
from relaymodel.model import RelayModel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Exact coefficients divided by 2**exponent, then rounded once; `magnitude` belongs to |strengths|."""

    values: Array
    magnitude: Array
    exponent: int

    @property
    def signed(self) -> bool:
        """Whether terms of both signs, or negative ones, occur."""
        return not np.array_equal(self.values, self.magnitude)


@lru_cache(maxsize=256)
def coefficients(model: RelayModel, *, tail: bool) -> Coefficients:
    """Return E_0..E_{L-1} if `tail`, else e_1..e_L, scaled so that the largest magnitude is about 1."""
    exact, bound = path_coefficients(model), path_coefficients(model, magnitude=True)
    exact, bound = (tail_sums(exact), tail_sums(bound)) if tail else (exact[1:], bound[1:])
    values, exponent = round_scaled(exact, bound)
    return Coefficients(values, round_scaled(bound, bound)[0], exponent)


def round_scaled(values: tuple[fmpq, ...], bound: tuple[fmpq, ...]) -> tuple[Array, int]:
    """Return `values` divided by 2**exponent, rounded once, and the exponent, which fits the largest of `bound`."""
    largest = max(bound)
    exponent = int(largest.p).bit_length() - int(largest.q).bit_length()
    scale = fmpq(2) ** -exponent
    return np.array([int(v.p) / int(v.q) for v in (value * scale for value in values)]), exponent


def common_position(model: RelayModel) -> float | None:
    """Return the position exponent that all relaying layers share, or None."""
    positions = active_positions(model)
    return float(positions[0]) if len(positions) == 1 else None


def influence_and_exponent(model: RelayModel, t: Array, *, exponent: bool) -> tuple[Array, Array, Array]:
    """Return D(t), alpha(t) (zeros unless `exponent`) and the condition number, each of shape (T,)."""
    g = common_position(model)
    assert g is not None
    c = 1 + g
    weights = coefficients(model, tail=True)
    P = float(model.prompt)
    L = model.depth
    low = np.array([P + c])
    sums, tails = power_sums(low, t, c, max(1, L - 1 + exponent))
    h = complete_homogeneous(sums[: L - 1])
    total = weights.values @ h
    condition = _condition(weights, h, total)
    N = P + t
    alpha = np.zeros_like(t)
    if exponent:
        falling = np.zeros_like(t)
        for i, tail in enumerate(tails[1:L], 1):  # d h_k / dt = sum_i c^i zeta(i+1, N+c) h_{k-i}
            falling += tail * (weights.values[i:] @ h[: L - i])
        local = t / N if c == 1 else t * digamma_difference(N, c)
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = local - (t / c) * falling / total
    ratio = (P + c) / (N + c)
    root = ratio if c == 1 else ratio ** (0.5 * c)
    if c == 1:
        value = total * P / N
    else:
        correction = np.exp(log_gamma_ratio(np.array([P]), c) - log_gamma_ratio(N, c))
        value = total * correction * root * root  # in two halves: one power alone may leave the float range
    return scale_up(value, weights.exponent), alpha, condition


def token_influence(model: RelayModel, source: Array, position: Array) -> tuple[Array, Array]:
    """Return the weight of token `source` on `position` > `source`, and its condition number; shape (T,)."""
    g = common_position(model)
    assert g is not None
    c = 1 + g
    weights = coefficients(model, tail=False)
    sums = power_sums_near(source + g, position - source + 1, c, max(1, model.depth - 1))
    h = complete_homogeneous(sums[: model.depth - 1])
    total = weights.values @ h
    condition = _condition(weights, h, total)
    if c == 1:
        value = total / position
    else:
        # Gamma(s+g)/Gamma(s) = Gamma(s+c)/Gamma(s) / (s+g)
        correction = np.exp(log_gamma_ratio(source, c) - log_gamma_ratio(position, c))
        root = ((source + c) / (position + c)) ** (0.5 * c)
        value = total * (c / (source + g)) * correction * root * root
    return scale_up(value, weights.exponent), condition


def scale_up(value: Array, exponent: int) -> Array:
    """Return value * 2**exponent; infinity beyond the float range, for the caller to notice."""
    with np.errstate(over="ignore"):
        scaled: Array = np.ldexp(value, exponent)
    return scaled


def _condition(weights: Coefficients, h: Array, total: Array) -> Array:
    if not weights.signed:
        return np.ones_like(total)
    with np.errstate(divide="ignore", invalid="ignore"):  # a sum of 0 has no condition number and is handed over
        condition: Array = weights.magnitude @ h / np.abs(total)
    return condition


def complete_homogeneous(sums: Array) -> Array:
    r"""Return $\hat h_0, \dots, \hat h_K$, shape (K+1, T), from the power sums, shape (K, T), by Newton's identity."""
    K, T = sums.shape
    h = np.empty((K + 1, T))
    h[0] = 1.0
    work = np.empty(T)
    for k in range(1, K + 1):
        np.multiply(sums[0], h[k - 1], out=h[k])
        for i in range(2, k + 1):
            np.multiply(sums[i - 1], h[k - i], out=work)
            h[k] += work
        h[k] /= k
    return h
