"""Exponents from data: local, fitted to a window, and extrapolated, each with an error that can be believed."""

from relaymodel.exponent.cells import UnderdeterminedError
from relaymodel.exponent.limit import Limit, extrapolate_exponent
from relaymodel.exponent.local import LocalExponent, estimate_exponent
from relaymodel.exponent.power_law import PowerLaw, fit_power_law

__all__ = [
    "Limit",
    "LocalExponent",
    "PowerLaw",
    "UnderdeterminedError",
    "estimate_exponent",
    "extrapolate_exponent",
    "fit_power_law",
]
