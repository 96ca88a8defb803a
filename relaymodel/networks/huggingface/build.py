"""How a model of transformers is built: where its blocks are, and which of them have a sliding window."""

from __future__ import annotations

from typing import Any

from relaymodel.networks.huggingface.libraries import heavy


def find_blocks(model: Any, depth: int) -> Any:
    """Return the list of the model's blocks: the one list of modules with as many entries as there are layers.

    Raises `ValueError` if there is none, or several.
    """
    lists = heavy("torch").nn.ModuleList
    decoder = model.get_decoder()
    found: list[Any] = []
    # most decoders hold the list themselves; some are wrapped once more; some models take their head for the decoder
    for place in (decoder.children(), decoder.modules(), model.modules()):
        found = found or [module for module in place if isinstance(module, lists) and len(module) == depth]
    if len(found) != 1:
        raise ValueError(
            f"model must have one list of {depth} blocks, found {len(found)} in {type(model).__name__}; "
            "only decoders of the usual build can be measured"
        )
    return found[0]


def smallest_model(model: Any, blocks: Any) -> Any:
    """Return the smallest model of the library inside a model that runs its blocks: the body without the head."""
    kind = heavy("transformers").PreTrainedModel
    around = [m for m in model.modules() if isinstance(m, kind) and any(part is blocks for part in m.modules())]
    return min(around, key=lambda m: sum(1 for _ in m.modules()))


def windows(config: Any, depth: int) -> list[int]:
    """Return the window of every layer that has one, as the configuration says."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    size = getattr(config, "sliding_window", None) or getattr(config, "window_size", None)
    if size is None or getattr(config, "use_sliding_window", True) is False:
        return []
    if kinds is None:
        return [int(size)] * depth
    return [int(size) for kind in kinds if kind in ("sliding_attention", "local")]
