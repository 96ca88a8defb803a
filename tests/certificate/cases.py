"""Networks and pairs of runs that the certificate's tests share."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from relaymodel.networks.transformer import Architecture, Transformer

VOCABULARY = 20


def scrambled(network, rng, size):
    """The same architecture with gains, shifts and biases as training leaves them: none 1, none 0."""

    def some(name, array):
        if array is None or not name.endswith(("gain", "shift", "bias")):
            return array
        return array + size * rng.standard_normal(array.shape)

    def biases(block):
        d, q, k = len(block.attention_gain), block.query.shape[1], block.key.shape[1]
        more = {"query_bias": q, "key_bias": k, "value_bias": k, "output_bias": d}
        if block.up is not None:
            more |= {"up_bias": block.up.shape[1], "down_bias": d}
        if block.gate is not None:
            more["gate_bias"] = block.gate.shape[1]
        return replace(block, **{name: np.zeros(length) for name, length in more.items()})

    blocks = [biases(block) for block in network.weights.blocks]
    blocks = [replace(b, **{name: some(name, value) for name, value in vars(b).items()}) for b in blocks]
    return Transformer(network.architecture, replace(network.weights, blocks=tuple(blocks)))


@st.composite
def cases(draw):
    """A network and a pair of runs of it: (network, prompt A, prompt B, continuation)."""
    key_heads, group, head = (
        draw(st.sampled_from([1, 2])),
        draw(st.sampled_from([1, 2, 3])),
        2 * draw(st.integers(1, 3)),
    )
    P, T = draw(st.integers(1, 6)), draw(st.integers(2, 40))
    shape = Architecture(
        depth=draw(st.integers(1, 4)),
        width=draw(st.integers(2, 24)),
        heads=key_heads * group,
        key_heads=key_heads,
        head_width=head,
        vocabulary=VOCABULARY,
        context=P + T,
        mlp_width=draw(st.sampled_from([0, 5, 30])),
        activation=draw(st.sampled_from(["gelu", "gelu_tanh", "silu"])),
        gated=draw(st.booleans()),
        norm=draw(st.sampled_from(["layer", "rms"])),
        positions=draw(st.sampled_from(["learned", "rotary", "none"])),
        epsilon=draw(st.sampled_from([1e-5, 1e-2])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    network = Transformer.random(shape, rng, std=draw(st.sampled_from([0.02, 0.2, 0.8])))
    if draw(st.booleans()):
        network = scrambled(network, rng, 0.3)
    a, b, after = (rng.integers(0, VOCABULARY, size) for size in (P, P, T))
    if np.array_equal(a, b):
        b[-1] = (b[-1] + 1) % VOCABULARY
    return network, (a, b, after)


def example(rng, *, std=0.15, steps=40, **settings):
    """A network of three blocks and a pair of runs of it."""
    shape = Architecture(
        **{"depth": 3, "width": 24, "heads": 4, "vocabulary": VOCABULARY, "positions": "none"} | settings
    )
    texts = rng.integers(0, VOCABULARY, (2, 5))
    texts[1] = (texts[0] + 1 + texts[1] % (VOCABULARY - 1)) % VOCABULARY
    return Transformer.random(shape, rng, std=std), (*texts, rng.integers(0, VOCABULARY, steps))


def refused(certificate, words):
    check = certificate.verify()
    return not check.passed and any(words in failure for failure in check.failures)
