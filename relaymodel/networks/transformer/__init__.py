"""A pre-LN transformer in NumPy float64: networks, trained or not, without torch."""

from relaymodel.networks.transformer.architecture import Architecture
from relaymodel.networks.transformer.network import Transformer
from relaymodel.networks.transformer.weights import Block, Weights

__all__ = ["Architecture", "Block", "Transformer", "Weights"]
