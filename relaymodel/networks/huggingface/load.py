"""Loading a model: from a folder, a hub name, a GGUF file, or a configuration with random weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaymodel.checks import choice, positive_integer, show
from relaymodel.networks.huggingface.adapter import HuggingFaceNetwork
from relaymodel.networks.huggingface.libraries import first_line, heavy, quiet, torch_seed, within_memory

if TYPE_CHECKING:
    import os

DTYPES = ("float32", "float64", "bfloat16", "float16")


def load(
    model: str | os.PathLike[str],
    *,
    untrained: bool = False,
    seed: int = 0,
    context: int | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    chunk: int | None = None,
) -> HuggingFaceNetwork:
    """Load a causal model of the transformers library.

    Parameters
    ----------
    model
        A folder in the library's format, a GGUF file (needs the package gguf), a name on its hub, or, for an untrained
        model, also a configuration file (JSON).
    untrained
        Keep the architecture and draw the weights at random, as the library initialises them.
    seed
        Of the random weights.
    context
        Number of positions of an untrained model; None: as configured.
    dtype
        "float32", "float64", or, at the price of a wrong exponent, "bfloat16" or "float16" (see `measure`).
    device
        Where to run, such as "cpu" or "cuda"; states stay there, distances are reduced there.
    chunk
        Tokens that are run at once, for long texts (see `HuggingFaceNetwork`); None: a text in one pass.

    Raises
    ------
    ImportError
        If torch, transformers or gguf is missing.
    OSError
        If there is no such model, or no connection to the hub and no copy of it here.
    ValueError
        For unusable arguments; for a model whose files lack weights.

    Examples
    --------
    >>> network = load("gpt2", untrained=True, context=4096)  # doctest: +SKIP
    """
    torch, transformers = heavy("torch"), heavy("transformers")
    choice("dtype", dtype, DTYPES)
    seed = torch_seed(seed)
    try:
        torch.empty(1, device=device).to(getattr(torch, dtype))
    except (AssertionError, RuntimeError, TypeError) as error:  # torch without CUDA asserts
        raise ValueError(f"device must be one that torch has here, got {show(device)}: {first_line(error)}") from None
    if context is not None:
        context = positive_integer("context", context)
    if context is not None and not untrained:
        raise ValueError(
            f"context must be left out unless untrained is set: a trained model has its own, got {context}"
        )
    path = Path(model)
    # code that comes with a model is not run, and what is here is not asked for elsewhere
    safe = {"trust_remote_code": False, "local_files_only": path.exists()}
    where: dict[str, Any] = {"pretrained_model_name_or_path": str(model), **safe}
    facts = {"source": str(model) if not path.exists() else path.name}
    if path.suffix == ".gguf":
        if not path.is_file():
            raise FileNotFoundError(f"model must be a GGUF file that exists, and there is none at {path}")
        heavy("gguf"), heavy("accelerate")
        where |= {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        with path.open("rb") as stream:
            facts["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
    elif path.is_file() and not untrained:
        raise ValueError(
            f"model must be a folder, a GGUF file or a name, got the file {path}; untrained takes its config"
        )
    elif not path.exists() and (path.is_absolute() or str(model).startswith(".")):
        raise FileNotFoundError(f"model must be a folder or a file that exists, and there is none at {path}")
    with quiet(), within_memory("model"), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            if untrained:
                config = transformers.AutoConfig.from_pretrained(**where)
                if context is not None:
                    config.get_text_config(decoder=True).max_position_embeddings = context
                built = transformers.AutoModelForCausalLM.from_config(
                    config, dtype=getattr(torch, dtype), trust_remote_code=False
                )
                facts["weights"] = f"random, seed {seed}"
            else:
                built, report = transformers.AutoModelForCausalLM.from_pretrained(
                    **where, dtype=getattr(torch, dtype), output_loading_info=True
                )
                lacking = sorted(report["missing_keys"])
                if lacking:
                    raise ValueError(
                        f"model must come with all its weights, and {len(lacking)} are lacking, such as {lacking[0]}"
                    )
                facts["weights"] = "trained"
        except ValueError as error:
            if "trust_remote_code" not in str(error):
                raise
            raise ValueError(
                f"model must be of a family that transformers knows, and {show(str(model))} brings code of its own, "
                "which is not run; name another model"
            ) from None
        except OSError as error:
            raise OSError(
                "model must be a folder, a GGUF file, or a name on the hub that can be reached or was fetched before, "
                f"got {show(str(model))}: {first_line(error)}"
            ) from error
        revision = getattr(built.config, "_commit_hash", None)
        if revision:
            facts["revision"] = str(revision)
        if path.is_file() and path.suffix != ".gguf":
            where["pretrained_model_name_or_path"] = str(path.parent)  # of the configuration file
        tokenizer, problem = _tokenizer(where)
        if problem is not None:
            facts["tokenizer"] = f"none ({problem})"
        network = HuggingFaceNetwork(built.to(device), tokenizer, facts, chunk=chunk)
    if context is not None and network.context != context:
        raise ValueError(
            f"context must be left out for {built.config.model_type}, whose positions cannot be set, got {context}"
        )
    return network


def _tokenizer(where: dict[str, Any]) -> tuple[Any, str | None]:
    """Return the model's tokenizer, or None and why there is none."""
    try:
        tokenizer = heavy("transformers").AutoTokenizer.from_pretrained(**where)
        empty = not tokenizer.encode("a", add_special_tokens=False)
    except Exception as error:  # a network can be measured without; what is raised differs by family, up to bare ones
        return None, first_line(error)
    return (None, "it knows no tokens") if empty else (tokenizer, None)
