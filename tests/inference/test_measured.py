"""Measured networks, as THEORY section 9 has them."""

import numpy as np
import pytest

from relaymodel import Curve
from relaymodel.inference import (
    compare_laws,
    estimate_exponent,
    extrapolate_exponent,
    fit,
    fit_power_law,
)
from tests.inference.curves import DATA


class TestMeasured:
    """THEORY section 9, fits from t = 16 on."""

    def test_untrained_gpt2_layer_1(self):
        curve = Curve.from_csv(DATA / "gpt2_untrained.csv", layer=1)
        ends = [fit_power_law(curve, t_min=a, t_max=b).alpha for a, b in ((16, 32), (1024, 2048))]
        assert ends == pytest.approx([0.27, 0.96], abs=0.015)
        local = estimate_exponent(curve, [16.0, 64.0, 256.0, 1024.0, 2048.0])
        assert np.all(np.diff(local.alpha) > 2 * local.stderr[:-1])
        assert local.alpha[-1] == pytest.approx(0.96, abs=0.03)
        fit = fit_power_law(curve)
        assert not fit.adequate
        limit = extrapolate_exponent(curve)  # one layer of uniform attention: P/(P + t)
        assert limit.prompt == 64
        assert abs(limit.value - 1) < 2 * limit.stderr < 0.3
        assert (1 - fit.alpha) / fit.naive_stderr > 20

    def test_untrained_gpt2_last_layer(self):
        fit = fit_power_law(Curve.from_csv(DATA / "gpt2_untrained.csv", layer=12))
        assert fit.window == (16, 2048)
        assert fit.alpha == pytest.approx(0.28, abs=0.01)
        assert not fit.adequate

    def test_trained_smollm2_last_layer(self):
        fit = fit_power_law(Curve.from_csv(DATA / "smollm2_135m_trained.csv", layer=30))
        assert fit.alpha == pytest.approx(0.53, abs=0.01)
        assert fit.adequate
        assert fit.stderr > 2 * fit.naive_stderr  # words persist over tens of tokens
        assert 10 < fit.correlation_length < 200


class TestFits:
    @pytest.mark.slow
    def test_untrained_gpt2_layer_1_is_one_relay_layer(self):
        curve = Curve.from_csv(DATA / "gpt2_untrained.csv", layer=1)
        found = fit(curve)
        assert found.depth.value == pytest.approx(1, abs=0.05)
        assert found.adequate
        assert not found.relay.identified  # one layer is a factor
        laws = compare_laws(curve)
        assert laws.best.name == "relay model"
        assert laws.told_apart

    def test_trained_smollm2_cannot_be_decided(self):
        laws = compare_laws(Curve.from_csv(DATA / "smollm2_135m_trained.csv", layer=30))
        assert not laws.told_apart
        assert laws["power law"].parameters["a"] == pytest.approx(0.53, abs=0.02)
