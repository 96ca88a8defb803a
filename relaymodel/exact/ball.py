"""Certified values: ball arithmetic whose radius bounds every error (python-flint's Arb)."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx, fmpq

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.exact import bands, finite
from relaymodel.exact.hyperbola import Hyperbola, NoContourError
from relaymodel.exact.kernel import GammaKernel, head_front
from relaymodel.exact.ladder import CLUSTER_BITS, MOST_POLES, SlowSeriesError, residue_sum, terms_needed
from relaymodel.exact.precision import working
from relaymodel.exact.promise import DEEPEST
from relaymodel.exact.rational import influence_fraction
from relaymodel.exact.spectrum import Symbol, merged, poles, rational, symbol, without_influence
from relaymodel.exact.stirling import HUGE
from relaymodel.model import RelayModel

STEPS_FAST, STEPS_MOST = (
    300,
    3000,
)  # steps that the sum over eigenvalues is taken for: where the residues fall fast, and elsewhere
ZERO_STEPS = 5000  # steps for which an exact fraction decides whether the influence is 0


class PrecisionError(ArithmeticError):
    """A value could not be separated from zero; `ball` holds it as far as it was determined."""

    def __init__(self, message: str, ball: arb) -> None:
        super().__init__(message, ball)  # both, so that it pickles
        self.ball = ball

    def __str__(self) -> str:
        return str(self.args[0])


def influence_ball(model: RelayModel, t: Number, digits: int = 50) -> arb:
    r"""Return D(t) as a ball of relative radius below $10^{-digits}$ (THEORY section 2).

    $D(t) = \sum_g \mathrm{Res}_{z=-g} f(z) \Phi(-z)$ with
    $\Phi(-z) = \frac{\Gamma(P+1-z)\,\Gamma(N)}{\Gamma(P)\,\Gamma(N+1-z)\,(1-z)}$ and $N = P+t$.  The
    principal parts of f are exact rationals; precision is raised until the ball is narrow enough,
    however close the position exponents lie and however much the layers cancel.

    Parameters
    ----------
    model
        Any relay model.
    t
        Real t > 0: int of any size, Fraction or float (at its exact value).
    digits
        Decimal digits to certify, at least 1.

    Returns
    -------
    flint.arb
        Encloses the exact value; exactly zero if the influence is zero.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, named.
    PrecisionError
        If D(t) cannot be told from zero with a hundred times the digits asked for; for heads with a recency also where
        t is so far below 1 that the integral falls too slowly.

    Examples
    --------
    >>> from relaymodel import RelayModel
    >>> model = RelayModel.uniform(prompt=10, depth=12, relay=1)
    >>> print(influence_ball(model, 10**100, digits=20).str(20, radius=False))
    3.9338527597697879672e-81
    """
    N, lost = end_position(model, t)
    kernel = GammaKernel(fmpq(model.prompt + 1), N + 1)
    plateau = rational(model.plateau)
    integral = _integral(model, kernel, lost)
    return refine(lambda: integral() + plateau, model, digits, integral.extra, exact=lambda: _vanishes(model, kernel))


def local_exponent_ball(model: RelayModel, t: Number, digits: int = 50) -> arb:
    r"""Return $\alpha(t) = -d\log|D|/d\log t$ as a ball of absolute radius below $10^{-digits}$ (THEORY section 3).

    $dD/dt = \sum_g \mathrm{Res}_{z=-g} f(z)\Phi(-z) [\psi(N) - \psi(N+1-z)]$.  Arguments and errors as
    `influence_ball`; an influence that is zero has no exponent and raises `ValueError`.

    >>> from relaymodel import RelayModel
    >>> print(local_exponent_ball(RelayModel.uniform(prompt=10, depth=2, relay=1), 100).str(10, radius=False))
    0.7400406244
    """
    N, lost = end_position(model, t)
    if without_influence(model) and model.plateau == 0:
        raise ValueError(f"model must have an influence other than 0 for a local exponent, got {show(model)}")
    kernel = GammaKernel(fmpq(model.prompt + 1), N + 1)
    value, slope = (_integral(model, k, lost, derivative=True) for k in (kernel, replace(kernel, slope=True)))
    plateau, exact_t = rational(model.plateau), N - model.prompt

    def evaluate() -> arb:
        return arb(exact_t) * slope() / (value() + plateau)

    extra = max(value.extra, slope.extra)
    return refine(evaluate, model, digits, extra, absolute=True, exact=lambda: _vanishes(model, kernel))


def token_influence_ball(model: RelayModel, source: int, target: int, digits: int = 50) -> arb:
    r"""Return the weight of token s, `source`, on token n, `target`, as a ball (THEORY section 2).

    $\sum_g \mathrm{Res}_{z=-g} f(z) \frac{\Gamma(s-z)\Gamma(n)}{\Gamma(s)\Gamma(n+1-z)}$ for $s<n$, $f(n)$ for
    $s=n$, 0 for $s>n$.  The prompt length of the model plays no role.

    >>> from relaymodel import RelayModel
    >>> print(token_influence_ball(RelayModel.uniform(prompt=1, depth=1, relay=1), 3, 4).str(5, radius=False))
    0.25000
    """
    s, n = positive_integer("source", source), positive_integer("target", target)
    if s > n:
        return arb(0)
    plateau = rational(model.plateau) if s == 1 else fmpq(0)
    if s == n:
        return refine(lambda: _eigenvalue(model, n) + plateau, model, digits, 64 + 2 * n.bit_length())
    integral = _integral(model, GammaKernel(fmpq(s), fmpq(n + 1), tokens=True), 64 + min(n, HUGE).bit_length())
    return refine(lambda: integral() + plateau, model, digits, integral.extra)


def end_position(model: RelayModel, t: Number) -> tuple[fmpq, int]:
    """Return N = P + t exactly, and the bits that a difference of log-gammas or digammas at N loses."""
    number = real("t", t)
    if number <= 0:
        raise ValueError(f"t must be positive, got {show(t)}; t counts the tokens after the prompt")
    N = rational(Fraction(number)) + model.prompt
    size = (int(N.p) // int(N.q)).bit_length()
    return N, 64 + (size if N < HUGE else size.bit_length())


def refine(
    evaluate: Callable[[], arb],
    model: RelayModel,
    digits: int,
    extra: int,
    *,
    absolute: bool = False,
    exact: Callable[[], bool] = lambda: False,
) -> arb:
    """Raise the working precision, which is that wanted and `extra` bits at first, until the ball is narrow enough.

    `exact` decides, where it can, whether what cannot be told from 0 is 0.
    """
    wanted = int(positive_integer("digits", digits) * 3.3219280948873626) + 2
    precision = wanted + extra
    first, highest = precision, 20 * precision + (1 << 13)
    while True:
        with working(bits=precision, order=model.depth + 1):
            value = evaluate()
            if value == 0 and value.rad() == 0:
                return value
            if absolute and value.is_finite() and value.rad() < arb(2) ** -wanted:
                return value
            if not absolute and value.rel_accuracy_bits() >= wanted:
                return value
        if precision == 4 * first and exact():
            if absolute:
                raise PrecisionError("the influence is 0, so that it has no local exponent", value)
            return arb(0)
        if precision > highest:
            raise PrecisionError(f"the influence cannot be told from 0 with {precision} bits: {value}", value)
        precision *= 2


@dataclass(frozen=True)
class BallIntegral:
    """The contour integral of a model against a kernel: a way to evaluate it, and the bits that this loses.

    - Layers of one head of recency 0: the few residues, from exact principal parts.
    - Whole and few steps: the eigenvalues at those positions.
    - Residues that fall fast enough, and clusters of nearly equal exponents: ladders.
    - Everything else: the trapezoidal rule on a hyperbola.
    """

    evaluate: Callable[[int], arb]  # what it leaves out is below 2^-bits
    extra: int

    def __call__(self) -> arb:
        """Return the integral as a ball at the current precision."""
        return self.evaluate(ctx.prec - self.extra + 8)


def _integral(model: RelayModel, kernel: GammaKernel, lost: int, *, derivative: bool = False) -> BallIntegral:
    """Choose how to evaluate the integral, or one of those that the derivative needs, which has no finite sum."""
    found = symbol(model)
    if without_influence(model):
        return BallIntegral(lambda _: arb(0), 0)
    if found.plain and not _crowded(found):
        return BallIntegral(lambda _: _residues(merged(model), kernel), lost)
    few = STEPS_FAST if kernel.b > 2 * kernel.a else STEPS_MOST
    if not found.rational and not derivative and kernel.span.q == 1 and kernel.span <= few:
        eigenvalues = found.value_at_one
        return BallIntegral(lambda _: finite.ball(found, kernel, eigenvalues), lost + finite.bits_lost(kernel))
    falling = found.rational or (kernel.span >= 2 and terms_needed(found, kernel, 100) < MOST_POLES)

    def evaluate(bits: int) -> arb:
        if falling:
            with suppress(SlowSeriesError):
                return residue_sum(found, kernel, bits)
        try:
            return Hyperbola(found, kernel).integral(bits, _guess(model, kernel))
        except NoContourError:
            raise PrecisionError(
                "the integral falls too slowly for a ball: take a whole t, or one that is not far below 1",
                arb("0 +/- inf"),
            ) from None

    return BallIntegral(evaluate, lost)


def _crowded(found: Symbol) -> bool:
    """Whether position exponents lie so close that principal parts cost more precision than a cluster."""
    places = sorted(g for g, _ in found.shapes)
    return any(b - a < Fraction(1, 2**CLUSTER_BITS) for a, b in pairwise(places))


def _guess(model: RelayModel, kernel: GammaKernel) -> float:
    """Return about the size of the integral, from float64; only the time taken depends on it."""
    if model.depth > DEEPEST:  # where sums of float64 leave it
        return 1.0
    try:
        if kernel.tokens:
            sums = bands.token_influence(model, np.array([float(kernel.a)]), np.array([float(kernel.b - 1)]))
            value = float(sums.value[0])
        else:
            found = bands.table(model).evaluate(np.array([float(kernel.span)]), exponent=kernel.slope)
            value = float(found.slope[0]) / float(kernel.span) if kernel.slope else float(found.value[0])
    except OverflowError:
        return 1.0
    return abs(value) if 0 < abs(value) < math.inf else 1.0


def _vanishes(model: RelayModel, kernel: GammaKernel) -> bool:
    """Whether the influence is exactly 0, where an exact fraction can tell."""
    steps = kernel.span
    if steps.q != 1 or steps > ZERO_STEPS or (not model.plain and model.prompt > ZERO_STEPS):
        return False
    return influence_fraction(model, int(steps.p)) == 0


def _eigenvalue(model: RelayModel, n: int) -> arb:
    """Return f(n) as a ball."""
    found = symbol(model)
    heads = {}
    for g, delta in found.shapes:
        x, d = rational(g) + n, rational(delta)
        if delta.denominator == 1:
            ratio = 1 / arb(math.prod((x + i for i in range(int(delta))), start=fmpq(1)))
        else:
            ratio = (arb(x).lgamma() - arb(x + d).lgamma()).exp()
        heads[g, delta] = head_front(g, delta) * ratio
    value = arb(1)
    for residual, own in found.layers:
        value *= sum((heads[g, d] * arb(rational(s)) for s, g, d in own), arb(rational(residual)))
    return value


def _residues(model: RelayModel, kernel: GammaKernel) -> arb:
    """Return the sum over the poles of f of the residue of f times `kernel`, for a plain model."""
    total = arb(0)
    for pole in poles(model):
        with working(order=pole.order):
            series = kernel.series(pole.position, pole.order)
            for k, coefficient in enumerate(pole.principal):
                total += arb(coefficient) * series[k]
    return total
