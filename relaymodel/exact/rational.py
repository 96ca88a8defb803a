"""The influence as an exact rational number, by the residue formula over the rationals."""

from fractions import Fraction

from flint import fmpq, fmpq_poly, fmpq_series, fmpz_poly

from relaymodel.checks import positive_integer
from relaymodel.exact.finite import influence_rational
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import merged, poles, rational, symbol
from relaymodel.model import RelayModel

LONGEST_FRACTION = 20_000  # prompt and steps of a model with recency, whose fractions grow faster
LARGEST_INTEGER = 10**7  # the result has about P + t digits; beyond this it helps nobody


def influence_fraction(model: RelayModel, t: int) -> Fraction:
    r"""Return D(t) exactly (THEORY section 2).

    For integer N = P + t and rational g, with $w = z + g$,

    $$ \Phi = \frac{(N-1)!}{(P-1)!} \Bigl[ (1+g-w) \prod_{j=P+1}^{N} (j+g-w) \Bigr]^{-1}, \qquad
       D = \sum_g \mathrm{Res}_{w=0}\, f\,\Phi, $$

    the product by binary splitting of truncated polynomials with integer coefficients.  Heads with a rational recency
    have rational weights and eigenvalues too, and D is a finite sum over these (`finite`, THEORY section 10).

    Parameters
    ----------
    model
        Any relay model; floats count with their exact binary value.
    t
        Continuation token, an integer from 1 to 10^7 (20 000, and as many prompt tokens, with a recency other than 0).
        The result has on the order of t digits, P + t for each distinct head with a recency.

    Raises
    ------
    TypeError, ValueError
        For t that is not an integer in that range; `influence_ball` certifies any number of digits for
        any t.

    Examples
    --------
    >>> from relaymodel import RelayModel
    >>> influence_fraction(RelayModel.uniform(prompt=2, depth=2, relay=1), t=1)
    Fraction(20, 9)
    """
    steps = positive_integer("t", t)
    if steps > LARGEST_INTEGER:
        raise ValueError(
            f"t must be at most {LARGEST_INTEGER} for an exact fraction, whose size grows with t; "
            "use influence_ball, which certifies any number of digits at any t"
        )
    found, plateau = symbol(model), rational(model.plateau)
    if not found.plain:
        whole = all(delta.denominator == 1 for _, delta in found.shapes)
        if steps > LONGEST_FRACTION or (model.prompt > LONGEST_FRACTION and not whole):
            raise ValueError(
                f"prompt and t must be at most {LONGEST_FRACTION} for an exact fraction of a model with recency, got "
                f"{model.prompt} and {steps}; use influence_ball, which certifies any number of digits at any t"
            )
        total = plateau + influence_rational(found, found.value_at_one, model.prompt, steps)
        return Fraction(int(total.p), int(total.q))
    P, N = model.prompt, model.prompt + steps
    total = plateau
    rising = fmpq(_product(1, P, N - 1, 1, 0)[0])  # (N-1)!/(P-1)!
    for pole in poles(merged(model)):
        g, m = pole.position, pole.order
        a, b = g.p, g.q
        below = _product(m, P + 1, N, int(b), int(a)).mul_low(fmpz_poly([a + b, -b]), m)
        with working(order=m):
            inverse = 1 / fmpq_series(fmpq_poly(below).coeffs(), prec=m)
        residue = sum((pole.principal[k] * inverse[k] for k in range(m)), fmpq(0))
        total += residue * rising * fmpq(b) ** (steps + 1)
    return Fraction(int(total.p), int(total.q))


def _product(order: int, first: int, last: int, b: int, a: int) -> fmpz_poly:
    """Return prod over j = first..last of (j b + a - b w), truncated to `order` coefficients."""
    if last - first < 8:
        product = fmpz_poly([1])
        for j in range(first, last + 1):
            product = product.mul_low(fmpz_poly([j * b + a, -b]), order)
        return product
    middle = (first + last) // 2
    return _product(order, first, middle, b, a).mul_low(_product(order, middle + 1, last, b, a), order)
