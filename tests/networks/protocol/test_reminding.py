"""Rules of shares and reminders on the NumPy transformer, against biases head by head and texts put together here."""

import numpy as np
import pytest

from relaymodel import Pairs, PromptBias, Reminders, certify, measure
from relaymodel.networks.protocol.reminding import remind
from relaymodel.networks.transformer import Architecture, Transformer
from relaymodel.simulation import ClampedShare, SplitSoftmax
from relaymodel.simulation.share import PromptShares

P, T = 5, 150  # more than one block of queries
SHAPE = Architecture(depth=1, width=16, heads=4, key_heads=2, vocabulary=40, positions="rotary")


@pytest.fixture
def network():
    return Transformer.random(SHAPE, np.random.default_rng(3), std=0.4)


@pytest.fixture
def pairs():
    ids = np.random.default_rng(7).integers(0, 40, 2 * P + T)
    return Pairs(ids[:P], ids[P : 2 * P], ids[2 * P :])


def last_states(network, tokens, **options):
    return list(network.hidden_states(tokens, **options))[-1]


@pytest.mark.parametrize(
    ("rule", "plainly"), [(SplitSoftmax(0.4), lambda share: share**0.4), (ClampedShare(0.3), lambda _: 0.3)]
)
def test_a_rule_is_the_bias_that_each_head_and_query_needs(network, pairs, rule, plainly):
    tokens = pairs.encode(network).tokens(0)[:1]
    kept = []
    last_states(network, tokens, attention=(np.arange(P + T), lambda layer, rows, w: kept.append(w[0])))
    share, rest = (part.sum(axis=-1)[..., P:] for part in (kept[0][..., :P], kept[0][..., P:]))
    bias = np.zeros((4, P + T, P))
    bias[:, P:] = (np.log(plainly(share) / (1 - plainly(share))) - np.log(share / rest))[..., None]
    found, wanted = (last_states(network, tokens, bias=b) for b in (PromptShares(rule, P), bias))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert np.abs(found - last_states(network, tokens)).max() > 1e-3
    seen = []
    network.observe(tokens, lambda layer, states: seen.append(states), bias=PromptShares(rule, P))
    assert np.array_equal(seen[-1], found)


def test_measured_under_a_rule(network, pairs, tmp_path):
    """The identity changes nothing; a folder of one rule is not another's."""
    same = measure(network, pairs, bias=SplitSoftmax(1)).euclidean
    np.testing.assert_allclose(same, measure(network, pairs).euclidean, rtol=1e-9)
    measure(network, pairs, bias=SplitSoftmax(0.5), resume=tmp_path)
    with pytest.raises(ValueError, match="the same measurement"):
        measure(network, pairs, bias=SplitSoftmax(0.4), resume=tmp_path)


@pytest.mark.parametrize("length", [3, 7])
def test_each_run_is_reminded_of_its_own_prompt(network, pairs, length):
    """Twenty tokens of text, a reminder, and so on; what is measured are the text's tokens."""
    every = 20 + length
    reminders = Reminders(every, length)
    one, other, text = (list(x) for x in (pairs.prompt_a, pairs.prompt_b, pairs.continuation))
    texts = []
    for prompt in (one, other):
        tokens, rest = list(prompt), list(text)
        while len(tokens) < P + T:
            tokens += rest[:20] + [prompt[i % P] for i in range(length)]
            rest = rest[20:]
        texts.append(tokens[: P + T])
    found, own = remind(pairs.encode(network).tokens(0), P, reminders)
    assert found.tolist() == texts
    a, b = last_states(network, np.array(texts))
    distances = np.linalg.norm(a - b, axis=-1)[P:]
    keep = np.array([t % every < 20 for t in range(T)])
    assert np.array_equal(keep, ~own)
    measured = measure(network, pairs, reminders=reminders, instruments=("next_token",))
    assert np.array_equal(measured.t, np.flatnonzero(keep) + 1)
    np.testing.assert_allclose(measured.euclidean[0, 0], distances[keep], rtol=1e-9)
    assert measured.next_token.log_probability.shape == (2, 1, keep.sum())
    assert "Reminders" in measured.provenance["reminders"]


def test_what_cannot_be(network, pairs):
    for options in ({"bias": SplitSoftmax(0.5)}, {"reminders": Reminders(20, 5)}):
        with pytest.raises(ValueError, match="instruments must leave out attention"):
            measure(network, pairs, instruments=("attention",), **options)
    with pytest.raises(ValueError, match="reminders must leave tokens"):
        measure(network, pairs, reminders=Reminders(1, 1))
    with pytest.raises(ValueError, match="no bound was proved"):
        certify(network, pairs, bias=ClampedShare(0.5))
    measure(network, pairs, bias=PromptBias(1), reminders=Reminders(20, 5))
