r"""The bound itself: a relay recursion in positive numbers, each rounded up, of any size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import UNIT, log2, scaled
from relaymodel.model import Layer

Array = NDArray[np.float64]

TINY = 1e-300  # stands for every positive number that would fall below it


@dataclass(frozen=True, eq=False)
class Majorant:
    r"""Upper bounds on the distances of two runs: `mantissa` times 2^`exponent`.

    Attributes
    ----------
    mantissa
        Shape (L + 1, N), with entries of at most 1: layer 0 to L, positions 1 to N.
    exponent
        Shape (L + 1,).
    """

    mantissa: Array
    exponent: NDArray[np.int64]

    @property
    def log10(self) -> Array:
        """Shape (L + 1, N): decimal logarithms; minus infinity where the bound is 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log10(self.mantissa) + self.exponent[:, None] * np.log10(2.0))

    def covers(self, layer: int, distance: Array) -> NDArray[np.bool_]:
        """Return where distances, (..., N'), the last N' positions, are at most the bound at a layer."""
        last = self.mantissa[layer, -distance.shape[-1] :]
        with np.errstate(over="ignore"):
            return np.asarray((np.ldexp(distance, -self.exponent[layer]) <= last) & ((last > 0) | (distance == 0)))


def majorant(layers: tuple[Layer, ...], start: Array, prompt: int, sources: Array | None = None) -> Majorant:
    r"""Return $x^{l+1}_n = \rho_l x^l_n + \lambda_l \frac1n \sum_{s\le n} x^l_s$, rounded up (THEORY section 1).

    `start` has shape (N,) or is a number, the difference at each of the first P positions and 0 behind them.  With
    `sources`, (L + 1, P), the differences at the first P positions are not computed but given, layer by layer.

    Every entry is a sum of positive terms, so rounding is a relative error of at most (N + 8) 2^-52 a layer.
    """
    size = len(start)
    n = np.arange(1, size + 1)
    up = 1 + (size + 16) * 2 * UNIT
    x = np.array(start, dtype=np.float64)
    if sources is not None:
        x[:prompt] = sources[0]
    exponent = 0
    rows, exponents = [], []
    for l in range(len(layers) + 1):
        largest = float(x.max())
        if largest > 0:
            shift = log2(largest)
            x = _shift(x, -shift)
            exponent += shift
        rows.append(x.copy())
        exponents.append(exponent)
        if l == len(layers):
            break
        relay, residual = layers[l].relay, layers[l].residual
        power = max((log2(value) for value in (relay, residual) if value > 0), default=0)
        mean = np.cumsum(x) / n
        there = (x > 0) * (residual > 0) | (mean > 0) * (relay > 0)
        x = np.maximum((scaled(residual, power) * x + scaled(relay, power) * mean) * up, TINY * there)
        exponent += power
        if sources is not None:
            # a step down to the given values never loses what is behind them: x only falls on the prompt
            x[:prompt] = _shift(sources[l + 1], -exponent) * up
    return Majorant(np.array(rows), np.array(exponents, dtype=np.int64))


def _shift(x: Array, power: int) -> Array:
    """Return x times 2^power, never less, where it leaves the range of floats below."""
    return np.asarray(np.maximum(np.ldexp(x, power), TINY * (x > 0)))
