"""relaymodel: how much a transformer remembers of its prompt, in one exactly solvable model.

`Layer`, `RelayModel` and `Curve` are here at once; every other name is loaded on first use, so that
`import relaymodel` costs no more than NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaymodel.curve import Curve
from relaymodel.model import Layer, RelayModel

if TYPE_CHECKING:
    from relaymodel.bounds import bracket
    from relaymodel.control import PromptBias, Reminders
    from relaymodel.derivation import derive
    from relaymodel.exact import (
        influence,
        influence_ball,
        influence_fraction,
        local_exponent,
        rms_influence,
        token_influence,
    )
    from relaymodel.exponent import estimate_exponent, extrapolate_exponent, fit_power_law
    from relaymodel.fitting import fit
    from relaymodel.networks.certificate import certify
    from relaymodel.networks.protocol import measure
    from relaymodel.report import reproduce
    from relaymodel.simulation import simulate

__version__ = "0.1.0"

__bibtex__ = f"""@software{{relaymodel,
  title   = {{relaymodel: how much a transformer remembers of its prompt, in one exactly solvable model}},
  author  = {{{{The relaymodel developers}}}},
  version = {{{__version__}}},
  year    = {{2026}},
  license = {{MIT}},
}}"""

_HOMES = {
    "PromptBias": "control",
    "Reminders": "control",
    "bracket": "bounds",
    "certify": "networks.certificate",
    "derive": "derivation",
    "estimate_exponent": "exponent",
    "extrapolate_exponent": "exponent",
    "fit": "fitting",
    "fit_power_law": "exponent",
    "influence": "exact",
    "influence_ball": "exact",
    "influence_fraction": "exact",
    "local_exponent": "exact",
    "measure": "networks.protocol",
    "reproduce": "report",
    "rms_influence": "exact",
    "simulate": "simulation",
    "token_influence": "exact",
}

__all__ = [
    "Curve",
    "Layer",
    "PromptBias",
    "RelayModel",
    "Reminders",
    "bracket",
    "certify",
    "derive",
    "estimate_exponent",
    "extrapolate_exponent",
    "fit",
    "fit_power_law",
    "influence",
    "influence_ball",
    "influence_fraction",
    "local_exponent",
    "measure",
    "reproduce",
    "rms_influence",
    "simulate",
    "token_influence",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
