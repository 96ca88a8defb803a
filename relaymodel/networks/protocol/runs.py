"""The measurement: two prompts, one continuation, the distance between the hidden states."""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import positive_integer, show
from relaymodel.networks.protocol.measurement import SINGLE, Measurement, rounding
from relaymodel.networks.protocol.network import Network
from relaymodel.networks.protocol.pairs import EncodedPairs, Generated, Pairs, RandomTokens
from relaymodel.progress import reporter
from relaymodel.simulation.inputs import LogBias, bias_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaymodel.progress import Report

Array = NDArray[np.float64]

ROWS = 256  # tokens whose differences are taken at once, in float64


def measure(
    network: Network,
    pairs: Pairs | tuple[Any, Any, Any],
    *,
    bias: LogBias | Callable[[Array], Array] | None = None,
    layers: Sequence[int] | None = None,
    final_norm: bool = False,
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
        four tokens: a model that ignores its attention mask is refused.
    layers
        Which layers to keep: 0 is the embedding, l the residual stream behind block l; None: all from 1 on.
    final_norm
        Also keep depth + 1, the last layer after the final norm.
    resume
        A folder that receives each pair's distances when they are there.  A run that was interrupted goes on from it;
        a folder of another measurement is refused.
    provenance
        Facts to keep with the result.
    progress
        True shows a bar on a terminal; a function is called with (layers done, layers in total).

    Returns
    -------
    Measurement
        Distances of every pair at every layer and token.

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
        raise TypeError(
            f"network must offer {', '.join(_MEMBERS)} (relaymodel.networks.protocol.Network), got "
            f"{show(network)} of type {type(network).__name__}"
        )
    texts = Pairs.of(pairs).encode(network)
    kept = _layers(network, layers, final_norm)
    facts = {**network.provenance, **texts.provenance, "bias": _name(bias)}
    facts |= {str(key): str(value) for key, value in (provenance or {}).items()}
    t = np.arange(1, texts.steps + 1)
    added = None
    if bias is not None:
        added = np.zeros((texts.prompt + texts.steps, 1))
        added[texts.prompt :, 0] = bias_function(bias, texts.prompt)(t.astype(np.float64))
        check_bias(network)
        added = np.broadcast_to(added, (len(added), texts.prompt))
    if network.precision > SINGLE:
        warnings.warn(
            f"the states are computed with a spacing of {network.precision:.1e} at 1: differences below it are rounded "
            "to about the root of (difference * spacing), so that a true 1/t reads as t^-0.5; use float32 or better",
            UserWarning,
            stacklevel=2,
        )
    store = None if resume is None else _Store(Path(resume), _fingerprint(texts, added, kept))
    report = reporter(progress)
    passes = network.depth + 1 + (kept[-1] > network.depth)
    total = texts.count * passes
    results = []
    for k in range(texts.count):
        values = None if store is None else store.read(k)
        if values is None:
            recorder = _Recorder(kept, texts.prompt, texts.steps, partial(_shifted, report, k * passes, total))
            network.observe(texts.tokens(k), recorder.visit, bias=added, final_norm=kept[-1] > network.depth)
            values = recorder.result()
            if store is not None:
                store.write(k, values)
        report((k + 1) * passes, total)
        results.append(values)
    stacked = np.stack(results, axis=1)  # (4, K, M, T)
    return Measurement(
        t,
        kept,
        stacked[0],
        stacked[1:3],
        stacked[3],
        texts.prompt,
        network.depth,
        network.precision,
        network.window,
        facts,
    )


def _shifted(report: Report, before: int, total: int, done: int) -> None:
    report(before + done, total)


_MEMBERS = ("depth", "vocabulary", "context", "window", "precision", "provenance", "encode", "generate", "observe")


class _Recorder:
    """Takes distances and norms of the states it is shown, and keeps nothing else."""

    def __init__(self, layers: tuple[int, ...], prompt: int, steps: int, report: Callable[[int], object]) -> None:
        self.layers, self.prompt, self.steps, self.report = layers, prompt, steps, report
        self.values = np.full((4, len(layers), steps), np.nan)

    def visit(self, layer: int, states: NDArray[np.floating]) -> None:
        """Record one layer; states (2, P + T, width)."""
        if states.ndim != 3 or states.shape[:2] != (2, self.prompt + self.steps):
            raise ValueError(
                f"network must show states of shape (2, {self.prompt + self.steps}, width), got {states.shape} "
                f"at layer {layer}"
            )
        if layer in self.layers:
            m = self.layers.index(layer)
            for start in range(0, self.steps, ROWS):
                stop = min(start + ROWS, self.steps)
                a, b = states[:, self.prompt + start : self.prompt + stop].astype(np.float64)
                difference = a - b
                here = self.values[:, m, start:stop]
                here[3] = np.einsum("td,td->t", difference, a + b)
                for row, x in enumerate((difference, a, b)):
                    here[row] = np.sqrt(np.einsum("td,td->t", x, x))
            if not np.all(np.isfinite(self.values[:, m])):
                bad = int(np.argmin(np.isfinite(self.values[0, m]))) + 1
                raise ValueError(
                    f"the states of the network must be finite, got NaN or inf at layer {layer}, t = {bad}"
                )
        self.report(layer)

    def result(self) -> Array:
        """Return distance, both norms and the difference of their squares, (4, M, T)."""
        for m, layer in enumerate(self.layers):
            if np.isnan(self.values[0, m, 0]):
                raise ValueError(f"network must show every layer asked for, it did not show layer {layer}")
        return self.values


class _Store:
    """A folder with one file for each finished pair."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"resume must be a folder, and {folder} is a file")
        if not folder.absolute().parent.is_dir():
            raise FileNotFoundError(f"resume must be a folder in one that exists, got {folder}")
        folder.mkdir(exist_ok=True)

    def read(self, k: int) -> Array | None:
        path = self.folder / f"pair-{k:04d}.npz"
        if not path.exists():
            return None
        arrays, facts = files.read_npz(path, "measure", ("values",))
        if facts.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"resume must be a folder of the same measurement, {path} is of another one (network, texts, "
                "bias, layers or their number differ); name another folder"
            )
        return arrays["values"]

    def write(self, k: int, values: Array) -> None:
        files.write_npz(self.folder / f"pair-{k:04d}.npz", {"values": values}, {"fingerprint": self.fingerprint})


def check_bias(network: Network) -> None:
    """Raise `ValueError` unless the network's attention does with a bias what it must, in every layer.

    On texts of four tokens with a bias on the first key: one of 0 changes nothing; one of -10^4 hides the first token
    completely; one of 10^4 leaves nothing of the others; and what a very negative bias b leaves of the first token
    grows like e^b.  The last needs float32 or better.
    """
    one, other = network.vocabulary // 3, 2 * network.vocabulary // 3
    floor = rounding(network.precision, np.arange(1, network.depth + 1))

    def run(tokens: list[list[int]], strength: float | None) -> Array:
        shown: list[NDArray[Any]] = []
        bias = None if strength is None else np.array([[0.0]] + [[strength]] * 3)
        network.observe(tokens, lambda layer, states: shown.append(states.copy()) if layer else None, bias=bias)
        return np.stack(shown).astype(np.float64)  # (depth, 2, 4, width)

    def gap(x: Array, y: Array) -> float:
        """Return the largest difference of states, (depth, ..., width), in units of the rounding."""
        distance, size = np.linalg.norm(x - y, axis=-1), np.linalg.norm(x, axis=-1)
        return float(np.max(distance.T / (size.T * floor)))

    first, rest = [[one, other, one, other], [other, other, one, other]], [[one] * 4, [one, other, other, one]]
    problem = None
    try:
        plain, zero, hidden = (run(first, strength)[:, :, 1:] for strength in (None, 0.0, -1e4))
        free, alone = (run(rest, strength)[:, :, 3:] for strength in (None, 1e4))
        told = min(gap(x[:, 0], x[:, 1]) for x in (plain, free))
        if gap(plain, zero) > 10:
            problem = "a bias of 0 changes its states"
        elif gap(hidden[:, 0], hidden[:, 1]) > 10:
            problem = "a prompt whose keys are hidden by a bias of -1e4 still reaches the continuation"
        elif gap(alone[:, 0], alone[:, 1]) > 10:
            problem = "keys beside one with a bias of 1e4 still count"
        elif network.precision <= SINGLE:
            told, growth = _growth(lambda strength: run(first, strength)[:, :, 1:], hidden, floor)
            if not 2 < growth < 3.5:
                problem = f"one more on a very negative bias multiplies its effect by {growth:.3g} instead of e"
    except RuntimeError as error:
        problem = f"it fails on one ({show(error)})"
    if problem is not None:
        raise ValueError(
            f"network must add the bias to its attention logits, but {problem}; its attention ignores or misreads the "
            "mask (or part of it is not attention): measure it without bias"
        )
    if told <= 30:
        raise ValueError(
            "network must show what a bias does, but the first of four tokens changes its states by no more than "
            f"{told:.2g} times the rounding; load it in a wider number format"
        )


def _growth(run: Callable[[float], Array], hidden: Array, floor: Array) -> tuple[float, float]:
    """Return how far an effect of a negative bias b is above rounding, and what that of b + 1 is in its units.

    Of the lowest b at which a layer shows it, and of the layers that do, the one farthest from e.
    """
    told, growth = 0.0, float(np.e)

    def norm(x: Array) -> Array:
        return np.asarray(np.sqrt(np.sum(x**2, axis=(1, 2, 3))))

    for low in (-8.0, -6.0, -4.0, -2.0):
        less, more = norm(run(low) - hidden), norm(run(low + 1) - hidden)
        clear = less / (floor * norm(hidden))
        told = float(np.max(clear))
        if told > 30:
            each = (more / np.maximum(less, np.finfo(np.float64).tiny))[clear > 30]
            growth = float(each[np.argmax(np.abs(np.log(np.maximum(each, 1e-300)) - 1))])
            break
    return told, growth


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


def _fingerprint(pairs: EncodedPairs, bias: Array | None, layers: tuple[int, ...]) -> str:
    after: Any = pairs.continuation
    if isinstance(after, (RandomTokens, Generated)):
        after = np.frombuffer(repr(after).encode(), dtype=np.uint8)
    digest = hashlib.sha256(json.dumps([dict(pairs.network.provenance), layers]).encode())
    for array in (pairs.prompt_a, pairs.prompt_b, after, np.empty(0) if bias is None else bias[:, 0]):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
