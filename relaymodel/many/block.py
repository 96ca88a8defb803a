"""A block of a grid of models: what one task of a sweep evaluates."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from relaymodel.control import biased_influence
from relaymodel.control import many as biased
from relaymodel.exact import influence, local_exponent, many
from relaymodel.exact.promise import DEEPEST, LARGEST_PROMPT, LARGEST_T, STEEPEST_SERVED
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import PromptBias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from relaymodel.checks import Number

VALUES = ("influence", "local_exponent")


class Place(NamedTuple):
    """What values of different models are not shared between: everything but their strengths and depths."""

    prompt: int
    position: Number
    recency: Number
    sink: Number
    bias: Number

    @property
    def plain(self) -> bool:
        """Whether all strengths and depths share one set of sums, `many`."""
        small = self.prompt <= LARGEST_PROMPT and self.position <= STEEPEST_SERVED
        return self.recency == self.sink == self.bias == 0 and small

    @property
    def shares_grid(self) -> bool:
        """Whether all strengths and depths share one grid in log t."""
        return self.bias != 0 and self.position == self.recency == self.sink == 0


class Strength(NamedTuple):
    """The rest: depth, and strengths of equal layers."""

    depth: int
    relay: Number
    residual: Number

    @property
    def served(self) -> bool:
        """Whether `many` has it."""
        inside = all(-LARGEST_T <= strength <= LARGEST_T for strength in (self.relay, self.residual))
        return self.depth <= DEEPEST and self.relay != 0 and inside


def evaluate(
    places: list[Place], strengths: list[Strength], t: NDArray[Any], wanted: tuple[str, ...]
) -> dict[str, NDArray[np.float64]]:
    """Return the wanted values, shape (places, strengths, T) each.

    Every value is as good as that of a single call: what the shared sums cannot promise is asked for one by one.
    """
    shape = (len(places), len(strengths), len(t))
    out = {name: np.empty(shape) for name in wanted}
    missing = {name: np.ones(shape, dtype=bool) for name in wanted}
    times = t.astype(np.float64) if t.dtype != object else np.array([_float(x) for x in t])
    near = np.flatnonzero(times <= LARGEST_T)
    fast = np.array([q for q, s in enumerate(strengths) if s.served], dtype=np.intp)
    for g in {place.position for place in places if place.plain}:
        at = np.array([i for i, place in enumerate(places) if place.plain and place.position == g])
        if near.size and fast.size:
            prompts = np.array([float(places[i].prompt) for i in at])
            exponent = "local_exponent" in wanted
            found = many.influence(prompts, g, [strengths[q] for q in fast], times[near], exponent=exponent)
            whole = np.ix_(at, fast, near)
            for name in wanted:
                values, sure = found.alpha, found.alpha_sure
                if name == "influence":
                    values, sure = found.value, found.sure & (np.abs(found.value) >= sys.float_info.min)
                out[name][whole], missing[name][whole] = values, ~sure
    for prompt in {place.prompt for place in places if place.shares_grid}:
        at = np.array([i for i, place in enumerate(places) if place.shares_grid and place.prompt == prompt])
        both = biased.biased_influence(prompt, [places[i].bias for i in at], strengths, times)
        lost = ~np.isfinite(both[0]) | (np.abs(both[0]) < sys.float_info.min)
        for name in wanted:
            out[name][at], missing[name][at] = both[VALUES.index(name)], lost
    for name in wanted:
        for i, q in np.argwhere(missing[name].any(axis=2)).tolist():
            here = missing[name][i, q]
            out[name][i, q, here] = single(name, places[i], strengths[q], t[here])
    return out


def single(name: str, place: Place, strength: Strength, t: NDArray[Any]) -> NDArray[np.float64]:
    """Return the values of one model."""
    prompt, position, recency, sink, strength_of_bias = place
    model = RelayModel.uniform(prompt, *strength, position, recency, sink)
    if strength_of_bias == 0:
        return influence(model, t) if name == "influence" else local_exponent(model, t)
    if name == "influence":
        return np.asarray(biased_influence(model, PromptBias(strength_of_bias), t))
    raise ValueError(
        "local_exponent must not be asked for with a bias beside a position, a recency or a sink, or values beyond "
        "the range of float64, where D is known token by token; ask for quantities=['influence']"
    )


def _float(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:
        return float("inf")
