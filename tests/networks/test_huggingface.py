"""The adapter of transformers models: tiny random ones of many families, honest and not."""

import hashlib
import io
import os
import re
import subprocess
import sys
import warnings
import weakref
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before the libraries: names cannot be looked up, wherever this runs
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers, tqdm = pytest.importorskip("tokenizers"), pytest.importorskip("tqdm.auto")
gguf = pytest.importorskip("gguf")

from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer, load  # noqa: E402
from relaymodel.networks.huggingface.bias import bias_hook  # noqa: E402
from relaymodel.networks.huggingface.libraries import quiet  # noqa: E402
from relaymodel.networks.protocol import Network, RandomTokens, measure  # noqa: E402
from relaymodel.networks.protocol.runs import check_bias  # noqa: E402

torch.set_num_threads(1)

VOCABULARY = 60
NONE = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
COMMON = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
LONG = {"max_position_embeddings": 64}
LLAMA = COMMON | LONG | NONE | {"intermediate_size": 48, "num_key_value_heads": 2}
GPT2 = NONE | {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
LOCAL = NONE | {"vocab_size": VOCABULARY, "hidden_size": 32, "num_layers": 3, "num_heads": 4, "window_size": 4} | LONG

FAMILIES = {
    "gpt2": ("GPT2", GPT2),
    "llama": ("Llama", LLAMA),
    "gpt_neox": ("GPTNeoX", COMMON | LONG | NONE | {"intermediate_size": 48}),
    "qwen2": ("Qwen2", LLAMA),
    "qwen2, windows above layer 1": (
        "Qwen2",
        LLAMA | {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3", LLAMA | {"head_dim": 8}),
    "mistral": ("Mistral", LLAMA | {"sliding_window": 4}),
    "gemma2": ("Gemma2", LLAMA | {"head_dim": 8, "sliding_window": 4}),
    "gemma3": ("Gemma3Text", LLAMA | {"head_dim": 8, "sliding_window": 4}),
    "opt": (
        "OPT",
        COMMON | LONG | {"ffn_dim": 48, "word_embed_proj_dim": 32, "bos_token_id": None, "eos_token_id": None},
    ),
    "gpt_neo": ("GPTNeo", LOCAL | {"attention_types": [[["global", "local", "global"], 1]]}),
    "gptj": ("GPTJ", GPT2 | {"rotary_dim": 4}),
    "phi": ("Phi", COMMON | LONG | NONE | {"intermediate_size": 48}),
    "falcon": ("Falcon", COMMON | NONE | {"alibi": False}),
    "falcon, alibi": ("Falcon", COMMON | NONE | {"alibi": True}),
    "bloom": ("Bloom", NONE | {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 3, "n_head": 4}),
    "mpt": ("Mpt", {"vocab_size": VOCABULARY, "d_model": 32, "n_layers": 3, "n_heads": 4, "max_seq_len": 64}),
    "mamba": ("Mamba", NONE | {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "state_size": 4}),
    "jamba": (
        "Jamba",
        LLAMA | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "use_mamba_kernels": False},
    ),
}
NO_KEYS = ["mpt", "mamba", "jamba"]  # no additive mask, no keys at all, keys in one layer of three
ATTENTION = [name for name in FAMILIES if name not in NO_KEYS]
WINDOWS = {name: 4 if name in ("mistral", "gemma3") else None for name in FAMILIES}
FINAL_NORMS = ("ln_f", "norm", "final_layer_norm", "final_layernorm", "norm_f")


def config(name, **more):
    kind, settings = FAMILIES[name]
    return getattr(transformers, f"{kind}Config")(**settings | more)


def build(name, *, dtype=torch.float64, seed=0, **more):
    """A random model whose weights, biases and gains are moved by normal numbers of deviation 0.1."""
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        attention = (
            {} if name == "mpt" else {"attn_implementation": more.pop("attention")} if "attention" in more else {}
        )
        model = transformers.AutoModelForCausalLM.from_config(config(name, **more), dtype=dtype, **attention)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape).to(parameter))
    return model.eval()


def network(name, **more):
    return HuggingFaceNetwork(build(name, **more))


def states(net, tokens, **extras):
    shown = {}
    net.observe(tokens, lambda layer, x: shown.__setitem__(layer, x.copy()), **extras)
    return [shown[layer] for layer in sorted(shown)]


@pytest.fixture
def tokens(rng):
    return rng.integers(0, VOCABULARY, (2, 20))


# ------------------------------------------------------------------ the residual stream


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_states_are_bitwise_those_that_the_library_returns(name, dtype, tokens):
    if name == "jamba" and dtype == torch.float64:
        return  # experts know no float64
    model = build(name, dtype=dtype)
    net = HuggingFaceNetwork(model)
    shown = states(net, tokens, final_norm=True)
    with torch.no_grad():
        output = model(torch.tensor(tokens), output_hidden_states=True, use_cache=False)
        theirs = [x.to(torch.promote_types(x.dtype, torch.float32)).numpy() for x in output.hidden_states]
        body = model.get_decoder()
        norm = next(getattr(body, attribute) for attribute in FINAL_NORMS if hasattr(body, attribute))
        normed = norm(torch.tensor(shown[3]).to(output.hidden_states[-1].dtype)).to(torch.float64).numpy()
    if name == "mamba":  # which does not return its embedding, but the last block's states
        theirs = [shown[0], *theirs]
    for layer in range(3):
        assert_array_equal(shown[layer], theirs[layer])
    assert_array_equal(shown[4], theirs[-1])
    assert_array_equal(shown[4], normed)  # so that layer 3 is what the final norm was given
    assert not np.array_equal(shown[3], shown[2])


def test_the_embedding_is_shown_with_its_positions(tokens):
    model = build("gpt2")
    body = model.transformer
    expected = (body.wte.weight[torch.tensor(tokens)] + body.wpe.weight[: tokens.shape[1]]).detach().numpy()
    assert_array_equal(states(HuggingFaceNetwork(model), tokens)[0], expected)


def test_the_text_decoder_of_a_model_that_also_sees_pictures(tokens):
    text = FAMILIES["gemma3"][1]
    picture = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48}
    both = transformers.Gemma3Config(
        text_config=text, vision_config=picture | {"image_size": 28, "patch_size": 14}, mm_tokens_per_image=4
    )
    with quiet():
        model = transformers.AutoModelForImageTextToText.from_config(both, dtype=torch.float64).eval()
    net = HuggingFaceNetwork(model)
    assert (net.depth, net.vocabulary, net.window) == (3, VOCABULARY, 4)
    for layer, x in enumerate(states(net, tokens)[:3]):
        with torch.no_grad():
            theirs = model.model.language_model(torch.tensor(tokens), output_hidden_states=True).hidden_states
        assert_array_equal(x, theirs[layer].numpy())


def hooks_of(model):
    return [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("stop", [None, 0, 2])
def test_the_model_is_left_as_found(stop, biased, tokens):
    model = build("llama")
    seen = []
    model.model.norm.register_forward_hook(lambda *_: seen.append(1))  # somebody else's
    net = HuggingFaceNetwork(model)
    before, weights = hooks_of(model), {k: v.clone() for k, v in model.state_dict().items()}
    random = torch.random.get_rng_state()
    bias = np.ones((20, 5)) if biased else None

    def visit(layer, x):
        assert not torch.is_grad_enabled()
        if layer == stop:
            raise KeyboardInterrupt

    if stop is None:
        net.observe(tokens, visit, bias=bias)
    else:
        with pytest.raises(KeyboardInterrupt):
            net.observe(tokens, visit, bias=bias)
    assert hooks_of(model) == before
    assert torch.is_grad_enabled()
    assert torch.equal(random, torch.random.get_rng_state())
    assert all(torch.equal(v, weights[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    model.train()(input_ids=torch.tensor(tokens), labels=torch.tensor(tokens)).loss.backward()  # can still be trained
    assert all(p.grad is not None for p in model.parameters())


def test_angles_computed_anew_can_be_trained_with(tokens):
    """Texts longer than it was made for have a model replace its rotary rates, by tensors that know gradients."""
    dynamic = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}
    model = build("llama", rope_parameters=dynamic, max_position_embeddings=16)
    before = model.model.rotary_emb.inv_freq.clone()
    HuggingFaceNetwork(model).observe(tokens, lambda *_: None)
    assert not torch.equal(model.model.rotary_emb.inv_freq, before)
    assert not any(tensor.is_inference() for tensor in model.buffers())


def test_nothing_is_kept_and_nothing_can_be_changed(tokens):
    net, seen = network("gpt2"), []

    def visit(layer, x):
        assert all(old() is None for old in seen[:-1])  # the one before may still be on its way
        seen.append(weakref.ref(x))
        with pytest.raises(ValueError, match="read-only"):
            x[0, 0, 0] = 1

    net.observe(tokens, visit, final_norm=True)
    assert [ref() for ref in seen] == [None] * 5


def test_number_formats_set_outside_do_not_matter(tokens):
    net = network("llama", dtype=torch.float32)
    plain, written = states(net, tokens), net.generate([1, 2], 12, seed=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = states(net, tokens)
        assert net.generate([1, 2], 12, seed=0) == written
    for x, y in zip(plain, inside, strict=True):
        assert_array_equal(x, y)


def test_facts():
    net = HuggingFaceNetwork(build("mistral"), provenance={"weights": "drawn here"})
    assert isinstance(net, Network)
    assert (net.depth, net.vocabulary, net.context, net.window) == (3, 60, 64, 4)
    assert dict(net.provenance) == {
        "network": "MistralForCausalLM (depth 3, width 32)",
        "dtype": "float64, in parts float32",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sliding window": "4 keys in every layer",
        "weights": "drawn here",
    }
    assert network("gemma2").provenance["sliding window"] == "in 2 of 3 layers"
    assert [network(name).context for name in ("bloom", "mpt")] == [None, 64]


@pytest.mark.parametrize(
    ("dtype", "products", "spacing"),
    [
        ("float64", "highest", 2.0**-52),
        ("float64", "medium", 2.0**-52),
        ("float32", "highest", 2.0**-23),
        ("float32", "high", 2.0**-10),
        ("float32", "medium", 2.0**-7),
        ("float16", "highest", 2.0**-10),
        ("bfloat16", "highest", 2.0**-7),
    ],
)
def test_precision_and_the_warning_below_float32(dtype, products, spacing, rng, recwarn):
    net = network("gpt2", dtype=getattr(torch, dtype))
    before = torch.get_float32_matmul_precision()
    a, b, after = rng.integers(0, 30, 4), rng.integers(30, 60, 4), rng.integers(0, 60, 20)
    try:
        torch.set_float32_matmul_precision(products)
        assert net.precision == spacing
        if spacing > 2.0**-23:
            with pytest.warns(UserWarning, match=f"spacing of {spacing:.1e} at 1.*use float32 or better"):
                measured = measure(net, (a, b, after))
        else:
            measured = measure(net, (a, b, after))
    finally:
        torch.set_float32_matmul_precision(before)
    assert measured.precision == spacing
    assert not recwarn.list


def test_one_coarse_matrix_sets_the_precision():
    model = build("gpt2", dtype=torch.float32)
    model.transformer.h[1].mlp.c_fc.weight.data = model.transformer.h[1].mlp.c_fc.weight.data.bfloat16()
    model.transformer.h[1].mlp.c_fc.register_forward_pre_hook(lambda m, x: x[0].bfloat16())
    model.transformer.h[1].mlp.c_fc.bias.data = model.transformer.h[1].mlp.c_fc.bias.data.bfloat16()
    model.transformer.h[1].mlp.c_fc.register_forward_hook(lambda m, x, y: y.float())
    assert HuggingFaceNetwork(model).precision == 2.0**-7


# ------------------------------------------------------------------ windows


@pytest.mark.parametrize("name", FAMILIES)
def test_windows_are_recognised(name):
    assert network(name, dtype=torch.float32).window == WINDOWS[name]


@pytest.mark.parametrize("name", ["mistral", "gemma3", "gpt_neo"])
def test_a_window_of_w_keys_in_L_layers_reaches_back_over_L_times_w_minus_1_tokens(name, rng):
    local = {"attention_types": [[["local"], 3]]} if name == "gpt_neo" else {}
    if name == "gemma3":
        local = {"layer_types": ["sliding_attention"] * 3}
    net = network(name, **local)
    assert net.window == 4
    a, b, after = rng.integers(0, 30, 6), rng.integers(30, 60, 6), rng.integers(0, 60, 30)
    measured = measure(net, (a, b, after))
    for layer in (1, 2, 3):
        assert_array_equal(measured.distance(layer)[0] > 0, measured.t <= layer * 3)
        with pytest.raises(ValueError, match=f"exactly 0 at {30 - 3 * layer} tokens, .*sliding window of 4 keys"):
            measured.curve(layer)


# ------------------------------------------------------------------ the bias


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


# ------------------------------------------------------------------ generation


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("jamba",)])
def test_generation_with_its_cache_is_full_recomputation(name, rng):
    """Drawn again from full forward passes with the same random numbers, over windows as well."""
    net = network(name)
    prompt, random = rng.integers(0, VOCABULARY, 5).tolist(), torch.random.get_rng_state()
    written = net.generate(prompt, 14, seed=4, temperature=0.8)
    assert torch.equal(random, torch.random.get_rng_state())
    again, text = torch.Generator().manual_seed(4), list(prompt)
    for token in written:
        with torch.no_grad():
            logits = net.model(torch.tensor([text]), use_cache=False).logits[0, -1].double()
        assert int(torch.multinomial(torch.softmax(logits / 0.8, dim=-1), 1, generator=again)) == token
        text.append(token)
    assert len(set(written)) > 1
    assert written == net.generate(prompt, 14, seed=4, temperature=0.8)
    assert written != net.generate(prompt, 14, seed=5, temperature=0.8)


def test_generation_is_greedy_when_cold():
    net, text = network("gpt2"), [1, 2]
    for _ in range(10):
        with torch.no_grad():
            text.append(int(net.model(torch.tensor([text])).logits[0, -1].argmax()))
    for cold in (1e-6, 1e-300, 5e-324):
        assert net.generate([1, 2], 10, seed=3, temperature=cold) == text[2:]


@pytest.mark.parametrize(
    ("prompt", "count", "more", "error", "words"),
    [
        ([1], 0, {}, ValueError, "count must be at least 1"),
        ([1], 64, {}, ValueError, "prompt and count must fit in context = 64, got 65"),
        ([], 1, {}, ValueError, "tokens must be integers"),
        ([60], 1, {}, ValueError, "tokens must be from 0 to 59, got 60"),
        ([1], 1, {"temperature": 0}, ValueError, "temperature must be positive, got 0"),
        ([1], 1, {"seed": -1}, ValueError, "seed must be at least 0"),
    ],
)
def test_unusable_generation(prompt, count, more, error, words):
    with pytest.raises(error, match=words):
        network("gpt2").generate(prompt, count, **{"seed": 0} | more)


@pytest.mark.parametrize("bad", [[1, 2], [[1.5]], [[-1]], [[60]], [[]]])
def test_unusable_tokens(bad):
    with pytest.raises(ValueError, match="tokens must be"):
        network("gpt2").observe(bad, lambda *_: None)


# ------------------------------------------------------------------ the NumPy transformer


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
    return model


def rms_norm(module, x):
    return module.weight * x / torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + module.variance_epsilon)


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
    ],
)
def test_converted_weights_give_the_same_states_to_rounding(name, more, biased, tokens, rng):
    """Both in float64: sums of up to 128 numbers in some ten products per block, each right to 128 ulp, make 1e-12."""
    model = build(name, **more)
    net = HuggingFaceNetwork(model if name == "gpt2" else in_float64(model))
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
        ("gpt_neox", {}, "network must be a gpt2, llama, qwen2 model to be converted, got gpt_neox"),
        ("mistral", {}, "got mistral"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = False"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights = True"),
        ("gpt2", {"activation_function": "relu"}, "one of the activations .*, got relu"),
        ("llama", {"rope_parameters": YARN}, "network must have plain rotary positions to be converted, got .*linear"),
        ("llama", {"hidden_act": "relu"}, "one of the activations .*, got relu"),
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


# ------------------------------------------------------------------ rounding


@pytest.mark.parametrize(
    ("dtype", "least", "near"), [("float32", 0.02, 7e-6), ("float16", 0.3, 0.01), ("bfloat16", 0.3, 0.07)]
)
def test_the_floor_is_what_rounding_does(dtype, least, near, rng):
    """Two runs whose prompts have tokens 30..59 that are nearly those from 0 to 29, against float64."""
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        size = {"n_embd": 256, "n_layer": 2, "n_positions": 80}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2 | size))
        with torch.no_grad():
            embedding = model.transformer.wte.weight
            embedding[30:] = embedding[:30] + near * (embedding[30:] - embedding[:30])
        model = model.to(getattr(torch, dtype))
    a, after = rng.integers(0, 30, (1, 16)), rng.integers(0, 30, (1, 60))
    texts = [np.hstack([prompt, after]) for prompt in (a, a + 30)]

    def run():
        net = HuggingFaceNetwork(model)
        one, other = (states(net, text) for text in texts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return measure(net, (a, a + 30, after)), [
                (x - y.astype(np.float64))[:, 16:] for x, y in zip(one, other, strict=True)
            ]

    rounded, difference = run()
    model.double()
    exact, true = run()
    errors, wrong = [], []
    for layer in (1, 2):
        noise = np.linalg.norm(difference[layer] - true[layer], axis=-1)
        # how exactly a library's sums are rounded is its own affair, but not more than three times as documented
        assert least < np.median(noise / rounded.floor[:, layer - 1]) < 3
        error, clear = np.abs(np.log(rounded.distance(layer) / exact.distance(layer))), rounded.reliable(layer)
        errors += error[:, clear].ravel().tolist()
        wrong += error[:, ~clear].ravel().tolist()
    assert min(len(errors), len(wrong)) > 10
    # noise of at most twice the floor, at right angles: sqrt(1 + (2/3)^2) = 1.2
    assert np.quantile(errors, 0.95) < np.log(1.2)
    assert np.median(wrong) > np.log(1.03)  # what is marked is wrong


# ------------------------------------------------------------------ what is no model to be measured


def test_models_that_are_not_causal_or_not_stacks_are_refused():
    with pytest.raises(TypeError, match="model must be a transformers PreTrainedModel, got Linear"):
        HuggingFaceNetwork(torch.nn.Linear(2, 2))
    small = COMMON | {"intermediate_size": 48}
    with quiet():
        both_ways = transformers.BertLMHeadModel(transformers.BertConfig(**small))
        turned = transformers.XLNetLMHeadModel(
            transformers.XLNetConfig(vocab_size=60, d_model=32, n_layer=3, n_head=4, d_inner=48)
        )
        shape = {"vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4}
        two = transformers.T5ForConditionalGeneration(transformers.T5Config(**shape))
    with pytest.raises(ValueError, match="model must be causal, but its states at layer 1 depend on later tokens"):
        HuggingFaceNetwork(both_ways)
    with pytest.raises(ValueError, match=r"model must show states of shape \(batch, tokens, width\)"):
        HuggingFaceNetwork(turned)
    with pytest.raises(ValueError, match="model must"):
        HuggingFaceNetwork(two)


def test_blocks_run_twice_or_skipped_are_refused():
    model = build("gpt2")
    model.transformer.h = torch.nn.ModuleList([model.transformer.h[0], model.transformer.h[0], model.transformer.h[2]])
    with pytest.raises(ValueError, match="model must run its 3 blocks once each"):
        HuggingFaceNetwork(model)


# ------------------------------------------------------------------ loading

WORDS = ["the", "relay", "passes", "it", "on"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model in bfloat16, as most are published, and a tokenizer whose texts are 8 tokens at most."""
    place = tmp_path_factory.mktemp("published")
    build("llama", dtype=torch.bfloat16).save_pretrained(place)
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate(["?", *WORDS])}, unk_token="?")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing("? $A ?", special_tokens=[("?", 0)])
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?", model_max_length=8)
    made.save_pretrained(place)
    return place


@pytest.fixture
def silence(capfd):
    """Nothing may be written to either stream, and the random numbers of torch may not be touched."""
    random = torch.random.get_rng_state()
    yield
    assert capfd.readouterr() == ("", "")
    assert torch.equal(random, torch.random.get_rng_state())


def test_a_folder_is_loaded_in_float32_unless_asked_otherwise(folder, tokens, silence):
    published = build("llama", dtype=torch.bfloat16)
    net = load(folder)
    assert net.provenance["dtype"] == "float32"
    assert (net.provenance["source"], net.provenance["weights"]) == (folder.name, "trained")
    for x, y in zip(states(net, tokens), states(HuggingFaceNetwork(published.float()), tokens), strict=True):
        assert_array_equal(x, y)
    assert load(str(folder), dtype="float64").provenance["dtype"].startswith("float64")
    assert load(folder, dtype="bfloat16").precision == 2.0**-7


def test_texts_are_encoded_whole_and_without_marks(folder, silence):
    net = load(folder)
    assert net.encode("the relay passes it on") == [1, 2, 3, 4, 5]
    assert len(net.encode("on and on " * 100)) == 300  # and no advice that this is too long
    with pytest.raises(ValueError, match="a text needs a tokenizer"):
        network("gpt2").encode("the relay")


def test_untrained_models_are_drawn_from_the_seed(folder, tokens, silence):
    one, same, other = (load(folder, untrained=True, seed=seed) for seed in (1, 1, 2))
    assert one.provenance["weights"] == "random, seed 1"
    assert_array_equal(states(one, tokens)[3], states(same, tokens)[3])
    assert not np.array_equal(states(one, tokens)[0], states(other, tokens)[0])
    assert not np.array_equal(states(one, tokens)[0], states(load(folder), tokens)[0])
    from_file = load(folder / "config.json", untrained=True, seed=1, context=4096)
    assert from_file.context == 4096
    assert_array_equal(states(from_file, tokens)[3], states(one, tokens)[3])
    with torch.no_grad():
        assert from_file.model.model.layers[0].mlp.up_proj.weight.std() == pytest.approx(0.02, rel=0.1)


def test_learned_positions_can_be_added_to_untrained_models(tmp_path, rng):
    config("gpt2").to_json_file(tmp_path / "small.json")
    net = load(tmp_path / "small.json", untrained=True, context=100)
    assert net.context == 100
    assert states(net, rng.integers(0, 60, (1, 100)))[3].shape == (1, 100, 32)


def test_a_model_without_tokenizer_says_so(tmp_path):
    build("gpt2").save_pretrained(tmp_path)
    net = load(tmp_path)
    assert net.tokenizer is None
    assert net.provenance["tokenizer"].startswith("none (")
    assert len(net.provenance["tokenizer"].splitlines()) == 1


def test_weights_that_are_not_there_are_not_drawn_at_random(tmp_path):
    from safetensors.torch import load_file, save_file

    build("llama").save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"and 1 are lacking, such as model.layers.1.mlp.up_proj.weight"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("model", "options", "error", "words"),
    [
        (
            "nobody/nothing",
            {},
            OSError,
            "a name on the hub that can be reached or was fetched before, got 'nobody/nothing': ",
        ),
        ("gpt2", {"untrained": True}, OSError, "model must be a folder, a GGUF file, or a name on the hub"),
        ("/nowhere/at/all", {}, FileNotFoundError, "there is none at /nowhere/at/all"),
        ("./nowhere", {}, FileNotFoundError, "there is none at nowhere"),
        ("missing.gguf", {}, FileNotFoundError, "must be a GGUF file that exists, and there is none at missing.gguf"),
        (__file__, {}, ValueError, "got the file .*; untrained takes its config"),
        ("gpt2", {"context": 5}, ValueError, "context must be left out unless untrained is set.*got 5"),
        ("gpt2", {"context": 0, "untrained": True}, ValueError, "context must be at least 1"),
        ("gpt2", {"dtype": "float8"}, ValueError, "dtype must be one of 'float32', 'float64', 'bfloat16', 'float16'"),
        ("gpt2", {"seed": -1}, ValueError, "seed must be at least 0"),
    ],
)
def test_what_cannot_be_loaded(model, options, error, words, silence):
    with pytest.raises(error, match=words) as caught:
        load(model, **options)
    assert len(str(caught.value).splitlines()) == 1


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory):
    """A Llama model as a GGUF file, by the format's own rules: rotary pairs interleaved, tokens listed."""
    model, place = build("llama", dtype=torch.float32, tie_word_embeddings=False), tmp_path_factory.mktemp("gguf")
    path, shape = place / "tiny.gguf", model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(3)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(48)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_rope_freq_base(shape.rope_parameters["rope_theta"])
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*map(chr, range(40, 40 + VOCABULARY - 1)), "AB"])
    writer.add_token_types([1] * VOCABULARY)
    writer.add_token_merges(["A B"])
    names = {"embed_tokens": "token_embd", "norm": "output_norm"}
    parts = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    parts |= {"self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up"}
    parts |= {"mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    for i in range(3):
        names |= {f"layers.{i}.{theirs}": f"blk.{i}.{ours}" for theirs, ours in parts.items()}
    for name, value in model.model.state_dict().items():
        array = value.numpy()
        heads = {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2])
        if heads:
            array = array.reshape(heads, 2, -1, 32).swapaxes(1, 2).reshape(array.shape)
        writer.add_tensor(names[name.removesuffix(".weight")] + ".weight", np.ascontiguousarray(array))
    writer.add_tensor("output.weight", model.lm_head.weight.detach().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, model


def test_a_gguf_file_is_loaded_silently(gguf_file, tokens, silence):
    path, model = gguf_file
    net = load(path)
    for x, y in zip(states(net, tokens), states(HuggingFaceNetwork(model), tokens), strict=True):
        assert_array_equal(x, y)
    assert net.generate([1], 8, seed=0, temperature=1e-9) == HuggingFaceNetwork(model).generate(
        [1], 8, seed=0, temperature=1e-9
    )
    assert (net.provenance["source"], net.provenance["dtype"]) == ("tiny.gguf", "float32")
    assert net.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert net.encode("AB5") == [59, ord("5") - 40]


def test_silence_ends_with_its_block():
    logging, bar = transformers.utils.logging, tqdm.tqdm
    was = logging.get_verbosity()
    logging.set_verbosity_info()
    logging.enable_progress_bar()
    start = bar.__init__

    def shown():
        stream = io.StringIO()
        list(bar(range(3), file=stream))
        return stream.getvalue()

    with pytest.raises(KeyError), quiet():
        assert logging.get_verbosity() == logging.ERROR
        assert not shown()
        raise KeyError
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), bar.__init__) == (logging.INFO, True, start)
    assert "3/3" in shown()
    logging.set_verbosity(was)


# ------------------------------------------------------------------ without the libraries

WITHOUT = """
import importlib, pkgutil, sys
from importlib.machinery import PathFinder

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        heavy = name.partition(".")[0] in {"torch", "transformers", "gguf", "accelerate", "tqdm"}
        return None if heavy else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Without if finder is PathFinder else finder for finder in sys.meta_path]

import numpy as np, relaymodel
for module in pkgutil.walk_packages(relaymodel.__path__, "relaymodel."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from relaymodel.networks.huggingface import HuggingFaceNetwork, load
from relaymodel.networks.protocol import Pairs, RandomTokens, measure
from relaymodel.networks.transformer import Architecture, Transformer
shape = Architecture(depth=2, width=16, heads=2, vocabulary=256, positions="none")
network = Transformer.random(shape, np.random.default_rng(0))
measure(network, Pairs("to be or not", "that is the q", RandomTokens(20), prompt=12), bias=np.log1p)
for call in (lambda: load("gpt2"), lambda: HuggingFaceNetwork(None)):
    try:
        call()
    except ImportError as error:
        print(error)
"""
NEEDED = '{} is needed to run or train models of the transformers library: pip install "relaymodel[networks]"; '


def test_everything_else_works_without_the_libraries():
    run = subprocess.run([sys.executable, "-c", WITHOUT], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(NEEDED.format("torch")) for line in lines)


@pytest.mark.parametrize("missing", ["torch", "transformers", "gguf", "accelerate"])
def test_each_missing_library_is_named(missing, gguf_file, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)  # how Python marks a module that must not be found
    with pytest.raises(ImportError, match=f"^{re.escape(NEEDED.format(missing))}"):
        load(gguf_file[0])
