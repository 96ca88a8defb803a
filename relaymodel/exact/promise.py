"""What float64 values are held to, and where."""

from fractions import Fraction

from relaymodel.model import RelayModel

PROMISE = 1e-12  # relative error of every float returned; absolute for the local exponent
LARGEST_PROMPT, LARGEST_T, DEEPEST = 10**9, 1e300, 64  # to which the promise holds
STEEPEST_SERVED = 1000  # to which float64 is tried: its power of the depth is in range, with room


def rounding_error(depth: int) -> float:
    """Return a bound on the relative rounding error of the sums in `residues`.

    Power sums, Newton's recursion and the final sum commit about 4 L + 64 roundings of half a unit each, and
    the quotient of gamma functions, which g = 0 does not have, up to another 64.
    """
    return (4 * depth + 128) * 2.0**-53


def outside(model: RelayModel) -> str:
    """Return what of a model lies beyond the domain of prompts to 10^9, 64 layers, relays to 8, g to 4, gamma from -4.

    >>> outside(RelayModel.uniform(64, 2, 1, position=10))
    'position 10 > 4'
    """
    heads = [head for layer in model.layers for head in layer.heads]
    sizes: dict[str, tuple[Fraction, int]] = {
        "prompt": (Fraction(model.prompt), LARGEST_PROMPT),
        "depth": (Fraction(model.depth), DEEPEST),
        "|relay|": (max(abs(Fraction(head.relay)) for head in heads), 8),
        "position": (max(Fraction(head.position) for head in heads), 4),
        "-recency": (max(-Fraction(head.recency) for head in heads), 4),
    }
    return ", ".join(
        f"{name} {float(min(value, Fraction(10**300))):g} > {most:g}"
        for name, (value, most) in sizes.items()
        if value > most
    )
