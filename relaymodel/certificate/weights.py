r"""What the weights of a block say about every text: norms, proven to be large enough.

Gains are folded into the matrices behind a norm: with $u_0 = Zv/\sigma$ (Z removes the mean for LayerNorm and is the
identity for RMSNorm) the input of the matrices is $u = g \circ u_0 + b$, and $|u_0| \le \sqrt d$.
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import (
    SMALLEST_SAFE,
    above,
    frobenius,
    gamma,
    lengths,
    operator_norm,
    product,
    product_norm,
)
from relaymodel.networks.transformer import Architecture, Block, Transformer

Array = NDArray[np.float64]

LIPSCHITZ = {"gelu": 1.13, "gelu_tanh": 1.13, "silu": 1.1, "relu": 1.0}
"""At least the largest slope of each activation: 1.12890, 1.12897, 1.09984 and 1."""


@dataclass(frozen=True)
class AttentionNorms:
    r"""Norms of an attention layer with the gain folded in; tuples have one entry for each query head.

    Attributes
    ----------
    query, key, value
        Norms of $W_Q^h$, $W_K^h$ and $W_V^h W_O^h$.
    query_offset, key_offset
        Norms of what shift and bias alone give.
    value_all, output_all
        Norms of $W_V$ (each value head as often as it is used) and of $W_O$, all heads side by side.
    together
        Norm of $\sum_h W_V^h W_O^h$.
    raw_value
        Norms of $W_V^h$.
    """

    query: tuple[float, ...]
    key: tuple[float, ...]
    value: tuple[float, ...]
    raw_value: tuple[float, ...]
    query_offset: tuple[float, ...]
    key_offset: tuple[float, ...]
    value_all: float
    output_all: float
    together: float


@dataclass(frozen=True)
class MLPNorms:
    r"""Norms of an MLP with the gain folded in.

    Attributes
    ----------
    up, gate, down
        Norms of the matrices; `gate` is None where there is none.
    largest_up, largest_gate
        Bounds on the entries of the two inner products for every input, $\max_j |w_j| \sqrt d + |b_j|$.
    lipschitz
        Largest slope of the activation.
    """

    up: float
    down: float
    gate: float | None
    largest_up: float
    largest_gate: float
    lipschitz: float

    def gain(self, kappa: float, largest_up: float | None = None, largest_active: float | None = None) -> float:
        r"""Return $\mu$, a bound on the MLP's secant gain, for one norm's $\kappa_2$ (THEORY section 8).

        Plain: $|W_d|\,\mathrm{Lip}\,|W_u|\,\kappa_2$.  Gated, from $ab - \tilde a\tilde b = \frac{a+\tilde a}2
        (b-\tilde b) + (a-\tilde a)\frac{b+\tilde b}2$ with a = act(gate), b = up:
        $|W_d|\,(\mathrm{Lip}\,|W_g|\max_j|b_j| + |W_u|\max_j|a_j|)\,\kappa_2$, and $|a_j| \le |\text{gate}_j|$ for
        GELU, SiLU and ReLU.
        """
        if self.gate is None:
            return above(product(self.down, self.lipschitz, self.up, kappa))
        b = self.largest_up if largest_up is None else largest_up
        a = self.largest_gate if largest_active is None else largest_active
        return above(product(self.down, product(self.lipschitz, self.gate, b) + product(self.up, a), kappa))


@dataclass(frozen=True)
class BlockNorms:
    """Norms of the weights of one block; `mlp` is None where there is none."""

    attention: AttentionNorms
    mlp: MLPNorms | None


@dataclass(frozen=True, eq=False)
class Folded:
    """A matrix behind a norm with the gain folded in; for LayerNorm its columns are centred, as its input is.

    `before` is what it was before it was centred: it can be much larger, and its size is that of the rounding.
    """

    matrix: Array
    before: Array

    @classmethod
    def of(cls, gain: Array, matrix: Array, architecture: Architecture) -> "Folded":
        """Fold the gain, (width,), into a matrix, (width, columns)."""
        before = gain[:, None] * matrix
        return cls(before - before.mean(axis=0) if architecture.norm == "layer" else before, before)

    def parts(self, count: int) -> list["Folded"]:
        """Return the columns in `count` equal parts, one for each head."""
        halves = (np.split(x, count, axis=1) for x in (self.matrix, self.before))
        return [Folded(matrix, before) for matrix, before in zip(*halves, strict=True)]

    @property
    def error(self) -> float:
        """A bound on the rounding, in Frobenius norm; products may underflow."""
        if not np.any(self.before):
            return 0.0
        lost = self.before.size * sys.float_info.min
        return above(product(4 * gamma(len(self.before)), frobenius(self.before)) + lost)

    @property
    def norm(self) -> float:
        """A bound on the largest singular value."""
        return operator_norm(self.matrix, self.error)


def read(block: Block, architecture: Architecture) -> BlockNorms:
    """Return the norms of a block."""
    a, d = architecture, architecture.width
    group = a.heads // a.key_value_heads
    query, key, value = (Folded.of(block.attention_gain, w, a) for w in (block.query, block.key, block.value))
    output = block.output.reshape(a.heads, a.head_size, d)
    values = [part for part in value.parts(a.key_value_heads) for _ in range(group)]
    repeated = Folded(*(np.concatenate(x, axis=1) for x in zip(*((v.matrix, v.before) for v in values), strict=True)))
    errors = [above(product(v.error, operator_norm(o))) for v, o in zip(values, output, strict=True)]
    products = tuple(above(product_norm(v.matrix, o) + e) for v, o, e in zip(values, output, errors, strict=True))
    attention = AttentionNorms(
        query=tuple(part.norm for part in query.parts(a.heads)),
        key=tuple(part.norm for part in key.parts(a.key_value_heads) for _ in range(group)),
        value=products,
        raw_value=tuple(v.norm for v in values),
        query_offset=_offsets(block.query, block.attention_shift, block.query_bias, a.heads, 1),
        key_offset=_offsets(block.key, block.attention_shift, block.key_bias, a.key_value_heads, group),
        value_all=repeated.norm,
        output_all=operator_norm(block.output),
        together=above(product_norm(repeated.matrix, block.output) + sum(errors)),
    )
    return BlockNorms(attention, _mlp(block, a))


def _mlp(block: Block, a: Architecture) -> MLPNorms | None:
    if block.up is None or block.down is None or block.mlp_gain is None:
        return None

    def largest(matrix: Array, inner: Folded, bias: Array | None) -> float:
        """Return the largest |w_j| sqrt(d) + |b_j| of the columns."""
        root, (total, error) = math.sqrt(a.width), _constant(matrix, block.mlp_shift, bias)
        rounding = above(product(inner.error, root) + error)
        return above(float(np.max(lengths(inner.matrix) * root + np.abs(total))) + rounding)

    up = Folded.of(block.mlp_gain, block.up, a)
    gate = None if block.gate is None else Folded.of(block.mlp_gain, block.gate, a)
    return MLPNorms(
        up=up.norm,
        down=operator_norm(block.down),
        gate=None if gate is None else gate.norm,
        largest_up=largest(block.up, up, block.up_bias),
        largest_gate=0.0 if gate is None or block.gate is None else largest(block.gate, gate, block.gate_bias),
        lipschitz=LIPSCHITZ[a.activation],
    )


def _constant(matrix: Array, shift: Array | None, bias: Array | None) -> tuple[Array, float]:
    """Return shift @ matrix + bias, and a bound on its rounding."""
    total = np.zeros(matrix.shape[1])
    error = 0.0
    if shift is not None and np.any(shift):
        total = total + shift @ matrix
        lost = matrix.size * sys.float_info.min
        error = product(2 * gamma(len(matrix)), frobenius(shift), frobenius(matrix)) + lost
    if bias is not None:
        total = total + bias
        error += product(4 * gamma(1), frobenius(bias)) + product(2 * gamma(1), frobenius(total))
    return total, error


def _offsets(matrix: Array, shift: Array | None, bias: Array | None, count: int, group: int) -> tuple[float, ...]:
    total, error = _constant(matrix, shift, bias)
    sizes = [above(frobenius(part) + error) for part in total.reshape(count, -1)]
    return tuple(size for size in sizes for _ in range(group))


def floors(network: Transformer, tokens: NDArray[np.int64] | None = None) -> float:
    r"""Return a bound below on every $\sigma$ of the network, for any text or for the given tokens (N,).

    $\sqrt\epsilon$ always; more where no block writes to some components of the residual stream (their columns in the
    output and down matrices and in their biases are 0): these keep the embedding's values, whose spread, or for
    RMSNorm size, is part of $\sigma^2$.
    """
    a, w = network.architecture, network.weights
    untouched = np.ones(a.width, dtype=bool)
    for block in w.blocks:
        for part in (block.output, block.output_bias, block.down, block.down_bias):
            if part is not None:
                untouched &= ~np.any(np.atleast_2d(part), axis=0)
    least = 0.0
    if np.any(untouched):
        rows = w.embedding[:, untouched] if tokens is None else w.embedding[np.unique(tokens)][:, untouched]
        places = np.zeros((1, rows.shape[1])) if w.positions is None else w.positions[:, untouched]
        square = np.inf
        for place in places:
            x = rows + place
            if a.norm == "layer":
                x = x - x.mean(axis=1, keepdims=True)
            # the rounding of the sum and of the mean, in units of the entries
            size = np.linalg.norm(rows, axis=1) + np.linalg.norm(place)
            spread = np.linalg.norm(x, axis=1) - 4 * gamma(a.width) * size - SMALLEST_SAFE
            square = min(square, float(np.min(np.maximum(spread, 0))) ** 2)
        least = square / a.width
    return math.sqrt(least + a.epsilon) / (1 + 4 * gamma(a.width))
