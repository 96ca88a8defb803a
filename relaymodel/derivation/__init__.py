"""SymPy: the influence of the prompt in closed form, its asymptotic series, continuum limits, and how they follow."""

from relaymodel.derivation.asymptotics import AsymptoticSeries, Limit
from relaymodel.derivation.continuum import Density, infinite_depth_density
from relaymodel.derivation.notation import latex
from relaymodel.derivation.poles import Pole
from relaymodel.derivation.result import Derivation, derive
from relaymodel.derivation.stack import P, t
from relaymodel.derivation.steps import Step

__all__ = [
    "AsymptoticSeries",
    "Density",
    "Derivation",
    "Limit",
    "P",
    "Pole",
    "Step",
    "derive",
    "infinite_depth_density",
    "latex",
    "t",
]
