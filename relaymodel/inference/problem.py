"""The relay model as a regression, and where to start it."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from relaymodel.checks import positive_integer, show
from relaymodel.curve import Curve
from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.parameters import Coordinates
from relaymodel.inference.regression import Problem
from relaymodel.inference.shape import Shape
from relaymodel.inference.window import UnderdeterminedError, stated_prompt

LONGEST = 10**6
"""Longest prompt of a fit."""

SETS_AT_ONCE = 256
"""Sets of parameters whose curves are kept in memory at once."""


def relay_problem(
    curves: Sequence[Curve],
    prompt: int,
    coordinates: Coordinates,
    layers: Sequence[int | None],
    amplitude: float | None,
) -> Problem:
    """Return the regression of curves on the same t by the relay model."""
    cells = Cells.of(curves[0])
    y = np.stack([cells.log(curve) for curve in curves], axis=1)
    shape = _cached(prompt, cells.times.tobytes())
    offset = 0.0 if amplitude is None else float(np.log(amplitude))
    depths = [np.nan if layer is None else float(layer) for layer in layers]

    def means(theta: Array) -> Array:
        values = coordinates.values(theta)
        M, B = theta.shape[1], len(depths)
        tiled = {name: np.tile(value, B) for name, value in values.items()}
        given = np.repeat(depths, M)
        depth = np.where(np.isnan(given), tiled["depth"], given)
        log = shape.log_influence(**{**tiled, "depth": depth}) + offset
        return cells.over(log.reshape(-1, B, M))

    low, high = coordinates.bounds
    problem = Problem(cells, y, means, low, high, free=amplitude is None)
    needed = problem.size + y.shape[1] + 3
    if cells.x.size < needed:
        raise UnderdeterminedError(
            f"the curve must hold at least {needed} points for {problem.size} parameters and a factor, got "
            f"{cells.x.size}; hold some of them, or sample more densely",
            partial=float((y[0, 0] - y[-1, 0]) / cells.length),
        )
    return problem


@lru_cache(maxsize=16)
def _cached(prompt: int, t: bytes) -> Shape:
    return Shape(prompt, np.frombuffer(t))


def starting_points(problem: Problem, coordinates: Coordinates, count: int = 3) -> list[Array]:
    """Return the best points (p,) of a grid, under white noise, that are not next to each other."""
    grid = coordinates.grid()
    parts = np.array_split(grid, math.ceil(grid.shape[1] / SETS_AT_ONCE), axis=1)
    residual = problem.y[..., None] - np.concatenate([problem.means(part) for part in parts], axis=-1)
    weights = problem.cells.weights[:, None, None]
    if problem.free:
        residual = residual - np.mean(weights * residual, axis=0)
    order = np.argsort(np.sum(weights * residual**2, axis=(0, 1)))
    chosen: list[Array] = []
    for k in order:
        if all(np.max(np.abs(grid[:, k] - other), initial=0.0) > 1.2 for other in chosen):
            chosen.append(grid[:, k])
        if len(chosen) == count:
            break
    return chosen


def prompt_of(curve: Curve, prompt: int | None) -> int:
    """Return the prompt length that was given, or that the curve states."""
    if prompt is not None:
        length = positive_integer("prompt", prompt)
    else:
        stated = stated_prompt(curve)
        if stated is None:
            got = show(curve.provenance.get("prompt", ""))
            raise ValueError(f"prompt must be given, since the curve's provenance states no prompt length, got {got}")
        length = stated
    if length > LONGEST:
        raise ValueError(f"prompt must be at most {LONGEST} in a fit, got {length}")
    return length
