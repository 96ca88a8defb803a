"""The curves that the other tests use."""

import numpy as np
import pytest

from relaymodel import RelayModel
from tests.inference.curves import relay_curve


class TestHelper:
    @pytest.mark.parametrize(("prompt", "depth", "relay"), [(3, 1, 0.5), (4, 3, 1.0), (2, 5, 0.25)])
    def test_curve_is_the_recursion(self, prompt, depth, relay):
        exact = RelayModel.uniform(prompt, depth, relay).differences(prompt + 40)[prompt:]
        D, _ = relay_curve(prompt, depth, relay, np.arange(1, 41))
        assert np.max(np.abs(D / np.array(exact, dtype=float) - 1)) < 1e-12

    @pytest.mark.parametrize("depth", [1, 2, 6])
    def test_alpha_is_the_slope(self, depth):
        t, step = np.geomspace(3, 1e5, 20), 1e-4
        up, down = (np.log(relay_curve(10, depth, 1.0, t * np.exp(s * step))[0]) for s in (1, -1))
        assert relay_curve(10, depth, 1.0, t)[1] == pytest.approx((down - up) / (2 * step), abs=1e-7)
