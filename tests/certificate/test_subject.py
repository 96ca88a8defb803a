"""Networks outside the theorem are refused by name."""

import tracemalloc
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest

from relaymodel import PromptBias, certify, memory
from relaymodel.certificate.subject import Subject
from relaymodel.certificate.subject import memory as memory_of
from relaymodel.networks.huggingface import HuggingFaceNetwork
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import VOCABULARY, example


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

    def post(self, block, x, *more, **rest):
        return self._norm(x + self.attention(block, x, *more, **rest), block.mlp_gain, block.mlp_shift)

    monkeypatch.setattr(Transformer, "_block", post)
    with pytest.raises(ValueError, match="must be a pre-LN transformer .* behind block 1 differ"):
        certify(network, texts)


@pytest.mark.parametrize("strength", [-800.0, -1.0, 0.5, 700.0, 800.0, 1e4])
def test_what_a_bias_favours_is_bounded_for_biases_of_any_size(rng, strength):
    """n e^b / (P e^b + t) for the prompt's keys, n / (P e^b + t) for the others."""
    network, pairs = example(rng, steps=7)
    subject, _ = Subject.of(network, pairs, lambda t: np.full_like(t, strength))
    with mp.workdps(30):
        v = mp.exp(strength)
        most = max(max(v, 1) * (5 + t) / (5 * v + t) for t in range(1, 8))
        assert most * (1 - mp.mpf(10) ** -14) <= subject.favour <= max(most, 1) * (1 + mp.mpf(10) ** -12)
    certificate = certify(network, pairs, bias=lambda t: np.full_like(t, strength))
    assert certificate.applies
    assert certificate.holds


def test_too_long_texts_are_refused_with_their_size(rng, monkeypatch):
    network, (a, b, after) = example(rng)
    monkeypatch.setattr(memory, "free_memory", lambda: 10**6)
    with pytest.raises(ValueError, match=r"a certificate of two runs of 45 tokens takes 0\.\d+ GB of memory"):
        certify(network, (a, b, after))
    small = memory_of(network.architecture, 10_000), memory_of(network.architecture, 10_000_000)
    assert small[0] * 200 < small[1]


@pytest.mark.slow
def test_the_memory_foreseen_is_enough_and_not_ten_times_too_much(rng):
    network, (a, b, _) = example(rng, depth=2)
    after = rng.integers(0, VOCABULARY, 900)
    tracemalloc.start()
    certify(network, (a, b, after))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < memory_of(network.architecture, 905) < 10 * taken


def test_models_without_a_head_are_certified(rng):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    none = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=32, **none)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = HuggingFaceNetwork(transformers.GPT2Model(config).double())
    assert certify(network, ([1, 2], [3, 4], [5, 6, 7])).holds


def test_states_beyond_floats_are_refused(rng):
    network, pairs = example(rng)
    weights = replace(network.weights, embedding=network.weights.embedding * 1e170)
    with pytest.raises(ValueError, match="states whose squares float64 can hold, and those at layer 0"):
        certify(Transformer(network.architecture, weights), pairs)
    tiny = replace(network.weights, embedding=1 + np.arange(20)[:, None] * 1e-170 * np.ones((20, 24)) * 0)
    tiny.embedding[:, 0] = np.arange(20) * 1e-170
    with pytest.raises(ValueError, match="more than 1e-150 apart"):
        certify(Transformer(network.architecture, tiny), pairs)
    block = network.weights.blocks[0]
    block = replace(block, query=block.query * 1e160, key=block.key * 1e160)
    loud = Transformer(network.architecture, replace(network.weights, blocks=(block, *network.weights.blocks[1:])))
    with pytest.raises(ValueError, match="float64 can hold"):
        certify(loud, pairs)


def test_no_omega_is_written_down_where_it_would_take_a_million_bits(rng):
    network, pairs = example(rng, depth=1)
    block = network.weights.blocks[0]
    block = replace(block, query=block.query * 1e4, key=block.key * 1e4)
    certificate = certify(Transformer(network.architecture, replace(network.weights, blocks=(block,))), pairs)
    assert certificate.ladder.weights is None
    assert certificate.applies
    assert "no ω can be written down from them alone" in certificate.hypotheses[2].finding


def test_the_bias_is_named_and_grows_where_its_end_is_above_its_beginning(rng):
    network, pairs = example(rng, depth=1, steps=3)
    for bias, name, grows in (
        (None, "none", False),
        (PromptBias(0.5), repr(PromptBias(0.5)), True),
        (lambda t: np.array([0.0, 1.0, 1.0]), "a function of t", True),
        (lambda t: np.array([0.0, 1.0, 0.0]), "a function of t", False),
    ):
        subject, facts = Subject.of(network, pairs, bias)
        assert facts["bias"] == name
        assert subject.grows == grows
