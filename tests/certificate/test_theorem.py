"""The theorem holds on networks of every kind."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from relaymodel import PromptBias, certify
from relaymodel.certificate import Ladder
from relaymodel.networks.protocol import measure
from tests.certificate.cases import VOCABULARY, cases, example


@given(cases())
def test_the_bound_holds_at_every_position_of_every_network(case):
    network, texts = case
    certificate = certify(network, texts)
    assert certificate.applies
    assert certificate.verification.failures == ()
    assert list(certificate.ladder.rungs) == [field.name for field in fields(Ladder)]
    measured = measure(network, texts)  # another way to the distances
    assert_allclose(certificate.distance(), measured.euclidean[0, -1], rtol=1e-9, atol=1e-12)
    for rung in certificate.ladder.rungs.values():
        for layer in measured.layers:
            bound, distance = certificate.log10_bound(rung, layer), measured.distance(layer)[0]
            apart = distance > 0  # prompts of the same tokens in another order may leave nothing
            assert np.all(bound[apart] - np.log10(distance[apart]) > -1e-12), (rung.knows, layer)


@pytest.mark.parametrize("beta", [-1, 0.5, 1, 1.5])
def test_with_a_bias_the_bounds_hold_for_the_runs(rng, beta):
    network, texts = example(rng, norm="rms", positions="rotary", gated=True, key_heads=2)
    certificate = certify(network, texts, bias=PromptBias(beta))
    assert certificate.holds
    measured = measure(network, texts, bias=PromptBias(beta))
    assert_allclose(certificate.distance(), measured.euclidean[0, -1], rtol=1e-9)
    for name in certificate.ladder.rungs:
        assert certificate.check(measured, name).passed


def test_bounds_from_the_weights_hold_for_other_texts(rng):
    """The theorem's promise: constants that know nothing of the texts; those that know the floors, for texts above."""
    network, (a, b, after) = example(rng, std=0.05, epsilon=1e-2)
    certificate = certify(network, (a, b, after))
    met = 0
    for _ in range(12):
        other = certify(network, (*rng.integers(0, VOCABULARY, (2, 5)), rng.integers(0, VOCABULARY, 40)))
        scale = np.log10(other.unit / certificate.unit)
        above = np.log10(other.distance())
        assert np.all(certificate.log10_bound("weights") + scale > above)
        theirs, ours = (c.ladder.hypotheses.constants for c in (other, certificate))
        if all(x.kappa <= 1.2 * y.kappa and x.omega <= 1.2 * y.omega for x, y in zip(theirs, ours, strict=True)):
            met += np.all(certificate.log10_bound("hypotheses") + scale > above)
    assert met > 3


def test_prompts_may_begin_alike(rng):
    network, (a, b, after) = example(rng)
    b = np.concatenate((a[:3], b[3:]))
    certificate = certify(network, (a, b, after))
    assert certificate.holds
    assert np.all(certificate.high[:, :3] == 0)
    assert np.all(certificate.high[1:, 3:] > 0)


def test_models_of_transformers(rng):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from relaymodel.networks.huggingface import HuggingFaceNetwork

    none = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    llama = none | {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama |= {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 64}
    gpt2 = none | {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}

    def build(kind, config):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(1000)))
            made = transformers.AutoModelForCausalLM.from_config(kind(**config), dtype=torch.float64)
        return HuggingFaceNetwork(made)

    a, b, after = rng.integers(0, VOCABULARY, (2, 4)), rng.integers(0, VOCABULARY, (2, 4)), [3, 1, 4, 1, 5, 9, 2, 6]
    opt = none | {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    opt |= {"ffn_dim": 24, "word_embed_proj_dim": 16, "max_position_embeddings": 64}
    for kind, config in (
        (transformers.LlamaConfig, llama),
        (transformers.GPT2Config, gpt2),
        (transformers.OPTConfig, opt),
        (transformers.GemmaConfig, llama | {"head_dim": 4}),
    ):
        network = build(kind, config)
        certificate = certify(network, (a[0], b[0], after))
        assert certificate.applies
        assert certificate.holds
        # transformers' angles are float32: the last two rungs leave no room for it
        for name in list(certificate.ladder.rungs)[:7]:
            assert certificate.check(measure(network, (a[0], b[0], after)), name).passed
    window = {"use_sliding_window": True, "sliding_window": 4}
    for kind, config, words in (
        (transformers.OpenAIGPTConfig, gpt2, "openai-gpt is post-LN"),
        (
            transformers.MistralConfig,
            llama | {"sliding_window": 4},
            "hypotheses cannot be established for this mistral",
        ),
        (transformers.GPTNeoXConfig, opt | {"intermediate_size": 24}, "this gpt_neox model: .* adds both to the same"),
        (transformers.PhiConfig, llama | {"num_key_value_heads": 4}, "this phi model: .* adds both to the same states"),
        (transformers.Qwen3Config, llama | {"head_dim": 4}, "this qwen3 model: .* without a floor of activations"),
        (transformers.Qwen2Config, llama | window | {"max_window_layers": 0}, "this qwen2 .*window"),
    ):
        with pytest.raises(ValueError, match=words):
            certify(build(kind, config), (a[0], b[0], after))
