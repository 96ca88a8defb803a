"""Logits and rows of attention against what the models of transformers return themselves."""

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer
from relaymodel.networks.protocol import measure
from tests.networks.huggingface.models import FAMILIES, build, network, torch

POSITIONS = np.array([0, 5, 6, 13, 19])
NOT_FUSED = ("gemma2", "falcon, alibi", "gptj", "gpt_neo", "bloom", "mpt", "mamba", "jamba")
FEW = ("gpt2", "llama", "gemma2", "opt", "falcon, alibi", "mpt")  # in the ordinary run


def families(*without):
    """Families, all but a few for the exhaustive run."""
    names = [name for name in FAMILIES if name not in without]
    return [pytest.param(n, marks=[] if n in FEW else pytest.mark.exhaustive) for n in names]


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


@pytest.mark.parametrize("name", families())
def test_logits_are_the_models_own(name, tokens):
    net = HuggingFaceNetwork(built(name))
    _, logits = read(net, tokens)
    with torch.no_grad():
        whole = net.model(torch.tensor(tokens)).logits[:, POSITIONS].numpy()
    np.testing.assert_allclose(
        logits, whole, rtol=1e-5 if name == "jamba" else 1e-9, atol=1e-6 if name == "jamba" else 1e-12
    )


@pytest.mark.parametrize("name", families("mamba"))
def test_rows_of_attention_are_those_that_eager_models_return(name, tokens):
    model = built(name, attention="eager")
    with torch.no_grad():
        whole = model(torch.tensor(tokens), output_attentions=True).attentions
    weights, _ = read(HuggingFaceNetwork(model), tokens)
    assert len(weights) == len(whole) == (1 if name == "jamba" else 3)
    for rows, matrix in zip(weights.values(), whole, strict=True):
        np.testing.assert_allclose(rows, matrix[:, :, POSITIONS].numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", families(*NOT_FUSED))
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


@pytest.mark.parametrize("name", families("bloom", "mamba", "jamba"))
def test_responses_are_differences_of_runs_from_other_embeddings(name, tokens):
    """Exact derivatives against central differences of the model run on embeddings."""
    net, masks = network(name), np.zeros((2, 20), dtype=bool)
    masks[0, 3], masks[1, :8] = True, True
    shown = {}
    net.respond(tokens, masks, lambda layer, row, x: shown.__setitem__((row, layer), x))
    embed = net.model.get_input_embeddings()
    step = 1e-6 if name == "opt" else 3e-3  # others have norms in float32, and this one has the kinks of ReLU
    with torch.no_grad():
        a, b = embed(torch.tensor(tokens))
        for row, mask in enumerate(masks):
            change = (b - a) * torch.tensor(mask)[:, None]
            ahead, behind = (
                net._body(inputs_embeds=(a + sign * step * change)[None], output_hidden_states=True).hidden_states
                for sign in (1, -1)
            )
            for layer in (0, 1, 2):  # the last of the library's is behind the final norm
                plain = (ahead[layer][0] - behind[layer][0]).numpy() / (2 * step)
                size = np.abs(plain).max()
                np.testing.assert_allclose(shown[row, layer], plain, rtol=0, atol=1e-3 * size)
    assert sorted(shown) == [(row, layer) for row in (0, 1) for layer in range(4)]


def test_exact_and_finite_derivatives_agree(tokens):
    net, masks = network("llama"), np.eye(20, dtype=bool)[[2, 7]]
    exact, finite = {}, {}
    bias = np.linspace(0, 1, 20)[:, None] * np.ones(8)
    net.respond(tokens, masks, lambda layer, row, x: exact.__setitem__((row, layer), x), bias=bias)
    as_transformer(net).respond(tokens, masks, lambda l, row, x: finite.__setitem__((row, l), x), bias=bias)
    for key, x in finite.items():
        np.testing.assert_allclose(exact[key], x, atol=1e-5 * np.abs(x).max())


def test_a_model_without_forward_derivatives_is_refused(tokens):
    with pytest.raises(ValueError, match="response must be left out: BloomModel has a part that torch has no forward"):
        network("bloom").respond(tokens, np.eye(20, dtype=bool)[:1], lambda *_: None)
