"""The parts of attention's difference."""

import numpy as np
from numpy.testing import assert_allclose

from relaymodel.certificate.attention import Heads, attend, logarithmic_mean
from relaymodel.certificate.weights import read
from relaymodel.networks.transformer import Architecture, Transformer


def test_the_attention_identity(rng):
    """What the parts are made of: the difference of two attention outputs, exactly (module `attention`)."""
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
    parts = attend(Heads(q, k, v, outputs, None), norms.attention, np.ones(N), np.ones(N))
    assert_allclose(parts.mixed[0] - parts.mixed[1], A[0] @ v[0] - A[1] @ v[1], atol=1e-13)
    assert_allclose(parts.own_exact, query.reshape(N, -1), atol=1e-13)
    relayed = (key + value).reshape(N, -1) @ outputs.reshape(-1, d)
    assert np.all(parts.relayed_exact >= np.linalg.norm(relayed, axis=-1) * (1 - 1e-12))
    first = (key + value)[0].reshape(-1) @ outputs.reshape(-1, d)  # one key: nothing to be lost in a sum
    assert_allclose(parts.relayed_exact[0], np.linalg.norm(first), rtol=1e-12)


def test_bounds_by_norms_are_their_formulas(rng):
    """Own: the spread of keys times that of values under m; relayed: values by the least of two norms, and keys."""
    H, N, head, d = 2, 6, 3, 7
    q, k, v = (rng.standard_normal((2, H, N, head)) for _ in range(3))
    outputs = rng.standard_normal((H, head, d))
    shape = Architecture(depth=1, width=d, heads=H, head_width=head, vocabulary=2, positions="none")
    w = read(Transformer.random(shape, rng, std=0.7).weights.blocks[0], shape).attention
    moved, delta = rng.uniform(1, 2, (2, N))
    heads = Heads(q, k, v, outputs, rng.standard_normal((N, 2)))
    found = attend(heads, w, moved, delta)
    behind = np.einsum("hnd,hde->hne", v.mean(axis=0), outputs)
    qh, kh = q.mean(axis=0), k.mean(axis=0)
    for n in range(N):
        logits = np.einsum("rhd,rhsd->rhs", q[:, :, n], k[:, :, : n + 1]) / np.sqrt(head)
        logits[..., : min(2, n + 1)] += heads.bias[n, : n + 1]
        A = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        assert_allclose(found.omega[n], A.max() * (n + 1), rtol=1e-12)
        m, mean = logarithmic_mean(A, np.log(A[0] / A[1])), A.mean(axis=0)
        own, keys, values = 0, np.zeros(n + 1), np.zeros(n + 1)
        for h in range(H):
            centre = m[h] @ behind[h, : n + 1] / m[h].sum()
            radius = np.linalg.norm(behind[h, : n + 1] - centre, axis=-1)
            middle = m[h] @ kh[h, : n + 1] / m[h].sum()
            spread = m[h] @ np.linalg.norm(kh[h, : n + 1] - middle, axis=-1) ** 2
            own += w.query[h] * np.sqrt(spread * (m[h] @ radius**2)) / np.sqrt(head)
            keys += m[h] * radius * w.key[h] * np.linalg.norm(qh[h, n]) / np.sqrt(head)
            values += mean[h] * w.value[h]
        assert_allclose(found.own[n], own * moved[n] / delta[n], rtol=1e-6, atol=1e-7)
        half, other = (mean.max(axis=0) + mean.min(axis=0)) / 2, (mean.max(axis=0) - mean.min(axis=0)) / 2
        values = np.minimum(values, half * w.together + other * w.output_all * w.value_all)
        assert_allclose(found.relayed[n], (values + keys) @ moved[: n + 1], rtol=1e-6)


def test_rows_taken_in_pieces_give_the_same(rng, monkeypatch):
    H, N = 2, 9
    heads = Heads(*(rng.standard_normal((2, H, N, 3)) for _ in range(3)), rng.standard_normal((H, 3, 7)), None)
    shape = Architecture(depth=1, width=7, heads=H, head_width=3, vocabulary=2, positions="none")
    norms = read(Transformer.random(shape, rng).weights.blocks[0], shape).attention
    whole = attend(heads, norms, np.ones(N), np.ones(N))
    monkeypatch.setattr("relaymodel.certificate.attention.ENTRIES_AT_ONCE", 2 * N * H)
    assert list(heads.chunks()) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    pieces = attend(heads, norms, np.ones(N), np.ones(N))
    for name, value in vars(whole).items():
        assert_allclose(getattr(pieces, name), value, rtol=1e-12, atol=1e-14)


def test_differences_that_are_equal_have_a_mean_too():
    A = np.array([[0.5, 0.3, 0.1], [0.5, 0.3 * np.exp(-0.05), 0.4]])
    x = np.log(A[0] / A[1])
    expected = [0.5, (A[0, 1] - A[1, 1]) / 0.05, 0.3 / np.log(4)]
    assert_allclose(logarithmic_mean(A, x), expected, rtol=1e-12)


def test_heads_of_very_different_logits_do_not_disturb_each_other(rng):
    """One head's logits are 1e4 above the other's."""
    query, key = rng.standard_normal((2, 2, 2, 5, 3))
    query[:, 1], key[:, 1] = 100, 100 + key[:, 1]
    heads = Heads(query, key, query, rng.standard_normal((2, 3, 7)), None)
    A, logs = heads.softmax(0, 5)
    assert_allclose(A.sum(axis=-1), 1)
    assert_allclose(np.exp(logs) * np.tri(5), A, rtol=1e-12)
