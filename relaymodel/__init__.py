"""relaymodel: how much a transformer remembers of its prompt, in one exactly solvable model."""

from relaymodel.curve import Curve
from relaymodel.model import Layer, RelayModel

__version__ = "0.1.0"

__all__ = ["Curve", "Layer", "RelayModel"]
