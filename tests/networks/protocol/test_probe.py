"""Networks that misread a bias are refused."""

from dataclasses import replace

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.networks.protocol import RandomTokens, measure
from relaymodel.networks.protocol.probe import check_bias
from relaymodel.networks.transformer import Architecture, Transformer
from tests.networks.protocol.wrapped import Wrapped


@pytest.mark.parametrize(
    ("misread", "complaint"),
    [
        (lambda b: None, "hidden by a bias of -1e4 still reaches"),
        (lambda b: np.where(b < -100, -1e9, 0), "keys beside one with a bias of 1e4 still count"),
        (lambda b: np.where(np.abs(b) > 100, b, 0), "multiplies its effect by 1 instead of e"),
        (lambda b: b - 3, "a bias of 0 changes"),
        (lambda b: b / 1e4, "hidden by a bias of -1e4 still reaches"),
        (lambda b: b / 2, r"multiplies its effect by 1\.6\d instead of e"),
        (lambda b: b * 2, r"multiplies its effect by 7\.[34]\d? instead of e"),
    ],
    ids=["ignored", "taken for yes or no", "small ones dropped", "shifted", "scaled away", "halved", "doubled"],
)
def test_a_network_that_misreads_the_bias_is_refused(network, misread, complaint):
    check_bias(network)
    with pytest.raises(ValueError, match=complaint):
        measure(Wrapped(network, bias=misread), ([1, 2], [3, 4], RandomTokens(20)), bias=rm.PromptBias(1))


@pytest.mark.parametrize("factor", [1, 5, 11, 40])
@pytest.mark.parametrize("seed", range(4))
def test_sharp_heads_are_probed_where_they_look(seed, factor):
    """Queries and keys times a factor: logits times its square, so that many heads see one key alone."""
    shape = Architecture(depth=4, width=64, heads=4, vocabulary=256, context=16, norm="rms", positions="rotary")
    plain = Transformer.random(shape, np.random.default_rng(seed), std=0.05)
    blocks = tuple(replace(b, query=b.query * factor, key=b.key * factor) for b in plain.weights.blocks)
    sharp = Transformer(shape, replace(plain.weights, blocks=blocks))
    check_bias(sharp)
    for misread, growth in ((lambda b: b / 2, "1[.]6"), (lambda b: b * 2, "7[.]")):
        with pytest.raises(ValueError, match=f"multiplies its effect by {growth}"):
            check_bias(Wrapped(sharp, bias=misread))


@pytest.mark.parametrize("gap", [-300, -20, 20, 300])
def test_sinks_and_keys_that_nobody_looks_at_are_probed(network, gap):
    """The first key has a logit of its own beside the bias: nearly all of the attention, or nearly none."""

    class Sink(Wrapped):
        def observe(self, tokens, visit, *, bias=None, final_norm=False):
            n = np.shape(tokens)[1]
            own = np.full((n, 1), float(gap))
            own[0] = 0
            self.inner.observe(tokens, visit, bias=own if bias is None else own + bias, final_norm=final_norm)

    check_bias(Sink(network))
