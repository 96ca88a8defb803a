r"""The float64 fast path: the sum of residues, each a sum of terms of one sign for positive coefficients.

At a pole $-g$ of order m, with $c = 1+g$ and $\hat h_k$ the complete homogeneous symmetric polynomial of degree
k in $c/(P+1+g), \dots, c/(N+g)$, the residue of THEORY section 2 is

$$ \frac{\Gamma(P+c)\Gamma(N)}{\Gamma(P)\Gamma(N+c)} \sum_{k=0}^{m-1} E_k \hat h_k, \qquad
   E_k = \sum_{j>k} \frac{a_j}{c^j}, \qquad k \hat h_k = \sum_{i=1}^{k} \hat p_i \hat h_{k-i}, $$

$a_j$ the coefficient of $(z+g)^{-j}$ in f.  The $E_k$ come rounded once from exact rationals, and the sensitivity
of the sum to every rounding error is at most that of the same sum with $|a_j|$.  The quotient of the two is the
condition number: 1 for a single pole and strengths that are not negative, large where residues cancel.

The inner sum comes from `expansion`, and close to the origin, where that does not hold, from Newton's identities.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from relaymodel.exact.expansion import Expansion, Terms, expand
from relaymodel.exact.powersums import digamma_difference, log_gamma_ratio, power_sums, power_sums_near
from relaymodel.exact.spectrum import poles, tail_sums
from relaymodel.model import RelayModel

Array = NDArray[np.float64]

SMALLEST_SUM = 2.0**-1000  # smaller ones may have lost digits to underflow


@dataclass(frozen=True, eq=False)
class PoleWeights:
    """Coefficients at one pole, divided by 2**exponent (of `stack`), shape (m,); `magnitude` is for |a_j|.

    `rest` is what rounding took off 1 + g: as an exponent of large t it counts.
    """

    position: float
    rest: float
    values: Array
    magnitude: Array


@dataclass(frozen=True, eq=False)
class Stack:
    """The weights at all poles, in units of 2**exponent."""

    poles: tuple[PoleWeights, ...]
    exponent: int

    @property
    def steepest(self) -> float:
        """The largest 1 + g."""
        return 1 + max(pole.position for pole in self.poles)

    @cached_property
    def sure(self) -> bool:
        """Whether nothing can cancel, so that the condition number is 1."""
        return len(self.poles) == 1 and np.array_equal(self.poles[0].values, self.poles[0].magnitude)


@dataclass(frozen=True, eq=False)
class Sums:
    """What comes out, shape (T,): the value, its local exponent (zeros unless asked for), and its condition number."""

    value: Array
    alpha: Array
    condition: Array


@lru_cache(maxsize=256)
def stack(model: RelayModel, *, tail: bool) -> Stack:
    """Return E_0, ..., E_{m-1} of each pole if `tail`, else a_j / c^j, j = 1..m."""
    columns = []
    for pole in poles(model):
        c = pole.position + 1
        values = [a / c**j for j, a in enumerate(pole.principal, 1)]
        sizes = [abs(value) for value in values]
        if tail:
            values, sizes = list(tail_sums((fmpq(0), *values))), list(tail_sums((fmpq(0), *sizes)))
        g = int(pole.position.p) / int(pole.position.q)
        rest = c - fmpq(*(1 + g).as_integer_ratio())
        columns.append((g, int(rest.p) / int(rest.q), values, sizes))
    exponent = binary_exponent(max(size for *_, sizes in columns for size in sizes))
    return Stack(tuple(PoleWeights(g, r, scaled(v, exponent), scaled(s, exponent)) for g, r, v, s in columns), exponent)


def binary_exponent(value: fmpq) -> int:
    """Return e with value / 2**e between about 1/2 and 2."""
    return int(value.p).bit_length() - int(value.q).bit_length()


def scaled(values: list[fmpq] | tuple[fmpq, ...], exponent: int) -> Array:
    """Return values / 2**exponent, each rounded once."""
    scale = fmpq(2) ** -exponent
    return np.array([int(v.p) / int(v.q) for v in (value * scale for value in values)])


@lru_cache(maxsize=256)
def expansions(model: RelayModel) -> tuple[Expansion, ...]:
    """Return the expansion of each pole of `stack(model, tail=True)`."""
    weights = stack(model, tail=True).poles
    return tuple(
        expand(model.prompt, pole.position, w.values, w.magnitude)
        for pole, w in zip(poles(model), weights, strict=True)
    )


def influence(model: RelayModel, t: Array, *, exponent: bool) -> Sums:
    """Return D(t) and, if `exponent`, alpha(t)."""
    far = t >= max(expansion.front.nearest for expansion in expansions(model)) - model.prompt
    if far.all() or not far.any():
        return _influence(model, t, exponent=exponent, far=bool(far.all()))
    value, alpha, condition = np.empty_like(t), np.empty_like(t), np.empty_like(t)
    for side in (far, ~far):
        sums = _influence(model, t[side], exponent=exponent, far=side is far)
        value[side], alpha[side], condition[side] = sums.value, sums.alpha, sums.condition
    return Sums(value, alpha, condition)


def _influence(model: RelayModel, t: Array, *, exponent: bool, far: bool) -> Sums:
    found = stack(model, tail=True)
    P, N = float(model.prompt), model.prompt + t
    total, size, falling = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
    for pole, expansion in zip(found.poles, expansions(model), strict=True):
        c = 1 + pole.position
        terms = (
            expansion.sums(t, exponent=exponent, sure=found.sure)
            if far
            else _newton(pole, P, t, exponent=exponent, sure=found.sure)
        )
        root = front(P, N, c, pole.rest)
        # in two halves: the power of t alone may leave the float range
        value = root * (root * terms.value)
        total += value
        if not found.sure:
            size += root * (root * terms.magnitude)
        if exponent:
            local = t / N if c == 1 else t * digamma_difference(N, c)
            falling += local * value - root * (root * terms.slope)
    condition = _condition(found, total, size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        alpha = falling / total if exponent else falling
    if exponent:
        with np.errstate(invalid="ignore", over="ignore"):
            condition = condition * (1 + found.steepest + np.abs(alpha))
    return Sums(scale_up(total, found.exponent), alpha, condition)


def _newton(pole: PoleWeights, P: float, t: Array, *, exponent: bool, sure: bool) -> Terms:
    """Return the sums at any t, by Newton's identities."""
    c, m = 1 + pole.position, pole.values.size
    sums, tails = power_sums(P + c, t, c, max(1, m - 1 + exponent))
    h = complete_homogeneous(sums[: m - 1])
    slope = np.zeros_like(t)  # d h_k / dt = sum_i c^i zeta(i+1, N+c) h_{k-i}
    if exponent:
        for i, tail in enumerate(tails[1:m], 1):
            slope += tail * (pole.values[i:] @ h[: m - i])
    return Terms(pole.values @ h, 0.0 if sure else pole.magnitude @ h, t * (slope / c))


def token_influence(model: RelayModel, source: Array, target: Array) -> Sums:
    """Return the weight of token `source` on `target` > `source`, both of shape (T,)."""
    found = stack(model, tail=False)
    total, size = np.zeros_like(source), np.zeros_like(source)
    for pole in found.poles:
        g, m = pole.position, pole.values.size
        c = 1 + g
        sums = power_sums_near(source + g, target - source + 1, c, max(1, m - 1))
        h = complete_homogeneous(sums[: m - 1])
        # Gamma(s+g) / Gamma(s) = Gamma(s+c) / Gamma(s) / (s+g)
        root = front(source, target, c, pole.rest)
        own = c / (source + g)
        total += root * (root * (own * (pole.values @ h)))
        if not found.sure:
            size += root * (root * (own * (pole.magnitude @ h)))
    return Sums(scale_up(total, found.exponent), np.zeros_like(source), _condition(found, total, size))


def _condition(found: Stack, total: Array, size: Array) -> Array:
    """Return the condition numbers; infinity where the sum is 0, or so small that float64 has fewer digits there."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        condition = np.ones_like(total) if found.sure else size / np.abs(total)
    # the error of a power grows with its exponent; that of exponents up to 5 is in the rounding errors
    return np.where(np.abs(total) < SMALLEST_SUM, np.inf, condition * max(1.0, found.steepest / 5))


def front(start: Array | float, end: Array, c: float, rest: float) -> Array:
    r"""Return the root of $\frac{\Gamma(x+c)\Gamma(y)}{\Gamma(x)\Gamma(y+c)}$, x = start, y = end, at c + rest."""
    if c == 1:
        root = np.sqrt(start / end)
    else:
        correction = log_gamma_ratio(np.atleast_1d(np.asarray(start, dtype=float)), c) - log_gamma_ratio(end, c)
        root = ((start + c) / (end + c)) ** (0.5 * c) * np.exp(0.5 * correction)
    if rest:
        root = root * np.exp(0.5 * rest * np.log((start + c) / (end + c)))
    return root


def scale_up(value: Array, exponent: int) -> Array:
    """Return value * 2**exponent; infinity beyond the float range, for the caller to notice."""
    with np.errstate(over="ignore"):
        up: Array = np.ldexp(value, exponent)
    return up


def complete_homogeneous(sums: Array) -> Array:
    r"""Return $\hat h_0, \dots, \hat h_K$, shape (K+1, T), from the power sums, shape (K, T), by Newton's identity."""
    K, T = sums.shape
    h = np.empty((K + 1, T))
    h[0] = 1.0
    for k in range(1, K + 1):
        np.einsum("it,it->t", sums[:k], h[k - 1 :: -1], out=h[k])
        h[k] *= 1 / k
    return h
