"""Single-token influence: how a state answers to a small change of one token's embedding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import show
from relaymodel.display import brief
from relaymodel.networks.protocol.curves import over_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from relaymodel.curve import Curve
    from relaymodel.networks.protocol.measurement import Measurement

Array = NDArray[np.float64]

SOURCES = 8  # tokens of the prompt that are changed, one at a time


def sources(prompt: int) -> NDArray[np.int64]:
    """Return which tokens of a prompt are changed, counted from 1: up to 8, evenly spread.

    >>> sources(64).tolist()
    [5, 13, 21, 29, 37, 45, 53, 61]
    """
    count = min(SOURCES, prompt)
    return np.floor((np.arange(count) + 0.5) * prompt / count).astype(np.int64) + 1


@dataclass(frozen=True, eq=False)
class TokenResponse:
    r"""Derivatives of prompt A's run along the difference of the two prompts' embeddings (THEORY sections 2 and 5).

    $J_{ns}\delta_s$: what the state at position n gains, to first order, when the embedding of token s goes from that
    of prompt A towards that of prompt B, whose difference is $\delta_s$.

    Attributes
    ----------
    sources
        Shape (S,): the tokens s, counted from 1; see `sources`.
    size
        Shape (K, S): $|\delta_s|$.
    single
        Shape (K, S, L, N): $|J_{ns}\delta_s|$ behind blocks 1..L at positions n = 1..N.
    whole
        Shape (K, L, N): $|\sum_{s\le P} J_{ns}\delta_s|$, all tokens of the prompt at once: the two-prompt distance, if
        that were linear.
    prompt_size
        Shape (K, P): $|\delta_s|$ of every token of the prompt.
    """

    sources: NDArray[np.int64]
    size: Array
    single: Array
    whole: Array
    prompt_size: Array
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, values: Array, measured: Measurement) -> TokenResponse:
        """Return what recorders of K pairs noted, (K, S + 1, L + 1, N)."""
        P, at = measured.prompt, sources(measured.prompt)
        start = values[:, :, 0]
        size = np.stack([start[:, i, s - 1] for i, s in enumerate(at)], axis=1)
        return cls(at, size, values[:, :-1, 1:], values[:, -1, 1:], start[:, -1, :P], measured.provenance)

    @property
    def prompt(self) -> int:
        """P, the length of the prompts."""
        return int(self.prompt_size.shape[1])

    def profile(self, layer: int) -> Curve:
        r"""Return $|J_{ns}\delta_s|/|\delta_s|$ against n - s + 1, from 2 on: geometric mean over sources and pairs.

        Its power law, `fit_power_law(response.profile(layer))`, is the exponent p of $(n-s+1)^{-p}$.
        """
        each = self._profile(layer)[:, 1:]
        return self._curve(np.arange(2, each.shape[1] + 2), each, layer, "one token")

    def linear(self, layer: int) -> Curve:
        """Return the two-prompt distance to first order, `whole`, against t."""
        each = self.whole[:, self._index(layer), self.prompt :]
        return self._curve(np.arange(1, each.shape[1] + 1), each, layer, "whole prompt, to first order")

    def summed(self, layer: int, *, aligned: bool = True) -> Curve:
        r"""Return what the profile r, summed over the prompt, predicts for the two-prompt distance, against t.

        $\sum_{s\le P}|\delta_s|\,r(P+t-s)$ if the tokens' effects are aligned (THEORY section 2), otherwise the root of
        the sum of squares (section 5).
        """
        r, P = self._profile(layer), self.prompt
        t = np.arange(1, r.shape[1] - P + 1)
        terms = self.prompt_size[:, :, None] * r[:, P + t[None] - np.arange(1, P + 1)[:, None]]
        each = terms.sum(axis=1) if aligned else np.sqrt((terms**2).sum(axis=1))
        return self._curve(t, each, layer, "tokens aligned" if aligned else "tokens unrelated")

    def to_csv(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write the profiles of all layers, one row for each layer and n - s + 1."""
        columns: dict[str, list[Any]] = {"layer": [], "distance_in_tokens": [], "response": []}
        for layer in range(1, self.whole.shape[1] + 1):
            curve = self.profile(layer)
            columns["layer"] += [layer] * len(curve)
            columns["distance_in_tokens"] += curve.t.astype(int).tolist()
            columns["response"] += curve.distance.tolist()
        return files.write_table(path, columns, dict(self.provenance), overwrite=overwrite)

    def _profile(self, layer: int) -> Array:
        """Return the response at n - s = 0, 1, ..., as far as all sources have it, (K, D)."""
        steps = self.single.shape[-1] - int(self.sources[-1]) + 1
        rows = self.single[:, :, self._index(layer)]
        logs = [
            np.log(rows[:, i, s - 1 : s - 1 + steps] / self.size[:, i, None])
            for i, s in enumerate(self.sources)
            if np.all(self.size[:, i] > 0)  # prompts may agree there
        ]
        if not logs:
            raise ValueError(f"no source has a difference in every pair, of the tokens {self.sources.tolist()}")
        return np.asarray(np.exp(np.mean(logs, axis=0)))

    def _curve(self, t: NDArray[np.int64], each: Array, layer: int, kind: str) -> Curve:
        keep = np.all((each > 0) & np.isfinite(each), axis=0)
        known = {"instrument": "response", "kind": kind, "layer": str(layer), "pairs": str(len(each))}
        if not keep.all():
            known["left out"] = f"{np.sum(~keep)} tokens without a response"
        return over_pairs(t[keep], each[:, keep], dict(self.provenance) | known)

    def _index(self, layer: int) -> int:
        if not 1 <= layer <= self.whole.shape[1]:
            raise ValueError(f"layer must be from 1 to {self.whole.shape[1]}, got {show(layer)}")
        return layer - 1


class ResponseRecorder:
    """Takes derivatives of the states of one pair, and keeps their sizes."""

    SOURCE: ClassVar[str] = "respond"

    def __init__(self, tokens: NDArray[np.int64], prompt: int, depth: int) -> None:
        at = sources(prompt)
        self.masks = np.zeros((at.size + 1, tokens.shape[1]), dtype=np.bool_)
        self.masks[np.arange(at.size), at - 1] = True
        self.masks[-1, :prompt] = True
        self.values = np.full((len(self.masks), depth + 1, tokens.shape[1]), np.nan)

    @staticmethod
    def shape(depth: int, _: int) -> tuple[int | None, ...]:
        """Return the shape of `result`; None, any number, for sources and for positions."""
        return (None, depth + 1, None)

    def take(self, layer: int, row: int, derivative: Any) -> None:
        """Note what the states of a layer gain, (n, width), of the mask `row`."""
        x = np.asarray(derivative, dtype=np.float64)
        self.values[row, layer] = np.sqrt(np.einsum("nd,nd->n", x, x))

    def result(self) -> Array:
        """Return the noted values, (S + 1, L + 1, N)."""
        if not np.all(np.isfinite(self.values)):
            raise ValueError("network must show finite derivatives at every layer, got none or NaN or inf")
        return self.values
