"""The two-prompt measurement, on anything that yields hidden states."""

from relaymodel.networks.protocol.attention import Attention
from relaymodel.networks.protocol.measurement import Measurement
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.next_token import NextToken
from relaymodel.networks.protocol.pairs import Generated, Pairs, RandomTokens, draw_pairs
from relaymodel.networks.protocol.response import TokenResponse
from relaymodel.networks.protocol.runs import measure

__all__ = [
    "Attention",
    "Generated",
    "Measurement",
    "Network",
    "NextToken",
    "Pairs",
    "RandomTokens",
    "TokenResponse",
    "draw_pairs",
    "measure",
]
