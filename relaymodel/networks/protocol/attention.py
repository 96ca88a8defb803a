"""Where attention goes: its shares on the prompt, the first token and the token itself, and its profile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import choice, show
from relaymodel.display import brief
from relaymodel.networks.protocol.curves import over_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from relaymodel.curve import Curve
    from relaymodel.model.profile import HeadMixture
    from relaymodel.networks.protocol.measurement import Measurement

Array = NDArray[np.float64]

PARTS = ("prompt", "first", "own", "sink")
BINS = 32  # of relative position u
DENSE, PER_OCTAVE = 8, 12  # queries: every t up to 8, then 12 in each octave
SHORTEST_TEXT = 2 * BINS  # text whose profile is compared: its last token, counted apart, takes half of a bin


def queries(steps: int) -> NDArray[np.int64]:
    """Return the continuation tokens t whose attention is read: all up to 8, then 12 in each factor of 2.

    >>> queries(12).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    >>> queries(2048).size
    100
    """
    octaves = np.log2(max(1.0, steps / DENSE))
    far = DENSE * 2.0 ** np.linspace(0, octaves, round(octaves * PER_OCTAVE) + 1)
    return np.unique(np.concatenate((np.arange(1, min(DENSE, steps) + 1), far.round().astype(np.int64))).clip(1, steps))


@dataclass(frozen=True, eq=False)
class Collapse:
    """Whether profiles of different text lengths are one function of u = s/n.

    Attributes
    ----------
    n
        Shape (W,): the upper ends of the windows of query positions, each twice the one before.
    profiles
        Shape (W, B): the density over u in each window, without sink and own, adding up to 1.
    apart
        Shape (W,): distance in total variation from the profile of the last window.
    unscaled
        Shape (W,): the same distance if attention were a function of n - s, that of the last window.
    """

    n: NDArray[np.int64]
    profiles: Array
    apart: Array
    unscaled: Array

    @property
    def value(self) -> float:
        """The mean of `apart` over all windows but the last: 0 where the profile scales with u."""
        return float(self.apart[:-1].mean())


@dataclass(frozen=True, eq=False)
class Attention:
    r"""Where each head's attention goes, the mean of the two runs (THEORY section 10).

    Read from chosen rows of the softmax, those of the queries at t; matrices are not held.

    Attributes
    ----------
    t
        Shape (Q,): continuation tokens of the queries, at positions n = P + t; see `queries`.
    layers
        The blocks that have softmax attention, M of them.
    shares
        Shape (K, M, H, Q, 4): on the prompt's tokens, the first token, the query's own token, and the sink: what the
        first token has beyond the second.
    profile
        Shape (K, M, H, Q, B): the rest (without own and sink) in equal bins of u, the key s from (s-1)/n to s/n.
    """

    t: NDArray[np.int64]
    layers: tuple[int, ...]
    shares: Array
    profile: Array
    prompt: int
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, values: Array, measured: Measurement) -> Attention:
        """Return what recorders of K pairs noted, (K, depth, H, Q, 4 + B); layers without softmax are zero."""
        shown = values[..., PARTS.index("own")].any(axis=(0, 2, 3))
        layers = tuple(int(layer) for layer in np.flatnonzero(shown) + 1)
        shares, profile = np.split(values[:, shown], [len(PARTS)], axis=-1)
        return cls(queries(measured.t.size), layers, shares, profile, measured.prompt, measured.provenance)

    @property
    def heads(self) -> int:
        """Heads of a layer, H."""
        return int(self.shares.shape[2])

    @property
    def edges(self) -> Array:
        """Edges of the bins of u, shape (B + 1,)."""
        return np.linspace(0, 1, self.profile.shape[-1] + 1)

    def share(self, part: str = "prompt", *, layer: int | None = None, head: int | None = None) -> Array:
        """Return a share of the attention, "prompt", "first", "own" or "sink", at each query, shape (K, Q).

        The mean over heads and layers unless one is named (layers count from 1, heads from 0).
        """
        choice("part", part, PARTS)
        return self._mean(self.shares, layer, head)[..., PARTS.index(part)]

    def curve(self, part: str = "prompt", *, layer: int | None = None, head: int | None = None) -> Curve:
        """Return a share against t: geometric mean over pairs; queries at which a pair has none are left out."""
        each = self.share(part, layer=layer, head=head)
        keep = np.all(each > 0, axis=0)
        where = {"layer": "all" if layer is None else str(layer), "head": "all" if head is None else str(head)}
        known = dict(self.provenance) | {"instrument": "attention", "part": part, "pairs": str(len(each))} | where
        return over_pairs(self.t[keep], each[:, keep], known)

    def density(
        self, *, layer: int | None = None, head: int | None = None, t_min: float = 1, t_max: float = np.inf
    ) -> Array:
        """Return the mean profile, shape (B,), over pairs, queries t_min..t_max, and heads and layers if none is named.

        It adds up to 1 less own and sink.
        """
        inside = (self.t >= t_min) & (self.t <= t_max)
        if not inside.any():
            raise ValueError(f"t_min and t_max must hold a query between them, got {show(t_min)} and {show(t_max)}")
        return np.asarray(self._mean(self.profile, layer, head)[:, inside].mean(axis=(0, 1)))

    def mixture(self, layer: int | None = None, head: int | None = None, *, t_min: float | None = None) -> HeadMixture:
        """Return `fit_heads` of a profile, with its sink and own shares (THEORY section 10).

        The mean over queries from `t_min` on, by default the later half of the text.
        """
        from relaymodel.model.profile import fit_heads

        last = self.prompt + int(self.t[-1])
        start = max(1, last / 2 - self.prompt) if t_min is None else t_min
        profile = self.density(layer=layer, head=head, t_min=start)
        found, rest = fit_heads(profile, self.edges), float(profile.sum())
        heads = tuple(replace(h, relay=h.relay * rest) for h in found.heads)
        inside = self.t >= start
        sink, own = (float(self.share(part, layer=layer, head=head)[:, inside].mean()) for part in ("sink", "own"))
        return replace(found, heads=heads, sink=sink, own=own, profile=found.profile * rest, fitted=found.fitted * rest)

    def collapse(self, layer: int | None = None, head: int | None = None) -> Collapse:
        """Return how far profiles of texts half as long, a quarter as long, ... are from that of the whole text."""
        n = self.prompt + self.t
        ends = [int(n[-1])]
        while np.any((n > ends[-1] // 4) & (n <= ends[-1] // 2)) and ends[-1] // 2 >= SHORTEST_TEXT:
            ends.append(ends[-1] // 2)
        if len(ends) == 1:
            raise ValueError(
                f"a collapse needs queries up to half of the last position, at n = {SHORTEST_TEXT} or more, got "
                f"n = {n[0]} to {n[-1]}; measure more tokens or a shorter prompt"
            )
        ends = ends[::-1]
        mean = self._mean(self.profile, layer, head).mean(axis=0)  # (Q, B)
        rows = np.stack([mean[(n > end / 2) & (n <= end)].mean(axis=0) for end in ends])
        rows /= rows.sum(axis=1, keepdims=True)
        stretched = np.stack([_nearest_keys(rows[-1], end / ends[-1]) for end in ends])
        apart, unscaled = (0.5 * np.abs(rows - other).sum(axis=1) for other in (rows[-1], stretched))
        return Collapse(np.array(ends), rows, apart, unscaled)

    def to_csv(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write means over pairs: a row for each layer, head and query, with shares and bins of the profile."""
        shares, profile = self.shares.mean(axis=0), self.profile.mean(axis=0)
        layer, head, t = (
            grid.ravel().tolist()
            for grid in np.meshgrid(np.array(self.layers), np.arange(self.heads), self.t, indexing="ij")
        )
        columns = {"layer": layer, "head": head, "t": t}
        columns |= {part: shares[..., i].ravel().tolist() for i, part in enumerate(PARTS)}
        columns |= {f"u_{edge:.5g}": profile[..., i].ravel().tolist() for i, edge in enumerate(self.edges[1:])}
        return files.write_table(path, columns, dict(self.provenance), overwrite=overwrite)

    def _mean(self, values: Array, layer: int | None, head: int | None) -> Array:
        """Return values, (K, M, H, Q, ...), of a layer and a head or their mean, (K, Q, ...)."""
        if layer is not None and layer not in self.layers:
            raise ValueError(f"layer must be one of {', '.join(map(str, self.layers))}, got {show(layer)}")
        if head is not None and not 0 <= head < self.heads:
            raise ValueError(f"head must be from 0 to {self.heads - 1}, got {show(head)}")
        some = values if layer is None else values[:, [self.layers.index(layer)]]
        return np.asarray((some if head is None else some[:, :, [head]]).mean(axis=(1, 2)))


def _nearest_keys(profile: Array, share: float) -> Array:
    """Return the profile of queries at n' = share * n whose weights depend on n - s as those at n do."""
    edges = np.linspace(0, 1, profile.size + 1)
    cumulative = np.concatenate(([0.0], np.cumsum(profile)))
    nearest = np.diff(np.interp(1 - share + share * edges, edges, cumulative))
    return np.asarray(nearest / nearest.sum())


class AttentionRecorder:
    """Takes rows of the softmax, and keeps what `Attention` holds of one pair."""

    SOURCE: ClassVar[str] = "attention"

    def __init__(self, tokens: NDArray[np.int64], prompt: int, depth: int) -> None:
        self.depth, self.prompt, self.steps = depth, prompt, tokens.shape[1] - prompt
        self.positions = prompt + queries(self.steps) - 1
        self.values: Array | None = None

    @staticmethod
    def shape(depth: int, steps: int) -> tuple[int | None, ...]:
        """Return the shape of `result`; None, any number, for heads."""
        return (depth, None, queries(steps).size, len(PARTS) + BINS)

    def take(self, layer: int, positions: NDArray[np.int64], weights: Any) -> None:
        """Note the weights, (2, H, r, keys), of the queries at r positions (from 0) of a layer."""
        rows = np.asarray(weights, dtype=np.float64).mean(axis=0)  # all that is kept is linear in them
        if self.values is None:
            self.values = np.zeros((self.depth, len(rows), self.positions.size, len(PARTS) + BINS))
        if len(rows) != self.values.shape[1]:
            raise ValueError(
                f"attention must be left out: layers of {self.values.shape[1]} and {len(rows)} heads are not compared"
            )
        own = rows[:, np.arange(positions.size), positions]
        first, second = rows[..., 0], rows[..., 1]
        sink = np.maximum(first - second, 0)
        cumulative = np.concatenate((np.zeros((*rows.shape[:2], 1)), rows.cumsum(axis=-1)), axis=-1)
        shares = np.stack([cumulative[..., self.prompt], first, own, sink], axis=-1)
        cumulative[..., 1:] -= sink[..., None]
        for r, position in enumerate(positions):
            cumulative[:, r, position + 1 :] = cumulative[:, r, position, None]  # without own
        places = np.multiply.outer(positions + 1, np.linspace(0, 1, BINS + 1))  # u n
        below = np.minimum(places.astype(np.int64), positions[:, None])
        at = [np.take_along_axis(cumulative, np.broadcast_to(b, (len(rows), *b.shape)), -1) for b in (below, below + 1)]
        profile = np.diff(at[0] + (places - below) * (at[1] - at[0]), axis=-1)
        values = np.concatenate((shares, profile), axis=-1)
        self.values[layer - 1, :, np.searchsorted(self.positions, positions)] = values.swapaxes(0, 1)

    def result(self) -> Array:
        """Return the noted values, (depth, H, Q, 4 + B)."""
        if self.values is None or not np.all(np.isfinite(self.values)):
            raise ValueError("attention must be left out: no block of this network takes a softmax over its keys")
        return self.values
