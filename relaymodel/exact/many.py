r"""The influence of many models of equal layers at once, in float64.

With L equal layers of position exponent g, $E_k = \sum_{j>k} \binom Lj \lambda^j \rho^{L-j}$ whatever g is, and what
`residues` multiplies them by depends on the prompt, g and t alone:

$$ D = \frac{\Gamma(P+c)\,\Gamma(N)}{\Gamma(P)\,\Gamma(N+c)} \sum_k E_k \hat h_k(P, g, t). $$

So all strengths and depths share one set of $\hat h_k$, and all models are one product of two matrices.  The E_k are
rounded parameters to powers, whose errors count beside those of `residues`; the condition number is the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import Number
from relaymodel.exact.powersums import digamma_difference, power_sums
from relaymodel.exact.promise import PROMISE, rounding_error
from relaymodel.exact.residues import SMALLEST_SUM, complete_homogeneous, front
from relaymodel.exact.values import WORKSPACE

Array = NDArray[np.float64]
Strengths = Sequence[tuple[int, Number, Number]]  # depth, relay, residual


@dataclass(frozen=True, eq=False)
class Many:
    """D and its local exponent, shape (prompts, strengths, T), and where each keeps the promise of `exact.values`."""

    value: Array
    sure: NDArray[np.bool_]
    alpha: Array
    alpha_sure: NDArray[np.bool_]


def influence(prompts: Array, position: Number, strengths: Strengths, t: Array, *, exponent: bool) -> Many:
    """Return what every prompt, every (depth, relay, residual) of equal layers, and every t give.

    Prompts, shape (Q,), and t, shape (T,), are float64; no relay is 0.  Without `exponent` the exponents are zeros.
    """
    weights, sizes = tail_sums(strengths)
    budget = PROMISE / np.array([rounding_error(depth) + (2 * depth + 8) * 2.0**-53 for depth, *_ in strengths])
    shape = (len(prompts), len(strengths), len(t))
    out = [np.empty(shape, dtype=kind) for kind in (float, bool, float, bool)]
    step = max(1, WORKSPACE // weights.shape[1])
    rows = max(1, step // len(t))
    for i in range(0, len(prompts), rows):
        for j in range(0, len(t), step):
            block = _block(prompts[i : i + rows], position, weights, sizes, budget, t[j : j + step], exponent)
            for whole, part in zip(out, block, strict=True):
                whole[i : i + rows, :, j : j + step] = part
    return Many(*out)


def tail_sums(strengths: Strengths) -> tuple[Array, Array | None]:
    r"""Return the E_k, shape (strengths, m) with zeros behind the L of each, and those of $|a_j|$, None if equal."""
    depths = np.array([depth for depth, *_ in strengths])
    relay, residual = (np.array([float(x[i]) for x in strengths])[:, None] for i in (1, 2))
    m = int(depths.max())
    j = np.arange(1, m + 1)
    combs = {depth: [float(math.comb(depth, i)) for i in j] for depth in set(depths.tolist())}
    paths = np.array([combs[depth] for depth in depths.tolist()])
    above = np.maximum(depths[:, None] - j, 0)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        terms = paths * relay**j * residual**above
        sums, sizes = (np.cumsum(x[:, ::-1], axis=1)[:, ::-1] for x in (terms, np.abs(terms)))
    return sums, None if np.array_equal(sums, sizes) else sizes


def _block(
    prompts: Array, position: Number, weights: Array, sizes: Array | None, budget: Array, t: Array, exponent: bool
) -> list[NDArray[Any]]:
    """Return the fields of `Many` for prompts and t few enough for the cache."""
    g, m = float(position), weights.shape[1]
    c = 1 + g
    rest = float(1 + Fraction(position) - Fraction(c))
    P, steps = np.repeat(prompts, t.size), np.tile(t, prompts.size)
    N = P + steps
    sums, tails = power_sums(P + c, steps, c, max(1, m - 1 + exponent))
    h = complete_homogeneous(sums[: m - 1])
    root = front(P, N, c, rest)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        value = root * (root * _product(weights, h))
        condition: Array | float = max(1.0, c / 5)
        if sizes is not None:
            condition = condition * (root * (root * _product(sizes, h))) / np.abs(value)
        sure = (np.abs(value) >= SMALLEST_SUM) & np.isfinite(value) & (condition <= budget[:, None])
        if exponent:
            slopes = np.zeros_like(h)  # t d h_k / dt = (t/c) sum_i c^(i+1) zeta(i+1, N+c) h_{k-i}
            for i, tail in enumerate(tails[1:m], 1):
                slopes[i:] += tail * h[: m - i]
            slopes *= steps / c
            local = steps / N if c == 1 else steps * digamma_difference(N, c)
            alpha = local - root * (root * _product(weights, slopes)) / value
            alpha_sure = sure & (condition * (1 + c + np.abs(alpha)) <= budget[:, None])
        else:
            alpha, alpha_sure = np.zeros_like(value), sure
    shape = (len(weights), prompts.size, t.size)
    return [x.reshape(shape).transpose(1, 0, 2) for x in (value, sure, alpha, alpha_sure)]


def _product(weights: Array, columns: Array) -> Array:
    """Return the product of matrices, the same to the last bit however many threads a library for it would take."""
    product: Array = np.einsum("qk,kn->qn", weights, columns)
    return product
