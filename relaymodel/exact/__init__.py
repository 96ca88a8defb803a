"""Exact values of the relay model (THEORY sections 2, 3, 5 and 10): float64, `Fraction` and certified balls.

Which way serves where, in the order in which it is tried:

- float64: `residues`, for one head of recency 0 a layer and no sink; `bands` of `contour` integrals, for everything
  else and, on many points, where residues cancel; balls, where a condition number says that neither keeps 1e-12.
- Fractions: `rational`, residues by binary splitting, for recency 0; `finite`, sums over eigenvalues, otherwise.
- Balls: principal parts, for recency 0 without clusters; `finite`, for few whole steps; `ladder`, residues of any
  heads and clusters of nearly equal exponents, where they fall fast; `hyperbola`, a trapezoidal rule with a proved
  error, for the rest.
"""

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
