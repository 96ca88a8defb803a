"""The weights of a model of transformers in the NumPy transformer, or what of its blocks section 8 does not cover."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.networks.transformer import Architecture, Block, Transformer, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from relaymodel.networks.huggingface.adapter import HuggingFaceNetwork

ACTIVATION_NAMES = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"} | {
    k: k for k in ("gelu", "silu", "relu")
}

PARALLEL = "blocks in a row, MLP behind attention, and {} adds both to the same states"
QUERY_NORMS = "queries and keys linear in the normed states, and {} normalises them without a floor of activations"
OUTER_NORMS = "attention and MLP added to the stream as they are, and {} puts norms between"
MISSING = {
    "phi": PARALLEL,
    "gptj": PARALLEL,
    "falcon": PARALLEL,
    "codegen": PARALLEL,
    "cohere": PARALLEL,
    "qwen3": QUERY_NORMS,
    "gemma2": OUTER_NORMS,
    "gemma3_text": OUTER_NORMS,
    "olmo2": OUTER_NORMS,
    "olmo3": OUTER_NORMS,
    "bloom": "logits that only queries, keys and rotations make, and {} adds a term that grows with the distance",
    "mpt": "logits that only queries, keys and rotations make, and {} adds a term that grows with the distance",
    "mamba": "attention, and {} has none",
}
"""What section 8 asks of a block (THEORY), and why families do not have it."""


def as_transformer(network: HuggingFaceNetwork) -> Transformer:
    """Return a NumPy transformer, float64, with the weights of a GPT-2, Llama, Qwen2, OPT, Gemma or OLMo model.

    The first Gemma and the first OLMo are meant; later ones have other blocks.  Hidden states agree with those of the
    model in float64 to rounding (rotary angles are computed in float64 here and in float32 by transformers).

    Raises `ValueError`, by name, for what the NumPy transformer cannot represent, and for blocks that are not those of
    THEORY section 8, with what they lack.
    """
    config = network.model.config
    kind = config.model_type
    names = ("activation_function", "hidden_activation", "hidden_act")
    activation = next((value for name in names if (value := getattr(config, name, None))), None)
    lacks = MISSING.get(kind)
    if kind == "gpt_neox":
        lacks = PARALLEL if config.use_parallel_residual else "rotary positions of whole heads, and {} turns a part"
    if lacks is not None:
        raise ValueError(f"network must have {lacks.format(kind)}")
    if kind not in BUILDERS:
        raise ValueError(f"network must be a {', '.join(BUILDERS)} model to be converted, got {kind}")
    if activation not in ACTIVATION_NAMES:
        raise ValueError(f"network must use one of the activations {', '.join(ACTIVATION_NAMES)}, got {activation}")
    if "sliding window" in network.provenance:
        raise ValueError(
            f"network must have no sliding window to be converted, got {network.provenance['sliding window']}"
        )
    state = {name: _array(value) for name, value in network.model.base_model.state_dict().items()}
    architecture, weights = BUILDERS[kind](config, ACTIVATION_NAMES[activation], state)
    head, embedding = network.model.get_output_embeddings(), network.model.get_input_embeddings()
    if head is not None and (head.weight is not embedding.weight or kind == "gemma"):  # whose embedding is scaled
        weights = replace(weights, unembedding=_array(head.weight))
    facts = {k: v for k, v in network.provenance.items() if k in ("source", "weights", "sha256", "revision")}
    return Transformer(architecture, weights, facts | {"converted from": network.provenance["network"]})


def _gpt2(config: Any, activation: str, state: dict[str, NDArray[np.float64]]) -> tuple[Architecture, Weights]:
    _demand(config, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    d = config.n_embd
    architecture = Architecture(
        depth=config.n_layer,
        width=d,
        heads=config.n_head,
        vocabulary=config.vocab_size,
        context=config.n_positions,
        mlp_width=config.n_inner or 4 * d,
        activation=activation,
        epsilon=config.layer_norm_epsilon,
    )
    blocks = []
    for part in _parts(state, "h", config.n_layer):
        joint = (part.pop(f"attn.c_attn.{kind}") for kind in ("weight", "bias"))
        for kind, array in zip(("weight", "bias"), joint, strict=True):
            part |= {f"{name}.{kind}": each for name, each in zip(QUERIES, np.split(array, 3, axis=-1), strict=True)}
        blocks.append(_block(part, {name: name for name in QUERIES} | GPT2_MODULES, "ln_1", "ln_2"))
    return architecture, Weights(
        state["wte.weight"], tuple(blocks), state["ln_f.weight"], state["ln_f.bias"], state["wpe.weight"]
    )


def _opt(config: Any, activation: str, state: dict[str, NDArray[np.float64]]) -> tuple[Architecture, Weights]:
    _demand(config, do_layer_norm_before=True, layer_norm_elementwise_affine=True, _remove_final_layer_norm=False)
    if config.word_embed_proj_dim != config.hidden_size:
        raise ValueError(
            f"network must have embeddings of its width {config.hidden_size} to be converted, got projections from "
            f"{config.word_embed_proj_dim}"
        )
    state = {name.removeprefix("decoder."): value for name, value in state.items()}
    positions = state["embed_positions.weight"][2:]  # two rows that no token gets
    architecture = Architecture(
        depth=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        vocabulary=config.vocab_size,
        context=len(positions),
        mlp_width=config.ffn_dim,
        activation=activation,
    )
    parts = [_outputs_last(part) for part in _parts(state, "layers", config.num_hidden_layers)]
    blocks = [_block(part, OPT_MODULES, "self_attn_layer_norm", "final_layer_norm") for part in parts]
    final = state["final_layer_norm.weight"], state["final_layer_norm.bias"]
    return architecture, Weights(state["embed_tokens.weight"], tuple(blocks), *final, positions)


def _llama(config: Any, activation: str, state: dict[str, NDArray[np.float64]]) -> tuple[Architecture, Weights]:
    rope = config.rope_parameters
    if rope.get("rope_type", "default") != "default" or rope.get("partial_rotary_factor", 1.0) != 1:
        raise ValueError(f"network must have plain rotary positions to be converted, got {rope}")
    gemma, olmo = config.model_type == "gemma", config.model_type == "olmo"
    if olmo and config.clip_qkv is not None:
        raise ValueError(f"network must not clip queries, keys and values to be converted, got {config.clip_qkv}")
    architecture = Architecture(
        depth=config.num_hidden_layers,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        vocabulary=config.vocab_size,
        context=config.max_position_embeddings,
        key_heads=config.num_key_value_heads,
        head_width=getattr(config, "head_dim", None),
        mlp_width=config.intermediate_size,
        activation=activation,
        gated=True,
        norm="layer" if olmo else "rms",
        positions="rotary",
        rotary_base=rope["rope_theta"],
        epsilon=1e-5 if olmo else config.rms_norm_eps,
    )
    norms = ("input_layernorm", "post_attention_layernorm")
    parts = [_outputs_last(part) for part in _parts(state, "layers", config.num_hidden_layers)]
    for part in (*parts, state):
        for norm in (*norms, "norm"):
            name = f"{norm}.weight"
            if olmo:  # whose norms have no gain
                part[name] = np.ones(config.hidden_size)
            elif gemma and name in part:  # whose gains are stored less 1
                part[name] = part[name] + 1
    blocks = tuple(_block(part, LLAMA_MODULES, *norms) for part in parts)
    embedding = state["embed_tokens.weight"] * (config.hidden_size**0.5 if gemma else 1)
    return architecture, Weights(embedding, blocks, state["norm.weight"])


def _outputs_last(state: dict[str, Any]) -> dict[str, Any]:
    """Return arrays with matrices turned: transformers keeps most with their outputs first."""
    return {name: np.ascontiguousarray(array.T) for name, array in state.items()}


def _parts(state: dict[str, Any], holder: str, count: int) -> list[dict[str, Any]]:
    """Return the arrays of every block, by their names in it."""
    starts = [f"{holder}.{i}." for i in range(count)]
    return [{name.removeprefix(s): array for name, array in state.items() if name.startswith(s)} for s in starts]


def _block(part: dict[str, Any], modules: dict[str, str], attention_norm: str, mlp_norm: str) -> Block:
    found = {name: part[f"{module}.weight"] for name, module in modules.items()}
    found |= {f"{name}_bias": part.get(f"{module}.bias") for name, module in modules.items()}
    for name, module in (("attention", attention_norm), ("mlp", mlp_norm)):
        found |= {f"{name}_gain": part[f"{module}.weight"], f"{name}_shift": part.get(f"{module}.bias")}
    return Block(**found)


QUERIES = ("query", "key", "value")
GPT2_MODULES = {"output": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}
LLAMA_MODULES = {name: f"self_attn.{name[0]}_proj" for name in (*QUERIES, "output")} | {
    name: f"mlp.{name}_proj" for name in ("up", "gate", "down")
}
OPT_MODULES = {name: f"self_attn.{name[0]}_proj" for name in QUERIES} | {
    "output": "self_attn.out_proj",
    "up": "fc1",
    "down": "fc2",
}
BUILDERS = {"gpt2": _gpt2, "llama": _llama, "qwen2": _llama, "opt": _opt, "gemma": _llama, "olmo": _llama}


def _demand(config: Any, **settings: bool) -> None:
    for name, wanted in settings.items():
        if getattr(config, name, wanted) is not wanted:
            raise ValueError(f"network must have {name} = {wanted} to be converted, got {getattr(config, name)}")


def _array(tensor: Any) -> NDArray[np.float64]:
    return np.asarray(tensor.detach().cpu().double().numpy())
