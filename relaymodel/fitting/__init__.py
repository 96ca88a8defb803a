"""The relay model fitted to measured curves, and compared with the laws that it is mistaken for."""

from relaymodel.fitting.laws import Comparison, LawFit, Needed, compare_laws
from relaymodel.fitting.parameters import Estimate
from relaymodel.fitting.relay import RelayFit, fit

__all__ = ["Comparison", "Estimate", "LawFit", "Needed", "RelayFit", "compare_laws", "fit"]
