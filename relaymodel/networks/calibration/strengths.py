r"""What a block of random weights does to inner products: three numbers and one series, read off its weights.

A random matrix W maps two vectors to images with inner product $\langle u, u'\rangle\, |W|^2/d$, $|W|$ its Frobenius
norm and d the width.  So of the attention only $|W_V W_O|$ and the variance of its logits matter, and of the MLP the
function $\kappa$ that takes the correlation c of two of its inputs to the inner product of its outputs.
"""

from dataclasses import dataclass, fields
from math import sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from relaymodel.networks.transformer import Architecture, Block
from relaymodel.networks.transformer.layers import activate

Array = NDArray[np.float64]

TERMS, HERMITE_NODES = 48, 240  # of the activation's Hermite series, and of the rule that finds its coefficients
RESOLVED = 1e-6  # of the activation's mean square may be missing from the series
NEGLIGIBLE_TERM = 1e-12  # of the mean square: what the terms left out may add up to
LARGEST_LOGITS = 1.1  # distances are right to 12 % at 1


@dataclass(frozen=True, eq=False)
class BlockStrengths:
    r"""The strengths of one block, for inputs of unit mean square (THEORY section 5).

    Attributes
    ----------
    attention
        Gain of $W_V W_O$: root of $\sum_{ij} (W_V W_O)_{ij}^2 / d$.
    logits
        Variance of the logits $q \cdot k / \sqrt{d_h}$ of unrelated tokens.
    kernel
        Coefficients of $\kappa(c) = \sum_k \kappa_k c^k$, the mean product of two MLP outputs, per component; (0,) for
        a block without MLP.
    """

    attention: float
    logits: float
    kernel: Array

    def slope(self, c: float) -> float:
        r"""Return $\kappa'(c)$: the mean square gain of the MLP for what tokens of correlation c have in common.

        $\kappa'(1)$ is the gain for a single token.
        """
        k = np.arange(self.kernel.size)
        return float(np.sum(k[1:] * self.kernel[1:] * c ** (k[1:] - 1)))

    def mlp(self, correlation: Array) -> Array:
        r"""Return $\kappa(c)$ of every entry."""
        total = np.full_like(correlation, self.kernel[-1])
        for coefficient in self.kernel[-2::-1]:
            total *= correlation
            total += coefficient
        return total


def read_block(block: Block, architecture: Architecture) -> BlockStrengths:
    """Return the strengths of a block; `ValueError` for biases or shifts other than 0, and for large logits."""
    for field in fields(block):
        value = getattr(block, field.name)
        if field.name.endswith(("bias", "shift")) and value is not None and np.any(value):
            raise ValueError(
                f"network must be untrained, with biases and shifts of 0, got {field.name} other than 0: "
                "trained weights are not random, and their strengths do not follow from their size"
            )
    a, d = architecture, architecture.width
    gain = block.attention_gain[:, None]

    def per_head(matrix: Array) -> Array:  # (heads, width, head)
        split = (gain * matrix).reshape(d, -1, a.head_size).transpose(1, 0, 2)
        return np.repeat(split, a.heads // len(split), axis=0)

    query, key = per_head(block.query), per_head(block.key)
    # |W_Q W_K^T|^2 = tr(W_Q^T W_Q W_K^T W_K), in the small matrices of a head
    products = (query.transpose(0, 2, 1) @ query) * (key.transpose(0, 2, 1) @ key)
    logits = float(np.sum(products)) / (a.heads * a.head_size)
    if logits > LARGEST_LOGITS:
        raise ValueError(
            f"the attention's logits must have a variance of at most {LARGEST_LOGITS}, got {logits:.3g}: beyond, a few "
            "keys take over, and attention is no mean over tokens; initialise queries and keys with smaller weights"
        )
    value = per_head(block.value).transpose(1, 0, 2).reshape(d, -1)
    attention = sqrt(d * _mean_square(value @ block.output))
    return BlockStrengths(attention, logits, _kernel(block, a))


def _mean_square(matrix: Array) -> float:
    return float(np.mean(matrix * matrix))


def _kernel(block: Block, architecture: Architecture) -> Array:
    if block.up is None or block.down is None or block.mlp_gain is None:
        return np.zeros(1)
    d, gain = architecture.width, block.mlp_gain[:, None]
    up = d * _mean_square(gain * block.up)
    if block.gate is None:
        series = activation_kernel(architecture.activation, up)
    else:  # the product of two independent factors, one of them linear: up * c
        gate = activation_kernel(architecture.activation, d * _mean_square(gain * block.gate))
        series = np.concatenate(([0.0], up * gate))
    return np.asarray(series * (block.down.shape[0] * _mean_square(block.down)))


def activation_kernel(activation: str, variance: float) -> Array:
    r"""Return the coefficients of $E[g(z)g(z')] = \sum_k b_k^2 c^k$, z and z' normal of this variance, correlation c.

    $b_k$ are the coefficients of $g(\sqrt v\,x)$ in normalised Hermite polynomials.  Source: Poole et al. (2016),
    arXiv:1606.05340, for what such kernels say about networks.

    >>> float(np.sum(activation_kernel("gelu", 1.0)))  # E g^2
    0.425...
    """
    x, weight = hermegauss(HERMITE_NODES)
    weight = weight / weight.sum()
    g = activate(np.sqrt(variance) * x, activation)
    before, polynomial = np.zeros_like(x), np.ones_like(x)
    squares = np.empty(TERMS)
    for k in range(TERMS):
        squares[k] = np.sum(weight * g * polynomial) ** 2
        before, polynomial = polynomial, (x * polynomial - sqrt(k) * before) / sqrt(k + 1)
    whole = float(np.sum(weight * g * g))
    if whole - squares.sum() > RESOLVED * whole:
        raise ValueError(
            f"the MLP's hidden units must have a deviation at which {activation} has a short series, got "
            f"{sqrt(variance):.3g}: initialise with smaller weights"
        )
    tail = np.cumsum((np.arange(TERMS) * squares)[::-1])[::-1]
    return squares[: max(1, int(np.sum(tail > NEGLIGIBLE_TERM * whole)))]
