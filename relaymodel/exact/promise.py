"""What float64 values are held to, and where."""

PROMISE = 1e-12  # relative error of every float returned; absolute for the local exponent
LARGEST_PROMPT, LARGEST_T, DEEPEST = 10**9, 1e300, 64  # to which the promise holds


def rounding_error(depth: int) -> float:
    """Return a bound on the relative rounding error of the sums in `residues`.

    Power sums, Newton's recursion and the final sum commit about 4 L + 64 roundings of half a unit each, and
    the quotient of gamma functions, which g = 0 does not have, up to another 64.
    """
    return (4 * depth + 128) * 2.0**-53
