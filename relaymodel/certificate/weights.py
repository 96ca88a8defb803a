r"""What the weights of a block say about every text: norms, proven to be large enough.

Gains are folded into the matrices behind a norm: with $u_0 = Zv/\sigma$ (Z removes the mean for LayerNorm and is the
identity for RMSNorm) the input of the matrices is $u = g \circ u_0 + b$, and $|u_0| \le \sqrt d$.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.certificate.rounding import above, gamma, operator_norm, product_norm
from relaymodel.networks.transformer import Architecture, Block, Transformer

Array = NDArray[np.float64]

LIPSCHITZ = {"gelu": 1.13, "gelu_tanh": 1.13, "silu": 1.1}
"""Above the largest slope of each activation: 1.12890, 1.12897 and 1.09984."""


@dataclass(frozen=True)
class AttentionNorms:
    r"""Norms of an attention layer with the gain folded in; tuples have one entry for each query head.

    Attributes
    ----------
    query, key, value
        Norms of $W_Q^h$, $W_K^h$ and $W_V^h W_O^h$.
    query_offset, key_offset
        Norms of what shift and bias alone give.
    query_all, value_all, output_all
        Norms of $W_Q$, of $W_V$ (each value head as often as it is used) and of $W_O$, all heads side by side.
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
    query_all: float
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
        $|W_d|\,(\mathrm{Lip}\,|W_g|\max_j|b_j| + |W_u|\max_j|a_j|)\,\kappa_2$, and $|a_j| \le |\text{gate}_j|$ for GELU
        and SiLU.
        """
        if self.gate is None:
            return above(self.down * self.lipschitz * self.up * kappa)
        b = self.largest_up if largest_up is None else largest_up
        a = self.largest_gate if largest_active is None else largest_active
        return above(self.down * (self.lipschitz * self.gate * b + self.up * a) * kappa)


@dataclass(frozen=True)
class BlockNorms:
    """Norms of the weights of one block; `mlp` is None where there is none."""

    attention: AttentionNorms
    mlp: MLPNorms | None


def read(block: Block, architecture: Architecture) -> BlockNorms:
    """Return the norms of a block."""
    a, d = architecture, architecture.width
    group = a.heads // a.key_value_heads

    def heads(matrix: Array, count: int) -> Array:  # (count, d, head)
        return matrix.reshape(d, count, a.head_size).transpose(1, 0, 2)

    def norm(matrix: Array) -> float:
        return operator_norm(matrix, fold_error(matrix))

    query, key, value = (folded(block.attention_gain, w, a) for w in (block.query, block.key, block.value))
    output = block.output.reshape(a.heads, a.head_size, d)
    values = np.repeat(heads(value, a.key_value_heads), group, axis=0)
    queries = tuple(norm(w) for w in heads(query, a.heads))
    keys = tuple(norm(w) for w in heads(key, a.key_value_heads) for _ in range(group))
    outputs = [operator_norm(w) for w in output]
    repeated = values.transpose(1, 0, 2).reshape(d, -1)
    errors = [above(fold_error(v) * o) for v, o in zip(values, outputs, strict=True)]
    products = tuple(above(product_norm(v, o) + e) for v, o, e in zip(values, output, errors, strict=True))
    attention = AttentionNorms(
        queries,
        keys,
        products,
        tuple(norm(v) for v in values),
        _offsets(block.query, block.attention_shift, block.query_bias, a.heads, 1),
        _offsets(block.key, block.attention_shift, block.key_bias, a.key_value_heads, group),
        norm(query),
        norm(repeated),
        operator_norm(block.output),
        above(product_norm(repeated, block.output) + sum(errors)),
    )
    return BlockNorms(attention, _mlp(block, a))


def _mlp(block: Block, a: Architecture) -> MLPNorms | None:
    if block.up is None or block.down is None or block.mlp_gain is None:
        return None

    def largest(matrix: Array, folded_matrix: Array, bias: Array | None) -> float:
        columns = np.linalg.norm(folded_matrix, axis=0) * math.sqrt(a.width)
        columns += fold_error(folded_matrix) * math.sqrt(a.width)
        constant = _constant(matrix, block.mlp_shift, bias)
        return above(float(np.max(columns + np.abs(constant[0]) + constant[1])))

    up = folded(block.mlp_gain, block.up, a)
    gate = None if block.gate is None else folded(block.mlp_gain, block.gate, a)
    return MLPNorms(
        operator_norm(up, fold_error(up)),
        operator_norm(block.down),
        None if gate is None else operator_norm(gate, fold_error(gate)),
        largest(block.up, up, block.up_bias),
        0.0 if gate is None or block.gate is None else largest(block.gate, gate, block.gate_bias),
        LIPSCHITZ[a.activation],
    )


def folded(gain: Array, matrix: Array, architecture: Architecture) -> Array:
    """Return a matrix behind a norm with the gain folded in; for LayerNorm its columns are centred, as its input is."""
    result = gain[:, None] * matrix
    if architecture.norm == "layer":
        result = result - result.mean(axis=0)
    return np.asarray(result)


def fold_error(matrix: Array) -> float:
    """Return a bound on the rounding of `folded`, in Frobenius norm."""
    return above(4 * gamma(len(matrix)) * float(np.linalg.norm(matrix)))


def _constant(matrix: Array, shift: Array | None, bias: Array | None) -> tuple[Array, float]:
    """Return shift @ matrix + bias, and a bound on its rounding."""
    total = np.zeros(matrix.shape[1])
    error = 0.0
    if shift is not None:
        total = total + shift @ matrix
        error = 2 * gamma(len(matrix)) * float(np.linalg.norm(shift)) * float(np.linalg.norm(matrix))
    if bias is not None:
        total = total + bias
        error += 4 * gamma(1) * float(np.linalg.norm(bias))
    return total, error


def _offsets(matrix: Array, shift: Array | None, bias: Array | None, count: int, group: int) -> tuple[float, ...]:
    total, error = _constant(matrix, shift, bias)
    sizes = [above(float(np.linalg.norm(part)) + error) for part in total.reshape(count, -1)]
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
            spread = np.linalg.norm(x, axis=1) - 4 * gamma(a.width) * size
            square = min(square, float(np.min(np.maximum(spread, 0))) ** 2)
        least = square / a.width
    return math.sqrt(least + a.epsilon) / (1 + 4 * gamma(a.width))
