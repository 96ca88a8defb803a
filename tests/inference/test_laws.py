"""Laws compared."""

import numpy as np
import pytest

from relaymodel import Curve, RelayModel, influence
from relaymodel.inference import (
    Needed,
    UnderdeterminedError,
    compare_laws,
)
from tests.inference.curves import DENSE


class TestLaws:
    x = np.geomspace(16, 4096, 60)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "D"),
        [
            ("power law", lambda t: t**-0.5),
            ("power law and constant", lambda t: t**-0.8 + 0.01),
            ("power of log t", lambda t: np.log(t) ** 5 / t),
            ("relay model", lambda t: influence(RelayModel.uniform(64, 6, 0.5), t)),
        ],
    )
    def test_the_law_behind_a_curve_is_found(self, rng, name, D):
        found = compare_laws(Curve(self.x, D(self.x) * np.exp(0.01 * rng.standard_normal(60))), prompt=64)
        assert found.best.name == name or name in found.undecided
        rest = {fit.name for fit in found.fits} - {name, "power law and constant"}
        assert all(found[other].aicc > found[name].aicc + 20 for other in rest)
        assert sum(fit.weight for fit in found.fits) == pytest.approx(1)

    def test_a_parameter_that_does_nothing_costs_its_price(self, rng):
        # a steepening curve has no use for a constant, whose likelihood is then that of the power law
        curve = Curve(self.x, np.exp(-0.1 * np.log(self.x) ** 2) * np.exp(0.01 * rng.standard_normal(60)))
        found = compare_laws(curve)
        plain, constant = found["power law"], found["power law and constant"]
        assert constant.log_likelihood == pytest.approx(plain.log_likelihood, abs=0.02)
        price = 2 * 6 * 60 / (60 - 7) - 2 * 5 * 60 / (60 - 6)  # AICc of 6 parameters and of 5, with 60 points
        assert constant.aicc - plain.aicc == pytest.approx(price, abs=0.05)

    def test_parameters(self):
        assert compare_laws(Curve(self.x, self.x**-0.5))["power law"].parameters["a"] == pytest.approx(0.5, abs=1e-6)
        assert compare_laws(Curve(self.x, np.log(self.x) ** 5 / self.x)).best.parameters["k"] == pytest.approx(
            5, abs=1e-5
        )
        constant = compare_laws(Curve(self.x, 2 * (self.x**-0.8 + 0.01))).best.parameters
        assert constant == {"a": pytest.approx(0.8, abs=1e-4), "c/A": pytest.approx(0.01, rel=1e-3)}

    @pytest.mark.slow
    def test_a_short_noisy_window_decides_nothing_and_says_what_would(self, rng):
        t = np.geomspace(16, 512, 40)
        D = influence(RelayModel.uniform(64, 6, 0.5), t)
        found = compare_laws(Curve(t, D * np.exp(0.15 * rng.standard_normal(40))), prompt=64)
        assert not found.told_apart
        assert "cannot tell" in found.verdict
        assert {need.rival for need in found.needed} == set(found.undecided)
        assert all(need.t_max is None or need.t_max > 512 for need in found.needed)

    @pytest.mark.parametrize("asked", [1, pytest.param(6, marks=pytest.mark.exhaustive)])
    def test_what_is_needed_does_it(self, rng, asked):
        """A window as long as asked for tells the laws apart about as often as promised, four times in five."""
        model = RelayModel.uniform(64, 6, 0.5)

        def compare(last):
            t = np.geomspace(16, last, round(40 * np.log(last / 16) / np.log(4)))
            return compare_laws(Curve(t, influence(model, t) * np.exp(0.15 * rng.standard_normal(t.size))), prompt=64)

        last = []
        while len(last) < asked:  # about one in six is of use
            found = compare(256)
            if found.best.name == "relay model" and "power law" in found.undecided:
                last.append(next(need.t_max for need in found.needed if need.rival == "power law"))
        far = float(np.median(last))
        apart = [c["power law"].aicc - c["relay model"].aicc > 6 for c in (compare(far) for _ in range(10))]
        assert np.mean(apart) >= 0.5

    @pytest.mark.parametrize(
        ("needed", "text"),
        [
            (Needed("power law", 2.4e5, 3.1), "power law: a curve to t = 2.4e+05 or 3.1 times as many pairs"),
            (Needed("power law", None, 1.0), "power law: as many pairs, once more"),
            (Needed("power law", 1e4, 25), "power law: a curve to t = 1e+04 or 25 times as many pairs"),
            (Needed("power law", None, None), "power law: no data would do, since it comes as close as one likes"),
        ],
    )
    def test_what_is_needed_in_words(self, needed, text):
        assert str(needed) == text

    def test_what_cannot_be_tried_is_named(self):
        found = compare_laws(Curve(DENSE[:60], DENSE[:60] ** -0.5))
        assert set(found.left_out) == {"power of log t", "relay model"}
        assert "prompt" in found.left_out["relay model"]
        assert "log t must be positive" in found._repr_html_()
        with pytest.raises(KeyError, match="must be one of power law"):
            found["relay model"]

    def test_too_few_points(self):
        with pytest.raises(UnderdeterminedError, match="at least 9 points"):
            compare_laws(Curve(self.x[:8], 1 / self.x[:8]))


def test_tiny_t_are_compared():
    t = np.geomspace(1e-200, 1e-196, 40)
    assert compare_laws(Curve(t, t**-0.5), prompt=64).best.name == "power law"
