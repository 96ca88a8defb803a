"""The measurement against separate runs; resuming, progress, precision."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.networks.protocol import Network, RandomTokens, draw_pairs, measure
from relaymodel.networks.transformer import Architecture, Transformer
from tests.networks.protocol.wrapped import Wrapped


def test_both_networks_satisfy_the_protocol(network):
    assert isinstance(network, Network)
    assert isinstance(Wrapped(network), Network)


def test_distances_are_those_of_two_separate_runs(network, measured):
    pairs = draw_pairs(network, pairs=4, prompt=10, steps=300, seed=3)
    for k in (0, 3):
        texts = pairs.encode(network).tokens(k)
        a, b = ([x[0, 10:] for x in network.hidden_states(text[None], final_norm=True)] for text in texts)
        for m, layer in enumerate(measured.layers):
            x, y = a[layer], b[layer]
            # round-off of the states themselves, which lie 1e-3 to 1 apart
            np.testing.assert_allclose(measured.euclidean[k, m], np.linalg.norm(x - y, axis=1), rtol=1e-11)
            cosine = 1 - np.sum(x * y, axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
            np.testing.assert_allclose(measured.distance(layer, metric="cosine")[k], cosine, rtol=1e-8, atol=1e-15)
            size = np.sqrt((np.sum(x**2, axis=1) + np.sum(y**2, axis=1)) / 2)
            relative = measured.distance(layer, metric="relative")[k]
            np.testing.assert_allclose(relative, np.linalg.norm(x - y, axis=1) / size, rtol=1e-11)
    assert measured.layers == (1, 2, 3, 4)


def test_low_precision_reads_half_the_exponent_and_is_announced(network):
    """The reason for the warning: states rounded to 8 bits turn 1/t into t^-1/2."""
    rng = np.random.default_rng(5)
    t = np.arange(100, 501)
    x = rng.standard_normal((t.size, 1024))
    y = x + rng.standard_normal((t.size, 1024)) / t[:, None] / 16

    def rounded(states):
        unit = 2.0 ** (np.floor(np.log2(np.abs(states))) - 7)
        return np.rint(states / unit) * unit

    distance = np.linalg.norm(rounded(x) - rounded(y), axis=1)
    slope = -np.polyfit(np.log(t), np.log(distance), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.1)
    with pytest.warns(UserWarning, match=r"root of \(difference \* spacing\).*float32 or better"):
        measure(Wrapped(network, precision=2.0**-7), ([1, 2], [3, 4], RandomTokens(20)))


def test_states_that_are_not_finite_are_named(network):
    def spoil(layer, states):
        states = states.copy()
        states[1, 7] = np.nan if layer == 2 else states[1, 7]
        return states

    with pytest.raises(ValueError, match="finite, got NaN or inf at layer 2, t = 6"):
        measure(Wrapped(network, spoil), ([1, 2], [3, 4], RandomTokens(20)))


def test_prompt_bias_changes_the_curves_as_a_mask_in_logits_does(network):
    P, T = 10, 40
    pairs = draw_pairs(network, pairs=1, prompt=P, steps=T)
    strength = 1.3
    measured = measure(network, pairs, bias=rm.PromptBias(strength))
    added = np.zeros((P + T, P + T))
    for t in range(1, T + 1):
        added[P + t - 1, :P] = strength * np.log1p(t / P)
    *_, last = network.hidden_states(pairs.encode(network).tokens(0), bias=added)
    np.testing.assert_allclose(measured.euclidean[0, -1], np.linalg.norm(last[0, P:] - last[1, P:], axis=1), rtol=1e-11)
    plain = measure(network, pairs)
    assert np.all(measured.curve(3).distance[-10:] > 1.2 * plain.curve(3).distance[-10:])
    same = measure(network, pairs, bias=lambda t: np.zeros_like(t))
    np.testing.assert_array_equal(same.euclidean, plain.euclidean)


def test_an_interrupted_run_goes_on_where_it_stopped(network, tmp_path):
    pairs = draw_pairs(network, pairs=3, prompt=5, steps=30)
    whole = measure(network, pairs)
    store = tmp_path / "store"
    interrupted = Wrapped(network)

    def stop(done, total):
        if done > 2 * total // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(interrupted, pairs, resume=store, progress=stop)
    assert sorted(path.name for path in store.iterdir()) == ["pair-0000.npz", "pair-0001.npz"]
    again = Wrapped(network)
    resumed = measure(again, pairs, resume=store)
    assert again.calls == 1
    np.testing.assert_array_equal(resumed.euclidean, whole.euclidean)
    np.testing.assert_array_equal(resumed.radial, whole.radial)
    for other in (
        {"bias": rm.PromptBias(1)},
        {"layers": [1]},
    ):
        with pytest.raises(ValueError, match="resume must be a folder of the same measurement"):
            measure(network, pairs, resume=store, **other)
    with pytest.raises(ValueError, match="of the same measurement"):
        measure(network, replace(pairs, prompt_a=pairs.prompt_b, prompt_b=pairs.prompt_a), resume=store)


def test_progress_counts_layers_of_all_pairs(network):
    seen = []
    pairs = draw_pairs(network, pairs=2, prompt=5, steps=30)
    measure(network, pairs, progress=lambda *now: seen.append(now))
    assert seen == sorted(seen)
    assert seen[-1] == (8, 8)
    assert len(set(seen)) == 9


def test_what_is_not_a_network_is_refused():
    with pytest.raises(TypeError, match="network must offer depth, vocabulary, .* got 'gpt2' of type str"):
        measure("gpt2", ([1], [2], [3, 4]))


@pytest.mark.slow
def test_untrained_exponent_rises_with_t_and_falls_with_depth():
    """The theory's signature, on a network: local exponents rise towards 1, deeper layers forget more slowly."""
    shape = Architecture(depth=4, width=96, heads=4, vocabulary=256, context=1100)
    network = Transformer.random(shape, np.random.default_rng(2))
    pairs = draw_pairs(network, pairs=3, prompt=16, steps=1024, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured = measure(network, pairs)
    for layer in (1, 2, 4):
        early, late = measured.alpha(layer, t_min=1, t_max=10), measured.alpha(layer, t_min=100)
        assert late.alpha > early.alpha + 0.2
        assert late.alpha < 1.1
    assert measured.alpha(1).alpha > measured.alpha(2).alpha > measured.alpha(4).alpha


@pytest.mark.parametrize(
    "cut",
    [lambda x: x[:1], lambda x: x[:, 1:], lambda x: x[:, :, :, None], lambda x: x[..., 0]],
    ids=["one text", "a token less", "an axis more", "an axis less"],
)
def test_states_of_another_shape_are_named(network, cut):
    def spoil(layer, states):
        return cut(states) if layer == 2 else states

    with pytest.raises(ValueError, match=r"states of shape \(2, 22, width\), got .* at layer 2"):
        measure(Wrapped(network, spoil), ([1, 2], [3, 4], RandomTokens(20)))


def test_what_does_not_fit_into_memory_is_refused_before_the_first_pass(network, monkeypatch):
    monkeypatch.setattr("relaymodel.memory.free_memory", lambda: 10**6)
    wrapped = Wrapped(network)
    with pytest.raises(ValueError, match=r"pairs or layers must be smaller: .* takes 0\.00\d+ GB of memory"):
        measure(wrapped, draw_pairs(network, pairs=40, prompt=4, steps=390))
    assert wrapped.calls == 0
    with pytest.raises(ValueError, match="pairs, prompt or steps must be smaller: so many tokens"):
        draw_pairs(network, pairs=200, prompt=4, steps=390)
