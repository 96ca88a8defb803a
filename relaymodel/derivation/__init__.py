"""SymPy: the influence of the prompt in closed form, its asymptotic series, continuum limits, and how they follow."""

from relaymodel.derivation.asymptotics import AsymptoticSeries, LeadingTerm
from relaymodel.derivation.continuum import Density, infinite_depth_density
from relaymodel.derivation.heads import HeadDerivation
from relaymodel.derivation.notation import latex
from relaymodel.derivation.poles import SymbolicPole
from relaymodel.derivation.result import Derivation, derive
from relaymodel.derivation.stack import P, t
from relaymodel.derivation.steps import DerivationStep

__all__ = [
    "AsymptoticSeries",
    "Density",
    "Derivation",
    "DerivationStep",
    "HeadDerivation",
    "LeadingTerm",
    "P",
    "SymbolicPole",
    "derive",
    "infinite_depth_density",
    "latex",
    "t",
]
