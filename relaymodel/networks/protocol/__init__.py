"""The two-prompt measurement, on anything that yields hidden states."""

from relaymodel.networks.protocol.measurement import MeasuredExponent, Measurement
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.runs import measure
from relaymodel.networks.protocol.texts import Generated, Pairs, RandomTokens, draw_pairs

__all__ = ["Generated", "MeasuredExponent", "Measurement", "Network", "Pairs", "RandomTokens", "draw_pairs", "measure"]
