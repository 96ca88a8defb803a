"""`certify`: the theorem's hypotheses, constants and bounds for one network and two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from immutabledict import immutabledict
from numpy.typing import NDArray

from relaymodel.certificate import constants
from relaymodel.certificate.render import power
from relaymodel.certificate.result import Certificate, Hypothesis
from relaymodel.certificate.runs import BlockRun, follow, spans
from relaymodel.certificate.steps import build
from relaymodel.certificate.weights import floors, read
from relaymodel.checks import show
from relaymodel.networks.huggingface import HuggingFaceNetwork, as_transformer
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.pairs import Pairs
from relaymodel.networks.transformer import Transformer
from relaymodel.progress import reporter
from relaymodel.simulation.inputs import LogBias, bias_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaymodel.progress import Report

Array = NDArray[np.float64]

POST_LN = ("openai-gpt", "bert", "bert-generation", "roberta", "xlm-roberta", "electra", "xlm", "ctrl")
SINK = 0.5  # growth of n A with n from which it is said to be a share
OTHERS_SAY = "the theorem's hypotheses cannot be established"


def certify(
    network: Any,
    pairs: Pairs | tuple[Any, Any, Any],
    *,
    bias: LogBias | Callable[[Array], Array] | None = None,
    provenance: Mapping[str, str] | None = None,
    progress: bool | Report = False,
) -> Certificate:
    r"""Certify that two runs of a network forget their prompts no slower than a relay model (THEORY section 8).

    For every block $\delta'_n \le \rho_l\,\delta_n + \lambda_l\,\frac1n\sum_{s\le n}\delta_s$, $\delta_n$ the distance
    of the two runs' states at position n; hence the distances are at most those of a relay model, which section 2
    solves, and fall at the rate $O(P(\log t)^{L-1}/t)$.  The constants come from the weights alone, from the weights
    and the hypotheses, from the note's formulas, and, ever tighter, from what the two runs do: `Certificate.ladder`.
    MLPs with a gate have the product bound of `relaymodel.certificate.weights.MLP.gain`.

    Parameters
    ----------
    network
        The NumPy transformer, or a GPT-2, Llama or Qwen2 model of transformers, which is converted to it: the
        certificate is about the float64 network with these weights.
    pairs
        As for `measure`, one pair.
    bias
        As for `measure`.  With one that grows with t the hypothesis of bounded logits fails; the certificate says so,
        and how omega grows, and its bounds hold for these two runs only.
    provenance
        Facts to keep with the result.
    progress
        True shows a bar on a terminal; a function is called with (blocks done, blocks in total).

    Returns
    -------
    Certificate
        `applies`: do the hypotheses hold; `holds`: was every inequality verified.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments, and, by name, for networks whose hypotheses cannot be established: post-LN, sliding
        windows, blocks of another kind.

    Examples
    --------
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> certificate = certify(network, ("To be, or not", "All the world", "to be, that is the question. "))
    >>> certificate.applies, certificate.holds
    (True, True)
    >>> crude, tight = (certificate.log10_ratio(name)[-1] for name in ("section 8", "prompts"))
    >>> bool(crude > 2 > 1 > tight > 0)
    True
    """
    source, plain = network, _plain(network)
    texts = Pairs.of(pairs).encode(source)
    if texts.count != 1:
        raise ValueError(f"pairs must hold one pair of prompts, got {texts.count}; certify one at a time")
    tokens = texts.tokens(0)
    P, N = texts.prompt, tokens.shape[1]
    t = np.arange(1, N - P + 1)
    added, b = None, np.zeros(t.size)
    if bias is not None:
        b = bias_function(bias, P)(t.astype(np.float64))
        column = np.concatenate((np.zeros(P), b))[:, None]
        added = np.broadcast_to(column, (N, P))
    report = reporter(progress)
    norms = []
    for l, block in enumerate(plain.weights.blocks, start=1):
        norms.append(read(block, plain.architecture))
        report(l, 2 * plain.depth)
    states: list[Array] = []
    runs: list[BlockRun] = []
    for x, run in follow(plain, norms, tokens, added):
        states.append(x)
        if run is not None:
            runs.append(run)
            report(plain.depth + len(runs), 2 * plain.depth)
    low, high = spans(states)
    del states
    floor, grows = floors(plain), bool(b[-1] > b[0])
    # e^b n / (P e^b + t) is the most that a bias b on the prompt's keys makes of n A
    factor = float(np.max(np.exp(np.maximum(b, 0)) * (P + t) / (P * np.exp(b) + t)))
    sets = {"weights": [constants.from_weights(n, plain.architecture, floor, max(1.0, factor)) for n in norms]}
    both = list(zip(sets["weights"], norms, runs, strict=True))
    sets["hypotheses"] = [constants.with_hypotheses(*each) for each in both]
    sets["section 8"] = [constants.measured(*each) for each in both]
    omega = np.stack([run.omega for run in runs])
    found = _hypotheses(plain, sets, runs, omega[:, P:], low, floor, grows, P)
    if grows:
        del sets["weights"]
    facts = {**source.provenance, **texts.provenance}
    facts |= {"bias": "none" if bias is None else repr(bias) if isinstance(bias, LogBias) else "a function of t"}
    facts |= {"certified for": plain.provenance["network"]}
    facts |= {str(key): str(value) for key, value in (provenance or {}).items()}
    return Certificate(
        P,
        t,
        low,
        high,
        omega,
        immutabledict({name: tuple(values) for name, values in sets.items()}),
        found,
        build(sets, runs, low, high, P),
        immutabledict(facts),
    )


def _plain(network: Any) -> Transformer:
    """Return the NumPy transformer that a network is, or refuse it by name."""
    if type(network) is Transformer:
        return network
    if isinstance(network, HuggingFaceNetwork):
        kind = network.model.config.model_type
        if kind in POST_LN:
            raise ValueError(f"network must be pre-LN, and {kind} is post-LN: {OTHERS_SAY}")
        try:
            return as_transformer(network)
        except ValueError as error:
            raise ValueError(f"{OTHERS_SAY} for this {kind} model: {error}") from None
    window = network.window if isinstance(network, Network) else None
    if window is not None:
        raise ValueError(f"network must see every key, and this one has a sliding window of {window}: {OTHERS_SAY}")
    raise TypeError(
        "network must be a Transformer of relaymodel.networks.transformer or a model of "
        f"relaymodel.networks.huggingface, got {type(network).__name__}, whose blocks are unknown: {OTHERS_SAY}"
    )


def _hypotheses(
    network: Transformer,
    sets: Mapping[str, list[constants.Constants]],
    runs: list[BlockRun],
    omega: Array,
    low: Array,
    floor: float,
    grows: bool,
    P: int,
) -> tuple[Hypothesis, ...]:
    a = network.architecture
    growth = max(slope(omega[l], P) for l in range(len(omega)))
    largest = power(float(np.log10(omega.max())))
    seen = f"on these runs n A is at most {largest} and its largest grows as n^{growth:.2f}"
    if grows:
        logits = (
            f"the bias grows with t: {seen}, from {omega[:, 0].max():.3g} at t = 1 to {omega[:, -1].max():.3g} at "
            f"t = {omega.shape[1]}; no ω holds for all n"
        )
    else:
        weights = max(log10(c.omega) for c in sets["weights"])
        logits = f"ω ≤ {power(weights)} from the weights, for every text; {seen}"
        if growth > SINK:
            logits += ": keys that take a share of every query (attention sinks), so that these runs show no ω yet"
    least = min(run.least for run in runs)
    same = bool(np.all(low[0, P:] == 0))
    return (
        Hypothesis("pre-LN", True, f"{a.depth} blocks x + attention(norm(x)), y + MLP(norm(y)), recomputed"),
        Hypothesis("finite depth", True, f"L = {a.depth}"),
        Hypothesis("bounded logits", not grows, logits),
        Hypothesis(
            "activation floor",
            floor > 0,
            f"σ ≥ {floor:.3g} for every text, from the weights; {least:.3g} on these runs",
        ),
        Hypothesis(
            "same positions",
            same,
            f"both prompts have {P} tokens, and the embeddings behind them are {'equal' if same else 'NOT equal'}",
        ),
        Hypothesis("full attention", True, "every query sees all keys before it"),
    )


def slope(omega: Array, prompt: int) -> float:
    """Return the exponent with which n max A grows over the continuation, (T,): least squares in logarithms."""
    if omega.size < 2:
        return 0.0
    n = np.log(prompt + np.arange(1, omega.size + 1))
    n -= n.mean()
    return float(n @ np.log(omega) / (n @ n))


def log10(number: Any) -> float:
    """Return the decimal logarithm of a float or of an integer of any size."""
    import math

    if number <= 0:
        raise ValueError(f"number must be positive, got {show(number)}")
    return math.log10(number)
