"""Loading: folders, names, GGUF files, configurations, and what cannot be loaded."""

import hashlib
import json
import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from relaymodel.networks.huggingface import HuggingFaceNetwork, load
from tests.networks.huggingface.models import NEEDED, VOCABULARY, build, config, network, states

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
gguf = pytest.importorskip("gguf")

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
        ("gpt2", {"device": "abacus"}, ValueError, "device must be one that torch has here, got 'abacus': "),
        ("gpt2", {"device": 1.5}, ValueError, "device must be one that torch has here, got 1.5: "),
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


@pytest.mark.parametrize("missing", ["torch", "transformers", "gguf", "accelerate"])
def test_each_missing_library_is_named(missing, gguf_file, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)  # how Python marks a module that must not be found
    with pytest.raises(ImportError, match=f"^{re.escape(NEEDED.format(missing))}"):
        load(gguf_file[0])


@pytest.mark.parametrize("what", ["configuration", "folder"])
def test_what_is_here_is_not_looked_up_elsewhere(what, tmp_path, monkeypatch):
    """Every part of a model that the library reads is asked for with its own word for: not from the hub."""
    config("gpt2").save_pretrained(tmp_path)
    if what == "folder":
        build("gpt2", dtype=torch.float32).save_pretrained(tmp_path)
    asked = []

    def watched(kind):
        read = getattr(transformers, kind).from_pretrained

        def watch(*arguments, **more):
            asked.append((kind, more["local_files_only"], more["trust_remote_code"]))
            return read(*arguments, **more)

        monkeypatch.setattr(getattr(transformers, kind), "from_pretrained", watch)

    for kind in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"):
        watched(kind)
    net = load(tmp_path / "config.json" if what == "configuration" else tmp_path, untrained=what == "configuration")
    assert net.provenance["tokenizer"].startswith("none")
    assert {kind for kind, *_ in asked} >= {"AutoTokenizer"}
    assert all(local and not trusted for _, local, trusted in asked)


@pytest.mark.parametrize("untrained", [False, True])
def test_code_that_comes_with_a_model_is_neither_run_nor_offered(untrained, tmp_path, monkeypatch, silence):
    settings = {"model_type": "foreign", "auto_map": {"AutoConfig": "configuration_foreign.Foreign"}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    (tmp_path / "configuration_foreign.py").write_text("raise SystemExit('it ran')")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a question was asked"))
    with pytest.raises(ValueError, match=r"must be of a family .* brings code of its own") as told:
        load(tmp_path, untrained=untrained)
    assert "trust_remote_code" not in str(told.value)


@pytest.mark.parametrize(("seed", "message"), [(2**63, "seed must be below 2\\^63"), (-1, "seed must be at least 0")])
def test_seeds_that_torch_does_not_take(seed, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(tmp_path, untrained=True, seed=seed)
    with pytest.raises(ValueError, match=message):
        network("gpt2").generate([1, 2], 3, seed=seed)
