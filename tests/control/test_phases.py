"""Phases over strength and depth."""

import math

import numpy as np
import pytest

from relaymodel import PromptBias, RelayModel, simulate
from relaymodel.control import (
    phase_diagram,
    turning_point,
)
from tests.control.cases import SIX


def test_phases_are_those_of_simulations():
    strengths = np.array([0.2, 0.9, 1.0, 1.1, 1.6])
    diagram = phase_diagram(SIX, strengths, horizon=50_000)
    for i, strength in enumerate(strengths):
        for depth in (1, 3, 6):
            model = RelayModel(64, SIX.layers[:depth])
            curve = simulate(model, 51_000, bias=PromptBias(strength), samples=[49_000, 51_000])
            slope = -np.diff(np.log(curve.distance))[0] / math.log(51 / 49)
            assert diagram.exponents[depth - 1, i] == pytest.approx(slope, abs=1e-5)
            expected = "reversal" if slope < 0 else "plateau" if slope < 0.01 else "decay"
            assert diagram.phases[depth - 1, i] == expected
    assert diagram.limits.tolist() == ["decay", "decay", "plateau", "reversal", "reversal"]
    early = phase_diagram(SIX, [1.1], horizon=200)
    assert early.phases[-1, 0] != "reversal"  # too early for it to be seen: the turn is at t = 1.1e3 or so
    assert turning_point(SIX, PromptBias(1.1)).t > 200
