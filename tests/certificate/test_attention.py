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
