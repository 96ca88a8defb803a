"""Exact values of the relay model (THEORY sections 2, 3 and 5): float64, `Fraction` and certified balls."""

from relaymodel.exact.ball import PrecisionError, influence_ball, local_exponent_ball, token_influence_ball
from relaymodel.exact.rational import influence_fraction
from relaymodel.exact.rms import rms_influence
from relaymodel.exact.values import influence, local_exponent, token_influence

__all__ = [
    "PrecisionError",
    "influence",
    "influence_ball",
    "influence_fraction",
    "local_exponent",
    "local_exponent_ball",
    "rms_influence",
    "token_influence",
    "token_influence_ball",
]
