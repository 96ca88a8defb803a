"""The bias on the prompt's keys: models that obey it, and models that do not."""

from contextlib import ExitStack

import numpy as np
import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.huggingface.bias import bias_hook
from relaymodel.networks.protocol import RandomTokens, measure
from relaymodel.networks.protocol.probe import check_bias
from tests.networks.huggingface.models import ATTENTION, NO_KEYS, build, network, states

torch = pytest.importorskip("torch")


def attention_of_first_block(net, tokens, bias):
    """The attention weights of block 1, (B, heads, n, n)."""
    block = net._blocks[0]
    module = next(m for m in block.modules() if type(m).__name__.endswith("Attention"))
    seen = []
    hook = module.register_forward_hook(lambda m, x, y: seen.append(y[1]))
    try:
        net.observe(tokens, lambda *_: None, bias=bias)
    finally:
        hook.remove()
    return seen[0].numpy()


@pytest.mark.parametrize("name", [name for name in ATTENTION if name not in ("falcon", "falcon, alibi", "bloom")])
def test_a_bias_multiplies_attention_by_its_exponential(name, tokens, rng):
    """The first block has the same input with and without: A' = A e^b / sum, windows and all."""
    net, bias = network(name, attention="eager"), np.zeros((20, 20))
    bias[:, :7] = rng.standard_normal((20, 7))
    plain = attention_of_first_block(net, tokens, None)
    biased = attention_of_first_block(net, tokens, bias[:, :7])
    expected = plain * np.exp(bias)
    expected /= expected.sum(axis=-1, keepdims=True)
    # the softmax is taken in float32, most often: products and sums of numbers up to 1, right to a few 2^-24
    precision = 1e-6 if net.precision > 2.0**-52 else 1e-13
    np.testing.assert_allclose(biased, expected, rtol=0, atol=precision)
    assert np.abs(biased - plain).max() > 0.05


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["falcon, alibi", "bloom", "mistral", "qwen2, windows above layer 1"])
def test_alibi_and_windows_stay_with_a_bias_of_zero(name, kind, tokens):
    more = {} if name == "bloom" else {"attention": kind}
    net = network(name, **more)
    for x, y in zip(states(net, tokens), states(net, tokens, bias=np.zeros((20, 4))), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(x).max())


def test_the_mask_of_a_model_is_left_alone_and_biased_once():
    class Block(torch.nn.Module):
        def forward(self, hidden_states, attention_mask=None):
            return hidden_states

    add, mask, x = bias_hook(np.ones((3, 1)), 3), torch.zeros(1, 1, 3, 3), torch.zeros(1, 3, 4)
    (_, one), (_, two) = (add(Block(), (x,), {"attention_mask": mask}) for _ in range(2))
    assert one["attention_mask"] is two["attention_mask"]  # blocks that share a mask share the biased one
    assert one["attention_mask"][0, 0].tolist() == [[1, 0, 0]] * 3
    assert not mask.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ATTENTION)
def test_honest_models_pass_the_test_of_their_bias(name, dtype):
    check_bias(network(name, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_honest_models_of_low_precision_pass_it_too(dtype):
    check_bias(network("llama", dtype=dtype))


@pytest.mark.parametrize("name", NO_KEYS)
def test_models_without_biased_keys_are_refused(name, rng):
    net = network(name, dtype=torch.float32)
    a, b = rng.integers(0, 30, 4), rng.integers(30, 60, 4)
    measure(net, (a, b, RandomTokens(8)))  # without a bias they can be measured
    with pytest.raises(ValueError, match="network must add the bias to its attention logits"):
        measure(net, (a, b, RandomTokens(8)), bias=np.log1p)


def hidden(mask):
    return mask < -1e30


ADVERSARIES = {
    "ignores the mask": lambda mask: torch.where(hidden(mask), mask, 0.0),
    "whatever is not 0 is hidden": lambda mask: torch.where(mask == 0, mask, torch.finfo(mask.dtype).min),
    "whatever is negative is hidden": lambda mask: torch.where(mask < 0, torch.finfo(mask.dtype).min, 0.0),
    "only what is far negative is hidden": lambda mask: torch.where(mask < -100, torch.finfo(mask.dtype).min, 0.0),
    "positive part lost": lambda mask: mask.clamp(max=0),
    "negative part lost": lambda mask: torch.where(hidden(mask), mask, mask.clamp(min=0)),
    "divided by the root of the head's width": lambda mask: torch.where(hidden(mask), mask, mask / 8**0.5),
    "sign turned": lambda mask: torch.where(hidden(mask), mask, -mask),
    "keys moved by one": lambda mask: torch.where(
        hidden(mask), mask, torch.where(hidden(mask.roll(1, -1)), 0, mask.roll(1, -1))
    ),
    "causality lost": lambda mask: torch.where(hidden(mask), 0.0, mask),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("where", [[0, 1, 2], [0], [2]], ids=str)
@pytest.mark.parametrize("how", ADVERSARIES)
def test_models_that_misread_the_mask_are_refused(how, where, dtype):
    model = build("llama", dtype=dtype)
    net = HuggingFaceNetwork(model)
    with ExitStack() as hooks:
        for i in where:

            def spoil(module, args, kwargs):
                mask = kwargs["attention_mask"]
                return args, kwargs if mask is None else kwargs | {"attention_mask": ADVERSARIES[how](mask)}

            attention = model.model.layers[i].self_attn
            hooks.callback(attention.register_forward_pre_hook(spoil, with_kwargs=True).remove)
        with pytest.raises(ValueError, match="network must add the bias to its attention logits, but"):
            measure(net, ([1, 2], [3, 4], [5, 6, 7]), bias=np.log1p)
    measure(net, ([1, 2], [3, 4], [5, 6, 7]), bias=np.log1p)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_an_ignored_mask_is_refused_at_low_precision(dtype):
    model = build("llama", dtype=dtype)
    for layer in model.model.layers:
        layer.self_attn.register_forward_pre_hook(lambda m, x, k: (x, k | {"attention_mask": None}), with_kwargs=True)
    with pytest.raises(ValueError, match="network must add the bias"):
        check_bias(HuggingFaceNetwork(model))


def test_a_model_too_coarse_to_tell_is_refused():
    model = build("gpt2", dtype=torch.bfloat16)
    with torch.no_grad():
        for block in model.transformer.h:
            block.attn.c_proj.weight *= 1e-4
    with pytest.raises(ValueError, match="load it in a wider number format"):
        check_bias(HuggingFaceNetwork(model))


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        (np.zeros(20), r"bias must have shape \(n, k\) with n = 20"),
        (np.zeros((19, 1)), r"bias must have shape \(n, k\) with n = 20"),
        (np.zeros((20, 21)), r"bias must have shape \(n, k\) with n = 20"),
        (np.full((20, 1), -np.inf), "bias must be finite"),
    ],
)
def test_unusable_biases(bias, words, tokens):
    with pytest.raises(ValueError, match=words):
        network("gpt2").observe(tokens, lambda *_: None, bias=bias)


@pytest.mark.parametrize("seed", range(8))
def test_sharp_llamas_may_be_biased(seed):
    """Queries and keys times 11, float32: heads that see one key alone."""
    model = build("llama", dtype=torch.float32, seed=seed, num_hidden_layers=4, hidden_size=64)
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.q_proj.weight *= 11
            block.self_attn.k_proj.weight *= 11
    check_bias(HuggingFaceNetwork(model))
