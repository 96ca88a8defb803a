"""The adapter: a causal model of transformers that shows its residual stream block by block."""

from __future__ import annotations

from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.checks import numbers, positive_integer, real, show
from relaymodel.networks.huggingface.libraries import heavy, quiet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike


class HuggingFaceNetwork:
    """A causal language model of the transformers library as a `Network`; `load` makes one from a name or a file.

    Hooks on the model's blocks show the residual stream as it is computed; nothing is kept.  With a bias, the causal
    mask is handed over as an additive one that carries it.

    Parameters
    ----------
    model
        A transformers model with a language-modelling head, in evaluation mode from now on.
    tokenizer
        Its tokenizer; None: only token ids can be measured.
    provenance
        Facts about it.

    Raises
    ------
    ImportError
        If torch or transformers is missing.
    ValueError
        If its blocks cannot be found.

    Examples
    --------
    >>> from transformers import AutoModelForCausalLM, GPT2Config  # doctest: +SKIP
    >>> model = AutoModelForCausalLM.from_config(GPT2Config(n_layer=2))  # doctest: +SKIP
    >>> HuggingFaceNetwork(model).depth  # doctest: +SKIP
    2
    """

    def __init__(self, model: Any, tokenizer: Any = None, provenance: Mapping[str, str] | None = None) -> None:
        torch = heavy("torch")
        if not isinstance(model, heavy("transformers").PreTrainedModel):
            raise TypeError(f"model must be a transformers PreTrainedModel, got {type(model).__name__}")
        self.model, self.tokenizer = model.eval(), tokenizer
        self._text = model.config.get_text_config()
        self._blocks = _blocks(model, self._text.num_hidden_layers)
        dtype = self._blocks[0].parameters().__next__().dtype
        self._precision = float(torch.finfo(dtype).eps)
        text = self._text
        facts = {
            "network": f"{type(model).__name__} (depth {self.depth}, width {text.hidden_size})",
            "dtype": str(dtype).removeprefix("torch."),
            "torch": torch.__version__,
            "transformers": heavy("transformers").__version__,
        }
        if self.window is not None:
            facts["sliding window"] = f"{self.window} keys in every layer"
        elif self._windows():
            facts["sliding window"] = f"in {len(self._windows())} of {self.depth} layers"
        facts |= {str(key): str(value) for key, value in (provenance or {}).items()}
        self._provenance = MappingProxyType(facts)

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return len(self._blocks)

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return int(self._text.vocab_size)

    @property
    def context(self) -> int | None:
        """The longest text that the model has positions for, or was made for; None if it does not say."""
        limit = getattr(self._text, "max_position_embeddings", None)
        return None if limit is None else int(limit)

    @property
    def window(self) -> int | None:
        """How many keys a query sees, if all layers have a sliding window; otherwise None."""
        windows = self._windows()
        return max(windows) if len(windows) == self.depth else None

    @property
    def precision(self) -> float:
        """Spacing at 1 of the numbers that the states are computed in."""
        return self._precision

    @property
    def provenance(self) -> Mapping[str, str]:
        """Name, weights, number format, versions."""
        return self._provenance

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        if self.tokenizer is None:
            raise ValueError("a text needs a tokenizer, and this model has come without; pass token ids")
        with quiet():  # texts longer than the context are cut by whoever asks
            return [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False)]

    def generate(self, prompt: Sequence[int], count: int, *, seed: int, temperature: float = 1.0) -> list[int]:
        """Return `count` tokens sampled from the model's softmax; an end-of-text token does not end it."""
        torch = heavy("torch")
        new = self._ids([list(prompt)])
        count, warmth = positive_integer("count", count), float(real("temperature", temperature))
        if warmth <= 0:
            raise ValueError(f"temperature must be positive, got {show(temperature)}")
        if self.context is not None and new.shape[1] + count > self.context:
            raise ValueError(f"prompt and count must fit in context = {self.context}, got {new.shape[1] + count}")
        generator = torch.Generator().manual_seed(positive_integer("seed", seed, least=0))
        written: list[int] = []
        past = None
        with torch.inference_mode():
            for _ in range(count):
                output = self.model(input_ids=new, past_key_values=past, use_cache=True)
                past = output.past_key_values
                chances = torch.softmax(output.logits[0, -1].double().cpu() / warmth, dim=-1)
                written.append(int(torch.multinomial(chances, 1, generator=generator)))
                new = torch.tensor([written[-1:]], device=self.model.device)
        return written

    def observe(
        self,
        tokens: ArrayLike,
        visit: Callable[[int, Any], object],
        *,
        bias: ArrayLike | None = None,
        final_norm: bool = False,
    ) -> None:
        """Run on tokens, (B, n), and call visit(layer, states) as in `Network.observe`; states are NumPy arrays."""
        torch = heavy("torch")
        ids = self._ids(tokens)
        extra: dict[str, Any] = {} if bias is None else {"attention_mask": self._mask(bias, ids.shape[1])}

        def show_states(layer: int, states: Any) -> None:
            states = states[0] if isinstance(states, tuple) else states
            if states.dtype not in (torch.float32, torch.float64):
                states = states.float()  # without loss; NumPy knows no bfloat16
            visit(layer, states.detach().cpu().numpy())

        with ExitStack() as hooks, torch.inference_mode():
            first = self._blocks[0].register_forward_pre_hook(
                lambda _, args, kwargs: show_states(0, args[0] if args else kwargs["hidden_states"]), with_kwargs=True
            )
            hooks.callback(first.remove)
            for layer, block in enumerate(self._blocks, start=1):

                def after(_: Any, __: Any, states: Any, layer: int = layer) -> None:
                    show_states(layer, states)

                hooks.callback(block.register_forward_hook(after).remove)
            # the body without the head: logits are large, and not wanted
            output = self.model.base_model(input_ids=ids, use_cache=False, **extra)
        if final_norm:
            show_states(self.depth + 1, output.last_hidden_state)

    def _ids(self, tokens: ArrayLike) -> Any:
        array = numbers("tokens", tokens)
        if array.dtype.kind not in "iu" or array.ndim != 2 or not array.size:
            raise ValueError(f"tokens must be integers of shape (B, n), got dtype {array.dtype}, shape {array.shape}")
        if array.min() < 0 or array.max() >= self.vocabulary:
            bad = array.min() if array.min() < 0 else array.max()
            raise ValueError(f"tokens must be from 0 to {self.vocabulary - 1}, got {bad}")
        return heavy("torch").tensor(array.astype(np.int64), device=self.model.device)

    def _mask(self, bias: ArrayLike, n: int) -> Any:
        """Return the causal mask with the bias added, (1, 1, n, n), as an additive mask."""
        torch = heavy("torch")
        if self._windows():
            raise ValueError("bias must be left out for a model with sliding windows: an additive mask would undo them")
        added = np.asarray(bias, dtype=np.float64)
        if added.ndim != 2 or added.shape[0] != n or added.shape[1] > n:
            raise ValueError(f"bias must have shape (n, k) with n = {n} and k <= n, got {added.shape}")
        dtype = next(self._blocks[0].parameters()).dtype
        mask = torch.zeros((n, n), dtype=dtype)
        mask[:, : added.shape[1]] = torch.tensor(np.ascontiguousarray(added)).to(dtype)
        mask.masked_fill_(torch.ones((n, n), dtype=torch.bool).triu(1), torch.finfo(dtype).min)
        return mask[None, None].to(self.model.device)

    def _windows(self) -> list[int]:
        """Return the window of every layer that has one."""
        text = self._text
        kinds = getattr(text, "layer_types", None) or getattr(text, "attention_layers", None)
        size = getattr(text, "sliding_window", None) or getattr(text, "window_size", None)
        if size is None or getattr(text, "use_sliding_window", True) is False:
            return []
        if kinds is None:
            return [int(size)] * self.depth
        return [int(size) for kind in kinds if kind in ("sliding_attention", "local")]


def _blocks(model: Any, depth: int) -> Any:
    """Return the list of the model's blocks: the one list of modules with as many entries as there are layers."""
    torch = heavy("torch")
    found = [m for m in model.base_model.children() if isinstance(m, torch.nn.ModuleList) and len(m) == depth]
    if not found:  # some families wrap the decoder once more
        found = [m for m in model.base_model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == depth]
    if len(found) != 1:
        raise ValueError(
            f"model must have one list of {depth} blocks, found {len(found)} in {type(model).__name__}; "
            "only decoders of the usual build can be measured"
        )
    return found[0]
