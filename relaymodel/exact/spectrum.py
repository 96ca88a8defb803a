"""The function f(z) of a stack of layers, taken apart exactly: its coefficients and its poles.

Everything here is rational arithmetic on the parameters' exact values, so nothing is lost before the
one floating-point or ball evaluation that follows (THEORY section 2).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from flint import fmpq, fmpq_poly, fmpq_series

from relaymodel.exact.precision import working
from relaymodel.model import Head, Layer, RelayModel


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


@dataclass(frozen=True)
class Symbol:
    r"""f(z), less what does not matter: heads of one shape in a layer are one, and those without strength gone.

    `layers` holds the residual of each layer and the (strength, g, delta) of its heads, delta = 1 - recency.
    """

    layers: tuple[tuple[Fraction, tuple[tuple[Fraction, Fraction, Fraction], ...]], ...]

    @cached_property
    def shapes(self) -> frozenset[tuple[Fraction, Fraction]]:
        """The distinct (g, delta)."""
        return frozenset((g, delta) for _, heads in self.layers for _, g, delta in heads)

    @cached_property
    def rational(self) -> bool:
        """Whether f is a rational function: every delta is whole."""
        return all(delta.denominator == 1 for _, delta in self.shapes)

    @cached_property
    def constant(self) -> bool:
        """Whether f is constant because no head is left, or because a layer passes nothing on."""
        return not self.shapes or any(residual == 0 and not heads for residual, heads in self.layers)

    @cached_property
    def plain(self) -> bool:
        """Whether each layer has at most one head, of recency 0: what `poles` takes apart."""
        return all(len(heads) <= 1 for _, heads in self.layers) and all(delta == 1 for _, delta in self.shapes)

    @cached_property
    def value_at_one(self) -> Fraction:
        """f(1): what the prompt holds, without sinks."""
        return math.prod((residual + sum(s for s, *_ in heads) for residual, heads in self.layers), start=Fraction(1))

    @cached_property
    def lowest(self) -> Fraction:
        """g*, the smallest position exponent."""
        return min(g for g, _ in self.shapes)

    @cached_property
    def shift(self) -> float:
        """1 + g*, rounded."""
        return float(1 + self.lowest)

    @cached_property
    def rest(self) -> float:
        """What that rounding took off."""
        return float(1 + self.lowest - Fraction(self.shift))

    @cached_property
    def floats(self) -> list[tuple[float, list[tuple[float, float, float, float]]]]:
        """The layers with (strength, g - g*, delta, 1 + g), each rounded once."""
        return [
            (float(residual), [(float(x), float(g - self.lowest), float(d), float(1 + g)) for x, g, d in heads])
            for residual, heads in self.layers
        ]


@lru_cache(maxsize=256)
def symbol(model: RelayModel) -> Symbol:
    """Return the symbol of a model's heads and residuals, which is all but its sinks."""
    model.demand_solvable()
    layers = []
    for layer in model.layers:
        strengths: dict[tuple[Fraction, Fraction], Fraction] = {}
        for head in layer.heads:
            shape = Fraction(head.position), 1 - Fraction(head.recency)
            strengths[shape] = strengths.get(shape, Fraction(0)) + Fraction(head.relay)
        heads = tuple((strength, *shape) for shape, strength in strengths.items() if strength != 0)
        layers.append((Fraction(layer.residual), heads))
    return Symbol(tuple(layers))


@lru_cache(maxsize=256)
def merged(model: RelayModel) -> RelayModel:
    """Return the model without sinks and with equal heads made one; a plain model is returned as it is."""
    if model.plain:
        return model
    layers = []
    for residual, heads in symbol(model).layers:
        found = [Head(strength, g, 1 - delta) for strength, g, delta in heads]
        layers.append(Layer(heads=found or [Head(0)], residual=residual))
    return RelayModel(model.prompt, layers)


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


def without_influence(model: RelayModel) -> bool:
    """Whether D is the plateau at every t."""
    found = symbol(model)
    return found.constant or (found.plain and not poles(merged(model)))


def own_weight(model: RelayModel) -> Fraction:
    """Return what f is at infinity, the product of the residuals: f itself where it is constant."""
    return math.prod((residual for residual, _ in symbol(model).layers), start=Fraction(1))
