r"""Influence by contours: one for each band of t, and on many points a Chebyshev polynomial in log t for each band.

A band is a factor 4 in t.  What is interpolated is the integral times $((N+c)/(P+c))^\kappa$, kappa = c or, where that
is not smooth enough, the mean slope of the band.  It is smooth in log t: its singularities, at t <= 0, are at least
$\pi$ from the real axis, 4.5 half-widths of the band away, so that the coefficients fall as 8.9^-k.  A band whose last
coefficients do not fall to `TAIL` of its least value is not interpolated: its points are evaluated one by one.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from relaymodel.exact.contour import Contour, ContourError, build, digamma_rise, exponential, factors
from relaymodel.exact.residues import SMALLEST_SUM, Sums, front
from relaymodel.exact.spectrum import Symbol, symbol
from relaymodel.model import RelayModel

BAND_WIDTH = float(np.log(4))  # one contour for each factor of 4 in t
CHEBYSHEV_DEGREE = 19  # of the polynomial in log t of a band
TAIL = 4e-14  # of a band's least value: what the last three coefficients may add up to
POINTS_ALONE = 6  # points of a band that are evaluated one by one rather than interpolated
ALONE = 16  # sources below have contours of their own
ENTRIES = 1 << 17  # of the largest matrix of points and nodes

Array = NDArray[np.float64]

_POINTS = np.cos(np.pi * (np.arange(CHEBYSHEV_DEGREE + 1) + 0.5) / (CHEBYSHEV_DEGREE + 1))
_FIT = np.linalg.inv(chebyshev.chebvander(_POINTS, CHEBYSHEV_DEGREE))
_POWERS = np.array(
    [
        np.pad(chebyshev.cheb2poly(row), (0, CHEBYSHEV_DEGREE + 1))[: CHEBYSHEV_DEGREE + 1]
        for row in np.eye(CHEBYSHEV_DEGREE + 1)
    ]
)


@dataclass(frozen=True, eq=False)
class Integral:
    """The integral, t times its falling slope, and the sizes of what was added up for each; shape (T,)."""

    value: Array
    size: Array
    slope: Array
    slope_size: Array


@dataclass(eq=False)
class NodeTable:
    """The contours and polynomials of one model and kind, each made when first asked for."""

    model: RelayModel
    contours: dict[int, Contour | None] = field(default_factory=dict)
    rows: dict[tuple[int, bool], Array | None] = field(default_factory=dict)

    @property
    def symbol(self) -> Symbol:
        """The symbol of the model."""
        return symbol(self.model)

    def contour(self, band: int) -> Contour | None:
        """Return the contour of a band, None if there is none."""
        if band not in self.contours:
            ends = np.exp(BAND_WIDTH * band), np.exp(BAND_WIDTH * (band + 1))
            try:
                a = self.model.prompt + self.symbol.shift
                found = build(self.symbol, (a, a), ends, token=False)
            except ContourError:
                found = None
            self.contours[band] = found
        return self.contours[band]

    def points(self, band: int, t: Array, *, exponent: bool) -> Integral:
        """Return the integral at points of one band, each by its sum over the nodes; NaN where no contour serves."""
        contour, c = self.contour(band), self.symbol.shift
        value, size, slope, slope_size = np.full((4, t.size), np.nan)
        if contour is None:
            return Integral(value, size, slope, slope_size)
        N = self.model.prompt + t
        root = front(float(self.model.prompt), N, c, self.symbol.rest)
        step = max(1, ENTRIES // contour.nodes.size)
        for part in (slice(i, i + step) for i in range(0, t.size, step)):
            a = np.full((t[part].size, 1), self.model.prompt + c)
            terms = contour.weights * exponential(a, t[part, None], contour.nodes)
            value[part], size[part] = terms.imag.sum(axis=1), np.abs(terms) @ contour.doubt
            if exponent:
                terms *= t[part, None] * digamma_rise(N[part, None], c - contour.nodes)
                slope[part], slope_size[part] = terms.imag.sum(axis=1), np.abs(terms) @ contour.doubt
        # in two halves: the power of t alone may leave the float range
        return Integral(*(root * (root * np.ldexp(x, contour.exponent)) for x in (value, size, slope, slope_size)))

    def row(self, band: int, *, exponent: bool) -> Array | None:
        """Return a band's coefficients of s^k, s from -1 to 1, the size, and kappa; None where it is not smooth."""
        if (band, exponent) not in self.rows:
            t = np.exp(BAND_WIDTH * (band + 0.5 + 0.5 * _POINTS))
            found = self.points(band, t, exponent=exponent)
            y, size = (found.slope, found.slope_size) if exponent else (found.value, found.size)
            self.rows[band, exponent] = None
            ratio = self.ratio(t)
            with np.errstate(all="ignore"):
                mean = np.log(size[0] / size[-1]) / np.log(ratio[0] / ratio[-1])
                for kappa in (self.symbol.shift, mean):
                    power = ratio**kappa
                    coefficients = _FIT @ (y / power)
                    if np.abs(coefficients[-3:]).sum() <= TAIL * np.min(size / power):
                        self.rows[band, exponent] = np.array([*_POWERS.T @ coefficients, np.max(size / power), kappa])
                        break
        return self.rows[band, exponent]

    def ratio(self, t: Array) -> Array:
        """Return (P + c) / (N + c)."""
        start = self.model.prompt + self.symbol.shift
        return start / (start + t)

    def evaluate(self, t: Array, *, exponent: bool) -> Integral:
        """Return the integral at any t > 0."""
        x = np.log(t) / BAND_WIDTH
        whole = np.floor(x)
        bands, index, counts = np.unique(whole.astype(int), return_inverse=True, return_counts=True)
        result = np.full((4, t.size), np.nan)
        rows: list[list[Array | None]] = [[], []]
        for band, count in zip(bands.tolist(), counts.tolist(), strict=True):
            for kind in range(1 + exponent):
                known = count > POINTS_ALONE or (band, bool(kind)) in self.rows
                rows[kind].append(self.row(band, exponent=bool(kind)) if known else None)
        chosen = [all(row is not None for row in pair) for pair in zip(*rows[: 1 + exponent], strict=True)]
        smooth = np.array(chosen)[index]
        if smooth.any():
            at = slice(None) if smooth.all() else smooth
            s, where, ratio = 2 * (x[at] - whole[at]) - 1, index[at], self.ratio(t[at])
            for kind in range(1 + exponent):
                table = np.array([row if row is not None else np.zeros(CHEBYSHEV_DEGREE + 3) for row in rows[kind]]).T
                total = table[CHEBYSHEV_DEGREE][where]
                for coefficients in table[CHEBYSHEV_DEGREE - 1 :: -1]:
                    total *= s
                    total += coefficients[where]
                kappa = table[-1]
                power = (
                    ratio if np.all(kappa == 1) else ratio ** (kappa[0] if np.all(kappa == kappa[0]) else kappa[where])
                )
                result[2 * kind, at], result[2 * kind + 1, at] = total * power, table[-2][where] * power
        for k in np.flatnonzero(~np.array(chosen)):
            here = index == k
            found = self.points(int(bands[k]), t[here], exponent=exponent)
            result[:, here] = found.value, found.size, found.slope, found.slope_size
        return Integral(*result)


@lru_cache(maxsize=64)
def table(model: RelayModel) -> NodeTable:
    """Return the table of a model, made once."""
    return NodeTable(model)


def influence(model: RelayModel, t: Array, *, exponent: bool) -> Sums:
    """Return D(t) and, if `exponent`, alpha(t), with condition numbers that are infinite where no contour serves."""
    plateau = float(model.plateau)
    found = table(model).evaluate(t, exponent=exponent)
    value = plateau + found.value
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        condition = (abs(plateau) + found.size) / np.abs(value)
        alpha = found.slope / value if exponent else np.zeros_like(value)
        if exponent:
            condition = condition * np.abs(alpha) + found.slope_size / np.abs(value)
        sure = np.isfinite(condition) & (np.abs(value) >= SMALLEST_SUM)
    return Sums(value, alpha, np.where(sure, condition, np.inf))


@lru_cache(maxsize=1024)
def _token_contour(model: RelayModel, source: int, span: int) -> Contour | None:
    """Return a contour for the tokens of a class; see `_classes`."""
    first, last = (source, source) if source < ALONE else (1 << source - ALONE, (2 << source - ALONE) - 1)
    g = float(symbol(model).lowest)
    try:
        return build(symbol(model), (first + g, last + g), (4.0**span, 4.0 ** (span + 1)), token=True)
    except ContourError:
        return None


def _classes(source: Array, target: Array) -> tuple[Array, Array]:
    """Return the class of the source, itself below `ALONE` and an octave beyond, and the factor 4 of the span."""
    octave = np.frexp(source)[1] - 1
    return np.where(source < ALONE, source, ALONE + octave), (np.frexp(target - source + 1)[1] - 1) // 2


def token_influence(model: RelayModel, source: Array, target: Array) -> Sums:
    """Return the weight of token `source` on `target` >= `source`, both of shape (T,)."""
    found = symbol(model)
    value, size = np.full((2, source.size), np.nan)
    kinds = np.stack([*_classes(source, target), source == target]).astype(int)
    for kind in np.unique(kinds, axis=1).T:
        here = np.flatnonzero(np.all(kinds == kind[:, None], axis=0))
        s, n = source[here], target[here]
        if kind[2]:
            z = n + float(found.lowest) + 0j
            value[here] = np.prod(np.array(factors(found, z)[0]), axis=0).real
            size[here] = np.prod(np.array(factors(found, z, size=True)[0]), axis=0).real
        elif (contour := _token_contour(model, int(kind[0]), int(kind[1]))) is not None:
            root = front(s, n, found.shift, found.rest)
            own = 1 / (s + float(found.lowest))
            step = max(1, ENTRIES // contour.nodes.size)
            for part in (slice(i, i + step) for i in range(0, s.size, step)):
                a, span = s[part, None] + float(found.lowest), n[part, None] - s[part, None] + 1
                terms = contour.weights * exponential(a, span, contour.nodes)
                unit = np.ldexp(own[part], contour.exponent)
                value[here[part]] = root[part] * (root[part] * (unit * terms.imag.sum(axis=1)))
                size[here[part]] = root[part] * (root[part] * (unit * (np.abs(terms) @ contour.doubt)))
    plateau = np.where(source == 1, float(model.plateau), 0.0)
    value = value + plateau
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        condition = (np.abs(plateau) + size) / np.abs(value)
    sure = np.isfinite(condition) & (np.abs(value) >= SMALLEST_SUM)
    return Sums(value, np.zeros_like(value), np.where(sure, condition, np.inf))
