"""What a certificate is about: one network, two texts, a bias."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.attention import ENTRIES_AT_ONCE
from relaymodel.certificate.enclosure import KEPT_PAIRS
from relaymodel.certificate.runs import UNKNOWN
from relaymodel.checks import show
from relaymodel.memory import demand_memory
from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.pairs import Pairs, PlainPairs
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.simulation.inputs import LogBias, bias_function
from relaymodel.simulation.share import ShareRule

Array = NDArray[np.float64]
Bias = LogBias | Callable[[Array], Array]

POST_LN = ("openai-gpt", "bert", "bert-generation", "roberta", "xlm-roberta", "electra", "xlm", "ctrl")


@dataclass(frozen=True, eq=False)
class Subject:
    """A float64 network and two of its runs: all else in a certificate follows from them.

    Attributes
    ----------
    network
        The NumPy transformer.
    tokens
        Shape (2, P + T): prompt A and prompt B, each with the continuation.
    prompt
        P.
    bias
        Shape (T,): what is added to the logits of the prompt's keys at each token of the continuation.
    """

    network: Transformer
    tokens: NDArray[np.int64]
    prompt: int
    bias: Array

    @classmethod
    def of(cls, network: Any, pairs: Pairs | PlainPairs, bias: Bias | None) -> tuple["Subject", dict[str, str]]:
        """Return the subject that the arguments of `certify` describe, and the facts about it."""
        plain = _plain(network)
        texts = Pairs.of(pairs).encode(network)
        if texts.count != 1:
            raise ValueError(f"pairs must hold one pair of prompts, got {texts.count}; certify one at a time")
        size = texts.prompt + texts.steps
        demand_memory("pairs", memory(plain.architecture, size), f"a certificate of two runs of {size} tokens")
        tokens = texts.tokens(0)
        t = np.arange(1.0, tokens.shape[1] - texts.prompt + 1)
        if isinstance(bias, ShareRule):
            raise ValueError(
                "bias must be the same for all heads, as PromptBias is, for a certificate; no bound was proved for "
                f"{show(bias)}"
            )
        added = np.zeros(t.size) if bias is None else bias_function(bias, texts.prompt)(t)
        named = "none" if bias is None else repr(bias) if isinstance(bias, LogBias) else "a function of t"
        facts = {**network.provenance, **texts.provenance, "bias": named, "certified for": plain.provenance["network"]}
        return cls(plain, tokens, texts.prompt, added), facts

    @property
    def t(self) -> NDArray[np.int64]:
        """The tokens of the continuation, (T,)."""
        return np.arange(1, self.bias.size + 1)

    @property
    def grows(self) -> bool:
        """Whether the bias grows with t, so that no omega holds for all n."""
        return bool(self.bias[-1] > self.bias[0])

    @property
    def mask(self) -> Array | None:
        """What is added to the logits of all queries for the prompt's keys, (P + T, P); None if nothing is."""
        if not np.any(self.bias):
            return None
        column = np.concatenate((np.zeros(self.prompt), self.bias))[:, None]
        return np.broadcast_to(column, (len(column), self.prompt))

    @property
    def favour(self) -> float:
        r"""The most by which the bias multiplies $n A_{ns}$: $\max_t e^{\max(b, 0)}\, n/(P e^b + t)$, at least 1."""
        b, P = self.bias, self.prompt
        most = np.maximum(b, 0)
        return max(1.0, float(np.max((P + self.t) / (P * np.exp(b - most) + self.t * np.exp(-most)))))


def memory(a: Architecture, size: int) -> int:
    """Return about how many bytes a certificate of two runs of `size` tokens takes, beside the weights."""
    states = 12 * a.width + 10 * a.heads * a.head_size + 2 * a.heads * (a.width + a.heads) + 8 * a.mlp_hidden * a.gated
    rows = max(ENTRIES_AT_ONCE, size * a.heads) * 14
    results = size * (a.depth + 1) * 40 + size * KEPT_PAIRS * 6
    return 8 * (size * states + rows + results)


def _plain(network: Any) -> Transformer:
    """Return the NumPy transformer that a network is, or refuse it by name."""
    if type(network) is Transformer:
        return network
    if isinstance(network, HuggingFaceNetwork):
        kind = network.model.config.model_type
        if kind in POST_LN:
            raise ValueError(f"network must be pre-LN, and {kind} is post-LN: {UNKNOWN}")
        try:
            return as_transformer(network)
        except ValueError as error:
            raise ValueError(f"{UNKNOWN} for this {kind} model: {error}") from None
    window = network.window if isinstance(network, Network) else None
    if window is not None:
        raise ValueError(f"network must see every key, and this one has a sliding window of {window}: {UNKNOWN}")
    raise TypeError(
        "network must be a Transformer of relaymodel.networks.transformer or a model of "
        f"relaymodel.networks.huggingface, got {type(network).__name__}, whose blocks are unknown: {UNKNOWN}"
    )
