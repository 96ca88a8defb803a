"""The influence as an exact rational number, by the residue formula over the rationals."""

from fractions import Fraction

from flint import fmpq

from relaymodel.checks import positive_integer
from relaymodel.exact.finite import influence_rational
from relaymodel.exact.homogeneous import as_fraction, homogeneous, prefactor
from relaymodel.exact.spectrum import merged, poles, rational, symbol, tail_sums
from relaymodel.model import RelayModel

LONGEST_FRACTION = 20_000  # prompt and steps of a model with recency, whose fractions grow faster
LARGEST_INTEGER = 10**7  # the result has about P + t digits; beyond this it helps nobody


def influence_fraction(model: RelayModel, t: int) -> Fraction:
    r"""Return D(t) exactly (THEORY section 2).

    $D = \sum_g \frac{\Gamma(P+1+g)\Gamma(N)}{\Gamma(P)\Gamma(N+1+g)} \sum_k E_k \hat h_k$ over position exponents g,
    with the $E_k$ and $\hat h_k$ of a pole; power sums by binary splitting (`homogeneous`), in a time near linear in t.
    Heads with a rational recency have rational weights and eigenvalues too, and D is a finite sum over these (`finite`,
    THEORY section 10).

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
        return as_fraction(total)
    P, N = model.prompt, model.prompt + steps
    total = plateau
    for pole in poles(merged(model)):
        c = pole.position + 1
        # E_k of `residues`, with the c^k of their polynomials in c/(s + g)
        totals = tail_sums((fmpq(0), *(a / c**j for j, a in enumerate(pole.principal, 1))))
        weights = [E * c**k for k, E in enumerate(totals)]
        sums = homogeneous(pole.order, P, N, pole.position)
        total += prefactor(P, N, pole.position) * sums.combined(weights)
    return as_fraction(total)
