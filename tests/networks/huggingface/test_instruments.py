"""Logits and rows of attention against what the models of transformers return themselves."""

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.protocol import measure
from tests.networks.huggingface.models import FAMILIES, build, network, torch

POSITIONS = np.array([0, 5, 6, 13, 19])
FUSED = ["gpt2", "llama", "gpt_neox", "qwen2, windows above layer 1", "mistral", "gemma3", "opt", "falcon"]


def built(name, **more):
    """A random model; mixtures of experts are computed in float32 only."""
    return build(name, **{"dtype": torch.float32} if name == "jamba" else {}, **more)


def read(net, tokens):
    """What `observe` reads of logits and attention at POSITIONS."""
    weights, logits = {}, []
    net.observe(
        tokens,
        lambda *_: None,
        attention=(POSITIONS, lambda layer, at, rows: weights.__setitem__(layer, rows)),
        logits=(POSITIONS, lambda at, values: logits.append(np.asarray(values))),
    )
    return weights, np.concatenate(logits, axis=1)


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_the_models_own(name, tokens):
    net = HuggingFaceNetwork(built(name))
    _, logits = read(net, tokens)
    with torch.no_grad():
        whole = net.model(torch.tensor(tokens)).logits[:, POSITIONS].numpy()
    np.testing.assert_allclose(
        logits, whole, rtol=1e-5 if name == "jamba" else 1e-9, atol=1e-6 if name == "jamba" else 1e-12
    )


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "mamba"])
def test_rows_of_attention_are_those_that_eager_models_return(name, tokens):
    model = built(name, attention="eager")
    with torch.no_grad():
        whole = model(torch.tensor(tokens), output_attentions=True).attentions
    weights, _ = read(HuggingFaceNetwork(model), tokens)
    assert len(weights) == len(whole) == (1 if name == "jamba" else 3)
    for rows, matrix in zip(weights.values(), whole, strict=True):
        np.testing.assert_allclose(rows, matrix[:, :, POSITIONS].numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", FUSED)
def test_fused_attention_shows_the_rows_of_eager_attention(name, tokens):
    fused, eager = (read(network(name, attention=kind), tokens)[0] for kind in ("sdpa", "eager"))
    for layer in (1, 2, 3):
        np.testing.assert_allclose(fused[layer], eager[layer], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(fused[layer].sum(axis=-1), 1, rtol=1e-6)


def test_measuring_reads_all_in_one_pass(rng):
    net = network("llama")
    a, b, after = rng.integers(0, 60, 6), rng.integers(0, 60, 6), rng.integers(0, 60, 40)
    calls = []
    hook = net._blocks[0].register_forward_pre_hook(lambda *_: calls.append(1))
    net.observe([[1, 2]], lambda *_: None, logits=(np.arange(1), lambda *_: None))  # the head is tried once
    calls.clear()
    measured = measure(net, (a, b, after), instruments=("distance", "next_token", "attention"))
    hook.remove()
    assert len(calls) == 1
    with torch.no_grad():
        p, q = net.model(torch.tensor(np.stack([np.r_[a, after], np.r_[b, after]]))).logits[:, 6:].softmax(-1).numpy()
    np.testing.assert_allclose(measured.next_token.total_variation[0], np.abs(p - q).sum(axis=1) / 2, rtol=1e-6)
    assert measured.attention.layers == (1, 2, 3)


def test_a_head_that_takes_more_than_the_last_states_is_refused(tokens):
    net = network("gpt2")
    plain = net.model.lm_head.forward
    net.model.lm_head.forward = lambda x: plain(x) + offsets.pop()
    offsets = [1.0, 2.0]
    with pytest.raises(ValueError, match="next_token must be left out: GPT2LMHeadModel makes logits of more"):
        read(net, tokens)
