"""The specification of the linear relay model: what a layer does, how layers are stacked, and how both are written."""

from relaymodel.model.layer import Head, Layer
from relaymodel.model.notation import describe_layers, parse_heads
from relaymodel.model.stack import RelayModel

__all__ = ["Head", "Layer", "RelayModel", "describe_layers", "parse_heads"]
