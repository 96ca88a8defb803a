"""The measurement: two prompts, one continuation, the distance between the hidden states."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import as_text, choice, positive_integer, show
from relaymodel.memory import demand_memory
from relaymodel.networks.protocol import store
from relaymodel.networks.protocol.attention import AttentionRecorder
from relaymodel.networks.protocol.distance import DistanceRecorder
from relaymodel.networks.protocol.measurement import Measurement
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.next_token import NextTokenRecorder
from relaymodel.networks.protocol.pairs import Pairs, PlainPairs
from relaymodel.networks.protocol.probe import check_bias
from relaymodel.networks.protocol.reminding import remind
from relaymodel.networks.protocol.response import ResponseRecorder
from relaymodel.networks.protocol.rounding import SINGLE
from relaymodel.progress import reporter
from relaymodel.simulation.inputs import LogBias, bias_function
from relaymodel.simulation.share import PromptShares, ShareRule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaymodel import files
    from relaymodel.progress import Report
    from relaymodel.simulation.run import Reminders

Array = NDArray[np.float64]

INSTRUMENTS: dict[str, Any] = {
    "attention": AttentionRecorder,
    "next_token": NextTokenRecorder,
    "response": ResponseRecorder,
}


def measure(
    network: Network,
    pairs: Pairs | PlainPairs,
    *,
    bias: LogBias | Callable[[Array], Array] | ShareRule | None = None,
    reminders: Reminders | None = None,
    layers: Sequence[int] | None = None,
    final_norm: bool = False,
    instruments: Sequence[str] = ("distance",),
    resume: files.PathLike | None = None,
    provenance: Mapping[str, str] | None = None,
    progress: bool | Report = False,
) -> Measurement:
    """Measure how far the hidden states of two runs are apart that differ in their prompts only (THEORY section 9).

    Parameters
    ----------
    network
        Anything that satisfies `relaymodel.networks.protocol.Network`: the NumPy transformer, or a model of the
        transformers library (`relaymodel.networks.huggingface.load`).
    pairs
        `Pairs`, or a tuple (prompt_a, prompt_b, continuation) of texts or token ids, one of each or K.
    bias
        Logit bias b_t of the prompt's keys for the query at continuation token t, in every layer and head (THEORY
        section 7): `PromptBias(strength)` or a function of t, (T,) to (T,).  The network is first tested on a text of
        four tokens: a model that ignores its attention mask is refused.  Or a rule of the share that each head gives to
        the prompt: `relaymodel.simulation.SplitSoftmax(power)`, `ClampedShare(share)`.
    reminders
        Where the prompt's text returns, each run's own: `Reminders(every, length)`, or what `simulate` takes.  The
        continuation goes on behind a reminder where it was interrupted; reminders themselves are not measured.
    layers
        Which layers to keep: 0 is the embedding, l the residual stream behind block l; None: all from 1 on.
    final_norm
        Also keep depth + 1, the last layer after the final norm.
    instruments
        What else to read in the same pass: "next_token", how the predictions of the next token differ, and
        "attention", where it goes; "distance" is always measured.  "response", how states answer to a change of single
        tokens, takes passes of its own: derivatives along nine directions.
    resume
        A folder that receives what was measured of each pair when it is there.  A run that was interrupted goes on
        from it; a folder of another measurement is refused.
    provenance
        Facts to keep with the result.
    progress
        True shows a bar on a terminal; a function is called with (layers done, layers in total).

    Returns
    -------
    Measurement
        Distances of every pair at every layer and token; `next_token`, `attention` and `response`, if they were
        asked for.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments; for states that are not finite; for a network whose attention ignores the bias.

    Warns
    -----
    UserWarning
        Below float32 precision: rounded differences scale like the root of the true ones, so that 1/t reads as 0.5.

    Examples
    --------
    >>> from relaymodel.networks.transformer import Architecture, Transformer
    >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> measured = measure(network, ("To be, or not", "All the world", "to be, that is the question. " * 4))
    >>> measured
    Measurement(1 pairs, prompt 13, t = 1..116, layers 1..2, NumPy transformer (...))
    >>> measured.curve(2).distance[0] > measured.curve(2).distance[-1]
    np.True_
    """
    if not isinstance(network, Network):
        members = ", ".join(name for name in vars(Network) if name[0] != "_")
        raise TypeError(
            f"network must offer {members} (relaymodel.networks.protocol.Network), got {show(network)} of type "
            f"{type(network).__name__}"
        )
    texts = Pairs.of(pairs).encode(network)
    kept = _layers(network, layers, final_norm)
    others = tuple(
        sorted({choice("instruments", name, ("distance", *INSTRUMENTS)) for name in instruments} - {"distance"})
    )
    if "response" in others and not hasattr(network, "respond"):
        raise TypeError(
            "response needs a network that offers respond (relaymodel.networks.protocol.Network.observe), got "
            f"{type(network).__name__}"
        )
    facts = {**network.provenance, **texts.provenance, "bias": _name(bias)}
    facts |= as_text(provenance)
    t = np.arange(1, texts.steps + 1)
    added: Array | PromptShares | None = None
    if bias is not None:
        if isinstance(bias, ShareRule):
            added = PromptShares(bias, texts.prompt)
        else:
            added = bias_array(bias, texts.prompt, texts.prompt + texts.steps)
        check_bias(network, rule=isinstance(bias, ShareRule))
    if network.precision > SINGLE:
        warnings.warn(
            f"the states are computed with a spacing of {network.precision:.1e} at 1: differences below it are rounded "
            "to about the root of (difference * spacing), so that a true 1/t reads as t^-0.5; use float32 or better",
            UserWarning,
            stacklevel=2,
        )
    reminded: list[str] = []
    if reminders is not None:
        _, own = remind(np.zeros((2, texts.prompt + texts.steps), dtype=np.int64), texts.prompt, reminders)
        reminded = [f"reminders at {np.flatnonzero(own) + 1}"]
        facts["reminders"] = repr(reminders)
    shapes: dict[str, tuple[int | None, ...]] = {"values": (4, len(kept), texts.steps)}
    shapes |= {name: INSTRUMENTS[name].shape(network.depth, texts.steps) for name in others}
    demand_memory("pairs or layers", 64.0 * texts.count * len(kept) * texts.steps, "distances of all pairs")
    folder = None if resume is None else store.store(resume, texts, added, [*kept, *others, *reminded], shapes)
    changed = {"bias": isinstance(bias, ShareRule), "reminders": reminders is not None}
    for name in {"attention", "response"} & set(others):
        for what in filter(changed.get, changed):
            raise ValueError(f"instruments must leave out {name} under such {what}, got {show(instruments)}")
    report = reporter(progress)
    passes = network.depth + 1 + (kept[-1] > network.depth)
    total = texts.count * passes
    results = []
    for k in range(texts.count):
        values = None if folder is None else store.read(folder, k, shapes)
        if values is None:
            tokens = texts.tokens(k)
            if reminders is not None:
                tokens, _ = remind(tokens, texts.prompt, reminders)
            distances = DistanceRecorder(kept, texts.prompt, texts.steps, partial(_shifted, report, k * passes, total))
            recorders = {name: INSTRUMENTS[name](tokens, texts.prompt, network.depth) for name in others}
            response = recorders.get("response")
            rows = {r.SOURCE: (r.positions, r.take) for r in recorders.values() if r is not response}
            network.observe(tokens, distances.visit, bias=added, final_norm=kept[-1] > network.depth, **rows)
            if response is not None:
                cast("Any", network).respond(tokens, response.masks, response.take, bias=added)
            values = {name: recorder.result() for name, recorder in {"values": distances, **recorders}.items()}
            if folder is not None:
                values = folder.write(k, values)
        report((k + 1) * passes, total)
        results.append(values)
    read = {name: np.stack([values[name] for values in results]) for name in shapes}
    if reminders is not None:
        t = t[~own]
        read = {name: values[..., ~own] for name, values in read.items()}
    euclidean, *norms, radial = np.moveaxis(read.pop("values"), 1, 0)  # (4, K, M, T)
    described = (texts.prompt, network.depth, network.precision, network.window, facts)
    return Measurement(t, kept, euclidean, np.stack(norms), radial, *described, read)


def _shifted(report: Report, before: int, total: int, done: int) -> None:
    report(before + done, total)


def bias_array(bias: LogBias | Callable[[Array], Array], prompt: int, n: int) -> Array:
    """Return what the bias adds to the logits of n queries for the prompt's keys, shape (n, prompt).

    >>> from relaymodel.simulation import PromptBias
    >>> (bias_array(PromptBias(1), prompt=2, n=4) / np.log(2)).round(3).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.585, 0.585], [1.0, 1.0]]
    """
    added = np.zeros((n, 1))
    added[prompt:, 0] = bias_function(bias, prompt)(np.arange(1.0, n - prompt + 1))
    return np.broadcast_to(added, (n, prompt))


def _layers(network: Network, layers: Sequence[int] | None, final_norm: bool) -> tuple[int, ...]:
    last = network.depth + 1 if final_norm else network.depth
    if layers is None:
        return tuple(range(1, last + 1))
    kept = sorted({positive_integer("layers", layer, least=0) for layer in layers})
    if not kept:
        raise ValueError("layers must name at least one layer, got none")
    if kept[-1] > last:
        hint = "" if final_norm else f"; {network.depth + 1}, after the final norm, needs final_norm=True"
        raise ValueError(f"layers must be from 0 to {last}, got {kept[-1]}{hint}")
    return tuple(kept) + ((last,) if final_norm and kept[-1] != last else ())


def _name(bias: object) -> str:
    if bias is None:
        return "none"
    return repr(bias) if isinstance(bias, LogBias) else getattr(bias, "__qualname__", type(bias).__name__)
