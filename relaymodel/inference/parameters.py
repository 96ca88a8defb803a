"""The parameters of the relay model in a fit: bounds, coordinates of order 1, what is held, and estimates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relaymodel.checks import floating, show
from relaymodel.inference.cells import Array
from relaymodel.inference.shape import DEEPEST_FITTED

BOUNDS: dict[str, tuple[float, float]] = {
    "relay": (1e-3, 16.0),
    "depth": (1.0, float(DEEPEST_FITTED)),
    "position": (-0.98, 4.0),
    "bias": (-1.0, 3.0),
    "recency": (-4.0, 0.99),
    "sink": (0.0, 4.0),
}
"""Where the parameters are looked for.  Beyond these ends nothing changes in a curve that noise would let one see."""

GRID: dict[str, tuple[float, ...]] = {
    "relay": (0.02, 0.06, 0.15, 0.4, 1.0, 2.5, 6.0),
    "depth": (1.3, 2.0, 3.5, 6.0, 11.0, 20.0, 40.0),
    "position": (-0.7, -0.3, 0.0, 1.0),
    "bias": (0.0, 0.4, 0.9, 1.4),
    "recency": (-1.0, 0.3, 0.7, 0.9),
    "sink": (1e-6, 1e-3, 0.1),
}
"""Where starting points are tried."""

LARGEST_START = 2000
"""Points of a grid; of more parameters it takes every other relay and depth, and then of all."""

FAINT = 1e-7
"""A sink is told from none by about as much."""


@dataclass(frozen=True)
class Coordinates:
    """Which parameters move, and the way from coordinates of order 1 to their values and back."""

    held: Mapping[str, float]

    @classmethod
    def of(cls, **values: object) -> "Coordinates":
        """Check the values to hold; None lets a parameter move, and what is not given is held at 0."""
        given = {name: values.get(name, 0) for name in BOUNDS}
        return cls({name: bounded(name, value) for name, value in given.items() if value is not None})

    @property
    def moving(self) -> list[str]:
        """Names of the fitted parameters, in the order of the coordinates."""
        return [name for name in BOUNDS if name not in self.held]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds of the coordinates, each of shape (p,)."""
        low, high = (np.array([inward(name, BOUNDS[name][i]) for name in self.moving]) for i in (0, 1))
        return low, high

    def values(self, theta: Array) -> dict[str, Array]:
        """Return all parameters, each of shape (M,), at coordinates (p, M)."""
        found = {name: outward(name, theta[i]) for i, name in enumerate(self.moving)}
        return {name: found[name] if name in found else np.full(theta.shape[1], self.held[name]) for name in BOUNDS}

    def grid(self) -> Array:
        """Return coordinates (p, M) of a grid over all that moves."""
        axes = [[inward(name, value) for value in GRID[name]] for name in self.moving]
        for coarse in (("relay", "depth"), BOUNDS):
            if math.prod(map(len, axes)) > LARGEST_START:
                axes = [a[::2] if name in coarse else a for name, a in zip(self.moving, axes, strict=True)]
        mesh: Array = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")]) if axes else np.zeros((0, 1))
        return mesh


def bounded(name: str, value: object) -> float:
    """Return the value of a parameter that is to be held, within its bounds."""
    number, (low, high) = floating(name, value), BOUNDS[name]
    if not low <= number <= high:
        raise ValueError(f"{name} must be None, to be fitted, or {low:g} to {high:g}, got {show(value)}")
    return number


def inward(name: str, value: float) -> float:
    """Return the coordinate of a parameter's value."""
    if name == "bias":
        return value
    if name == "recency":
        return -math.log1p(-value)
    return math.log1p(value) if name == "position" else math.log(value + (FAINT if name == "sink" else 0))


def outward(name: str, coordinate: Array) -> Array:
    """Return the value of a parameter at a coordinate."""
    if name == "bias":
        return coordinate
    if name == "recency":
        return np.asarray(-np.expm1(-coordinate))
    value: Array = np.expm1(coordinate) if name == "position" else np.exp(coordinate)
    return np.maximum(value - FAINT, 0) if name == "sink" else value


def slope(name: str, value: float) -> float:
    """Return the derivative of a parameter's value by its coordinate."""
    return {"bias": 1.0, "position": 1 + value, "recency": 1 - value, "sink": value + FAINT}.get(name, value)
