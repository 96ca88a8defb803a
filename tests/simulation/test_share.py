"""Rules of the prompt's share: against the recursion written out key by key, and against the biases they stand for."""

import numpy as np
import pytest
from scipy.special import expit, logit

from relaymodel import Layer, RelayModel
from relaymodel.model import Head
from relaymodel.simulation import ClampedShare, ConstantShare, SplitSoftmax, simulate
from relaymodel.simulation.share import PromptShares
from tests.simulation.cases import every

MODEL = RelayModel(
    5,
    [
        Layer(heads=[Head(0.5, recency=0.7), Head(0.25, position=0.5)], sink=0.125),
        Layer(0.5, recency=-1.5),
        Layer(heads=[Head(0.3), Head(0.3, 1)], residual=0.5),
    ],
)


def keywise(model, rule, steps):
    """Each head's weights from the last key down, its prompt's share pi replaced by rule(pi)."""
    P = model.prompt
    x = np.concatenate((np.ones(P), np.zeros(steps)))
    for layer in model.layers:
        out = float(layer.residual) * x + float(layer.sink) * x[0]
        for head in layer.heads:
            g, c = float(head.position), float(head.recency)
            for n in range(P + steps):
                distance = np.arange(1, n + 1)
                near = np.concatenate(([1.0], np.cumprod((distance - c) / distance)))[::-1]
                w = near * np.concatenate(([1.0], np.cumprod((distance + g) / distance)))
                w /= w.sum()
                if n >= P:
                    share = w[:P].sum()
                    w[:P] *= rule(share) / share
                    w[P:] *= (1 - rule(share)) / (1 - share)
                out[n] += float(head.relay) * (w @ x[: n + 1])
        x = out
    return x[P:]


@pytest.mark.parametrize(
    ("rule", "plainly"), [(SplitSoftmax(0.3), lambda share: share**0.3), (ClampedShare(0.8), lambda _: 0.8)]
)
def test_each_head_gets_the_share_of_the_rule(rule, plainly):
    found = simulate(MODEL, 40, bias=rule, samples=every(40)).distance
    np.testing.assert_allclose(found, keywise(MODEL, plainly, 40), rtol=1e-12)


def test_uniform_heads_are_those_of_the_bias_that_a_rule_stands_for():
    model = RelayModel.uniform(64, 6, 0.5)
    held, clamped = (simulate(model, 500, bias=bias).distance for bias in (ConstantShare(0.3), ClampedShare(0.3)))
    np.testing.assert_allclose(held, clamped, rtol=1e-13)


def test_factors_keep_the_sum_and_leave_alone_what_is_not_shared():
    inside, outside = np.array([0.3, 2.0, 0.0, 0.7]), np.array([0.7, 6.0, 1.0, 0.0])
    first, other = PromptShares(SplitSoftmax(0.5), 4).factors(inside, outside)
    np.testing.assert_allclose(inside * first + outside * other, inside + outside, rtol=1e-13)
    np.testing.assert_allclose((inside * first)[:2], [0.3**0.5, 8 * 0.25**0.5], rtol=1e-13)
    assert (first[2], other[2], first[3], other[3]) == (1, 1, 1, 1)


def test_shares_of_any_size():
    """Powers of the share to the last digits, where it or its complement is far below rounding."""
    share = np.array([1e-300, 1e-20, 0.1, 0.5, 0.999])
    odds = np.concatenate((logit(share), [40.0, 700.0]))
    for k in (0.01, 0.4, 1):
        found = SplitSoftmax(k).share_odds(odds)
        np.testing.assert_allclose(expit(found[:5]), share**k, rtol=1e-12)
        np.testing.assert_allclose(found[5:], odds[5:] - np.log(k), rtol=1e-12)  # 1 - pi^k = k (1 - pi)


@pytest.mark.parametrize(
    ("make", "value", "words"),
    [
        (SplitSoftmax, 0, "power must be above 0 and at most 1"),
        (SplitSoftmax, 1.5, "power must be above 0 and at most 1"),
        (ClampedShare, 1, "share must lie between 0 and 1"),
        (ClampedShare, 0, "share must lie between 0 and 1"),
    ],
)
def test_values_that_are_no_shares(make, value, words):
    with pytest.raises(ValueError, match=words):
        make(value)
