"""The two-prompt measurement, on anything that yields hidden states."""

from relaymodel.networks.protocol.measurement import Measurement
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.pairs import Generated, Pairs, RandomTokens, draw_pairs
from relaymodel.networks.protocol.runs import measure

__all__ = ["Generated", "Measurement", "Network", "Pairs", "RandomTokens", "draw_pairs", "measure"]
