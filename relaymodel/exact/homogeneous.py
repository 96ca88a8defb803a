r"""Complete homogeneous polynomials of reciprocals, exactly, by binary splitting: what every residue is made of.

With $\hat h_k$ the polynomial of degree k in $1/(s+g)$, s = P+1, ..., N, a residue of THEORY section 2 is

$$ \prod_{s=P+1}^{N} \frac{s-1}{s+g} \; \sum_k W_k h_k . $$

For g = a/b and u = sb + a a range of s holds the power sums $\sum_s u^{-i} = r_i/Q^i$, Q the least common multiple of
its u, and two ranges are joined by two products for each i; Newton's identities come last, over $Q^k$, and divide.
Q grows like $e^N$ where the product of the u grows like N!, so that numbers are about as long as the result.
"""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import fmpq, fmpz

LEAF = 16  # factors multiplied one by one


@dataclass(frozen=True)
class Homogeneous:
    """h_k = numerators[k] / denominator**k."""

    numerators: list[fmpz]
    denominator: fmpz

    def combined(self, weights: list[fmpq]) -> fmpq:
        """Return the sum over weights[k] h_k."""
        scale = fmpz(1)
        for weight in weights:
            scale = scale.lcm(weight.q)
        total, power = fmpz(0), fmpz(1)
        for weight, n in zip(reversed(weights), reversed(self.numerators[: len(weights)]), strict=True):
            total += (weight * scale).p * n * power
            power *= self.denominator
        return fmpq(total, scale * self.denominator ** (len(weights) - 1))


def homogeneous(order: int, P: int, N: int, g: fmpq) -> Homogeneous:
    """Return h_0, ..., h_{order-1} of 1/(s + g), s = P+1..N."""
    a, b = g.p, g.q
    sums, Q = _power_sums(order - 1, P + 1, N + 1, int(b), int(a))
    n = [fmpz(1)]
    for k in range(1, order):
        n.append(sum((sums[i] * n[k - 1 - i] for i in range(k)), fmpz(0)) // k)
    return Homogeneous([entry * b**k for k, entry in enumerate(n)], Q)


def prefactor(P: int, N: int, g: fmpq) -> fmpq:
    """Return the product of (s - 1)/(s + g), s = P+1..N."""
    a, b = int(g.p), int(g.q)
    if g == 0:
        return fmpq(P, N)
    above = product(P, N, lambda s: s * b)
    return fmpq(above, product(P + 1, N + 1, lambda s: s * b + a))


def product(low: int, high: int, factor: Callable[[int], int]) -> fmpz:
    """Return the product of factor(s), low <= s < high."""
    if high - low <= LEAF:
        total = fmpz(1)
        for s in range(low, high):
            total *= factor(s)
        return total
    middle = (low + high) // 2
    return product(low, middle, factor) * product(middle, high, factor)


def _power_sums(count: int, low: int, high: int, b: int, a: int) -> tuple[list[fmpz], fmpz]:
    """Return r_1, ..., r_count and Q of low <= s < high."""
    if high - low <= LEAF:
        factors = [s * b + a for s in range(low, high)]
        Q = fmpz(math.lcm(*factors))
        shares = [Q // u for u in factors]
        return [sum((share**i for share in shares), fmpz(0)) for i in range(1, count + 1)], Q
    middle = (low + high) // 2
    (left, Q), (right, R) = _power_sums(count, low, middle, b, a), _power_sums(count, middle, high, b, a)
    shared = Q.gcd(R)
    Q, R = Q // shared, R // shared
    q, r, joined = fmpz(1), fmpz(1), []
    for x, y in zip(left, right, strict=True):
        q, r = q * Q, r * R
        joined.append(x * r + y * q)
    return joined, Q * R * shared


class _Reduced:
    """A rational number of coprime parts: `Fraction` takes it as it is, without a division of its own."""

    def __init__(self, value: fmpq) -> None:
        self.numerator, self.denominator = int(value.p), int(value.q)


numbers.Rational.register(_Reduced)


def as_fraction(value: fmpq) -> Fraction:
    """Return an `fmpq`, which is reduced, in a time linear in its length.

    >>> as_fraction(fmpq(6, 4))
    Fraction(3, 2)
    """
    return Fraction(_Reduced(value))  # type: ignore[no-any-return, call-overload]
