r"""Two runs of a random network, as inner products: the difference of their states at every position.

The first M positions, the prompt and the first tokens of the continuation, are followed one by one: $K_{ij}$ is the
mean product per component of the states i and j of the two runs, 2M in all.  A block adds to it, since its matrices
are random,

    attention   $a^2\, C U C^T$,  C the Cesaro matrix of each run,  $U_{ij} = K_{ij}/(\sigma_i\sigma_j)$,
    MLP         $\kappa(U_{ij})$,

with $\sigma_i^2 = K_{ii}$.  Behind position M all tokens have one $\sigma$, and the difference of the runs is

$$ \delta(N) = \frac1N \sum_{m<L} v_m h_m, \qquad h_m = h_m(1/(M+1), \dots, 1/N) \text{ of THEORY section 2}. $$

Indeed the sum of $h_m(n)/n$ over $M < n \le N$ is $h_{m+1}(N)$, so that an attention layer adds $W v_m/\sigma$ to
$v_{m+1}$, and W times the sum of the first M differences to $v_0$.  The inner products $\Gamma$ of these M
differences and of the $v_m$ follow the recursion of K.  The MLP turns the difference of each token another way but for
what the tokens have in common: its gain is $\kappa'(\bar c)$, $\bar c$ the correlation of different tokens, for what
later layers average over tokens, and $\kappa'(1)$ at the token where the distance is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relaymodel.networks.calibration.strengths import BlockStrengths

Array = NDArray[np.float64]

VANISHING = 1e-12  # stands for a denominator of 0


@dataclass(frozen=True, eq=False)
class Step:
    r"""What there is behind a block, all products per component.

    `near` (M,) holds $|\delta|^2$ of the first M tokens, `far` (L, L) the products of the $v_m$ at the token where the
    distance is read.  `before` and `between` are the $\sigma$ of late tokens at the input of the attention and of the
    MLP, `correlation` that of different late tokens at the latter.
    """

    near: Array
    far: Array
    before: float
    between: float
    correlation: float


def follow(kernel: Array, prompt: int, blocks: Sequence[BlockStrengths], epsilon: float) -> Iterator[Step]:
    """Yield the step of each block.

    `kernel`, (2M, 2M), holds the products of the embeddings: M of run a, then M of run b, which differ in `prompt`.
    """
    K, M, L = kernel.copy(), len(kernel) // 2, len(blocks)
    late = slice(M - max(2, (M - prompt) // 2), M)
    cesaro = np.tril(np.ones((M, M))) / np.arange(1.0, M + 1)[:, None]
    relay = np.zeros((M + L, M + L))
    relay[:M, :M] = cesaro
    relay[M, :M] = 1
    relay[np.arange(M + 1, M + L), np.arange(M, M + L - 1)] = 1
    gamma, read = np.zeros((M + L, M + L)), np.zeros((L, L))
    gamma[:M, :M] = _difference(K)
    for block in blocks:
        U, scale, before, c = _normalised(K, late, epsilon)
        scaled = gamma * _products(scale, before, L)
        scaled[:M, :M] = _difference(U)
        added = block.attention**2 * (relay @ scaled @ relay.T)
        same, crossed, single = (block.attention**2 * x for x in _fluctuations(block.logits, U, c))
        gamma += added
        read = read + added[M:, M:]
        read[0, 0] += single
        K += block.attention**2 * _averaged(U, cesaro)
        i = np.arange(M)
        K[i, i] += same
        K[M + i, M + i] += same
        K[i, M + i] += crossed
        K[M + i, i] += crossed

        U, scale, between, c = _normalised(K, late, epsilon)
        gamma *= 1 + block.slope(c) * _products(scale, between, L)
        read = read * (1 + block.slope(1.0) / between**2)
        K += block.mlp(U)
        gamma[:M, :M] = _difference(K)
        yield Step(np.diag(gamma)[:M].copy(), read, before, between, c)


def _difference(K: Array) -> Array:
    """Return the products of the differences of the two runs, (M, M), from those of their states."""
    M = len(K) // 2
    return np.asarray(K[:M, :M] + K[M:, M:] - K[:M, M:] - K[M:, :M])


def _averaged(U: Array, cesaro: Array) -> Array:
    M = len(cesaro)
    halves = [[cesaro @ U[a : a + M, b : b + M] @ cesaro.T for b in (0, M)] for a in (0, M)]
    return np.asarray(np.block(halves))


def _normalised(K: Array, late: slice, epsilon: float) -> tuple[Array, Array, float, float]:
    """Return U, 1/sigma of the first M positions, sigma of late tokens, and the correlation of different ones."""
    M = len(K) // 2
    sigma = np.sqrt(np.diag(K) + epsilon)
    U = K / np.multiply.outer(sigma, sigma)
    group = U[late, late]
    count = len(group)
    c = max(0.0, float(group.sum() - np.trace(group)) / (count * (count - 1)))
    return U, 2 / (sigma[:M] + sigma[M:]), float(np.sqrt(np.mean(sigma[late] ** 2))), c


def _products(scale: Array, late: float, L: int) -> Array:
    """Return 1/(sigma sigma') for the first M positions and the v_m."""
    whole = np.concatenate((scale, np.full(L, 1 / late)))
    return np.asarray(np.multiply.outer(whole, whole))


def _fluctuations(logits: float, U: Array, c: float) -> tuple[Array, Array, float]:
    r"""Return what attention that is not quite uniform adds to inner products, for a gain of 1.

    They are those of a token with itself, (M,), with the same token in the other run, (M,), and $|v_0|^2$ at the token
    where the distance is read.  The logits have variance v.  What they have in common for all keys drops out of the
    softmax, and so does what the values have in common: 1-c of each is left.  With r the correlation of what is left of
    the keys of the two runs, and q that of the queries, $E[e^{l+l'}] / (E[e^l] E[e^{l'}]) = e^{vrq}$.
    """
    M = len(U) // 2
    n = np.arange(1.0, M + 1)
    size = np.diag(U)  # 1, but for epsilon, which must not make equal tokens differ
    both = np.maximum(np.sqrt(size[:M] * size[M:]), VANISHING)  # a state of zero has no direction
    left = np.maximum(both - c, VANISHING)
    r = np.clip((np.diag(U[:M, M:]) - c) / left, -1, 1)
    q = np.clip(np.diag(U[:M, M:]) / both, -1, 1)
    v = logits * both * (1 - c)
    own = v * (1 - 1 / n)  # of n logits, about their mean
    same = np.cumsum(left) * np.expm1(own) / n**2
    crossed = np.tril(left * r * np.expm1(np.multiply.outer(own * q, r))).sum(axis=1) / n**2
    late = float(v[-1])
    single = 2 * float(np.sum(left * (np.expm1(late) - r * np.expm1(late * r))))
    return same, crossed, single
