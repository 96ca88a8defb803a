"""Shares and profiles of attention against whole matrices, summed key by key."""

import numpy as np
import pytest

import relaymodel as rm
from relaymodel import files
from relaymodel.networks.protocol import Measurement, draw_pairs, measure
from relaymodel.networks.protocol.attention import BINS, Attention, AttentionRecorder, queries
from tests.networks.protocol.wrapped import Wrapped

P, T = 7, 90


@pytest.fixture(scope="module")
def pairs(network):
    return draw_pairs(network, pairs=2, prompt=P, steps=T, seed=5)


@pytest.fixture(scope="module")
def measured(network, pairs):
    return measure(network, pairs, instruments=("distance", "attention"))


def matrices(network, text):
    """The attention of every layer, (depth, H, n, n), written out for a GPT-2."""
    a, n = network.architecture, len(text)
    found = []
    for block, x in zip(network.weights.blocks, network.hidden_states(text[None]), strict=False):
        u = x[0] - x[0].mean(axis=1, keepdims=True)
        u = u / np.sqrt(np.mean(u**2, axis=1, keepdims=True) + a.epsilon) * block.attention_gain + block.attention_shift
        heads = []
        for h in range(a.heads):
            columns = slice(h * a.head_size, (h + 1) * a.head_size)
            logits = (u @ block.query[:, columns]) @ (u @ block.key[:, columns]).T / np.sqrt(a.head_size)
            weights = np.exp(logits) * np.tri(n)
            heads.append(weights / weights.sum(axis=1, keepdims=True))
        found.append(heads)
    return np.array(found)


def expected(A, prompt):
    """Shares and profile of one row, key by key."""
    n = len(A)
    sink = max(0.0, A[0] - A[1])
    profile = np.zeros(BINS)
    for s, weight in enumerate(A[:-1], start=1):
        weight = min(A[0], A[1]) if s == 1 else weight
        for b in range(BINS):
            overlap = min(s / n, (b + 1) / BINS) - max((s - 1) / n, b / BINS)
            profile[b] += weight * max(0.0, overlap) * n
    return [A[:prompt].sum(), A[0], A[-1], sink], profile


def test_shares_and_profiles_are_those_of_the_matrices(network, pairs, measured):
    found = measured.attention
    assert (found.layers, found.heads) == ((1, 2, 3), 4)
    for k in range(2):
        whole = np.mean([matrices(network, text) for text in pairs.encode(network).tokens(k)], axis=0)
        for q, t in enumerate(found.t):
            for m, h in ((0, 0), (1, 3), (2, 2)):
                shares, profile = expected(whole[m, h, P + t - 1, : P + t], P)
                np.testing.assert_allclose(found.shares[k, m, h, q], shares, rtol=1e-9, atol=1e-15)
                np.testing.assert_allclose(found.profile[k, m, h, q], profile, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found.shares[..., 2:].sum(axis=-1) + found.profile.sum(axis=-1), 1)


def test_the_bias_counts(network, pairs):
    hidden = measure(network, pairs, instruments=["attention"], bias=lambda t: np.full_like(t, -1e4))
    assert np.all(hidden.attention.share("prompt") < 1e-100)


def test_means_and_curves(measured):
    found = measured.attention
    np.testing.assert_allclose(found.share("own"), found.shares[..., 2].mean(axis=(1, 2)))
    np.testing.assert_allclose(found.share("prompt", layer=2, head=1), found.shares[:, 1, 1, :, 0])
    curve = found.curve("prompt")
    assert curve.t.tolist() == queries(T).tolist()
    np.testing.assert_allclose(curve.distance, np.exp(np.log(found.share()).mean(axis=0)))
    assert curve.distance == pytest.approx(P / (P + curve.t), rel=0.3)  # untrained: uniform
    late = found.density(layer=1, head=0, t_min=40, t_max=80)
    inside = (found.t >= 40) & (found.t <= 80)
    np.testing.assert_allclose(late, found.profile[:, 0, 0, inside].mean(axis=(0, 1)))
    for bad in ({"layer": 4}, {"head": 4}):
        with pytest.raises(ValueError, match=r"(layer|head) must be"):
            found.share("prompt", **bad)


def scaled(n, density):
    """An `Attention` of one head whose rows have a density over u; or over n - s, if density takes two arguments."""
    recorder = AttentionRecorder(np.zeros((2, n), dtype=np.int64), 4, 1)
    rows = np.zeros((2, 1, recorder.positions.size, n))
    for r, position in enumerate(recorder.positions):
        s = np.arange(1, position + 2)
        weights = density(s, position + 1)
        rows[:, :, r, : position + 1] = weights / weights.sum()
    recorder.take(1, recorder.positions, rows)
    values = recorder.result()[None]
    t = queries(n - 4)
    return Attention(t, (1,), values[..., :4], values[..., 4:], 4)


def test_what_scales_with_u_collapses_and_what_depends_on_the_distance_does_not():
    flat = scaled(2000, lambda s, n: (s / n) ** 2.0)
    local = scaled(2000, lambda s, n: np.exp(-(n - s) / 300))
    assert flat.collapse().n.tolist() == [125, 250, 500, 1000, 2000]
    assert np.all(flat.collapse().apart <= 4 / flat.collapse().n)  # the token itself, counted apart, has 3/n
    assert flat.collapse().unscaled[-2] > 0.2
    assert local.collapse().apart[-2] > 0.2
    assert np.all(local.collapse().unscaled[1:] < 0.03)
    assert flat.collapse().value < 0.1 * local.collapse().value
    with pytest.raises(ValueError, match="at n = 64 or more, got n = 5 to 100"):
        scaled(100, lambda s, n: s).collapse()


def test_the_profile_feeds_the_mixture_of_heads():
    """Planted: 20 % on a sink, 5 % on the token itself, the rest uniform."""

    def planted(s, n):
        weights = np.full(n, 0.75 / (n - 1))
        weights[0] += 0.2
        weights[-1] = 0.05
        return weights

    found = scaled(1500, planted).mixture(1, 0)
    assert (found.sink, found.own) == pytest.approx((0.2, 0.05), abs=1e-3)
    assert sum(head.relay for head in found.heads) + found.sink + found.own == pytest.approx(1, abs=1e-6)
    assert found.density_at_start == pytest.approx(0.75, abs=0.02)
    direct = rm.fit_heads(scaled(1500, planted).density(t_min=700))
    assert [h.position for h in direct.heads] == [h.position for h in found.heads]


def test_files_keep_the_instrument(network, pairs, measured, tmp_path):
    found, back = measured.attention, Measurement.from_npz(measured.to_npz(tmp_path / "m.npz")).attention
    np.testing.assert_array_equal(back.profile, found.profile)
    rows = [fields for _, fields in files.read_table(found.to_csv(tmp_path / "a.csv"), "t")]
    assert len(rows) == 3 * 4 * found.t.size
    np.testing.assert_allclose(float(rows[-1][3]), found.shares[:, -1, -1, -1, 0].mean())
    measure(network, pairs, instruments=["attention"], resume=tmp_path / "store")
    again = Wrapped(network)
    resumed = measure(again, pairs, instruments=["attention"], resume=tmp_path / "store")
    assert again.calls == 0
    np.testing.assert_array_equal(resumed.attention.shares, found.shares)


def test_a_network_without_softmax_is_refused(network, pairs):
    class Silent(Wrapped):
        def observe(self, tokens, visit, *, attention, **more):
            super().observe(tokens, visit, **more)

    with pytest.raises(ValueError, match="no block of this network takes a softmax"):
        measure(Silent(network), pairs, instruments=["attention"])
