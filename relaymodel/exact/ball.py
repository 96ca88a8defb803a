"""Certified values: ball arithmetic whose radius bounds every error (python-flint's Arb)."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb, arb_series, fmpq

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.exact.precision import working
from relaymodel.exact.rational import influence_fraction
from relaymodel.exact.spectrum import poles, rational
from relaymodel.exact.stirling import HUGE, digamma_difference, log_gamma_ratio
from relaymodel.model import RelayModel


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
        If D(t) cannot be told from zero with a hundred times the digits asked for.

    Examples
    --------
    >>> from relaymodel import RelayModel
    >>> model = RelayModel.uniform(prompt=10, depth=12, relay=1)
    >>> print(influence_ball(model, 10**100, digits=20).str(20, radius=False))
    3.9338527597697879672e-81
    """
    N, lost = end_position(model, t)
    try:
        return refine(lambda: _residues(model, _influence_kernel(model.prompt, N)), model, digits, lost)
    except PrecisionError:
        steps = N - model.prompt
        if steps.q == 1 and steps <= 10_000 and influence_fraction(model, int(steps.p)) == 0:
            return arb(0)
        raise


def local_exponent_ball(model: RelayModel, t: Number, digits: int = 50) -> arb:
    r"""Return $\alpha(t) = -d\log|D|/d\log t$ as a ball of absolute radius below $10^{-digits}$ (THEORY section 3).

    $dD/dt = \sum_g \mathrm{Res}_{z=-g} f(z)\Phi(-z) [\psi(N) - \psi(N+1-z)]$.  Arguments and errors as
    `influence_ball`; an influence that is zero has no exponent and raises `ValueError`.

    >>> from relaymodel import RelayModel
    >>> print(local_exponent_ball(RelayModel.uniform(prompt=10, depth=2, relay=1), 100).str(10, radius=False))
    0.7400406244
    """
    N, lost = end_position(model, t)
    if not poles(model):
        raise ValueError(f"model must have an influence other than 0 for a local exponent, got {show(model)}")
    exact_t = N - model.prompt

    def evaluate() -> arb:
        kernel = _influence_kernel(model.prompt, N)

        def slope(g: fmpq, order: int) -> arb_series:
            return kernel(g, order) * _digamma_difference(N, g + 1, order)

        return arb(exact_t) * _residues(model, slope) / _residues(model, kernel)

    return refine(evaluate, model, digits, lost, absolute=True)


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
    if s == n:
        eigenvalue = rational(model.eigenvalue(n))
        return refine(lambda: arb(eigenvalue), model, digits, 0)

    def kernel(g: fmpq, order: int) -> arb_series:
        return _gamma_ratio(fmpq(s), g, order) / _gamma_ratio(fmpq(n), g + 1, order)

    return refine(lambda: _residues(model, kernel), model, digits, 64 + min(n, HUGE).bit_length())


def end_position(model: RelayModel, t: Number) -> tuple[fmpq, int]:
    """Return N = P + t exactly, and the bits that a difference of log-gammas or digammas at N loses."""
    number = real("t", t)
    if number <= 0:
        raise ValueError(f"t must be positive, got {show(t)}; t counts the tokens after the prompt")
    N = rational(Fraction(number)) + model.prompt
    size = (int(N.p) // int(N.q)).bit_length()
    return N, 64 + (size if N < HUGE else size.bit_length())


def refine(evaluate: Callable[[], arb], model: RelayModel, digits: int, extra: int, *, absolute: bool = False) -> arb:
    """Raise the working precision until the ball is as narrow as asked."""
    wanted = int(positive_integer("digits", digits) * 3.3219280948873626) + 2
    precision = wanted + extra
    highest = 100 * precision + (1 << 14)
    while True:
        with working(bits=precision, order=model.depth + 1):
            value = evaluate()
            if value == 0:
                return value
            if absolute and value.is_finite() and value.rad() < arb(2) ** -wanted:
                return value
            if not absolute and value.rel_accuracy_bits() >= wanted:
                return value
        if precision > highest:
            raise PrecisionError(f"the influence cannot be told from 0 with {precision} bits: {value}", value)
        precision *= 2


def _residues(model: RelayModel, kernel: Callable[[fmpq, int], arb_series]) -> arb:
    """Return the sum over the poles of f of the residue of f times `kernel`, a power series in w = z + g."""
    total = arb(0)
    for pole in poles(model):
        series = kernel(pole.position, pole.order)
        for k, coefficient in enumerate(pole.principal):
            total += arb(coefficient) * series[k]
    return total


def _influence_kernel(prompt: int, N: fmpq) -> Callable[[fmpq, int], arb_series]:
    """Return (g, order) -> the power series of Phi(-z) in w = z + g."""

    def kernel(g: fmpq, order: int) -> arb_series:
        ratio = _gamma_ratio(fmpq(prompt), g + 1, order) / _gamma_ratio(N, g + 1, order)
        return ratio / arb_series([arb(1 + g), -1], order)

    return kernel


def _gamma_ratio(x: fmpq, a: fmpq, order: int) -> arb_series:
    """Return Gamma(x + a - w) / Gamma(x) as a power series in w."""
    if x >= HUGE:
        return log_gamma_ratio(x, a, order).exp()
    return (arb_series([arb(x + a), -1], order).lgamma() - arb(x).lgamma()).exp()


def _digamma_difference(x: fmpq, a: fmpq, order: int) -> arb_series:
    """Return psi(x + a - w) - psi(x) as a power series in w: psi^(k)(c)/k! = (-1)^(k+1) zeta(k+1, c)."""
    if x >= HUGE:
        return digamma_difference(x, a, order)
    c = arb(x + a)
    return arb_series([c.digamma() - arb(x).digamma()] + [-arb(k + 1).zeta(c) for k in range(1, order)], order)
