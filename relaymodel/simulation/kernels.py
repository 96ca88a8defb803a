r"""What a head of any recency needs to run in constant memory: its kernel as repeated sums and exponentials.

With $\delta = 1 - \gamma = m + f$, m whole and $0 < f < 1$ (or f = 0), the weights of THEORY section 10 are

$$ \frac{\Gamma(d+\delta)}{\Gamma(\delta)\,\Gamma(d+1)} = [q^d]\, (1-q)^{-\delta} = [q^d]\, (1-q)^{-m} (1-q)^{-f}: $$

a convolution with the kernel of order f, and then m running sums.  That kernel is completely monotone,

$$ \frac{\Gamma(d+f)}{\Gamma(f)\,\Gamma(d+1)} = \frac{\sin \pi f}{\pi} \int_0^\infty \frac{e^{-ad}\, da}{(e^a - 1)^f}
   \qquad (d \ge 1), $$

and the trapezoidal rule in log a makes it a sum of exponentials with positive weights.  Below a d of about 1/200 three
nodes, one of them 0, stand for all the others: their moments are those of the rule, geometric sums.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from relaymodel.exact.powersums import log_gamma_ratio
from relaymodel.simulation.grid import LogGrid

Array = NDArray[np.float64]

LONGEST_RUN = 2**40
"""Distances up to which the exponentials stand for the kernel."""
NODE_STEP = 0.31
"""Of the trapezoidal rule: an error of exp(-pi^2/NODE_STEP), some 1e-14, times a few."""
SMALL, LARGE = 5e-3, 36.0
"""Products a d between which the rule runs: below, nodes are lumped together; above, exp(-a) is nothing."""
EXACT = 128
"""Prompt tokens that are summed one by one."""


@dataclass(frozen=True, eq=False)
class Exponentials:
    """The kernel of order f at distances 1 to 2^40 is the sum of `weights` times exp(-rates d), shape (J,) each."""

    rates: Array
    weights: Array


@lru_cache(maxsize=64)
def exponentials(order: Fraction) -> Exponentials:
    """Return the exponentials of the kernel of an order between 0 and 1; right to 1e-12 relative.

    >>> found = exponentials(Fraction(1, 2))
    >>> distance = np.array([1.0, 2.0, 3.0])  # 1/2, 3/8, 5/16
    >>> (np.exp(-np.outer(distance, found.rates)) @ found.weights * [2, 8 / 3, 16 / 5]).round(11)
    array([1., 1., 1.])
    """
    f, rest = float(order), float(1 - order)
    count = math.ceil(math.log(LARGE * LONGEST_RUN / SMALL) / NODE_STEP)
    y = math.log(LARGE) - NODE_STEP * np.arange(count)
    a = np.exp(y)
    weights = NODE_STEP * np.exp(rest * y - f * np.log(np.expm1(a) / a))
    # moments, in units of the last node, of the nodes that would follow
    powers = rest + np.arange(5)
    moments = -NODE_STEP * np.exp(-NODE_STEP * powers) / np.expm1(-NODE_STEP * powers)
    n0, n1, n2, n3 = moments[1:]
    # the two-point Gauss rule of a times their measure is a three-point Radau rule of it
    b, c = (n1 * n2 - n0 * n3) / (n0 * n2 - n1 * n1), (n1 * n3 - n2 * n2) / (n0 * n2 - n1 * n1)
    far = math.sqrt(b * b / 4 - c) - b / 2
    near = c / far
    pair = np.array([n1 - near * n0, n1 - far * n0]) / (far - near) * [1 / far, -1 / near]
    lumped = np.array([far, near, 0.0])
    rates = np.concatenate([a, a[-1] * lumped])
    weights = np.concatenate([weights, a[-1] ** rest * np.append(pair, moments[0] - pair.sum())])
    return Exponentials(rates, weights * (math.sin(math.pi * min(f, rest)) / math.pi))


@dataclass(frozen=True)
class Kernel:
    """The weights of a head with position exponent g and order delta = 1 - gamma, without its relay strength.

    With a decay r below 1 (g = 0, delta = 1) they are $r^d$: one exponential and no sum.
    """

    position: Fraction
    order: Fraction
    decay: float = 1.0

    @property
    def sums(self) -> int:
        """m, the running sums."""
        return math.floor(self.order) if self.decay == 1 else 0

    @property
    def exponentials(self) -> Exponentials | None:
        """The exponentials of the kernel of order f, None if f = 0."""
        if self.decay < 1:
            return Exponentials(np.array([-math.log(self.decay)]), np.ones(1))
        f = self.order - self.sums
        return exponentials(f) if f else None

    @property
    def size(self) -> int:
        """How many numbers carry it from chunk to chunk."""
        return self.sums + (0 if self.exponentials is None else self.exponentials.rates.size)

    def near(self, count: int, order: Fraction | None = None) -> Array:
        """Return the kernel of order f, or another `order`, at distances 0..count-1; with a decay its powers."""
        if self.decay < 1:
            with np.errstate(under="ignore"):
                return np.asarray(self.decay ** np.arange(count), dtype=np.float64)
        d = np.arange(1.0, count)
        return np.concatenate(
            [[1.0], np.cumprod((d - 1 + float(self.order - self.sums if order is None else order)) / d)]
        )

    def weights(self, s: Array) -> Array | None:
        r"""Return $w_s = \Gamma(s+g)/\Gamma(s)$; None stands for 1."""
        return rising(s, float(self.position)) if self.position else None

    def total(self, n: Array, order: Fraction | None = None) -> Array:
        r"""Return the sum of all weights on position n.

        $\frac{\Gamma(1+g)}{\Gamma(1+g+\delta)} \frac{\Gamma(n+g+\delta)}{\Gamma(n)}$; after some of the sums `order`
        stands in for delta.  With a decay it is $(1-r^n)/(1-r)$.
        """
        if self.decay < 1:
            return np.asarray(np.expm1(n * math.log(self.decay)) / np.expm1(math.log(self.decay)))
        a = self.position + (self.order if order is None else order)
        front = math.exp(math.lgamma(1 + float(self.position)) - math.lgamma(1 + float(a)))
        return front * rising(n, float(a))

    def behind(self, prompt: int) -> tuple[Array, Array]:
        """Return the exponentials' states and the sums behind a prompt of ones, shapes (J,) and (m,)."""
        f, end = self.order - self.sums, np.array([float(prompt)])
        if self.decay < 1:
            return self.total(end), np.zeros(0)
        sums = np.array([self.total(end, f + i)[0] for i in range(1, self.sums + 1)])
        rates = np.zeros(0) if self.exponentials is None else self.exponentials.rates
        if prompt <= EXACT:
            s = np.arange(1.0, prompt + 1)
            return self._terms(s, s - prompt, rates).sum(axis=0), sums
        # smooth in log s up to the middle, and in the logarithm of the distance from the end behind it
        half = prompt // 2
        states = self._terms(end, np.zeros(1), rates)[0]
        for last, backwards in ((half, False), (prompt - half - 1, True)):
            # narrow panels, which do not reach far beyond the middle
            grid = LogGrid(last, rough=lambda a, b: b - a > 0.5)
            s = prompt - grid.nodes if backwards else grid.nodes
            terms = self._terms(s, s - prompt, rates)
            states = states + grid.read(grid.sums(terms).T, np.array([float(last)]))[:, 0]
        return states, sums

    def _terms(self, s: Array, behind: Array, rates: Array) -> Array:
        weights = self.weights(s)
        with np.errstate(under="ignore"):
            decayed: Array = np.exp(np.multiply.outer(behind, rates))
        return decayed if weights is None else weights[:, None] * decayed


def rising(n: Array, a: float) -> Array:
    r"""Return $\Gamma(n+a)/\Gamma(n)$ for n >= 1 and a > -1, to a few units of 1e-16 (1 + a)."""
    return np.asarray(np.exp(log_gamma_ratio(n, a + 1)) * (n + a + 1) ** (a + 1) / (n + a))
