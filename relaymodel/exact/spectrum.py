"""The function f(z) of a stack of layers, taken apart exactly: its coefficients and its poles.

Everything here is rational arithmetic on the parameters' exact values, so nothing is lost before the
one floating-point or ball evaluation that follows (THEORY section 2).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import fmpq, fmpq_poly, fmpq_series

from relaymodel.exact.precision import working
from relaymodel.model import RelayModel


@dataclass(frozen=True)
class PrincipalPart:
    """A pole of f at z = -position, and the principal part there.

    `principal[k-1]` is the coefficient of `(z + position)**-k` in f, k = 1..order.
    """

    position: fmpq
    principal: tuple[fmpq, ...]

    @property
    def order(self) -> int:
        """Order of the pole: the number of relaying layers at this position exponent, less zeros of f there."""
        return len(self.principal)


def rational(number: Fraction) -> fmpq:
    """Return a Fraction as `fmpq`."""
    return fmpq(number.numerator, number.denominator)


def active_positions(model: RelayModel) -> tuple[Fraction, ...]:
    """Return the distinct position exponents, ascending, of the layers whose relay is not zero."""
    return tuple(sorted({g for relay, _, g in model.rational if relay != 0}))


@lru_cache(maxsize=256)
def poles(model: RelayModel) -> tuple[PrincipalPart, ...]:
    r"""Return the poles of $f(z) = \prod_l (\rho_l + \lambda_l (1+g_l)/(z+g_l))$ with their principal parts.

    Near $z = -g$, with $w = z + g$ and m layers at g, f is $w^{-m}$ times a power series; its first m
    coefficients are the principal part.  A zero of another layer may lower the order of a pole or remove it.
    """
    parts = []
    for position in active_positions(model):
        g = rational(position)
        order = sum(1 for relay, _, p in model.rational if p == position and relay != 0)
        numerator, denominator = fmpq_poly([1]), fmpq_poly([1])
        for relay, residual, other in model.rational:
            strength = rational(relay * (1 + other))
            offset = rational(other) - g  # z + g_l = w + offset
            if relay == 0:
                numerator *= rational(residual)
                continue
            numerator = (numerator * fmpq_poly([strength + rational(residual) * offset, rational(residual)])).truncate(
                order
            )
            if offset != 0:
                denominator = (denominator * fmpq_poly([offset, 1])).truncate(order)
        with working(order=order):
            quotient = fmpq_series(numerator.coeffs(), prec=order) / fmpq_series(denominator.coeffs(), prec=order)
            series = [quotient[k] for k in range(order)]
        while series and series[0] == 0:
            del series[0]
        if series:
            parts.append(PrincipalPart(g, tuple(reversed(series))))
    return tuple(parts)


@lru_cache(maxsize=256)
def path_coefficients(model: RelayModel, *, square: bool = False) -> tuple[fmpq, ...]:
    r"""Return $e_0, \dots, e_L$ with $\prod_l (\rho_l + \lambda_l u) = \sum_m e_m u^m$ (THEORY sections 2 and 5).

    $e_m$ is the total weight of the paths that relay at m layers and pass the residual at the others.
    `square` takes the square of every strength.
    """
    product = fmpq_poly([1])
    for relay, residual, _ in model.rational:
        a, b = rational(residual), rational(relay)
        product *= fmpq_poly([a * a, b * b] if square else [a, b])
    return tuple(product[m] for m in range(model.depth + 1))


def tail_sums(coefficients: tuple[fmpq, ...]) -> tuple[fmpq, ...]:
    r"""Return $E_k = \sum_{m>k} e_m$ for k = 0..L-1 (THEORY section 2)."""
    total, sums = fmpq(0), []
    for coefficient in reversed(coefficients[1:]):
        total += coefficient
        sums.append(total)
    return tuple(reversed(sums))
