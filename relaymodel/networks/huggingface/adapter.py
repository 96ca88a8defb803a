"""The adapter: a causal model of transformers that shows its residual stream block by block."""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from immutabledict import immutabledict

from relaymodel.checks import as_text, positive_integer, sampling, token_ids
from relaymodel.networks.huggingface.attention import row_watch
from relaymodel.networks.huggingface.bias import NAME, bias_hook
from relaymodel.networks.huggingface.build import find_blocks, smallest_model, windows
from relaymodel.networks.huggingface.libraries import Enough, heavy, torch_seed, within_memory
from relaymodel.networks.huggingface.precision import coarsest
from relaymodel.networks.huggingface.response import derivatives
from relaymodel.networks.huggingface.shares import share_rule
from relaymodel.networks.protocol.network import as_array
from relaymodel.networks.protocol.rounding import SINGLE
from relaymodel.networks.transformer.architecture import LOGITS_AT_ONCE
from relaymodel.simulation.share import PromptShares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from relaymodel.networks.protocol.network import Rows

CACHES = ("cache", "past_key_values")
"""What versions of the library call the keys and values of a text's beginning; models with neither begin anew."""

TRIAL = ((0, 1, 0), (0, 1, 1))
"""Two texts, the same up to the last token."""

BATCH_ROUNDING = 30  # times the precision: by what rounding may tell apart what stands elsewhere in a batch
HIDDEN = -1e4  # what a mask adds to the logits of keys that are not seen, or less


class HuggingFaceNetwork:
    """A causal language model of the transformers library as a `Network`; `load` makes one from a name or a file.

    Hooks on the model's blocks show the residual stream as it is computed; nothing is kept, and the hooks go when the
    run ends.  A bias is added to the mask that each block receives; `measure` tests that the model obeys it.

    Parameters
    ----------
    model
        A transformers model with a language-modelling head, in evaluation mode from now on.
    tokenizer
        Its tokenizer; None: only token ids can be measured.
    provenance
        Facts about it.
    chunk
        Tokens that are run at once; keys and values of those before are kept, so that memory grows linearly with the
        text, and states agree with those of one pass within rounding.  None: a text in one pass.

    Raises
    ------
    ImportError
        If torch or transformers is missing.
    TypeError
        If the model is none of the library's.
    ValueError
        If its blocks cannot be found, or their states are no residual stream, (batch, tokens, width), of a causal
        model; three tokens are run to see.

    Examples
    --------
    >>> from transformers import AutoModelForCausalLM, GPT2Config  # doctest: +SKIP
    >>> model = AutoModelForCausalLM.from_config(GPT2Config(n_layer=2))  # doctest: +SKIP
    >>> HuggingFaceNetwork(model).depth  # doctest: +SKIP
    2
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        provenance: Mapping[str, str] | None = None,
        *,
        chunk: int | None = None,
    ) -> None:
        torch = heavy("torch")
        self.chunk: int | None = None
        if not isinstance(model, heavy("transformers").PreTrainedModel):
            raise TypeError(f"model must be a transformers PreTrainedModel, got {type(model).__name__}")
        self.model, self.tokenizer = model.eval(), tokenizer
        self._text = text = model.config.get_text_config(decoder=True)
        if model.config.is_encoder_decoder:
            raise ValueError(f"model must be a decoder without encoder, got {type(model).__name__}")
        # where there is an encoder as well, num_hidden_layers counts its blocks
        self._blocks = find_blocks(model, getattr(text, "decoder_layers", None) or text.num_hidden_layers)
        self._body = smallest_model(model, self._blocks)
        shown: list[tuple[int, Any]] = []

        def keep(layer: int, states: Any) -> None:
            shown.append((layer, as_array(states)))

        parameters = list(self._blocks.parameters())
        narrow = coarsest(parameters, len(TRIAL), lambda: self.observe(TRIAL, keep))
        self._spacing = float(torch.finfo(narrow).eps)
        self._check(shown)
        self._head_obeys: bool | None = None  # not tried yet
        self._windows = windows(text, self.depth)
        if len(self._windows) == self.depth and not self._obeys(max(self._windows)):
            self._windows = []
        formats = dict.fromkeys(str(kind).removeprefix("torch.") for kind in (parameters[0].dtype, narrow))
        facts = {
            "network": f"{type(model).__name__} (depth {self.depth}, width {text.hidden_size})",
            "dtype": ", in parts ".join(formats),
            "torch": torch.__version__,
            "transformers": heavy("transformers").__version__,
        }
        if self.window is not None:
            facts["sliding window"] = f"{self.window} keys in every layer"
        elif self._windows:
            facts["sliding window"] = f"in {len(self._windows)} of {self.depth} layers"
        known = inspect.signature(self._body.forward).parameters
        self._cache = next((name for name in CACHES if name in known), "")
        if chunk is not None:
            self._check_pieces(shown, positive_integer("chunk", chunk))
            facts["pieces"] = f"of {chunk} tokens"
        facts |= as_text(provenance)
        self._provenance = immutabledict(facts)

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
        limits = [
            getattr(self._text, name, None)
            for name in ("max_position_embeddings", "max_seq_len", "max_target_positions")
        ]
        return min((int(limit) for limit in limits if limit), default=None)

    @property
    def window(self) -> int | None:
        """How many keys a query sees, if all layers have a sliding window; otherwise None."""
        return max(self._windows) if len(self._windows) == self.depth else None

    @property
    def precision(self) -> float:
        """Spacing at 1 of the coarsest numbers in use: of weights, of states on their way, or of torch's products."""
        products = {"high": 2.0**-10, "medium": 2.0**-7}.get(heavy("torch").get_float32_matmul_precision(), 0.0)
        return max(self._spacing, products) if self._spacing == SINGLE else self._spacing

    @property
    def provenance(self) -> Mapping[str, str]:
        """Name, weights, number format, versions."""
        return self._provenance

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        if self.tokenizer is None:
            reason = self.provenance.get("tokenizer", "none")
            raise ValueError(f"a text needs a tokenizer, and this model has {reason}; pass token ids")
        # not verbose: no advice about texts longer than the context, which `measure` refuses itself
        return [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False, verbose=False)]

    def generate(self, prompt: Sequence[int], count: int, *, seed: int, temperature: float = 1.0) -> list[int]:
        """Return `count` tokens sampled from the model's softmax; an end-of-text token does not end it."""
        torch = heavy("torch")
        text = self._ids([list(prompt)])
        count, warmth = sampling(self.context, text.shape[1], count, temperature)
        generator = torch.Generator().manual_seed(torch_seed(seed))
        known = inspect.signature(self.model.forward).parameters
        cache = next((name for name in CACHES if name in known), None)
        written: list[int] = []
        new = text
        extra: dict[str, Any] = {"use_cache": True} if cache else {}
        with self._undisturbed():
            for _ in range(count):
                output = self.model(input_ids=new, **extra)
                logits = output.logits[0, -1].double().cpu()
                chances = torch.softmax((logits - logits.max()) / warmth, dim=-1)
                written.append(int(torch.multinomial(chances, 1, generator=generator)))
                new = torch.tensor([written[-1:]], device=self.model.device)
                text = torch.cat((text, new), dim=1)
                past = getattr(output, cache) if cache else None
                if cache and past is not None:
                    extra[cache] = past
                else:  # all over again
                    new = text
        return written

    def observe(
        self,
        tokens: ArrayLike,
        visit: Callable[[int, Any], object],
        *,
        bias: ArrayLike | PromptShares | None = None,
        final_norm: bool = False,
        attention: Rows | None = None,
        logits: Rows | None = None,
    ) -> None:
        """Run on tokens, (B, n), and call visit(layer, states) as in `Network.observe`.

        On a processor the states are NumPy arrays on the model's own memory, read-only: copy what is to be kept.  On
        another device they are tensors of torch, which stay there.
        """
        ids = self._ids(tokens)
        n = ids.shape[1]
        step = n if self.chunk is None else min(self.chunk, n)
        rule = share_rule(bias, n) if isinstance(bias, PromptShares) else None
        if step < n:
            self._demand_whole("a rule of shares", rule is not None)
            self._demand_whole("attention", attention is not None)
            self._demand_whole("a bias beside sliding windows", bias is not None and bool(self._windows))
        if rule is not None and attention is not None:
            raise ValueError("attention must be left out under a rule of shares, which changes what is read")
        watch = None if attention is None else row_watch(attention[0], n, attention[1])
        past: dict[str, Any] = {"use_cache": step < n}
        for start in range(0, n, step):
            stop = min(start + step, n)
            add = None if bias is None or isinstance(bias, PromptShares) else bias_hook(bias, n, start, stop)
            output = self._pass(ids[:, start:stop], visit, past, add, rule, watch, final_norm=final_norm)
            if logits is not None:
                here = (logits[0] >= start) & (logits[0] < stop)
                self._show_logits(output, logits[0][here], start, logits[1])
            if stop < n:
                past[self._cache] = getattr(output, self._cache)

    def _pass(
        self,
        ids: Any,
        visit: Callable[[int, Any], object],
        past: Any,
        add: Any,
        rule: Any,
        watch: Any,
        final_norm: bool,
    ) -> Any:
        """Run the body once on the next tokens of a text, show the states, and return its output."""
        torch = heavy("torch")

        def show_states(layer: int, states: Any) -> None:
            while isinstance(states, (tuple, list)):
                states = states[0]
            if states.dtype not in (torch.float32, torch.float64):
                states = states.float()  # without loss; NumPy knows no bfloat16
            shown = states.detach()
            if shown.device.type == "cpu":
                shown = shown.numpy()
                shown.flags.writeable = False
            visit(layer, shown)

        def before(_: Any, args: Any, kwargs: Any) -> None:
            show_states(0, args[0] if args else kwargs["hidden_states"])

        normed: list[Any] = []
        with ExitStack() as hooks, self._undisturbed():
            for tool in filter(None, (rule, watch)):
                hooks.enter_context(tool)
            for norm in self._norms() if final_norm else ():
                hooks.callback(norm.register_forward_hook(lambda _, __, states: normed.append(states)).remove)
            hooks.callback(self._blocks[0].register_forward_pre_hook(before, with_kwargs=True).remove)
            for layer, block in enumerate(self._blocks, start=1):

                def after(_: Any, __: Any, states: Any, layer: int = layer) -> None:
                    show_states(layer, states)
                    normed.clear()

                if rule is not None:
                    hooks.callback(block.register_forward_pre_hook(rule.entering).remove)
                if watch is not None:
                    hooks.callback(block.register_forward_pre_hook(watch.entering(layer)).remove)
                hooks.callback(block.register_forward_hook(after).remove)
                if add is not None:
                    hooks.callback(block.register_forward_pre_hook(add, with_kwargs=True).remove)
            # the body without the head: logits are large, and not wanted
            output = self._body(input_ids=ids, **past)
            if rule is not None and rule.obeyed != self.depth:
                raise ValueError(
                    f"bias must not be a rule of shares for {type(self.model).__name__}, of whose {self.depth} blocks "
                    f"{rule.obeyed} have a softmax that can be found"
                )
        if final_norm:
            # what a body gives at its end may be projected once more; without a norm it is the last state
            last = normed[-1] if normed else output[0]
            if last.shape[-1] != self._text.hidden_size:
                name = type(self._body).__name__
                raise ValueError(f"final_norm must be left out: no norm was found behind the blocks of {name}")
            show_states(self.depth + 1, last)
        return output

    def _demand_whole(self, what: str, given: bool) -> None:
        """Refuse what a text run in pieces does not allow."""
        if given:
            raise ValueError(f"chunk must be left out for {what}, which needs a text in one piece, got {self.chunk}")

    def respond(
        self,
        tokens: ArrayLike,
        masks: NDArray[np.bool_],
        take: Callable[[int, int, Any], object],
        *,
        bias: ArrayLike | None = None,
    ) -> None:
        """Call take(layer, row, derivative) as in `Network.observe`: exact derivatives, in forward mode."""
        ids = self._ids(tokens)
        add = None if bias is None else bias_hook(bias, ids.shape[1])
        with self._undisturbed():
            derivatives(self._body, self._blocks, ids, masks, take, add)

    def _show_logits(self, output: Any, positions: NDArray[np.int64], first: int, take: Callable[..., object]) -> None:
        """Call take(positions, logits) with what the model's head makes of the body's output from `first` on."""
        if self._head_obeys is None:
            trial = self._ids(TRIAL)
            with self._undisturbed():
                whole = self.model(input_ids=trial, use_cache=False).logits
                again = self._logits(self._body(input_ids=trial, use_cache=False), slice(None))
            self._head_obeys = float((whole - again).norm()) <= BATCH_ROUNDING * self.precision * float(whole.norm())
        if not self._head_obeys:
            name = type(self.model).__name__
            raise ValueError(f"next_token must be left out: {name} makes logits of more than the states of its body")
        for start in range(0, positions.size, LOGITS_AT_ONCE):
            some = positions[start : start + LOGITS_AT_ONCE]
            with self._undisturbed():
                take(some, self._logits(output, some - first))

    def _logits(self, output: Any, positions: Any) -> Any:
        """Return the logits at some positions: the model is run with the body's output given."""
        given = copy(output)
        given.last_hidden_state = output.last_hidden_state[:, positions]
        ids = given.last_hidden_state.new_zeros(given.last_hidden_state.shape[:2]).long()
        own = vars(self._body).get("forward")
        self._body.forward = lambda *_, **__: given
        try:
            return self.model(input_ids=ids, use_cache=False).logits
        finally:
            del self._body.forward
            if own is not None:
                self._body.forward = own

    def _norms(self) -> list[Any]:
        """Return the norms beside the blocks; the last to be called behind them is the final one."""
        holder = next(m for m in self._body.modules() if any(child is self._blocks for child in m.children()))
        return [child for child in holder.children() if "norm" in type(child).__name__.lower()]

    def _obeys(self, window: int) -> bool:
        """Whether the first block hides a key that is `window` tokens back: some configurations name a window unused.

        Seen by the mask that it gets, and where that hides nothing, by its states.
        """
        if self.context is not None and window >= self.context:
            return True
        masks: list[Any] = []
        states: list[Any] = []

        def mask(_: Any, __: Any, kwargs: Any) -> None:
            masks.append(kwargs.get(NAME))
            if _hides_first_key(masks[0]):
                raise Enough

        def after(_: Any, __: Any, shown: Any) -> None:
            states.append(shown[0] if isinstance(shown, (tuple, list)) else shown)
            raise Enough

        texts = np.zeros((2, window + 1), dtype=np.int64)
        texts[1, 0] = 1
        with ExitStack() as hooks, self._undisturbed():
            hooks.callback(self._blocks[0].register_forward_pre_hook(mask, with_kwargs=True).remove)
            hooks.callback(self._blocks[0].register_forward_hook(after).remove)
            hooks.enter_context(suppress(Enough))
            self._body(input_ids=self._ids(texts), use_cache=False)
        if not states:
            return True
        one, other = (x.double() for x in states[0][:, -1])
        return float((one - other).norm()) <= BATCH_ROUNDING * self.precision * float(one.norm())

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Compute without gradients, in the number format of the weights whatever is set outside."""
        torch = heavy("torch")
        # inference mode would leave tensors that training cannot use, where a model computes its angles anew
        kind = self.model.device.type
        narrow = torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()
        with torch.no_grad(), narrow, within_memory("tokens"):
            yield

    def _check(self, shown: list[tuple[int, Any]]) -> None:
        """Raise `ValueError` unless each block showed states of TRIAL, (batch, tokens, width), of a causal model."""
        if [layer for layer, _ in shown] != list(range(self.depth + 1)):
            raise ValueError(
                f"model must run its {self.depth} blocks once each, in order, got {[l for l, _ in shown[1:]]}"
            )
        for layer, states in shown:
            if states.shape != (2, 3, self._text.hidden_size):
                raise ValueError(
                    f"model must show states of shape (batch, tokens, width), got {states.shape} for (2, 3)"
                )
            # a leak is of the order of the states, token by token; rounding depends on the shapes of the batch
            size = np.sqrt(np.mean(np.square(states[0, :2], dtype=np.float64), axis=-1))
            apart = np.abs(states[0, :2] - states[1, :2]).max(axis=-1)
            if np.any(apart > np.sqrt(self.precision) * size):
                raise ValueError(f"model must be causal, but its states at layer {layer} depend on later tokens")

    def _check_pieces(self, whole: list[tuple[int, Any]], chunk: int) -> None:
        """Set `chunk`; raise `ValueError` unless states of TRIAL in two pieces are those of one pass.

        Rounding is that of the largest states a layer has been reached through: the last ones may be what cancels.
        """
        pieces: list[list[Any]] = [[] for _ in whole]
        if self._cache:
            self.chunk = 2
            self.observe(TRIAL, lambda layer, states: pieces[layer].append(as_array(states)))
        size = 0.0
        for (layer, states), parts in zip(whole, pieces, strict=True):
            joined = np.concatenate(parts, axis=1) if parts else np.zeros_like(states)
            size = max(size, float(np.linalg.norm(states)))
            if joined.shape != states.shape or np.linalg.norm(joined - states) > BATCH_ROUNDING * self.precision * size:
                raise ValueError(
                    f"chunk must be left out for {type(self.model).__name__}, whose states at layer {layer} differ "
                    "when keys and values of a beginning are kept"
                )
        self.chunk = chunk

    def _ids(self, tokens: ArrayLike) -> Any:
        return heavy("torch").tensor(token_ids(tokens, self.vocabulary), device=self.model.device)


def _hides_first_key(mask: Any) -> bool:
    """Whether the last query of a mask, (B, heads, n, n), does not see the first key."""
    if not isinstance(mask, heavy("torch").Tensor) or mask.ndim != 4:
        return False
    first = mask[0, 0, -1, 0]
    return bool(~first if first.dtype == heavy("torch").bool else first < HIDDEN)
