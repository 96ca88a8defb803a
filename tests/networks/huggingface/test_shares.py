"""Rules of shares on models of transformers: against the NumPy transformer, and against their own attention."""

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer
from relaymodel.networks.protocol.probe import check_bias
from relaymodel.simulation import ClampedShare, SplitSoftmax
from relaymodel.simulation.share import PromptShares
from tests.networks.huggingface.models import build, network, states

RULE = PromptShares(SplitSoftmax(0.4), 6)


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_rule_does_what_it_does_to_the_same_weights_in_numpy(name, kind, tokens):
    net = network(name, attention=kind)
    wanted = list(as_transformer(net).hidden_states(tokens, bias=RULE))
    for found, expected in zip(states(net, tokens, bias=RULE), wanted, strict=True):
        # eager attention takes its softmax in float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
    assert np.abs(wanted[-1] - states(net, tokens)[-1]).max() > 1e-3


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_the_probe_tells_that_a_rule_is_obeyed(kind):
    check_bias(network("llama", attention=kind), rule=True)


def test_a_window_that_has_lost_the_prompt_has_no_share(tokens):
    """Window of 4 keys: from 4 tokens behind the prompt on, the first block is as without a rule."""
    net = network("mistral", attention="eager")
    rule = PromptShares(ClampedShare(0.9), 6)
    plain, ruled = (states(net, tokens, bias=bias)[1][:, :] for bias in (None, rule))
    np.testing.assert_allclose(ruled[:, 9:], plain[:, 9:], atol=1e-6)
    assert np.abs(ruled[:, 6:9] - plain[:, 6:9]).max() > 1e-3


def test_a_model_without_softmax_is_refused(tokens):
    with pytest.raises(ValueError, match="rule of shares for MambaForCausalLM"):
        states(HuggingFaceNetwork(build("mamba")), tokens, bias=RULE)
