"""Weights as no training leaves them: what is called a proven upper bound is one, in fifty digits and any range."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from relaymodel import certify
from relaymodel.certificate import rounding
from relaymodel.certificate.constants import from_weights
from relaymodel.certificate.weights import Folded, floors, read
from relaymodel.networks.transformer import Architecture, Transformer
from tests.certificate import exact

SCALES = (1.0, 1.0, 1e-3, 1e3, 1e-12, 1e12, 1e-80, 1e80, 1e-162, 1e-200, 1e150, 5e-324, 1e-310, 0.0)


def extreme(rng, scales=SCALES, steps=6):
    """A small network whose weights have sizes drawn from `scales`, and a pair of runs."""
    heads, width = int(rng.choice([1, 2])), int(rng.integers(1, 5))
    mlp = int(rng.choice([0, 3]))
    shape = Architecture(
        depth=int(rng.integers(1, 3)),
        width=width,
        heads=heads,
        key_heads=1,
        head_width=int(rng.integers(1, 4)),
        vocabulary=4,
        context=16,
        mlp_width=mlp,
        gated=bool(rng.integers(2)),
        activation=str(rng.choice(["gelu", "silu", "gelu_tanh"])),
        norm=str(rng.choice(["layer", "rms"])),
        positions=str(rng.choice(["none", "learned"])),
        epsilon=float(rng.choice([1e-5, 1e-12, 1e-2, 1e-300])),
    )
    network = Transformer.random(shape, rng, std=1.0)

    def some(name, array):
        if array is None:
            return None
        scale = rng.choice(scales)
        if name == "attention_gain" and rng.random() < 0.3:
            return array * scale
        return np.where(rng.random(array.shape) < 0.2, 1, scale) * array + (name.endswith("shift") * scale)

    blocks = []
    for block in network.weights.blocks:
        changed = {name: some(name, value) for name, value in vars(block).items()}
        gain, value = changed["attention_gain"], changed["value"]
        if rng.random() < 0.2 and np.all(gain):  # gain * W is constant but for rounding: all that is left is rounding
            with np.errstate(over="ignore", invalid="ignore"):
                flat = 1e12 / gain[:, None] + 0 * value
            changed["value"] = np.where(np.isfinite(flat), flat, 1.0)
        blocks.append(replace(block, **changed))
    parts = {name: getattr(network.weights, name) for name in ("embedding", "positions")}
    parts = {name: some(name, value) for name, value in parts.items()}
    network = Transformer(shape, replace(network.weights, blocks=tuple(blocks), **parts))
    P = int(rng.integers(1, 4))
    a = rng.integers(0, 4, P)
    b = a.copy()
    b[rng.integers(P)] = (b[rng.integers(P)] + 1 + rng.integers(3)) % 4
    if np.array_equal(a, b):
        b[0] = (b[0] + 1) % 4
    return network, (a, b, rng.integers(0, 4, int(rng.integers(2, steps))))


def check_norms(rng):
    network, _ = extreme(rng)
    a = network.architecture
    with np.errstate(all="ignore"):
        norms = [read(block, a) for block in network.weights.blocks]
        floor = floors(network)
    for block, found in zip(network.weights.blocks, norms, strict=True):
        centred, h, group = a.norm == "layer", a.head_size, a.heads // a.key_value_heads
        gain = block.attention_gain
        values = [block.value[:, i // group * h : (i // group + 1) * h] for i in range(a.heads)]
        outputs = block.output.reshape(a.heads, h, a.width)
        products = [exact.folded(gain, v, centred) * exact.matrix(o) for v, o in zip(values, outputs, strict=True)]
        w = found.attention
        pairs = [(w.value[i], products[i]) for i in range(a.heads)]
        pairs += [
            (w.query[i], exact.folded(gain, block.query[:, i * h : (i + 1) * h], centred)) for i in range(a.heads)
        ]
        pairs += [(w.key[0], exact.folded(gain, block.key, centred)), (w.output_all, exact.matrix(block.output))]
        pairs += [
            (w.together, sum(products[1:], products[0])),
            (w.raw_value[0], exact.folded(gain, values[0], centred)),
        ]
        pairs += [(w.value_all, exact.folded(gain, np.concatenate(values, axis=1), centred))]
        if found.mlp:
            up = exact.folded(block.mlp_gain, block.up, centred)
            pairs += [(found.mlp.up, up), (found.mlp.down, exact.matrix(block.down))]
            columns = [mp.sqrt(mp.fsum(x**2 for x in up[:, j])) * mp.sqrt(a.width) for j in range(up.cols)]
            shift = np.zeros((1, a.width)) if block.mlp_shift is None else block.mlp_shift[None]
            total = exact.matrix(shift) * exact.matrix(block.up)
            assert found.mlp.largest_up >= max(c + abs(t) for c, t in zip(columns, total, strict=True))
        for bound, true in pairs:
            assert bound >= exact.norm(true) * (1 - mp.mpf(10) ** -30)
    assert floor**2 <= mp.mpf(a.epsilon) * (1 + mp.mpf(10) ** -12) or any(
        not np.any(block.output[:, j]) for block in network.weights.blocks for j in range(a.width)
    )
    constants = [from_weights(n, a, floor, 1.0) for n in norms]
    for c in constants:
        if c.omega == np.inf:
            continue
        for formula, (relay, residual) in zip((c.section_8, c.covariance), exact.layers(c), strict=True):
            try:
                layer = formula()
            except ValueError as error:
                assert "float64 can hold" in str(error)  # noqa: PT017
                continue
            assert mp.mpf(layer.relay) >= relay
            assert mp.mpf(layer.residual) >= residual


@pytest.mark.parametrize("case", range(60))
def test_norms_and_layers_are_above_the_exact_ones(rng, case):
    check_norms(np.random.default_rng([int(rng.integers(2**31)), case]))


def check_runs(rng, scales):
    """Whether it was certified; asserts that what is certified is true in exact arithmetic, noise floor added."""
    network, texts = extreme(rng, scales, 4)
    with np.errstate(all="ignore"):
        try:
            certificate = certify(network, texts)
        except ValueError as error:
            assert any(words in str(error) for words in ("float64 can hold", "smaller squares", "differ by")), error  # noqa: PT017
            return False
        if not certificate.holds:  # where rounding is more than the margin of the strengths, and the floor says so
            assert all("below" not in words for words in certificate.verification.failures)
            there = certificate.high > 0
            assert np.any(certificate.noise[there] > 1e-6 * certificate.high[there])
            return False
    true = exact.distances(network, certificate.subject.tokens)
    for name, rung in certificate.ladder.rungs.items():
        proven = name == "weights"
        for l in range(certificate.depth + 1):
            for n, distance in enumerate(true[l]):
                bound = mp.mpf(float(rung.bound.mantissa[l, n])) * mp.mpf(2) ** int(rung.bound.exponent[l])
                floor = 0 if proven else certificate.noise[l, n]
                assert distance <= (bound + mp.mpf(floor)) * (1 + mp.mpf(10) ** -30), (name, l, n)
                if name == "smallest":
                    low, high = (mp.mpf(float(x[l, n])) for x in (certificate.low, certificate.high))
                    assert low - mp.mpf(floor) <= distance <= high + mp.mpf(floor)
    return True


@pytest.mark.parametrize("scales", [SCALES, (1.0, 0.3, 1e-3, 3.0), (1.0, 1e-9, 1e-15)])
def test_certificates_are_true_in_exact_arithmetic(rng, scales):
    certified = sum(check_runs(np.random.default_rng([int(rng.integers(2**31)), i]), scales) for i in range(12))
    assert certified >= 3


def test_prompts_that_nearly_agree_need_the_noise_floor(rng):
    """Tokens 1e-15 apart: rounding of the states is a good part of the distance, and the floor says how much."""
    shape = Architecture(depth=2, width=4, heads=1, vocabulary=3, positions="none", norm="rms", mlp_width=6)
    network = Transformer.random(shape, rng, std=0.5)
    embedding = network.weights.embedding.copy()
    embedding[1] = embedding[0] * (1 + 4e-15 * rng.standard_normal(4))
    network = Transformer(shape, replace(network.weights, embedding=embedding))
    certificate = certify(network, ([1, 2, 1], [0, 2, 0], [2, 0, 2, 2]))
    assert certificate.holds
    true = np.array([[float(x) for x in row] for row in exact.distances(network, certificate.subject.tokens)])
    assert np.all(true <= certificate.high * (1 + 1e-15) + certificate.noise)
    assert np.all(true >= certificate.low * (1 - 1e-15) - certificate.noise)
    off = np.abs(true - certificate.high)
    assert np.any(off[-1] > 0.01 * true[-1])
    assert np.all(certificate.noise[-1] < 1e-9)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-162, 1.0, 1e160, 1e300])
@pytest.mark.parametrize("shape", [(3, 3), (1, 4), (5, 2)])
def test_norms_of_any_size(rng, scale, shape):
    array = rng.standard_normal(shape) * scale
    true = exact.norm(exact.matrix(array))
    bound = rounding.operator_norm(array)
    assert true <= bound <= true * (1 + 1e-6) + 1e-323
    other = rng.standard_normal(shape[::-1])
    true = exact.norm(exact.matrix(array) * exact.matrix(other))
    assert true <= rounding.product_norm(array, other)
    assert mp.sqrt(mp.fsum(mp.mpf(float(x)) ** 2 for x in array.ravel())) <= rounding.frobenius(array)


def test_a_gain_that_makes_columns_constant_leaves_what_rounding_leaves(rng):
    """gain * W is 1e12 everywhere but for rounding, which is all that reaches a LayerNorm's centred input."""
    shape = Architecture(depth=1, width=4, heads=1, vocabulary=3, positions="none", mlp_width=0)
    network = Transformer.random(shape, rng, std=1.0)
    block = network.weights.blocks[0]
    gain = rng.uniform(0.5, 2, 400)
    gain = gain[gain * (1e12 / gain) == 1e12][:4]  # in floats nothing is left at all
    block = replace(block, attention_gain=gain, value=np.repeat(1e12 / gain[:, None], 4, axis=1), query=block.query * 0)
    assert not np.any(Folded.of(gain, block.value, shape).matrix)
    network = Transformer(shape, replace(network.weights, blocks=(block,)))
    true = exact.norm(exact.folded(gain, block.value, True) * exact.matrix(block.output))
    assert 1e-9 < true <= read(block, shape).attention.value[0]
    certificate = certify(network, ([0], [1], [2, 2, 2]))
    assert certificate.holds
    distance = exact.distances(network, certificate.subject.tokens)[1]
    bound = 10 ** certificate.log10_bound("weights")
    assert all(x <= y for x, y in zip(distance[1:], bound, strict=True))


def test_what_underflows_is_below_the_noise_floor():
    """Values of 1e-362 behind their output matrix: the exact runs differ where the floats do not."""
    assert check_runs(np.random.default_rng([5, 82]), SCALES)
