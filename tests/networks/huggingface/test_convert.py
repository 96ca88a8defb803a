"""Models of transformers as NumPy transformers."""

from functools import partial

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer
from tests.networks.huggingface.models import build, network, states

torch = pytest.importorskip("torch")


def relative(a, b):
    return float(np.max(np.linalg.norm(a - b, axis=-1) / np.linalg.norm(b, axis=-1)))


def in_float64(model):
    """Replace what the library computes in float32 whatever the model's numbers: rotary angles and RMS norms."""
    base, size = (
        model.config.rope_parameters["rope_theta"],
        model.config.hidden_size // model.config.num_attention_heads,
    )

    def forward(x, position_ids):
        rates = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        angles = position_ids[..., None].double() * rates
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    model.model.rotary_emb.forward = forward
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = partial(rms_norm, module)
        elif type(module).__name__ == "OlmoLayerNorm":
            module.forward = partial(layer_norm, module)
    return model


def rms_norm(module, x):
    gemma = type(module).__name__.startswith("Gemma")
    epsilon = module.eps if gemma else module.variance_epsilon
    return (module.weight + gemma) * x / torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + epsilon)


def layer_norm(_, x):
    x = x - x.mean(dim=-1, keepdim=True)
    return x / torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-5)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gpt2", {}),
        ("gpt2", {"activation_function": "gelu", "n_inner": 40, "tie_word_embeddings": False}),
        (
            "llama",
            {"attention_bias": True, "mlp_bias": True, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}},
        ),
        ("llama", {"hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": True}),
        ("qwen2", {}),
        ("opt", {}),
        ("opt", {"enable_bias": False, "activation_function": "gelu", "tie_word_embeddings": False}),
        ("gemma", {}),
        ("olmo", {}),
        ("olmo", {"attention_bias": True}),
    ],
)
def test_converted_weights_give_the_same_states_to_rounding(name, more, biased, tokens, rng):
    """Both in float64: sums of up to 128 numbers in some ten products per block, each right to 128 ulp, make 1e-12."""
    model = build(name, **more)
    net = HuggingFaceNetwork(model if name in ("gpt2", "opt") else in_float64(model))
    ours = as_transformer(net)
    bias = rng.standard_normal((20, 9)) if biased else None
    shown, same = states(net, tokens, bias=bias, final_norm=True), states(ours, tokens, bias=bias, final_norm=True)
    assert len(shown) == len(same) == 5
    assert max(relative(x, y) for x, y in zip(shown, same, strict=True)) < 1e-12
    assert ours.generate([1, 2], 12, seed=0, temperature=1e-9) == net.generate([1, 2], 12, seed=0, temperature=1e-9)
    if biased:
        assert relative(states(ours, tokens)[3], same[3]) > 1e-3


def test_float32_angles_and_norms_are_the_only_other_difference(tokens):
    """Angles up to 19 in float32 are wrong by up to 19 * 2^-24, norms by 2^-24, states by a few times that."""
    net = network("llama")
    off = [relative(x, y) for x, y in zip(states(net, tokens), states(as_transformer(net), tokens), strict=True)]
    assert off[0] == 0
    assert 1e-9 < max(off) < 10 * 19 * 2.0**-24
    assert net.precision == 2.0**-23  # not that of its weights


def test_conversion_keeps_where_the_weights_come_from():
    net = HuggingFaceNetwork(build("gpt2"), provenance={"weights": "drawn here", "source": "nowhere"})
    facts = as_transformer(net).provenance
    assert facts["weights"] == "drawn here"
    assert facts["source"] == "nowhere"
    assert facts["converted from"] == "GPT2LMHeadModel (depth 3, width 32)"


YARN = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("mistral", {}, "network must be a gpt2, llama, qwen2, opt, gemma, olmo model to be converted, got mistral"),
        ("gpt_neox", {}, "blocks in a row, MLP behind attention, and gpt_neox adds both to the same states"),
        ("gpt_neox", {"use_parallel_residual": False}, "rotary positions of whole heads, and gpt_neox turns a part"),
        ("phi", {}, "MLP behind attention, and phi adds both"),
        ("qwen3", {}, "linear in the normed states, and qwen3 normalises them without a floor"),
        ("gemma2", {}, "added to the stream as they are, and gemma2 puts norms between"),
        ("mamba", {}, "network must have attention, and mamba has none"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before = True"),
        ("opt", {"word_embed_proj_dim": 16}, "embeddings of its width 32 to be converted, got projections from 16"),
        ("olmo", {"clip_qkv": 5.0}, "must not clip queries, keys and values to be converted, got 5.0"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = False"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights = True"),
        ("gpt2", {"activation_function": "tanh"}, "one of the activations .*, got tanh"),
        ("llama", {"rope_parameters": YARN}, "network must have plain rotary positions to be converted, got .*linear"),
        ("llama", {"hidden_act": "tanh"}, "one of the activations .*, got tanh"),
        (
            "qwen2, windows above layer 1",
            {},
            "network must have no sliding window to be converted, got in 2 of 3 layers",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(name, more, words):
    with pytest.raises(ValueError, match=words):
        as_transformer(network(name, **more))
