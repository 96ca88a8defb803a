"""Responses to single tokens against differences of whole runs, and what their sums predict."""

from dataclasses import replace

import numpy as np
import pytest

import relaymodel as rm
from relaymodel import files
from relaymodel.networks.protocol import Measurement, TokenResponse, draw_pairs, measure
from relaymodel.networks.protocol.response import sources
from relaymodel.networks.transformer import Transformer

P, T = 10, 60


@pytest.fixture(scope="module")
def pairs(network):
    return draw_pairs(network, pairs=2, prompt=P, steps=T, seed=11)


@pytest.fixture(scope="module")
def measured(network, pairs):
    return measure(network, pairs, instruments=["response"])


def moved(network, text, s, change):
    """States of a text whose token s stands for another embedding: a new token of the vocabulary."""
    w, text = network.weights, text.copy()
    row = w.embedding[text[s - 1]] + change
    text[s - 1] = len(w.embedding)
    larger = replace(network.architecture, vocabulary=len(w.embedding) + 1)
    changed = Transformer(larger, replace(w, embedding=np.vstack([w.embedding, row])))
    return np.array(list(changed.hidden_states(text[None])))[:, 0]


def test_responses_are_differences_of_runs_with_another_embedding(network, pairs, measured):
    found = measured.response
    assert found.sources.tolist() == [1, 2, 4, 5, 6, 7, 9, 10]
    for k, i in ((0, 2), (1, 7)):
        a, b = pairs.encode(network).tokens(k)
        s = found.sources[i]
        change = network.weights.embedding[b[s - 1]] - network.weights.embedding[a[s - 1]]
        assert found.size[k, i] == pytest.approx(np.linalg.norm(change))
        plain = (moved(network, a, s, 1e-4 * change) - moved(network, a, s, -1e-4 * change)) / 2e-4
        np.testing.assert_allclose(found.single[k, i], np.linalg.norm(plain[1:], axis=-1), rtol=1e-5, atol=1e-9)


def test_the_whole_prompt_is_the_sum_of_its_tokens(network, pairs, measured):
    found = measured.response
    a, b = pairs.encode(network).tokens(0)
    total = 0.0
    for s in range(1, P + 1):
        change = network.weights.embedding[b[s - 1]] - network.weights.embedding[a[s - 1]]
        total = total + (moved(network, a, s, 1e-4 * change) - moved(network, a, s, -1e-4 * change)) / 2e-4
        assert found.prompt_size[0, s - 1] == pytest.approx(np.linalg.norm(change))
    np.testing.assert_allclose(found.whole[0], np.linalg.norm(total[1:], axis=-1), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.linear(3).pairs[0], found.whole[0, 2, P:])
    # the difference of the runs is not small: of the order of its derivative
    assert 0.3 < np.median(measured.curve(3).distance / found.linear(3).distance) < 3


def planted(p, prompt=64, steps=2048):
    """A response that is (n-s+1)^-p exactly, all tokens of the prompt of size 2."""
    at = sources(prompt)
    n = np.arange(1, prompt + steps + 1)
    ago = np.maximum(n[None] - at[:, None] + 1, 1)
    single = 2.0 * np.where(n[None] >= at[:, None], ago**-p, 0)[None, :, None]
    return TokenResponse(at, np.full((1, at.size), 2.0), single, np.ones((1, 1, n.size)), np.full((1, prompt), 2.0))


@pytest.mark.parametrize(("p", "alpha"), [(0.7, 0.58), (0.8, 0.66), (0.9, 0.74)])
def test_published_profiles_predict_the_published_exponents(p, alpha):
    """arXiv 2606.29139: 64 tokens of (n-s+1)^-p, summed, over t = 16..2048."""
    found = planted(p)
    profile = found.profile(1)
    np.testing.assert_allclose(profile.distance, profile.t**-p, rtol=1e-12)
    summed = found.summed(1)
    assert rm.fit_power_law(summed, t_min=16).value == pytest.approx(alpha, abs=0.01)
    t = summed.t[[0, 99, -1]]
    np.testing.assert_allclose(summed.distance[[0, 99, -1]], [2 * np.sum((x + np.arange(64) + 1) ** -p) for x in t])
    unrelated = [2 * np.sum((x + np.arange(64) + 1) ** (-2 * p)) ** 0.5 for x in t]
    np.testing.assert_allclose(found.summed(1, aligned=False).distance[[0, 99, -1]], unrelated)


def test_the_bias_counts(network, pairs):
    hidden = measure(network, pairs, instruments=["response"], bias=lambda t: np.full_like(t, -1e4)).response
    assert np.all(hidden.single[:, :, 0, P:] < 1e-6 * hidden.size[:, :, None])


def test_files_and_refusals(network, pairs, measured, tmp_path):
    back = Measurement.from_npz(measured.to_npz(tmp_path / "m.npz")).response
    np.testing.assert_array_equal(back.single, measured.response.single)
    rows = list(files.read_table(measured.response.to_csv(tmp_path / "r.csv"), "layer"))
    assert float(rows[0][1][2]) == measured.response.profile(1).distance[0]
    with pytest.raises(ValueError, match="layer must be from 1 to 3, got 4"):
        back.profile(4)

    class Bare:
        def __getattr__(self, name):
            if name == "respond":
                raise AttributeError(name)
            return getattr(network, name)

        depth, vocabulary, context, window = 3, 256, 400, None
        precision, provenance = network.precision, network.provenance
        encode, generate, observe = network.encode, network.generate, network.observe

    with pytest.raises(TypeError, match="response needs a network that offers respond .*, got Bare"):
        measure(Bare(), pairs, instruments=["response"])
