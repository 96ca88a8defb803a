"""The adapter: states, windows, generation, and models that are no stack of causal blocks."""

import re
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.huggingface.libraries import quiet
from relaymodel.networks.protocol import Network, measure
from tests.networks.huggingface.models import (
    COMMON,
    FAMILIES,
    FINAL_NORMS,
    LLAMA,
    LONG,
    VOCABULARY,
    WINDOWS,
    build,
    network,
    states,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


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
        told = f"{30 - 3 * layer} tokens, .*: a sliding window of 4 keys reaches back at most {3 * layer} tokens"
        assert re.match(told, measured.curve(layer).provenance["left out"])


SIDES = {"decoder_layers": 3, "encoder_layers": 2, "decoder_attention_heads": 4, "encoder_attention_heads": 4}
SIDES |= {"vocab_size": VOCABULARY, "d_model": 32, "decoder_ffn_dim": 48, "encoder_ffn_dim": 48}
ELSEWHERE = {
    "llama4": ("Llama4Text", LLAMA | {"intermediate_size_mlp": 48, "head_dim": 8, "num_local_experts": 2}),
    "opt, projected": ("OPT", COMMON | LONG | {"ffn_dim": 48, "word_embed_proj_dim": 16}),
    "bart": ("Bart", SIDES | LONG),
    "mbart": ("MBart", SIDES | LONG),
    "whisper": ("Whisper", SIDES | {f"{kind}_token_id": i for i, kind in enumerate(("pad", "bos", "eos"))}),
    "modernbert": (
        "ModernBertDecoder",
        COMMON | LONG | {"intermediate_size": 48} | {f"{k}_token_id": 0 for k in ("pad", "bos", "eos", "cls", "sep")},
    ),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_bodies_and_blocks_are_found_wherever_they_are(name, tokens):
    """A model that is its own decoder, or whose decoder is its head; fewer blocks in the encoder; a projection."""
    kind, settings = ELSEWHERE[name]
    with quiet():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, f"{kind}Config")(**settings))
    net = HuggingFaceNetwork(model)
    assert net.depth == 3
    shown = states(net, tokens, final_norm=True)
    assert [x.shape for x in shown] == [(2, 20, 32)] * 5
    with torch.no_grad():
        theirs = model(torch.tensor(tokens), output_hidden_states=True, use_cache=False).hidden_states
    for mine, other in zip(shown[:3], theirs[:3], strict=True):
        assert_array_equal(mine, other)
    norm = {"opt, projected": "final_layer_norm", "modernbert": "final_norm", "llama4": "norm"}.get(name)
    if norm is None:  # whose last state the library returns as it is, behind the norm if there is one
        assert_array_equal(shown[4], theirs[3])
    else:
        with torch.no_grad():
            assert_array_equal(shown[4], getattr(net._body, norm)(torch.tensor(shown[3])))


@pytest.mark.parametrize("window", [4, 63, 64])
def test_a_window_that_a_model_does_not_use_is_not_claimed(window, rng):
    sizes = COMMON | LONG | {"ffn_dim": 48, "sliding_window": window, "audio_vocab_size": 10, "num_codebooks": 2}
    with quiet():
        torch.manual_seed(0)
        made = transformers.AutoModelForCausalLM.from_config(transformers.MoshiConfig(**sizes))
    net = HuggingFaceNetwork(made)
    if window < 64:  # beyond, no text is long enough to tell
        assert net.window is None
        assert "sliding window" not in net.provenance
    a, b, after = rng.integers(0, 30, 6), rng.integers(30, 60, 6), rng.integers(0, 60, 30)
    assert np.all(measure(net, (a, b, after)).distance(1) > 0)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_window_that_is_used_is_seen_in_the_mask_or_the_states(attention, monkeypatch):
    assert network("mistral", attention=attention).window == 4
    monkeypatch.setattr("relaymodel.networks.huggingface.adapter._hides_first_key", lambda mask: False)
    assert network("mistral", attention=attention).window == 4


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
        ([1], 64, {}, ValueError, "prompt and count must fit in context = 64 positions, got 65"),
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
