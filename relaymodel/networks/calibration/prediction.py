"""What the weights of an untrained network say about its forgetting, before it has been run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from immutabledict import immutabledict
from numpy.typing import NDArray

from relaymodel.checks import demand, floating, numbers, positive_integer, show
from relaymodel.display import facts, table
from relaymodel.exact.powersums import power_sums_near
from relaymodel.exact.residues import complete_homogeneous
from relaymodel.exact.values import Points, Scalar
from relaymodel.model import Layer, RelayModel
from relaymodel.networks.calibration.recursion import follow
from relaymodel.networks.calibration.strengths import read_block
from relaymodel.networks.protocol.pairs import Pairs, PlainPairs
from relaymodel.networks.transformer import Transformer

Array = NDArray[np.float64]

NEAR = 256
"""Tokens of the continuation that are followed one by one; behind them all tokens have one standard deviation."""

METHOD = (
    "inner products of two runs of a network with random weights, from the prompts' embeddings and the size of the "
    "weights; no forward pass, nothing fitted"
)


@dataclass(frozen=True)
class LayerStrengths:
    r"""The strengths of one layer for late tokens (THEORY section 5).

    Attributes
    ----------
    relay, residual
        $\lambda = \rho\, a/\sigma$ and $\rho = \sqrt{1+\mu^2}$.
    sigma
        Standard deviation of the residual stream before the attention, $\sigma$.
    attention
        Gain a of $W_V W_O$: the root of its mean square singular value.
    mlp, mlp_common
        $\mu$, the MLP's gain for a small difference at one token, and for a mean over many tokens.
    correlation
        That of different tokens at the input of the MLP.
    logits
        Variance of the attention's logits.
    """

    relay: float
    residual: float
    sigma: float
    attention: float
    mlp: float
    mlp_common: float
    correlation: float
    logits: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """The forgetting curve that the weights of an untrained network imply, at every layer.

    Made by `calibrate`, which says what it rests on.

    Attributes
    ----------
    prompt, width
        P, and the number of components of the residual stream.
    layers
        The `LayerStrengths` of each layer.
    source
        Root mean square distance of the embeddings of the two prompts, per token.
    near
        Shape (L, M): distance of the two runs behind each layer at the first M positions, prompt included.
    far
        Shape (L, L, L): for each layer, the inner products of the vectors $v_m$ of which the difference is made at
        later positions.
    method, provenance
        How it was computed, and from what.
    """

    prompt: int
    width: int
    layers: tuple[LayerStrengths, ...]
    source: float
    near: Array
    far: Array
    method: str = METHOD
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Number of layers, L."""
        return len(self.layers)

    @overload
    def predict(self, layer: int, t: Scalar) -> float: ...
    @overload
    def predict(self, layer: int, t: Points) -> Array: ...
    def predict(self, layer: int, t: Scalar | Points) -> float | Array:
        r"""Return the distance of the two runs behind block `layer`, in the network's own units.

        $$ |\delta(N)|^2 = \frac{1}{N^2} \sum_{m,m'<L} \langle v_m, v_{m'}\rangle\, h_m h_{m'}, \qquad
           h_m = h_m(1/(M+1), \dots, 1/N), \quad N = P + t > M. $$

        Parameters
        ----------
        layer
            1 to depth; behind the embedding (0) a common continuation has no distance.
        t
            Whole numbers from 1, scalar or array: continuation tokens.

        Returns
        -------
        float or ndarray
            Euclidean distance, root mean square over networks and prompts like these.
        """
        index = self._index(layer)
        at = numbers("t", t)
        if at.dtype == object:
            at = np.array([floating("t", value) for value in at.flat]).reshape(at.shape)
        at = at.astype(np.float64)
        demand("t", at, np.isfinite(at) & (at >= 1) & (at == np.round(at)), "a whole number from 1 on")
        N = self.prompt + at.ravel()
        M = self.near.shape[1]
        result = np.empty_like(N)
        close = N <= M
        result[close] = self.near[index, N[close].astype(np.int64) - 1]
        if not close.all():
            late = N[~close]
            h = np.ones((1, late.size))
            if self.depth > 1:
                h = complete_homogeneous(power_sums_near(np.full(late.size, M + 1.0), late - M, 1.0, self.depth - 1))
            squares = np.einsum("mt,mk,kt->t", h, self.far[index], h)
            result[~close] = np.sqrt(self.width * squares) / late
        return result.reshape(at.shape) if at.shape else float(result[0])

    def model(self, layer: int | None = None) -> RelayModel:
        r"""Return the relay model of the first `layer` layers, with the strengths of late tokens.

        `source * rms_influence(model, t)` is the short form of the prediction (THEORY section 5).  It takes the
        first tokens for late ones, though these have a larger standard deviation and hand on less; `predict` does not.

        On a GPT-2 of 12 layers its shape is right to 15 % over t = 1..2048, its constant up to twice too large.

        >>> from relaymodel.networks.transformer import Architecture
        >>> shape = Architecture(depth=2, width=32, heads=4, vocabulary=256, positions="none")
        >>> network = Transformer.random(shape, np.random.default_rng(0))
        >>> calibrate(network, ("To be, or not", "All the world", "to be, that is")).model().depth
        2
        """
        count = self._index(self.depth if layer is None else layer) + 1
        return RelayModel(self.prompt, [Layer(x.relay, x.residual) for x in self.layers[:count]])

    def _index(self, layer: int) -> int:
        number = positive_integer("layer", layer)
        if number > self.depth:
            raise ValueError(f"layer must be at most the depth {self.depth}, got {number}")
        return number - 1

    def __repr__(self) -> str:
        return (
            f"Calibration(prompt {self.prompt}, {self.depth} layers, relay "
            f"{self.layers[0].relay:.3g}..{self.layers[-1].relay:.3g}, {self.provenance.get('network', 'a network')})"
        )

    def _repr_html_(self) -> str:
        names = ["layer", "λ", "ρ", "σ", "MLP gain", "for a mean", "correlation", *(f"D({t})" for t in (1, 64, 4096))]
        rows = []
        for number, x in enumerate(self.layers, 1):
            values = [x.relay, x.residual, x.sigma, x.mlp, x.mlp_common, x.correlation]
            values += self.predict(number, [1, 64, 4096]).tolist()
            rows.append((number, *(f"{value:.3g}" for value in values)))
        return table("", rows, names) + facts({"method": self.method, **self.provenance})


def calibrate(network: Transformer, pairs: Pairs | PlainPairs) -> Calibration:
    r"""Predict the forgetting curve of an untrained network from its weights: nothing is run, nothing is fitted.

    Random matrices add squares (THEORY section 5), so that inner products of states obey a recursion of their own.
    What goes in are the embeddings of the prompts and of the first 256 tokens behind them, and for each block the size
    of $W_V W_O$, of the queries and keys, and of the MLP's two or three matrices.  What comes out:

    - $\sigma$ of every position.  Attention over few tokens is not yet a mean, so that the first tokens of a text have
      a larger $\sigma$ and hand on less of a difference;
    - the finite difference of the prompts, which the MLP, convex in the correlation, enlarges less than small ones;
    - the MLP's two gains, for one token and for what many tokens have in common;
    - $e^v$ for logits of variance v, where single tokens are read.

    A path that meets a source again through prompt or continuation adds to itself as a vector, not in squares.

    Accuracy with GPT-2's initialisation, 12 layers, width 768, 64 random tokens, t = 1..2048, 8 pairs (whose mean has
    a standard error of 3 % at each t), two networks: the constant of each layer is right to 4 %; the shape to 3.5 % in
    means over octaves, and to 9 % at every single t.  Width 128 to 256, 2 to 256 tokens, English text, RMSNorm, rotary
    or no positions, no MLP, gated MLPs: constants to 8 %; logits of variance 1: 12 %; a single key-value head: 15 %;
    width 32 to 96: 18 % (single layers of 24 networks, 6 pairs each; root mean square 4 to 7 %).  Left out are
    corrections in 1/width, and what training does, which aligns queries with keys: not for trained networks.

    Parameters
    ----------
    network
        An untrained `Transformer`: random weights, biases and shifts 0.
    pairs
        As in `measure`; the inner products of K pairs are averaged.  A continuation of fewer than 256 tokens will do.

    Returns
    -------
    Calibration
        Prediction for every layer.  Costs O(depth (P + 256)^3), and the weights once.

    Raises
    ------
    TypeError
        For another network: weights are needed.
    ValueError
        For biases or shifts other than 0; for logits of variance above 1.1, where a few keys take over the softmax (at
        2 the constants would be off by up to 30 %); for hidden units so large that the MLP's activation has no short
        series; for prompts as in `measure`.

    Examples
    --------
    >>> from relaymodel.networks.transformer import Architecture
    >>> from relaymodel.networks.protocol import measure
    >>> shape = Architecture(depth=2, width=256, heads=4, vocabulary=256, positions="none")
    >>> network = Transformer.random(shape, np.random.default_rng(0))
    >>> texts = "To be, or not", "All the world", "to be, that is the question: " * 10
    >>> measured = measure(network, texts).curve(2)
    >>> bool(np.all(abs(calibrate(network, texts).predict(2, measured.t) / measured.distance - 1) < 0.3))
    True
    """
    if not isinstance(network, Transformer):
        raise TypeError(
            "network must be a relaymodel.networks.transformer.Transformer, whose weights can be read, got "
            f"{show(network)} of type {type(network).__name__}"
        )
    texts = Pairs.of(pairs).encode(network)
    M = texts.prompt + min(NEAR, texts.steps)
    a, w = network.architecture, network.weights
    kernel = np.zeros((2 * M, 2 * M))
    for k in range(texts.count):
        tokens = texts.tokens(k)[:, :M]
        x = w.embedding[tokens]
        if w.positions is not None:
            x += w.positions[:M]
        if a.norm == "layer":
            x -= x.mean(axis=-1, keepdims=True)
        x = x.reshape(2 * M, a.width)
        kernel += x @ x.T / (a.width * texts.count)
    source = np.diag(kernel[:M, :M] + kernel[M:, M:] - 2 * kernel[:M, M:])[: texts.prompt].mean()
    blocks = [read_block(block, a) for block in w.blocks]
    steps = list(follow(kernel, texts.prompt, blocks, a.epsilon))
    layers = []
    for block, step in zip(blocks, steps, strict=True):
        single, common = (np.sqrt(block.slope(c)) / step.between for c in (1.0, step.correlation))
        residual = float(np.sqrt(1 + single**2))
        strengths = (residual * block.attention / step.before, residual, step.before, block.attention)
        layers.append(LayerStrengths(*strengths, float(single), float(common), step.correlation, block.logits))
    return Calibration(
        texts.prompt,
        a.width,
        tuple(layers),
        float(np.sqrt(a.width * source)),
        np.sqrt(a.width * np.array([step.near for step in steps])),
        np.array([step.far for step in steps]),
        provenance=immutabledict({**network.provenance, **texts.provenance}),
    )
