"""The theorem's certificate: it holds on networks of every kind, and what is wrong does not pass."""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import relaymodel.certificate.rounding as rounding
from relaymodel import Layer, PromptBias, RelayModel, certify, influence
from relaymodel.certificate import Certificate, sharp_network
from relaymodel.certificate.constants import times
from relaymodel.certificate.enclosure import _corners, _frontier, enclose
from relaymodel.certificate.majorant import majorant
from relaymodel.certificate.render import power
from relaymodel.certificate.runs import attend, logarithmic_mean
from relaymodel.certificate.steps import NAMES
from relaymodel.certificate.weights import LIPSCHITZ, floors, read
from relaymodel.cli import main
from relaymodel.networks.protocol import measure
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.networks.transformer.layers import activate
from relaymodel.plotting import plot_certificate

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


# it holds


@given(cases())
def test_the_bound_holds_at_every_position_of_every_network(case):
    network, texts = case
    certificate = certify(network, texts)
    assert certificate.applies
    assert certificate.verification.failures == ()
    assert [step.name for step in certificate.steps] == list(NAMES)
    measured = measure(network, texts)  # another way to the distances
    assert_allclose(certificate.distance(), measured.euclidean[0, -1], rtol=1e-9, atol=1e-12)
    for step in certificate.steps:
        for layer in measured.layers:
            ratio = certificate.log10_bound(step.name, layer) - np.log10(
                np.maximum(measured.distance(layer)[0], 1e-300)
            )
            assert np.all(ratio > -1e-12), (step.name, layer)


@pytest.mark.parametrize("beta", [-1, 0.5, 1, 1.5])
def test_with_a_bias_the_bounds_hold_for_the_runs(rng, beta):
    network, texts = example(rng, norm="rms", positions="rotary", gated=True, key_heads=2)
    certificate = certify(network, texts, bias=PromptBias(beta))
    assert certificate.holds
    measured = measure(network, texts, bias=PromptBias(beta))
    assert_allclose(certificate.distance(), measured.euclidean[0, -1], rtol=1e-9)
    for name, _, _ in certificate.ladder:
        assert certificate.check(measured, name).passed


def test_the_bound_of_each_step_is_that_of_its_relay_layers(rng):
    certificate = certify(*example(rng, steps=20))
    for step in certificate.steps:
        if step.sources is not None:
            continue
        x = [Fraction(value) for value in step.start]
        for l, layer in enumerate(step.layers, start=1):
            x = list(layer.apply(x))
            found = step.bound.log10[l]
            exact = np.array([math.log10(value.numerator) - math.log10(value.denominator) for value in x])
            assert np.all(found - exact < 1e-8)
            mantissa, exponent = step.bound.mantissa[l], int(step.bound.exponent[l])
            for value, bound in zip(x, mantissa, strict=True):
                assert value <= Fraction(bound) * Fraction(2) ** exponent


def test_the_exact_solution_is_the_bound(rng):
    certificate = certify(*example(rng))
    step = certificate.step("section 8")
    D = influence(RelayModel(certificate.prompt, step.layers), certificate.t)
    assert_allclose(certificate.log10_bound("section 8"), np.log10(certificate.unit * D), atol=1e-9)
    above = np.log10(certificate.unit * influence(certificate.model, certificate.t))
    assert np.all(above >= certificate.log10_bound("smallest") - 1e-9)


def test_given_prompts_are_sums_of_exact_solutions(rng):
    """x' = rho x + lambda (P X/n + C x) is D of the layers left with 1/z for the first, less D without it."""
    certificate = certify(*example(rng, steps=30))
    step, P = certificate.a_posteriori, certificate.prompt
    mean = step.sources.mean(axis=1)
    total = np.zeros(certificate.t.size)
    for l, layer in enumerate(step.layers):
        rest = step.layers[l + 1 :]
        with_mean = influence(RelayModel(P, (Layer(1, 0), *rest)), certificate.t)
        without = influence(RelayModel(P, rest), certificate.t) if rest else 0
        total += float(layer.relay) * mean[l] * (with_mean - without)
    assert_allclose(10 ** certificate.log10_bound("prompts"), total, rtol=1e-6)


def test_bounds_from_the_weights_hold_for_other_texts(rng):
    """The theorem's promise: constants that know nothing of the texts; those that know the floors, for texts above."""
    network, (a, b, after) = example(rng, std=0.05, epsilon=1e-2)
    certificate = certify(network, (a, b, after))
    met = 0
    for _ in range(12):
        other = certify(network, (*rng.integers(0, VOCABULARY, (2, 5)), rng.integers(0, VOCABULARY, 40)))
        scale = np.log10(other.unit / certificate.unit)
        above = np.log10(other.distance())
        assert np.all(certificate.log10_bound("weights") + scale > above)
        theirs, ours = (c.constants["hypotheses"] for c in (other, certificate))
        if all(x.kappa <= 1.2 * y.kappa and x.omega <= 1.2 * y.omega for x, y in zip(theirs, ours, strict=True)):
            met += np.all(certificate.log10_bound("hypotheses") + scale > above)
    assert met > 3


def test_the_ladder_descends_where_knowledge_grows(rng):
    for settings_ in ({}, {"norm": "rms", "gated": True, "activation": "silu", "positions": "rotary", "key_heads": 2}):
        ladder = {name: above for name, above, _ in certify(*example(rng, **settings_)).ladder}
        order = ["weights", "hypotheses", "covariance", "positions", "secants", "smallest"]
        for crude, fine in pairwise(order):
            assert ladder[crude] > ladder[fine]
        assert ladder["section 8"] > ladder["covariance"]
        assert ladder["secants"] > ladder["prompts"]
        assert 0 <= ladder["smallest, prompts"] < 1


def test_prompts_may_begin_alike(rng):
    network, (a, b, after) = example(rng)
    b = np.concatenate((a[:3], b[3:]))
    certificate = certify(network, (a, b, after))
    assert certificate.holds
    assert np.all(certificate.high[:, :3] == 0)
    assert np.all(certificate.high[1:, 3:] > 0)


# what is wrong does not pass


@pytest.mark.parametrize("layer", [1, 3])
def test_a_doctored_curve_is_caught(rng, layer):
    certificate = certify(*example(rng))
    for factor in (2.0, 1.001):
        low, high = certificate.low.copy(), certificate.high.copy()
        excess = certificate.step("smallest").excess(low, high)[layer - 1]
        n = int(np.argmin(excess))  # where the bound is closest
        low[layer, n] *= factor
        high[layer, n] *= factor
        assert refused(replace(certificate, low=low, high=high), "does not dominate")


@pytest.mark.parametrize("strength", ["relay", "residual"])
def test_shrunken_layers_are_caught(rng, strength):
    certificate = certify(*example(rng))
    forgeries = 0
    for i, step in enumerate(certificate.steps):
        for l, layer in enumerate(step.layers):
            if not getattr(layer, strength):
                continue
            less = replace(layer, **{strength: Fraction(getattr(layer, strength)) * Fraction(999, 1000)})
            layers = (*step.layers[:l], less, *step.layers[l + 1 :])
            # as a forger would: with the bound that follows from the smaller layers
            bound = majorant(layers, step.start, certificate.prompt, step.sources)
            steps = (replace(step, layers=layers, bound=bound),)
            forged = replace(certificate, steps=steps)
            if i < 4:
                assert refused(forged, "below what its constants give")
            elif step.name.startswith("smallest"):
                assert refused(forged, "does not dominate")
            forgeries += 1
    assert forgeries > 15


@pytest.mark.parametrize("name", ["kappa", "kappa_2", "omega", "mu", "query", "key", "value_radius", "value_norm"])
def test_every_constant_counts(rng, name):
    """The layers of section 8 fall with each constant but kappa_2, which is in mu."""
    constants = certify(*example(rng)).constants["section 8"][1]
    value = getattr(constants, name)
    less = replace(constants, **{name: tuple(x / 2 for x in value) if isinstance(value, tuple) else value / 2})
    before, after = constants.section_8(), less.section_8()
    smaller = after.relay < before.relay or after.residual < before.residual
    assert smaller == (name != "kappa_2")


def test_a_doctored_bound_is_caught(rng):
    certificate = certify(*example(rng))
    bound = certificate.steps[3].bound
    lower = replace(bound, mantissa=bound.mantissa * 0.99)
    steps = (*certificate.steps[:3], replace(certificate.steps[3], bound=lower), *certificate.steps[4:])
    assert refused(replace(certificate, steps=steps), "not that of its layers")


@pytest.mark.parametrize("start", ["start", "sources"])
def test_a_start_below_the_prompts_is_caught(rng, start):
    certificate = certify(*example(rng))
    step = certificate.limit
    smaller = replace(step, **{start: getattr(step, start) * 0.9})
    smaller = replace(smaller, bound=majorant(step.layers, smaller.start, certificate.prompt, smaller.sources))
    assert refused(replace(certificate, steps=(smaller,)), "starts below")


@pytest.mark.parametrize("part", ["output", "value", "down", "up"])
@pytest.mark.parametrize("place", [0, 2])
def test_doctored_weights_are_caught_where_they_are(rng, part, place):
    network, texts = example(rng)
    certificate = certify(network, texts)
    assert certificate.check(measure(network, texts)).passed
    blocks = list(network.weights.blocks)
    blocks[place] = replace(blocks[place], **{part: getattr(blocks[place], part) * 4})
    doctored = Transformer(network.architecture, replace(network.weights, blocks=tuple(blocks)))
    check = certificate.check(measure(doctored, texts))
    assert not check.passed
    assert f"layer {place + 1}:" in check.failures[0]


def test_another_measurement_must_be_of_the_same_shape(rng):
    network, (a, b, after) = example(rng)
    certificate = certify(network, (a, b, after))
    with pytest.raises(ValueError, match="number of tokens, 40, got 39"):
        certificate.check(measure(network, (a, b, after[:-1])))
    with pytest.raises(ValueError, match="prompt, 5, got 4"):
        certificate.check(measure(network, (a[1:], b[1:], after)))
    with pytest.raises(TypeError, match="must be a Measurement"):
        certificate.check(certificate)


# hypotheses


def test_every_hypothesis_has_its_verdict(rng):
    certificate = certify(*example(rng))
    assert {h.name: h.holds for h in certificate.hypotheses} == dict.fromkeys(
        ("pre-LN", "finite depth", "bounded logits", "activation floor", "same positions", "full attention"), True
    )
    assert "L = 3" in certificate.hypotheses[1].finding
    assert certificate.hypotheses[3].finding.startswith(f"σ ≥ {math.sqrt(1e-5):.3g} for every text")


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_a_growing_bias_fails_and_says_how_omega_grows(rng, beta):
    """Without content the prompt's n A is n v/(P v + t), v = (1 + t/P)^beta, in closed form."""
    network, texts = example(rng, steps=300)
    blocks = tuple(replace(b, query=b.query * 0, key=b.key * 0) for b in network.weights.blocks)
    network = Transformer(network.architecture, replace(network.weights, blocks=blocks))
    certificate = certify(network, texts, bias=PromptBias(beta))
    assert not certificate.applies
    assert certificate.holds
    assert "weights" not in [name for name, _, _ in certificate.ladder]
    verdict = next(h for h in certificate.hypotheses if h.name == "bounded logits")
    assert not verdict.holds
    t, P = certificate.t, certificate.prompt
    v = (1 + t / P) ** beta
    expected = (P + t) * v / (P * v + t)
    assert_allclose(certificate.omega[0, P:], expected, rtol=1e-9)
    n = np.log(P + t)
    assert f"n^{np.polyfit(n, np.log(expected), 1)[0]:.2f}" in verdict.finding
    assert "no ω holds for all n" in verdict.finding
    assert "FAILS" in certificate._repr_html_()


def test_a_falling_or_constant_bias_leaves_logits_bounded(rng):
    network, texts = example(rng)
    # without content omega is 1, and what is above it is the bias
    blocks = tuple(replace(b, query=b.query * 0, key=b.key * 0) for b in network.weights.blocks)
    network = Transformer(network.architecture, replace(network.weights, blocks=blocks))
    for bias in (PromptBias(-1), PromptBias(0, 2), lambda t: np.full_like(t, -1.5)):
        certificate = certify(network, texts, bias=bias)
        assert certificate.applies
        assert certificate.holds
        largest = [float(c.omega) for c in certificate.constants["weights"]]
        assert_allclose(certificate.omega.max(axis=1), largest, rtol=1e-9)
        assert largest[0] > 1.3


def test_omega_is_the_largest_attention(rng):
    network, (a, b, after) = example(rng, positions="rotary", heads=2, depth=1)
    certificate = certify(network, (a, b, after))
    expected = np.zeros(45)
    for prompt in (a, b):
        x = next(network.hidden_states([np.concatenate((prompt, after))]))[0]
        q, k, _ = network.projections(network.weights.blocks[0], x)
        weights = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(12)) * np.tri(45)
        weights /= weights.sum(axis=-1, keepdims=True)
        expected = np.maximum(expected, weights.max(axis=(0, 2)) * np.arange(1, 46))
    assert np.all(certificate.omega[0] >= expected)
    assert_allclose(certificate.omega[0], expected, rtol=1e-9)


def test_networks_outside_the_theorem_are_refused_by_name(rng, monkeypatch):
    network, texts = example(rng)

    class PostLN(Transformer):
        pass

    with pytest.raises(TypeError, match="PostLN, whose blocks are unknown: the theorem's hypotheses"):
        certify(PostLN(network.architecture, network.weights), texts)

    class Windowed(PostLN):
        window = 8

    with pytest.raises(ValueError, match="sliding window of 8: the theorem's hypotheses"):
        certify(Windowed(network.architecture, network.weights), texts)
    with pytest.raises(TypeError, match="got str"):
        certify("gpt2", texts)
    with pytest.raises(ValueError, match="one pair of prompts, got 2"):
        certify(network, ([texts[0]] * 2, [texts[1]] * 2, texts[2]))

    def post(self, block, x, *more):
        return self._norm(x + self.attention(block, x, *more), block.mlp_gain, block.mlp_shift)

    monkeypatch.setattr(Transformer, "_block", post)
    with pytest.raises(ValueError, match="must be a pre-LN transformer .* behind block 1 differ"):
        certify(network, texts)


def test_models_of_transformers(rng):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from relaymodel.networks.huggingface import HuggingFaceNetwork

    none = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    llama = none | {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama |= {"intermediate_size": 24, "num_key_value_heads": 2, "max_position_embeddings": 64}
    gpt2 = none | {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}

    def build(kind, config):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(1000)))
            made = transformers.AutoModelForCausalLM.from_config(kind(**config), dtype=torch.float64)
        return HuggingFaceNetwork(made)

    a, b, after = rng.integers(0, VOCABULARY, (2, 4)), rng.integers(0, VOCABULARY, (2, 4)), [3, 1, 4, 1, 5, 9, 2, 6]
    for kind, config in ((transformers.LlamaConfig, llama), (transformers.GPT2Config, gpt2)):
        network = build(kind, config)
        certificate = certify(network, (a[0], b[0], after))
        assert certificate.applies
        assert certificate.holds
        for name in NAMES[:7]:  # transformers' angles are float32: the last two steps leave no room for it
            assert certificate.check(measure(network, (a[0], b[0], after)), name).passed
    window = {"use_sliding_window": True, "sliding_window": 4}
    for kind, config, words in (
        (transformers.OpenAIGPTConfig, gpt2, "openai-gpt is post-LN"),
        (
            transformers.MistralConfig,
            llama | {"sliding_window": 4},
            "hypotheses cannot be established for this mistral",
        ),
        (transformers.Qwen2Config, llama | window | {"max_window_layers": 0}, "this qwen2 .*window"),
    ):
        with pytest.raises(ValueError, match=words):
            certify(build(kind, config), (a[0], b[0], after))


# the networks that attain it


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(("depth", "relay"), [(1, 1.0), (3, 0.25), (8, 1.0), (4, 2.0)])
def test_the_sharp_network_attains_the_bound_at_every_t(depth, relay, norm):
    network = sharp_network(depth, relay, norm=norm)
    certificate = certify(network, ([1] * 4, [0] * 4, [0] * 300))
    assert certificate.applies
    assert certificate.holds
    for name, _, _ in certificate.ladder:
        above = certificate.log10_ratio(name) * math.log(10)
        assert np.all(above >= 0)
        # 1e-6 is added to both strengths of each block; c^2/2S^2 for the norms
        assert np.all(above < depth * 2.1e-6 + depth * (1 + relay) ** (2 * depth) / 1e8)
    D = influence(RelayModel.uniform(prompt=4, depth=depth, relay=relay), certificate.t)
    assert_allclose(certificate.distance(), D, rtol=depth * (1 + relay) ** (2 * depth) / 1e8 + 1e-9)


def test_a_smaller_common_component_costs_a_constant_factor():
    ratios = []
    for common in (30.0, 100.0, 300.0):
        certificate = certify(sharp_network(4, common=common), ([1] * 4, [0] * 4, [0] * 300))
        above = certificate.log10_ratio("weights") * math.log(10)
        assert certificate.holds
        assert above[-1] < 2 * above[20]  # no growth with t
        ratios.append(above[-1])
    assert ratios[0] > 5 * ratios[1] > 20 * ratios[2] > 0  # about as 1/S^2


def test_a_sharp_network_with_more_in_it_exceeds_the_bound():
    """The bound leaves no room: one per mille more in one block shows."""
    network = sharp_network(3)
    texts = [1] * 4, [0] * 4, [0] * 50
    certificate = certify(network, texts)
    blocks = list(network.weights.blocks)
    blocks[1] = replace(blocks[1], output=blocks[1].output * 1.001)
    doctored = Transformer(network.architecture, replace(network.weights, blocks=tuple(blocks)))
    for name in NAMES:
        assert certificate.check(measure(network, texts), name).passed
        check = certificate.check(measure(doctored, texts), name)
        assert "layer 2:" in check.failures[0]


@pytest.mark.parametrize(
    ("arguments", "words"), [({"depth": 0}, "depth"), ({"depth": 2, "relay": -1}, "relay must be positive, got -1.0")]
)
def test_sharp_networks_that_cannot_be(arguments, words):
    with pytest.raises(ValueError, match=words):
        sharp_network(**arguments)


# the arithmetic


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 30), st.sampled_from([1e-120, 1.0, 1e120]))
def test_operator_norms_are_above_and_close(seed, rows, columns, scale):
    """Integer matrices u v^T + w x^T: the largest singular value is that of a 2 x 2 matrix, and |W y|/|y| below it."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 10, (rows, columns)).astype(float)
    bound = rounding.operator_norm(matrix * scale) / scale
    y = np.linalg.svd(matrix)[2][0] if np.any(matrix) else np.ones(columns)
    exact = [Fraction(value) for value in y]
    image = [sum(Fraction(w) * x for w, x in zip(row, exact, strict=True)) for row in matrix.tolist()]
    quotient = sum(x * x for x in image) / sum(x * x for x in exact)
    assert Fraction(bound) ** 2 * (1 + Fraction(1, 10**15)) >= quotient
    assert bound <= math.sqrt(quotient) * (1 + 1e-7) + 1e-300


def test_an_unproven_norm_falls_back_to_frobenius(monkeypatch, rng):
    def fails(matrix):
        raise np.linalg.LinAlgError

    matrix = rng.standard_normal((6, 4))
    monkeypatch.setattr(np.linalg, "cholesky", fails)
    assert_allclose(rounding.operator_norm(matrix), np.linalg.norm(matrix), rtol=1e-9)


def test_an_eigenvalue_that_is_too_small_is_not_believed(monkeypatch, rng):
    matrix = rng.standard_normal((6, 4))
    true = np.linalg.norm(matrix, 2)
    honest = rounding.scipy.linalg.eigvalsh
    monkeypatch.setattr(rounding.scipy.linalg, "eigvalsh", lambda *args, **more: honest(*args, **more) * 0.999)
    assert rounding.operator_norm(matrix) >= true


def test_norms_of_products_and_with_errors(rng):
    for d, r in ((20, 3), (3, 20), (8, 8)):
        left, right = rng.standard_normal((d, r)), rng.standard_normal((r, d))
        true = np.linalg.norm(left @ right, 2)
        assert true <= rounding.product_norm(left, right) <= true * (1 + 1e-6)
    assert rounding.operator_norm(np.eye(3), 0.5) >= 1.5


def test_numbers_of_any_size():
    assert rounding.exponential(1.0) >= math.e
    huge = rounding.exponential(1e4)
    assert abs(math.log(huge) - 1e4) < 1e-9
    assert math.log(huge) >= 1e4 * (1 - 1e-15)
    for factor in (3.7, 1e-20, 1e300):
        for number in (2.5, 10**400, huge, 1e200):
            product = times(factor, number)
            exact = Fraction(factor) * Fraction(number)
            assert exact <= product
            assert Fraction(product) <= exact * (1 + Fraction(1, 10**11)) + 1
    assert times(0.0, huge) == 0
    for number in (huge, 10**400 + 1, 3, 2.5, Fraction(1, 3)):
        power_ = rounding.log2(number)
        assert Fraction(number) < Fraction(2) ** power_
        assert Fraction(number) <= Fraction(rounding.scaled(number, power_)) * Fraction(2) ** power_
        assert rounding.scaled(number, power_) * (1 + 1e-15) > 0.25
    assert [power(x, 3) for x in (0.5, 1000.25, -1000.25, math.inf)] == ["3.16", "1.78e+1000", "5.62e-1001", "∞"]


@given(
    st.lists(st.tuples(st.integers(0, 10**400), st.integers(0, 10**30)), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_the_majorant_is_above_the_exact_recursion(strengths, prompt):
    layers = tuple(Layer(Fraction(a, 10**15), Fraction(b, 10**15)) for a, b in strengths)
    bound = majorant(layers, np.where(np.arange(12) < prompt, 0.1, 0), prompt)
    x = [Fraction(0.1) if n < prompt else Fraction(0) for n in range(12)]
    for l, layer in enumerate(layers, start=1):
        x = list(layer.apply(x))
        for value, mantissa in zip(x, bound.mantissa[l], strict=True):
            found = Fraction(mantissa) * Fraction(2) ** int(bound.exponent[l])
            assert value <= found
            if mantissa > 1e-200:
                assert found <= value * (1 + Fraction(1, 10**12))


def test_distances_are_enclosed(rng):
    states = rng.standard_normal((2, 5, 7)) * 10.0 ** rng.integers(-3, 4, (5, 1))
    states[1, 2] = states[0, 2]
    low, high = rounding.distances(states)
    for n in range(5):
        square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*states[:, n].tolist(), strict=True))
        assert Fraction(low[n]) ** 2 <= square <= Fraction(high[n]) ** 2
    assert low[2] == high[2] == 0
    assert np.all(high <= low * (1 + 1e-13))


def test_slopes_of_activations():
    x = np.linspace(-8, 8, 200_001)
    for kind, bound in LIPSCHITZ.items():
        slopes = np.abs(np.diff(activate(x, kind)) / np.diff(x))
        assert bound - 0.002 < slopes.max() < bound


@given(st.integers(0, 2**32 - 1))
def test_enclosures_are_tight_and_complete(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 20))
    level, slope = rng.standard_normal(count), rng.exponential(size=count)
    corners = [x for x in _corners(level, slope) if np.isfinite(x)]
    assert corners == sorted(corners)
    knots = np.array([0, *corners, 1e12])

    def largest(x):
        return np.maximum(np.max(level - slope * np.atleast_1d(x)[:, None], axis=1), 0)

    x = rng.exponential(3, 50)
    assert_allclose(np.interp(x, knots, largest(knots)), largest(x), atol=1e-9)


def test_the_enclosure_finds_layers_that_are_there(rng):
    layers = Layer(0.7, 1.1), Layer(1.3, 0.9), Layer(0.2, 1.0)
    start = np.where(np.arange(60) < 4, 1.0, 0.0)
    rows = [start]
    for layer in layers:
        rows.append(np.array([float(x) for x in layer.apply(rows[-1])]))
    found = enclose(rows[1:], np.array(rows), start, 4)
    for layer, other in zip(layers, found, strict=True):
        assert_allclose((other.relay, other.residual), (layer.relay, layer.residual), rtol=2e-6)


def test_the_enclosure_is_the_best_of_all_pairs_of_corners(rng):
    certificate = certify(*example(rng, depth=2, steps=25))
    low, high, P = certificate.low, certificate.high, certificate.prompt
    for sources in (None, high[:, :P]):

        def last(layers, given=sources):
            return majorant(layers, high[0], P, given).log10[-1, P:].mean()

        corners = [_frontier(high[l + 1], low[l], P, sources is not None) for l in range(2)]
        options = [[Layer(x, y) for x, y in zip(f.relay, f.residual, strict=True)] for f in corners]
        best = min(last((one, other)) for one in options[0] for other in options[1])
        assert_allclose(last(enclose(list(high[1:]), low, high[0], P, sources)), best, atol=0.005)


def test_no_layer_of_an_enclosure_can_be_bettered_alone(rng):
    certificate = certify(*example(rng, depth=5, std=0.3, steps=25))
    low, high, P = certificate.low, certificate.high, certificate.prompt
    for sources in (None, high[:, :P]):
        found = enclose(list(high[1:]), low, high[0], P, sources)
        reached = majorant(found, high[0], P, sources).log10[-1, P:].mean()
        for l in range(5):
            corners = _frontier(high[l + 1], low[l], P, sources is not None)
            for x, y in zip(corners.relay, corners.residual, strict=True):
                other = (*found[:l], Layer(x, y), *found[l + 1 :])
                assert majorant(other, high[0], P, sources).log10[-1, P:].mean() > reached - 1e-3


def test_the_attention_identity(rng):
    """What the parts are made of: the difference of two attention outputs, exactly (module `runs`)."""
    H, N, head, d = 2, 9, 3, 7
    q, k, v = (rng.standard_normal((2, H, N, head)) for _ in range(3))
    outputs = rng.standard_normal((H, head, d))
    logits = np.where(np.tri(N, dtype=bool), q @ np.swapaxes(k, -1, -2) / np.sqrt(head), -np.inf)
    A = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    difference = (A[0] @ v[0] - A[1] @ v[1]).transpose(1, 0, 2).reshape(N, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.where(np.tri(N, dtype=bool), logarithmic_mean(A, np.log(A[0] / A[1])), 0)
    assert np.all(m <= A.mean(axis=0) + 1e-15)
    vh, kh, qh = (z.mean(axis=0) for z in (v, k, q))
    centre = m @ vh / m.sum(axis=-1, keepdims=True)
    away = vh[:, None] - centre[:, :, None]
    query = np.einsum("hns,hnse,hnd,hsd->nhe", m, away, q[0] - q[1], kh) / np.sqrt(head)
    key = np.einsum("hns,hnse,hnd,hsd->nhe", m, away, qh, k[0] - k[1]) / np.sqrt(head)
    value = np.einsum("hns,hse->nhe", A.mean(axis=0), v[0] - v[1])
    assert_allclose((query + key + value).reshape(N, -1), difference, atol=1e-13)

    shape = Architecture(depth=1, width=d, heads=H, head_width=head, vocabulary=2, positions="none")
    norms = read(Transformer.random(shape, rng).weights.blocks[0], shape)
    factors = np.stack([rounding.root(w @ w.T) for w in outputs])
    mixed, _, parts = attend(q, k, v, outputs, factors, norms, np.ones(N), np.ones(N), None)
    assert_allclose(mixed[0] - mixed[1], A[0] @ v[0] - A[1] @ v[1], atol=1e-13)
    assert_allclose(parts.exact_query, query.reshape(N, -1), atol=1e-13)
    relayed = (key + value).reshape(N, -1) @ outputs.reshape(-1, d)
    assert np.all(parts.relayed_exact >= np.linalg.norm(relayed, axis=-1) * (1 - 1e-12))
    first = (key + value)[0].reshape(-1) @ outputs.reshape(-1, d)  # one key: nothing to be lost in a sum
    assert_allclose(parts.relayed_exact[0], np.linalg.norm(first), rtol=1e-12)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_the_gain_of_an_mlp_is_above_its_secants_and_not_far(rng, gated, norm):
    """With one hidden unit directions can agree, so that the product of norms is nearly reached."""
    settings_ = {"width": 3, "heads": 1, "mlp_width": 1, "depth": 1, "activation": "silu", "epsilon": 0.1}
    network, *_ = example(rng, gated=gated, norm=norm, std=1.5, **settings_)
    network = scrambled(network, rng, 0.3)
    block = network.weights.blocks[0]
    gain = read(block, network.architecture).mlp.gain(1.0)
    y = rng.standard_normal((2, 40_000, 3)) * 2
    y[1] = y[0] + rng.standard_normal((40_000, 3)) * 10.0 ** rng.uniform(-3, 0.5, (40_000, 1))
    size = y - y.mean(axis=-1, keepdims=True) if norm == "layer" else y
    sigma = np.sqrt(np.mean(size**2, axis=-1) + 0.1).mean(axis=0)
    moved, change = (np.linalg.norm(z[0] - z[1], axis=-1) for z in ([network.mlp(block, x) for x in y], y))
    secant = (moved / change * sigma).max()
    assert gain / 10 < secant < gain


def test_floors_come_from_components_that_no_block_writes_to(rng):
    network, *_ = example(rng)
    assert floors(network) <= math.sqrt(1e-5)
    for norm in ("layer", "rms"):
        sharp = sharp_network(3, common=100.0, norm=norm)
        found = floors(sharp)
        assert 49.999 < found <= 50.0 * math.sqrt(1 + 1e-15)
        blocks = list(sharp.weights.blocks)
        blocks[1] = replace(blocks[1], output_bias=np.array([1.0, 0, 0, 0]))
        touched = Transformer(sharp.architecture, replace(sharp.weights, blocks=tuple(blocks)))
        assert floors(touched) < (50.0 if norm == "rms" else 1e-5)


# what is shown


def test_a_reader_can_check_the_page_by_hand(rng):
    certificate = certify(*example(rng))
    page = certificate._repr_html_()
    table = re.search(r"<table><caption>The constants.*?</table>", page)[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table)]
    assert len(rows) == 3
    layers = []
    for row in rows:
        _, _, _, omega, V, q, k, mu, rho, relay = map(float, row)
        assert_allclose(rho, (1 + mu) * (1 + 6 * q), rtol=5e-4)
        assert_allclose(relay, (1 + mu) * omega * (V + 3 * k), rtol=5e-4)
        layers.append(Layer(relay, rho))
    table = re.search(r"<table><caption>The bounds at the last layer.*?</table>", page)[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(<td>.*?)</tr>", table)]
    unit = float(re.search(r"<p>From ([\d.e+-]+) at the first P = 5 positions", page)[1])
    for t, measured, priori, section_8, posteriori, limit in (map(float, row) for row in rows):
        assert_allclose(section_8, unit * influence(RelayModel(5, layers), t), rtol=2e-3)
        assert measured <= limit <= posteriori <= section_8 < priori
    text = certificate.latex()
    assert text.count("{") == text.count("}")
    for name in ("tabular", "align*"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") > 0
    assert text.count("$") % 2 == 0
    shown = re.search(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, flags=re.DOTALL)[1]
    assert "\n" not in shown
    plain = re.sub(r"\\times 10\^\{(.*?)\}", r"e\1", shown).replace(" ", "")
    sides = re.findall(r"&=(.*?)\(1\+10\^\{-6\}\)\\approx([\d.e+-]*\d)", plain)
    assert len(sides) == 2
    for formula, value in sides:
        numbers = [float(x) for x in re.findall(r"[\d.]+(?:e[+-]?\d+)?", formula)]
        if formula.startswith("(1+") and len(numbers) == 5:  # (1 + mu)(1 + 6 q)
            assert_allclose(float(value), (1 + numbers[1]) * (1 + 6 * numbers[4]), rtol=5e-4)
        else:  # (1 + mu) omega (V + 3 k)
            assert_allclose(float(value), (1 + numbers[1]) * numbers[2] * (numbers[3] + 3 * numbers[5]), rtol=5e-4)
    assert not re.search(r"[^\x00-\x7f]", text)


def test_a_failed_certificate_says_so(rng):
    certificate = certify(*example(rng))
    forged = replace(certificate, high=certificate.high * 2, low=certificate.low * 2)
    assert not forged.holds
    assert "FAIL" in forged.latex()
    assert "do NOT all hold" in repr(forged)


def test_the_figure_shows_bounds_above_the_measurement(rng):
    certificate = certify(*example(rng))
    lines = plot_certificate(certificate, steps=("section 8", "smallest"), layer=2).get_lines()
    measured = lines[-1].get_ydata()
    assert_allclose(measured, certificate.distance(2))
    assert all(np.all(line.get_ydata() >= measured) for line in lines[:-1])
    with pytest.raises(ValueError, match="step must be one of 'weights'"):
        plot_certificate(certificate, steps=("magic",))
    with pytest.raises(ValueError, match="layer must be from 0 to 3, got 4"):
        plot_certificate(certificate, layer=4)
    with pytest.raises(ValueError, match="differ at layer 0"):
        plot_certificate(certificate, layer=0)
    with pytest.raises(TypeError, match="must be a Certificate"):
        plot_certificate(certificate.steps)


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    common = ["certify", "--depth", "2", "--t-max", "30"]
    assert main([*common, "--latex", "a.tex", "--html", "a.html", "--csv", "a.csv", "--plot", "a.png"]) == 0
    out = capsys.readouterr().out
    assert "inequalities hold" in out
    for name in NAMES:
        assert f"\n{name} " in out
    assert {path.name for path in tmp_path.iterdir()} == {"a.tex", "a.html", "a.csv", "a.png"}
    assert "<table>" in (tmp_path / "a.html").read_text()
    assert main([*common, "--json", "--bias", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["applies"]) == (True, False)
    assert len(found["t"]) == len(found["log10_section_8"]) == 30
    assert np.all(np.array(found["log10_prompts"]) > np.log10(found["distance"]))
    assert main([*common, "--html", "a.html"]) == 2
    assert "a.html exists already" in capsys.readouterr().err
    assert main([*common, "--html", "b", "--latex", "b"]) == 2
    assert "must be different files" in capsys.readouterr().err
    monkeypatch.setattr(Certificate, "holds", False)
    assert main(common) == 1
