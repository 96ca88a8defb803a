"""The transformer against a dense one that shares no code, and what holds for all weights."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from relaymodel.networks.transformer import Transformer
from relaymodel.networks.transformer.layers import QUERIES_AT_ONCE, attend, rotary_angles, rotate
from tests.networks.transformer.shapes import BARE, EPS, GPT2, KINDS, LLAMA, everything_random, states


def dense(network, tokens, bias=None):
    """Yield the residual stream, (n, width), and at last what the final norm makes of it: loops and full matrices."""
    shape, weights = network.architecture, network.weights
    n, size = len(tokens), shape.head_size

    def norm(x, gain, shift):
        rows = []
        for row in x:
            about = row.mean() if shape.norm == "layer" else 0.0
            rows.append((row - about) / np.sqrt(np.mean((row - about) ** 2) + shape.epsilon) * gain)
        return np.array(rows) + (0.0 if shift is None else shift)

    def turn(x):  # a rotation matrix for each position
        if shape.positions != "rotary":
            return x
        half, turned = size // 2, []
        for t, row in enumerate(x):
            matrix = np.zeros((size, size))
            for i in range(half):
                angle = t / shape.rotary_base ** (2 * i / size)
                matrix[i, i] = matrix[i + half, i + half] = np.cos(angle)
                matrix[i, i + half], matrix[i + half, i] = -np.sin(angle), np.sin(angle)
            turned.append(matrix @ row)
        return np.array(turned)

    def act(x):
        if shape.activation == "silu":
            return x / (1 + np.exp(-x))
        if shape.activation == "gelu_tanh":
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        raise NotImplementedError

    added = np.zeros((shape.heads, n, n))
    if bias is not None:
        added[:, :, : np.shape(bias)[-1]] = bias
    x = np.array([weights.embedding[token] for token in tokens])
    if shape.positions == "learned":
        x = x + weights.positions[:n]
    yield x
    for b in weights.blocks:
        u = norm(x, b.attention_gain, b.attention_shift)
        heads = []
        for h in range(shape.heads):
            mine = slice(h * size, (h + 1) * size)
            group = h // (shape.heads // shape.key_value_heads)
            theirs = slice(group * size, (group + 1) * size)
            query, key = (
                turn(u @ b.query[:, mine] + b.query_bias[mine]),
                turn(u @ b.key[:, theirs] + b.key_bias[theirs]),
            )
            odds = np.tril(np.exp(query @ key.T / np.sqrt(size) + added[h]))
            heads.append(odds / odds.sum(axis=1, keepdims=True) @ (u @ b.value[:, theirs] + b.value_bias[theirs]))
        x = x + np.hstack(heads) @ b.output + b.output_bias
        if shape.mlp_hidden:
            u = norm(x, b.mlp_gain, b.mlp_shift)
            hidden = u @ b.up + b.up_bias
            hidden = act(u @ b.gate + b.gate_bias) * hidden if shape.gated else act(hidden)
            x = x + hidden @ b.down + b.down_bias
        yield x
    yield norm(x, weights.final_gain, weights.final_shift)


def close(network, a, b):
    """Equal to rounding: sums of a few hundred numbers of order 1 in each of some ten products per block."""
    for x, y in zip(a, b, strict=True):
        assert_allclose(x, y, rtol=0, atol=1e4 * EPS * np.abs(y).max())


@KINDS
@pytest.mark.parametrize("kind", ["none", "all heads", "each head"])
def test_states_are_those_of_the_dense_reference(shape, kind, rng):
    network, tokens = everything_random(shape, rng), rng.integers(0, 300, (2, 11))
    size = {"none": None, "all heads": (11, 4), "each head": (shape.heads, 11, 4)}[kind]
    bias = None if size is None else 2 * rng.standard_normal(size)
    shown = states(network, tokens, bias=bias, final_norm=True)
    assert [x.shape for x in shown] == [(2, 11, shape.width)] * (shape.depth + 2)
    for k in range(2):
        close(network, [x[k] for x in shown], dense(network, tokens[k], bias))


def test_more_rows_than_are_handled_at_once(rng):
    """Every seam between pieces of rows, in attention with and without bias and in the MLP."""
    shape = replace(GPT2, depth=1, width=4, heads=2, context=2 * QUERIES_AT_ONCE + 3)
    network, tokens = everything_random(shape, rng), rng.integers(0, 300, 2 * QUERIES_AT_ONCE + 3)
    for bias in (None, rng.standard_normal((tokens.size, QUERIES_AT_ONCE + 7))):
        close(
            network, [x[0] for x in states(network, [tokens], bias=bias, final_norm=True)], dense(network, tokens, bias)
        )


@KINDS
def test_later_tokens_change_nothing_before(shape, rng):
    network, tokens = everything_random(shape, rng), rng.integers(0, 150, (1, 12))
    changed = tokens.copy()
    changed[:, 7:] += 150
    for x, y in zip(states(network, tokens), states(network, changed), strict=True):
        assert_allclose(x[:, :7], y[:, :7], rtol=0, atol=1e4 * EPS * np.abs(x).max())  # matrix kernels differ by shape
        assert np.all(np.any(x[:, 7:] != y[:, 7:], axis=-1))


@KINDS
def test_a_batch_is_its_texts_one_by_one(shape, rng):
    network, tokens = everything_random(shape, rng), rng.integers(0, 300, (3, 9))
    together = states(network, tokens, final_norm=True)
    for k in range(3):
        for x, y in zip(together, states(network, tokens[k : k + 1], final_norm=True), strict=True):
            assert_array_equal(x[k], y[0])


def test_states_are_new_arrays_and_the_weights_stay(rng):
    network = everything_random(GPT2, rng)
    before = [None if array is None else array.copy() for _, array in network.weights._arrays()]
    kept = list(network.hidden_states([[1, 2, 3]]))
    copies = [x.copy() for x in states(network, [[1, 2, 3]])]
    for x, y in zip(kept, copies, strict=True):
        assert_array_equal(x, y)
        x[:] = np.nan  # belongs to the caller
    for x, (_, y) in zip(before, network.weights._arrays(), strict=True):
        assert x is None or np.array_equal(x, y)


def test_rotary_logits_depend_on_relative_position_only(rng):
    head, base = 8, 50.0
    query, key = rng.standard_normal((2, head))

    def logit(i, j):
        at = rotary_angles(np.array([i, j]), head, base)
        first, second = rotate(np.stack([query, key]), *at)
        return first @ second

    size = np.linalg.norm(query) * np.linalg.norm(key)
    for shift in (1, 17, 1000):
        assert abs(logit(5 + shift, 2 + shift) - logit(5, 2)) < 4 * (5 + shift) * EPS * size  # an angle t has t ulp
    assert abs(logit(5, 2) - logit(5, 3)) > 1e-3 * size
    assert_allclose(logit(4, 4), query @ key, rtol=0, atol=8 * EPS * size)


def test_shifted_positions_of_a_rotary_network_change_nothing(rng):
    """The same keys and queries from position 0 and from 1000: the same attention."""
    network = everything_random(LLAMA, rng)
    block, x = network.weights.blocks[0], rng.standard_normal((7, 24))
    here, there = (attend(*network.projections(block, x, start), None) for start in (0, 1000))
    # an angle of 1006 is right to 1006 ulp of 1, and logits, |q| |k| of order 10, to some 10^4; values are averaged
    assert_allclose(here, there, rtol=0, atol=1e5 * EPS * np.abs(here).max())
    rows, far = network.projections(block, x, 0)[0], network.projections(block, x, 1000)[0]
    assert np.abs(rows - far).max() > 0.1


def test_grouped_heads_are_repeated_heads(rng):
    network = everything_random(LLAMA, rng)
    size, group = LLAMA.head_size, LLAMA.heads // LLAMA.key_value_heads

    def repeat(array):
        split = array.reshape(*array.shape[:-1], LLAMA.key_value_heads, size)
        return np.repeat(split, group, axis=-2).reshape(*array.shape[:-1], -1)

    blocks = [
        replace(b, **{name: repeat(getattr(b, name)) for name in ("key", "value", "key_bias", "value_bias")})
        for b in network.weights.blocks
    ]
    full = Transformer(replace(LLAMA, key_heads=None), replace(network.weights, blocks=tuple(blocks)))
    tokens = rng.integers(0, 300, (1, 10))
    close(network, states(network, tokens, final_norm=True), states(full, tokens, final_norm=True))


def test_a_bias_of_log_2_counts_a_key_twice(rng):
    """Without positions and MLP the text a a b is the text a b with log 2 on its first key, for the last query."""
    network = everything_random(replace(BARE, depth=1), rng)
    twice = states(network, [[5, 5, 9]])[-1][0, -1]
    biased = states(network, [[5, 9]], bias=[[0.0], [np.log(2)]])[-1][0, -1]
    assert_allclose(biased, twice, rtol=0, atol=100 * EPS * np.abs(twice).max())


@KINDS
def test_a_bias_common_to_all_keys_cancels_and_a_low_one_hides(shape, rng):
    network, tokens = everything_random(shape, rng), rng.integers(0, 300, (1, 8))
    plain = states(network, tokens)
    for common in (3.0, -40.0):
        close(network, states(network, tokens, bias=np.full((8, 8), common)), plain)
    hide = np.zeros((8, 2))
    hide[2:] = -1e9
    other = tokens.copy()
    other[:, :2] = (tokens[:, :2] + 1) % 300
    for x, y in zip(states(network, tokens, bias=hide), states(network, other, bias=hide), strict=True):
        assert_array_equal(x[:, 2:], y[:, 2:])


@KINDS
def test_generation_with_cached_keys_is_full_recomputation(shape, rng):
    """Sampled again from the full forward pass with the same random numbers."""
    network, count, warmth = everything_random(shape, rng), 25, 0.7
    prompt = rng.integers(0, 300, 6).tolist()
    written = network.generate(prompt, count, seed=8, temperature=warmth)
    again, text = np.random.default_rng(8), list(prompt)
    for token in written:
        logits = network.weights.unembedding @ states(network, [text], final_norm=True)[-1][0, -1] / warmth
        chances = np.exp(logits - logits.max())
        assert again.choice(300, p=chances / chances.sum()) == token
        text.append(token)
    assert len(set(written)) > 1


def test_generation_is_reproducible_and_greedy_when_cold(rng):
    network = everything_random(GPT2, rng)
    assert network.generate([1, 2], 30, seed=1) == network.generate([1, 2], 30, seed=1)
    assert network.generate([1, 2], 30, seed=1) != network.generate([1, 2], 30, seed=2)
    text = [1, 2]
    for _ in range(10):
        text.append(int(np.argmax(network.weights.unembedding @ states(network, [text], final_norm=True)[-1][0, -1])))
    for cold in (1e-6, 1e-300, 5e-324):
        assert network.generate([1, 2], 10, seed=3, temperature=cold) == text[2:]


@pytest.mark.slow
def test_generated_tokens_have_the_softmax_frequencies(rng):
    """One step from 3000 seeds: 20 tokens, chi-squared below its mean 19 plus 6 deviations."""
    network = everything_random(replace(BARE, vocabulary=20), rng)
    logits = network.weights.unembedding @ states(network, [[3, 4]], final_norm=True)[-1][0, -1] / 3
    chances = np.exp(logits - logits.max())
    expected = 3000 * chances / chances.sum()
    counts = np.bincount([network.generate([3, 4], 1, seed=s, temperature=3.0)[0] for s in range(3000)], minlength=20)
    assert np.sum((counts - expected) ** 2 / expected) < 19 + 6 * np.sqrt(38)


def test_the_embedding_stands_in_for_a_missing_unembedding(rng):
    network = everything_random(GPT2, rng)
    tied = Transformer(GPT2, replace(network.weights, unembedding=None))
    equal = Transformer(GPT2, replace(network.weights, unembedding=network.weights.embedding))
    assert tied.generate([7], 20, seed=0) == equal.generate([7], 20, seed=0) != network.generate([7], 20, seed=0)


@pytest.mark.parametrize(
    ("tokens", "error", "words"),
    [
        ([1, 2], ValueError, r"tokens must be integers of shape \(B, n\)"),
        ([[1.0]], ValueError, "tokens must be integers"),
        ([[]], ValueError, "tokens must be integers"),
        ([[300]], ValueError, "tokens must be from 0 to 299, got 300"),
        ([[-1]], ValueError, "tokens must be from 0 to 299, got -1"),
        ([[True]], TypeError, "tokens must be numbers, not booleans"),
        ([list(range(41))], ValueError, "tokens must have at most context = 40 positions, got 41"),
    ],
)
def test_tokens_that_cannot_be_run(tokens, error, words, rng):
    with pytest.raises(error, match=words):
        everything_random(GPT2, rng).hidden_states(tokens)


@pytest.mark.parametrize("bias", [np.zeros(3), np.zeros((2, 1)), np.zeros((3, 4)), np.zeros((3, 3, 1))])
def test_biases_of_another_shape(bias, rng):
    with pytest.raises(ValueError, match=r"bias must have shape \(n, k\) or \(heads, n, k\) with n = 3"):
        everything_random(GPT2, rng).hidden_states([[1, 2, 3]], bias=bias)


def test_biases_and_generation_out_of_range(rng):
    network = everything_random(GPT2, rng)
    with pytest.raises(ValueError, match="bias must be finite"):
        network.hidden_states([[1, 2]], bias=[[0.0], [-np.inf]])
    for arguments, error, words in (
        (([1], 0), ValueError, "count must be at least 1"),
        (([1], 40), ValueError, "prompt and count must fit in context = 40 positions, got 41"),
        (([], 1), ValueError, "tokens must be integers"),
    ):
        with pytest.raises(error, match=words):
            network.generate(*arguments, seed=0)
    with pytest.raises(ValueError, match="temperature must be positive"):
        network.generate([1], 1, seed=0, temperature=0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        network.generate([1], 1, seed=-1)
    with pytest.raises(ValueError, match="vocabulary of at least 256 tokens"):
        everything_random(replace(BARE, vocabulary=20), rng).encode("x")


def test_facts(rng):
    network = Transformer(GPT2, everything_random(GPT2, rng).weights, {"weights": "drawn here"})
    assert (network.depth, network.vocabulary, network.context, network.window) == (3, 300, 40, None)
    assert network.precision == EPS
    assert dict(network.provenance) == {
        "network": "NumPy transformer (depth 3, width 24, heads 4, vocabulary 300, context 40)",
        "dtype": "float64",
        "weights": "drawn here",
    }
    with pytest.raises(TypeError):
        network.provenance["weights"] = "others"
    assert network.encode("é") == [195, 169]
    seen = []
    network.observe([[1, 2]], lambda layer, x: seen.append((layer, x.shape)), final_norm=True)
    assert seen == [(layer, (1, 2, 24)) for layer in range(5)]
