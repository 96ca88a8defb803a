"""Tiny random models of many families."""

import os

import pytest

from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.huggingface.libraries import quiet

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before the libraries: names cannot be looked up, wherever this runs
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers, tqdm = pytest.importorskip("tokenizers"), pytest.importorskip("tqdm.auto")
gguf = pytest.importorskip("gguf")
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
    "gemma": ("Gemma", LLAMA | {"head_dim": 8, "hidden_act": "gelu_pytorch_tanh"}),
    "olmo": ("Olmo", LLAMA),
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


NEEDED = '{} is needed to run or train models of the transformers library: pip install ".[networks]" in the checkout; '
