"""What curves say: exponents, limits, laws and the relay model fitted, each with an error that can be believed."""

from relaymodel.inference.dilution import AttentionDecay, distance_or_dilution
from relaymodel.inference.estimate import Estimate
from relaymodel.inference.laws import Comparison, LawFit, Needed, compare_laws
from relaymodel.inference.limit import Limit, extrapolate_exponent
from relaymodel.inference.local import LocalExponent, estimate_exponent
from relaymodel.inference.power_law import PowerLaw, fit_power_law
from relaymodel.inference.relay import RelayFit, fit
from relaymodel.inference.window import UnderdeterminedError

__all__ = [
    "AttentionDecay",
    "Comparison",
    "Estimate",
    "LawFit",
    "Limit",
    "LocalExponent",
    "Needed",
    "PowerLaw",
    "RelayFit",
    "UnderdeterminedError",
    "compare_laws",
    "distance_or_dilution",
    "estimate_exponent",
    "extrapolate_exponent",
    "fit",
    "fit_power_law",
]
