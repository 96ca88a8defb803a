"""What is refused of a curve and its window, and what results are."""

import dataclasses

import numpy as np
import pytest

from relaymodel import Curve, Layer, RelayModel
from relaymodel.inference import (
    Limit,
    LocalExponent,
    PowerLaw,
    UnderdeterminedError,
    estimate_exponent,
    extrapolate_exponent,
    fit_power_law,
)


class TestRefusals:
    curve = Curve(np.geomspace(2, 1e4, 30), np.geomspace(2, 1e4, 30) ** -0.5)

    @pytest.mark.parametrize("estimate", [estimate_exponent, fit_power_law, extrapolate_exponent])
    def test_too_few_points_hand_over_the_slope(self, estimate):
        with pytest.raises(UnderdeterminedError, match="at least 6 points") as caught:
            estimate(Curve([1, 10, 100, 1000, 10000], [1, 0.3, 0.1, 0.03, 0.01]))
        assert caught.value.partial == pytest.approx(0.5)

    def test_points_that_stand_alone(self):
        t = np.append(1.0, np.arange(1e5, 1e5 + 200))
        with pytest.raises(UnderdeterminedError, match="6 cells"):
            estimate_exponent(Curve(t, t**-0.5))

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda c: estimate_exponent(c, [1.0]), ValueError, "t must be within 2..10000"),
            (lambda c: estimate_exponent(c, [np.nan]), ValueError, "t must be finite"),
            (lambda c: estimate_exponent(c, ["5"]), TypeError, "t must be numbers"),
            (lambda c: estimate_exponent(c, t_min="5"), TypeError, "t_min must be"),
            (lambda c: estimate_exponent(c, t_max=10**400), ValueError, "t_max must be within the range of float64"),
            (
                lambda _: fit_power_law(Curve(1e15 - 100 + np.arange(100.0), np.ones(100))),
                ValueError,
                "span at least 1e-06 of log t",
            ),
            (
                lambda c: fit_power_law(Curve(c.t, c.distance, 1e-200 * c.distance)),
                ValueError,
                "stderr must be between",
            ),
            (lambda c: estimate_exponent(c, t_max=True), TypeError, "t_max must be a number, not a boolean"),
            (lambda c: fit_power_law(c, t_min=np.nan), ValueError, "t_min must be finite"),
            (lambda c: fit_power_law(c, t_min=1e5), ValueError, "at least 2 points"),
            (lambda c: extrapolate_exponent(c, degree=0), ValueError, "degree must be at least 1"),
            (lambda c: extrapolate_exponent(c, degree=9), ValueError, "degree must be at most 8"),
            (lambda c: extrapolate_exponent(c, degree=2.0), TypeError, "degree must be an integer"),
            (lambda c: extrapolate_exponent(c, prompt=-1), ValueError, "prompt must be at least 0"),
            (lambda c: extrapolate_exponent(c.distance), TypeError, "curve must be a Curve or a RelayModel"),
            (
                lambda _: extrapolate_exponent(RelayModel(1, [Layer(1)]), prompt=1),
                ValueError,
                "prompt must be left out",
            ),
            (lambda _: extrapolate_exponent(RelayModel(1, [Layer(1)]), t_min=0), ValueError, "t_min must be positive"),
            (lambda _: extrapolate_exponent(RelayModel(1, [Layer(1)]), t_max=5), ValueError, "below t_max"),
        ],
    )
    def test_bad_input(self, call, error, message):
        with pytest.raises(error, match=message):
            call(self.curve)


class TestResults:
    t = np.geomspace(20, 1e5, 40)
    curve = Curve(t, np.log(t) / t, provenance={"source": "<b>hand</b>"})

    @pytest.mark.parametrize(
        ("estimate", "kind"),
        [(estimate_exponent, LocalExponent), (fit_power_law, PowerLaw), (extrapolate_exponent, Limit)],
    )
    def test_frozen_with_provenance_and_html(self, estimate, kind):
        result = estimate(self.curve)
        assert type(result) is kind
        assert result.provenance["source"] == "<b>hand</b>"
        assert result.method
        assert "&lt;b&gt;hand" in result._repr_html_()
        assert "±" in repr(result)
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.method = "other"
