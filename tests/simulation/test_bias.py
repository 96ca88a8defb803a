"""Biases are their formulas, and their shares what THEORY section 7 says."""

from fractions import Fraction

import numpy as np
import pytest

import relaymodel as rm
from relaymodel import PromptBias, Reminders, simulate
from relaymodel.control import (
    bias_limit,
)
from relaymodel.simulation import (
    ConstantShare,
    LogBias,
    ReminderBlocks,
    ReminderSchedule,
    scalable_softmax,
)
from tests.control.cases import SIX


def test_public_names_keep_the_protocols():
    assert rm.PromptBias is PromptBias
    assert rm.Reminders is Reminders
    assert isinstance(PromptBias(1), LogBias)
    assert isinstance(ConstantShare(0.5), LogBias)
    assert isinstance(Reminders(64, 8), ReminderSchedule)
    assert isinstance(ReminderBlocks(((1, 2),)), ReminderSchedule)
    curve = simulate(SIX, 1000, bias=PromptBias(1), reminders=Reminders(every=64, length=8))
    assert curve.provenance["bias"] == "PromptBias(strength=1, offset=0)"


def test_bias_is_its_formula():
    t = np.array([0.0, 1.0, 64.0, 1e6])
    np.testing.assert_allclose(PromptBias(Fraction(3, 2), 0.25).log_bias(t, 64), 0.25 + 1.5 * np.log1p(t / 64))
    share = 1 / (1 + t[1:] / (64 * np.exp(ConstantShare(0.3).log_bias(t[1:], 64))))
    np.testing.assert_allclose(share, 0.3, rtol=1e-14)


def test_scalable_softmax_is_a_strength():
    """Attention to a prompt whose logits, times s log n, are higher by the gap, written out."""
    s, gap, P, t = 0.4, 3.0, 64, 100
    logits = s * np.log(P + t) * np.concatenate([np.full(P, gap), np.zeros(t)])
    share = np.exp(logits[:P]).sum() / np.exp(logits).sum()
    bias = scalable_softmax(s, gap, P)
    v = np.exp(bias.log_bias([t], P))[0]
    assert P * v / (P * v + t) == pytest.approx(share, rel=1e-13)
    assert bias.strength == pytest.approx(1.2)
    assert bias_limit(SIX, bias).phase == "reversal"


def test_a_share_that_rounds_to_1_is_refused():
    """Its logarithm of the odds would be infinite in float64."""
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        ConstantShare(1 - Fraction(1, 10**30))
    assert np.isfinite(ConstantShare(1 - Fraction(1, 10**15)).log_bias([1.0], 8)).all()
