"""Distances of predictions against those of whole distributions, by SciPy."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.special import log_softmax, rel_entr, softmax

from relaymodel import files
from relaymodel.networks.protocol import Measurement, RandomTokens, draw_pairs, measure
from relaymodel.networks.protocol.next_token import DIVERGENCES, NextTokenRecorder
from relaymodel.networks.protocol.rounding import SINGLE, rounding
from tests.networks.protocol.wrapped import Wrapped

P, T = 10, 150


@pytest.fixture(scope="module")
def pairs(network):
    return draw_pairs(network, pairs=3, prompt=P, steps=T, seed=3)


@pytest.fixture(scope="module")
def measured(network, pairs):
    return measure(network, pairs, instruments=("next_token",))


def plain(network, text):
    """Logits at every position: the final norm and the embedding, written out."""
    *_, x = network.hidden_states(text[None])
    x = x[0] - x[0].mean(axis=1, keepdims=True)
    x = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + network.architecture.epsilon)
    return (x * network.weights.final_gain + network.weights.final_shift) @ network.weights.embedding.T


def test_all_distances_are_those_of_the_whole_distributions(network, pairs, measured):
    found = measured.next_token
    for k in range(3):
        texts = pairs.encode(network).tokens(k)
        logits = [plain(network, text) for text in texts]
        p, q = (softmax(x[P:], axis=1) for x in logits)
        close = {"rtol": 1e-9, "atol": 1e-14}
        np.testing.assert_allclose(found.total_variation[k], np.abs(p - q).sum(axis=1) / 2, **close)
        np.testing.assert_allclose(found.jensen_shannon[k], jensenshannon(p, q, axis=1) ** 2, rtol=1e-6, atol=1e-14)
        np.testing.assert_allclose(found.kl[k], rel_entr(p, q).sum(axis=1), rtol=1e-6, atol=1e-14)
        for run, (x, text) in enumerate(zip(logits, texts, strict=True)):
            logs = log_softmax(x, axis=1)
            actual = [logs[n - 1, text[n]] for n in range(P, P + T)]  # the first after the prompt alone
            np.testing.assert_allclose(found.log_probability[run, k], actual, rtol=1e-12)
            assert found.loss[run, k] == pytest.approx(-np.mean(actual))
    assert found.total_variation.shape == (3, T)


def test_the_distances_of_hidden_states_are_unchanged(network, pairs, measured):
    alone = measure(network, pairs)
    for name in ("euclidean", "norms", "radial"):
        np.testing.assert_array_equal(getattr(measured, name), getattr(alone, name))
    with pytest.raises(ValueError, match=r'next_token was not measured; .*instruments=\("distance", "next_token"\)'):
        alone.next_token  # noqa: B018
    with pytest.raises(ValueError, match="instruments must be one of 'distance', 'attention', 'next_token'"):
        measure(network, pairs, instruments=["attn"])


@pytest.mark.parametrize("kind", DIVERGENCES)
def test_curves_are_geometric_means_over_pairs(measured, kind):
    found = measured.next_token
    curve, each = found.curve(kind), found.each(kind)
    np.testing.assert_allclose(curve.distance, np.exp(np.log(each).mean(axis=0)), rtol=1e-12)
    assert curve.pairs.shape == (3, T)
    assert curve.provenance["kind"] == kind
    if kind != "log_probability":
        assert found.alpha(kind).value == pytest.approx((1 if kind == "total_variation" else 2) * 0.45, abs=0.25)


def test_predictions_within_rounding_are_left_out(network):
    """Equal logits with the noise that float32 is said to make of them: the floor is what they show."""
    rng = np.random.default_rng(0)

    class Rounded(Wrapped):
        def observe(self, tokens, visit, *, logits, **more):
            def take(positions, values):
                noise = rng.standard_normal(values.shape) * np.std(values) * float(rounding(SINGLE, 3)) / np.sqrt(2)
                logits[1](positions, values[:1].repeat(2, axis=0) + noise)

            super().observe(tokens, visit, logits=(logits[0], take), **more)

    equal = measure(Rounded(network, precision=SINGLE), ([1, 2], [3, 4], RandomTokens(99)), instruments=["next_token"])
    found = equal.next_token
    expected = 0.4 * found.spread * float(rounding(SINGLE, 3))
    assert 0.8 < np.mean(found.total_variation / expected) < 1.25
    with pytest.raises(ValueError, match="differ at 2 tokens or more, got 0 clear of rounding"):
        found.curve()


def test_files_keep_the_instrument(network, pairs, measured, tmp_path):
    back = Measurement.from_npz(measured.to_npz(tmp_path / "m.npz")).next_token
    np.testing.assert_array_equal(back.kl, measured.next_token.kl)
    np.testing.assert_array_equal(back.log_probability, measured.next_token.log_probability)
    pytest.importorskip("xarray")
    np.testing.assert_array_equal(Measurement.from_xarray(measured.to_xarray()).next_token.kl, measured.next_token.kl)
    table = files.read_table(measured.next_token.to_csv(tmp_path / "t.csv"), "t")
    assert list(table.names) == ["t", "total_variation", "jensen_shannon", "kl", "log_p_a", "log_p_b"]
    stopped = Wrapped(network)
    measure(stopped, pairs, instruments=["next_token"], resume=tmp_path / "store")
    again = Wrapped(network)
    resumed = measure(again, pairs, instruments=["next_token"], resume=tmp_path / "store")
    assert again.calls == 0
    np.testing.assert_array_equal(resumed.next_token.jensen_shannon, back.jensen_shannon)
    with pytest.raises(ValueError, match="hold an array named attention|of the same measurement"):
        measure(network, pairs, instruments=["next_token", "attention"], resume=tmp_path / "store")


def test_logits_that_are_missing_or_not_finite_are_named():
    recorder = NextTokenRecorder(np.zeros((2, 6), dtype=np.int64), 2, 1)
    recorder.take(np.arange(1, 4), np.zeros((2, 3, 5)))
    with pytest.raises(ValueError, match="finite logits at every token, got none or NaN or inf at t = 3"):
        recorder.result()


def test_divergences_of_nearly_equal_runs_are_not_negative(rng):
    """Rounding puts the quadratic ones on either side of 0."""
    logits = rng.standard_normal((1, 40, 200)).repeat(2, axis=0)
    logits[1] += 1e-15 * rng.standard_normal((40, 200))
    recorder = NextTokenRecorder(np.zeros((2, 41), dtype=np.int64), 1, 1)
    recorder.take(np.arange(40), logits[:, :40])
    assert recorder.values[:3, :39].min() >= 0
    assert np.any(recorder.values[1:3, :39] == 0)  # so that some were
