"""Networks outside the theorem are refused by name."""

import pytest

from relaymodel import certify
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import example


def test_networks_outside_the_theorem_are_refused_by_name(rng, monkeypatch):
    network, texts = example(rng)

    class PostLN(Transformer):
        pass

    with pytest.raises(TypeError, match="PostLN, whose blocks are unknown: the theorem's hypotheses"):
        certify(PostLN(network.architecture, network.weights), texts)

    class Windowed(PostLN):
        window = 8

    with pytest.raises(ValueError, match="sliding window of 8: the theorem's hypotheses"):
        certify(Windowed(network.architecture, network.weights), texts)
    with pytest.raises(TypeError, match="got str"):
        certify("gpt2", texts)
    with pytest.raises(ValueError, match="one pair of prompts, got 2"):
        certify(network, ([texts[0]] * 2, [texts[1]] * 2, texts[2]))

    def post(self, block, x, *more):
        return self._norm(x + self.attention(block, x, *more), block.mlp_gain, block.mlp_shift)

    monkeypatch.setattr(Transformer, "_block", post)
    with pytest.raises(ValueError, match="must be a pre-LN transformer .* behind block 1 differ"):
        certify(network, texts)
