"""Three architectures, and weights in which everything is random."""

import numpy as np
import pytest

from relaymodel.networks.transformer import Architecture, Block, Transformer, Weights

EPS = np.finfo(np.float64).eps


GPT2 = Architecture(depth=3, width=24, heads=4, vocabulary=300, context=40)


LLAMA = Architecture(
    depth=3,
    width=24,
    heads=6,
    vocabulary=300,
    key_heads=2,
    head_width=8,
    mlp_width=30,
    activation="silu",
    gated=True,
    norm="rms",
    positions="rotary",
    rotary_base=100.0,
    epsilon=1e-3,
)


BARE = Architecture(depth=2, width=12, heads=3, vocabulary=300, mlp_width=0, positions="none", activation="gelu")
KINDS = pytest.mark.parametrize("shape", [GPT2, LLAMA, BARE], ids=["gpt2", "llama", "bare"])


def everything_random(shape, rng):
    """A network with every optional array there, none of them 0 or 1, and logits of order 1."""
    d, q, k, m = shape.width, shape.heads * shape.head_size, shape.key_value_heads * shape.head_size, shape.mlp_hidden
    layer = shape.norm == "layer"

    def normal(*size, about=0.0):
        return about + 0.4 * rng.standard_normal(size)

    def block():
        mlp = {}
        if m:
            mlp = {"mlp_gain": normal(d, about=1), "up": normal(d, m), "up_bias": normal(m), "down": normal(m, d)}
            mlp |= {"down_bias": normal(d)} | ({"mlp_shift": normal(d)} if layer else {})
            mlp |= {"gate": normal(d, m), "gate_bias": normal(m)} if shape.gated else {}
        return Block(
            normal(d, about=1),
            normal(d, q),
            normal(d, k),
            normal(d, k),
            normal(q, d),
            attention_shift=normal(d) if layer else None,
            query_bias=normal(q),
            key_bias=normal(k),
            value_bias=normal(k),
            output_bias=normal(d),
            **mlp,
        )

    weights = Weights(
        normal(shape.vocabulary, d),
        [block() for _ in range(shape.depth)],
        normal(d, about=1),
        normal(d) if layer else None,
        normal(shape.context, d) if shape.positions == "learned" else None,
        normal(shape.vocabulary, d),
    )
    return Transformer(shape, weights)


def states(network, tokens, **extras):
    return list(network.hidden_states(tokens, **extras))
