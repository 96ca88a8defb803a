r"""Networks for which the certificate is attained: the theorem's rate cannot be improved (THEORY sections 4 and 8)."""

import math
from dataclasses import replace

import numpy as np

from relaymodel.checks import choice, positive, positive_integer
from relaymodel.networks.transformer import Architecture, Transformer, Weights


def sharp_network(
    depth: int, relay: float = 1.0, *, common: float = 1e4, norm: str = "layer", context: int | None = None
) -> Transformer:
    r"""Return a pre-LN transformer whose two runs differ by $D(t;\lambda,\rho=1)$, as far as a norm is linear.

    The residual stream is $(S, -S, c, -c)/\sqrt2$: a common component S, to which no block writes and which all tokens
    share, holds $\sigma = \sqrt{(S^2+c^2)/4+\epsilon}$ fixed up to a relative $c^2/2S^2$.  Queries and keys are 0, so
    attention is exactly uniform; the values carry c to where c stands, so that all paths through the layers add up
    with one sign; there is no MLP.  A block is then $c'_n = c_n + \lambda \frac1n\sum_{s\le n} c_s\,(1+O(c^2/S^2))$.

    The distance of prompts of token 1 from prompts of token 0, both followed by tokens 0, is D(t) of the relay model up
    to $O(c^2/S^2)$; so is the certificate, at every t, from the weights alone.  Networks attain $O(P(\log t)^{L-1}/t)$.
    What such a network lacks: an MLP, attention that looks at content, and values that cancel.

    Parameters
    ----------
    depth
        L, the number of blocks.
    relay
        $\lambda > 0$ of each block.
    common
        S; c is 1 in token 1 and 0 in token 0, and grows with depth to at most $(1+\lambda)^L$.
    norm
        "layer" or "rms".
    context
        The longest text; None: any.

    Examples
    --------
    >>> from relaymodel import RelayModel, influence
    >>> from relaymodel.networks.protocol import measure
    >>> measured = measure(sharp_network(3), ([1] * 4, [0] * 4, [0] * 100))
    >>> ratio = influence(RelayModel.uniform(prompt=4, depth=3, relay=1), measured.t) / measured.euclidean[0, -1]
    >>> bool(np.all(abs(ratio - 1) < 1e-6))
    True
    """
    choice("norm", norm, ("layer", "rms"))
    strength, size = positive("relay", relay), positive("common", common)
    shape = Architecture(
        depth=positive_integer("depth", depth),
        width=4,
        heads=1,
        head_width=1,
        vocabulary=2,
        context=context,
        mlp_width=0,
        norm=norm,
        positions="none",
        epsilon=1e-12,
    )
    direction = np.array([0.0, 0.0, 1.0, -1.0]) / math.sqrt(2)
    still = np.array([1.0, -1.0, 0.0, 0.0]) * size / math.sqrt(2)
    sigma = math.sqrt(float(still @ still) / 4 + shape.epsilon)
    random = Weights.random(shape, np.random.default_rng(0))
    blocks = tuple(
        replace(
            block,
            query=np.zeros((4, 1)),
            key=np.zeros((4, 1)),
            value=direction[:, None].copy(),
            output=strength * sigma * direction[None, :],
        )
        for block in random.blocks
    )
    weights = replace(random, embedding=np.stack([still, still + direction]), blocks=blocks)
    return Transformer(shape, weights, {"weights": f"sharp, relay {strength:g}, common component {size:g}"})
