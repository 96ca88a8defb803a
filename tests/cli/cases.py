"""What the tests of several commands share."""

from fractions import Fraction

import numpy as np

from relaymodel import Curve


def exact(model, t):
    """D(t) by the exact recursion."""
    return model.differences(model.prompt + t)[-1]


def near(value, expected, rel=1e-12):
    return abs(Fraction(value) - Fraction(expected)) <= Fraction(rel) * abs(Fraction(expected))


def write_power_law(path="curve.csv", alpha=0.5, t=None, ripple=0.0):
    t = np.unique(np.geomspace(1, 1e5, 50).round()) if t is None else np.asarray(t, dtype=float)
    Curve(t, 3 * t**-alpha * np.exp(ripple * np.sin(t))).to_csv(path)
