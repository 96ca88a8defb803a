"""Whether a bias has stopped the decay: one criterion for studies and report."""

from collections.abc import Sequence

FIRST_TOKENS = (16, 64)
"""First t of the two windows that an exponent is read in: whether it is the same in both shows whether it is one."""

STILL, RISE, STANDARD_ERRORS = 0.03, 0.05, 2.0  # see `verdict`
STOPPED, REVERSED, DECAYING = "stopped", "reversed", "decaying"


def verdict(exponents: Sequence[tuple[float, float]]) -> str:
    """Return "stopped", "reversed" or "decaying" from (alpha, standard error) in each window.

    Stopped: every exponent within .03 of 0.  Reversed: every one below -.05 by more than two standard errors.  Decaying
    otherwise, which takes in what stops in one window and reverses in the other.

    >>> verdict([(-0.002, 0.001), (0.01, 0.02)]), verdict([(-0.2, 0.03), (-0.3, 0.05)]), verdict([(-0.2, 0.08)] * 2)
    ('stopped', 'reversed', 'decaying')
    """
    if all(abs(alpha) <= STILL for alpha, _ in exponents):
        return STOPPED
    if all(alpha + STANDARD_ERRORS * stderr < -RISE for alpha, stderr in exponents):
        return REVERSED
    return DECAYING
