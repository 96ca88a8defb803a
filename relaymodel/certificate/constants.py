r"""The theorem's constants, and the relay layer that they make (THEORY section 8)."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import SCALAR, above, exponential, product
from relaymodel.certificate.runs import BlockRun
from relaymodel.certificate.weights import BlockNorms, MLPNorms
from relaymodel.checks import Number
from relaymodel.model import Layer
from relaymodel.networks.transformer import Architecture

Array = NDArray[np.float64]

MARGIN = 1e-6
"""Every relay and residual strength is enlarged by it, which covers the rounding of the states themselves."""


BEYOND = (
    "network must have weights and activation floors whose products float64 can hold, and what a block makes of them "
    "is beyond it: no bound can be written down"
)


@dataclass(frozen=True)
class Constants:
    r"""The constants of one block, each rounded up (floors down); per-head sums are over all heads.

    Gains are folded into the norms of matrices, so that $\kappa = 2/\min(\sigma+\tilde\sigma)$ alone.

    Attributes
    ----------
    kappa, kappa_2
        The activation floors before the attention and the MLP.
    omega
        $\max n A_{ns}$: the bounded logits; an integer where it is beyond floats.
    query, key, query_norm, key_norm, value_norm
        For each head: $Q = \max|q|$, $K = \max|k|$, $|W_Q|$, $|W_K|$, $|W_V W_O|$.
    key_radius, value_radius
        For each head: $R_K$, $R_V$, the radii of the keys, and of the values behind $W_O$, about a centre.
    together, side_by_side
        $|\sum_h W_V^h W_O^h|$, and $|W_V|\,|W_O|$ with all heads side by side.
    mu
        The secant gain of the MLP; 0 if there is none.
    head_size
        $d_h$.
    """

    kappa: float
    kappa_2: float
    omega: Number
    query: tuple[float, ...]
    key: tuple[float, ...]
    query_norm: tuple[float, ...]
    key_norm: tuple[float, ...]
    value_norm: tuple[float, ...]
    key_radius: tuple[float, ...]
    value_radius: tuple[float, ...]
    together: float
    side_by_side: float
    mu: float
    head_size: int

    @property
    def c_q(self) -> tuple[float, ...]:
        r"""For each head $c_q = |W_Q|\,\kappa K/\sqrt{d_h}$."""
        root = math.sqrt(self.head_size)
        return tuple(
            above(product(w, self.kappa, k, over=root)) for w, k in zip(self.query_norm, self.key, strict=True)
        )

    @property
    def c_k(self) -> tuple[float, ...]:
        r"""For each head $c_k = |W_K|\,\kappa Q/\sqrt{d_h}$."""
        root = math.sqrt(self.head_size)
        return tuple(
            above(product(w, self.kappa, q, over=root)) for w, q in zip(self.key_norm, self.query, strict=True)
        )

    @property
    def value(self) -> float:
        r"""$\sum_h |W_V^h W_O^h|\,\kappa$."""
        return above(product(sum(self.value_norm), self.kappa))

    @property
    def query_part(self) -> float:
        r"""$\sum_h c_q R_V$."""
        return above(sum(map(product, self.c_q, self.value_radius)))

    @property
    def key_part(self) -> float:
        r"""$\sum_h c_k R_V$."""
        return above(sum(map(product, self.c_k, self.value_radius)))

    @property
    def spread(self) -> float:
        r"""$\sum_h |W_Q|\,\kappa R_K R_V/\sqrt{d_h}$."""
        parts = sum(map(product, self.query_norm, self.key_radius, self.value_radius))
        return above(product(parts, self.kappa, over=math.sqrt(self.head_size)))

    def section_8(self) -> Layer:
        r"""Return the layer of THEORY section 8.

        $\rho = (1+\mu)(1 + 6\sum_h c_q R_V)$, $\lambda = (1+\mu)\,\omega \sum_h(|W_V W_O|\,\kappa + 3 c_k R_V)$.
        """
        return self._layer(6 * self.query_part, self.value + 3 * self.key_part)

    def covariance(self) -> Layer:
        r"""Return the layer of the covariance identity (`relaymodel.certificate.runs`).

        $\rho = (1+\mu)(1+\sum_h |W_Q|\kappa R_K R_V/\sqrt{d_h})$, $\lambda = (1+\mu)\,\omega\,(V\kappa +
        2\sum_h c_k R_V)$.  The covariance of keys and values is at most $R_K R_V$; a value is at most $2R_V$ from their
        mean.  V is the least of $\sum_h|W_V W_O|$, $|W_V||W_O|$ and, for weights $n A^h_{ns}$ from 0 to $\omega$,
        $(|\sum_h W_V^hW_O^h| + |W_V||W_O|)/2$.
        """
        side_by_side, half = self.side_by_side, (self.together + self.side_by_side) / 2
        together = min(self.value, product(self.kappa, side_by_side), product(self.kappa, half))
        if len(self.value_norm) == 1:
            together = min(together, product(self.kappa, self.together))
        return self._layer(self.spread, above(together) + 2 * self.key_part)

    def _layer(self, own: float, relayed: float) -> Layer:
        gain = (1 + self.mu) * (1 + MARGIN)
        if not math.isfinite(gain * (own + relayed)):
            raise ValueError(BEYOND)
        return Layer(times(above(gain * relayed), self.omega), above(gain * (1 + own)))


def times(factor: float, number: Number) -> Number:
    """Return at least factor * number, as an integer where floats end."""
    if factor == 0:
        return 0.0
    if number == math.inf:
        return number
    if isinstance(number, float) and math.isfinite(factor * number):
        return above(factor * number)
    mantissa, power = math.frexp(factor * SCALAR)
    exact = (int(math.ldexp(mantissa, 53)) + 1) * math.ceil(number)
    return exact << power - 53 if power >= 53 else -(-exact >> 53 - power)


def from_weights(norms: BlockNorms, a: Architecture, floor: float, bias: float) -> Constants:
    r"""Return the constants that hold for every text, from the weights and a floor of all activations.

    $|u_0| \le \sqrt d$, so that K is $|W_K|\sqrt d + |b_K|$ and so on, and $\omega \le e^{2QR_K/\sqrt{d_h}}$, times
    `bias`, the most that a bias adds to it.
    """
    w, root = norms.attention, above(math.sqrt(a.width))
    sizes = [
        tuple(above(product(norm, root) + offset) for norm, offset in zip(matrix, offsets, strict=True))
        for matrix, offsets in ((w.query, w.query_offset), (w.key, w.key_offset))
    ]
    # rotations move what shift and bias add to the keys, which is then part of their radius
    radius = sizes[1] if a.positions == "rotary" else tuple(above(product(norm, root)) for norm in w.key)
    logits = max(above(product(2, q, k, over=math.sqrt(a.head_size))) for q, k in zip(sizes[0], radius, strict=True))
    kappa = above(1 / floor)
    return Constants(
        kappa=kappa,
        kappa_2=kappa,
        omega=times(bias, exponential(logits)),
        query=sizes[0],
        key=sizes[1],
        query_norm=w.query,
        key_norm=w.key,
        value_norm=w.value,
        key_radius=radius,
        value_radius=tuple(above(product(norm, root)) for norm in w.value),
        together=w.together,
        side_by_side=above(product(w.value_all, w.output_all)),
        mu=norms.mlp.gain(kappa) if norms.mlp else 0.0,
        head_size=a.head_size,
    )


def with_hypotheses(constants: Constants, norms: BlockNorms, run: BlockRun) -> Constants:
    """Return the constants with the activation floors and omega of the two runs, everything else from the weights."""
    kappa_2 = above(1 / float(run.floor_mlp.min()))
    return replace(
        constants,
        kappa=above(1 / float(run.floor.min())),
        kappa_2=kappa_2,
        omega=above(float(run.omega.max())),
        mu=norms.mlp.gain(kappa_2) if norms.mlp else 0.0,
    )


def measured(constants: Constants, norms: BlockNorms, run: BlockRun) -> Constants:
    """Return the constants with everything that the two runs give."""
    known = with_hypotheses(constants, norms, run)

    def least(found: Array, bound: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(min(above(float(x)), y) for x, y in zip(found, bound, strict=True))

    return replace(
        known,
        query=least(run.query, known.query),
        key=least(run.key, known.key),
        key_radius=least(run.key_radius, known.key_radius),
        value_radius=least(run.value_radius, known.value_radius),
        mu=_gain(norms.mlp, known.kappa_2, run),
    )


def _gain(mlp: MLPNorms | None, kappa: float, run: BlockRun) -> float:
    return 0.0 if mlp is None else mlp.gain(kappa, run.largest_up, run.largest_active)
