r"""The influence at a single t in plain Python: what arrays of one entry cost is mostly the arrays.

It serves layers of one head of recency 0, all of one position exponent, and t far enough for `expansion`, whose
formula it is.  The weights E_k come from products of float64, whose roundings, 3 L, and those of the parameters, L,
count beside those of `residues`; the condition number and what it is held against are the same.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, repeat
from operator import mul

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import Number
from relaymodel.exact import expansion
from relaymodel.exact.powersums import SHIFT, STIRLING, log_gamma_ratio
from relaymodel.exact.promise import DEEPEST, LARGEST_PROMPT, PROMISE, STEEPEST_SERVED, rounding_error
from relaymodel.exact.residues import SMALLEST_SUM
from relaymodel.exact.spectrum import merged, rational
from relaymodel.model import Head, RelayModel

MOST_KEPT = 256  # models
LARGEST_STRENGTH_SERVED = 1000  # to the power of the depth it is far from the end of float64

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Origin:
    """What depends on the prompt, the position exponent and the depth alone, in the notation of `expansion`.

    `table` makes the entries of A from the E_k.
    """

    prompt: float
    c: float
    rest: float
    y: float
    reach: list[float]
    table: Array
    log_gamma: float

    @property
    def nearest(self) -> float:
        """The least t."""
        return max(self.reach[0] - self.y, SHIFT - self.prompt)


@dataclass(slots=True)
class Point:
    """A model at every t: its matrices A for weights and for their magnitudes, None if these are equal."""

    model: RelayModel
    origin: Origin | None  # None: the model is not one of those served here
    rows: list[list[float]]
    sizes: list[list[float]] | None
    most: float  # condition number that the promise bears


_points: dict[int, Point] = {}  # by identity: the hash of a new model costs more than its value


def influence(model: RelayModel, t: float) -> float | None:
    """Return D(t) where it keeps the promise of `influence` by its condition number, else None."""
    point = _points.get(id(model))
    if point is None or point.model is not model:
        point = _prepare(model)
    origin = point.origin
    if origin is None or t < origin.nearest:
        return None
    c, y = origin.c, origin.y + t
    inverse, log = 1 / y, c * math.log1p(t / origin.y)
    powers, power = [1.0], 1.0
    for _ in range(len(point.rows[0]) - 1):
        power *= log
        powers.append(power)
    terms = 1 + len(origin.reach) - bisect_right(origin.reach, y)
    N = origin.prompt + t
    root = math.sqrt(origin.prompt / N)
    if c != 1 or origin.rest:
        quotient = (origin.prompt + c) / (N + c)
        correction = origin.rest * math.log(quotient) if origin.rest else 0.0
        if c != 1:
            root, correction = quotient ** (0.5 * c), correction + origin.log_gamma - _log_gamma_ratio(N, c)
        root *= math.exp(0.5 * correction)
    value = root * (root * _horner(point.rows, terms, inverse, powers))
    size = abs(value)
    if not SMALLEST_SUM <= size < math.inf:
        return None
    if point.sizes is not None:
        size = root * (root * _horner(point.sizes, terms, inverse, powers))
    return value if size <= point.most * abs(value) else None


def _horner(rows: list[list[float]], terms: int, inverse: float, powers: list[float]) -> float:
    total = 0.0
    for row in rows[terms - 1 :: -1]:
        total = total * inverse + sum(map(mul, row, powers))
    return total


def _log_gamma_ratio(x: float, c: float) -> float:
    """Return log Gamma(x+c)/Gamma(x) - c log(x+c), x >= 32; see `powersums.log_gamma_ratio`."""
    return (x - 0.5) * math.log1p(c / x) - c + _stirling(x + c) - _stirling(x)


def _stirling(x: float) -> float:
    inverse, total = 1 / x, 0.0
    square = inverse * inverse
    for coefficient in reversed(STIRLING):
        total = total * square + coefficient
    return total * inverse


def _prepare(model: RelayModel) -> Point:
    """Return what is kept of a model; equal heads of a layer are one."""
    served = model
    if any(len(layer.heads) > 1 for layer in model.layers) and not any(layer.sink for layer in model.layers):
        served = merged(model)
    position = _position(served)
    point = Point(model, None, [], None, 0.0)
    found = None if position is None else _tail_sums(served)
    if position is not None and found is not None:
        origin = _origin(model.prompt, position, model.depth)
        weights, sizes = found
        rows = _rows(origin, weights)
        error = rounding_error(model.depth) + 4 * model.depth * 2.0**-53
        most = PROMISE / error / max(1.0, origin.c / 5)
        point = Point(model, origin, rows, None if sizes is None else _rows(origin, sizes), most)
    if len(_points) >= MOST_KEPT:
        _points.clear()
    _points[id(model)] = point
    return point


def _position(model: RelayModel) -> Number | None:
    """Return the position exponent of all heads, None if the model is not one of those served here."""
    if model.prompt > LARGEST_PROMPT or model.depth > DEEPEST:
        return None
    found: Head | None = None
    for layer in model.layers:
        head = layer.heads[0]
        if head is not found:
            if layer.sink or len(layer.heads) > 1 or head.recency or head.decay != 1 or not head.relay:
                return None
            if head.position > STEEPEST_SERVED or (found is not None and head.position != found.position):
                return None
            found = head
    return None if found is None else found.position


@lru_cache(maxsize=32)
def _origin(prompt: int, position: Number, depth: int) -> Origin:
    known = expansion.front(prompt, rational(Fraction(position)), depth)
    c = 1 + float(position)
    rest = float(1 + Fraction(position) - Fraction(c))
    log_gamma = float(log_gamma_ratio(np.array([float(prompt)]), c)[0])
    table = np.zeros((depth, len(known.series), depth))
    for j in range(depth):  # E_k takes the coefficient of x^(k-j)
        table[j:, :, j] = known.series[:, : depth - j].T / math.factorial(j)
    return Origin(float(prompt), c, rest, known.start, known.reach[::-1].tolist(), table.reshape(depth, -1), log_gamma)


def _tail_sums(model: RelayModel) -> tuple[list[float], list[float] | None] | None:
    """Return the E_k, and those of absolute strengths, None if no strength is negative; None if one is too large."""
    different = {id(layer): layer for layer in model.layers}
    try:
        pairs = {key: (float(layer.heads[0].relay), float(layer.residual)) for key, layer in different.items()}
    except OverflowError:
        return None
    if max(max(map(abs, pair)) for pair in pairs.values()) > LARGEST_STRENGTH_SERVED:
        return None
    if len(pairs) == 1:
        [(relay, residual)] = pairs.values()
        L = model.depth
        paths = list(map(mul, _binomials(L), accumulate(repeat(relay, L), mul, initial=1.0)))
        if residual != 1:
            paths = list(map(mul, paths, list(accumulate(repeat(residual, L), mul, initial=1.0))[::-1]))
    else:
        paths = _paths(pairs[id(layer)] for layer in model.layers)
    if all(relay >= 0 <= residual for relay, residual in pairs.values()):
        return _tails(paths), None
    sizes = _paths((abs(relay), abs(residual)) for relay, residual in (pairs[id(layer)] for layer in model.layers))
    return _tails(paths), _tails(sizes)


def _paths(strengths: Iterable[tuple[float, float]]) -> list[float]:
    """Return the coefficients of the product of (residual + relay u), the same in any order of layers."""
    paths = [1.0]
    for relay, residual in sorted(strengths):
        paths = [residual * a + relay * b for a, b in zip([*paths, 0.0], [0.0, *paths], strict=True)]
    return paths


def _tails(paths: list[float]) -> list[float]:
    return list(accumulate(paths[:0:-1]))[::-1]


@lru_cache(maxsize=64)
def _binomials(L: int) -> list[float]:
    return [float(math.comb(L, j)) for j in range(L + 1)]


def _rows(origin: Origin, weights: list[float]) -> list[list[float]]:
    """Return A of `expansion`."""
    m = len(weights)
    rows: list[list[float]] = (np.array(weights) @ origin.table).reshape(-1, m).tolist()
    return rows
