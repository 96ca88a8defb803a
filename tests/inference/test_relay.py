"""The relay model fitted to curves."""

import dataclasses

import numpy as np
import pytest

from relaymodel import Curve, PromptBias, RelayModel, influence, local_exponent, simulate
from relaymodel.inference import (
    UnderdeterminedError,
    fit,
)
from tests.inference.curves import DENSE, SPARSE, biased_curve, curve_of, fewest


class TestFit:
    @pytest.mark.slow
    @pytest.mark.parametrize("t", [SPARSE, DENSE], ids=["sparse", "dense"])
    @pytest.mark.parametrize(("depth", "relay", "prompt"), [(2, 0.5, 64), (6, 0.5, 64), (12, 0.2, 10), (5, 2.0, 3)])
    def test_noise_free_curves_give_their_parameters(self, t, depth, relay, prompt):
        found = fit(curve_of(depth, relay, t, prompt=prompt))
        assert found.depth.value == pytest.approx(depth, rel=1e-4)
        assert found.relay.value == pytest.approx(relay, rel=1e-3)
        assert found.amplitude[0].value == pytest.approx(3, rel=3e-3)
        assert found.model.depth == depth
        assert found.model.layers[0].relay == pytest.approx(relay, rel=1e-5)
        assert found.names == ("relay", "depth")
        assert found.adequate

    @pytest.mark.slow
    @pytest.mark.parametrize(("position", "depth"), [(-0.5, 3), (0.7, 2)])
    def test_position(self, position, depth):
        found = fit(curve_of(depth, 0.5, position=position), depth=depth, position=None)
        assert found.position.value == pytest.approx(position, abs=1e-4)
        assert found.relay.value == pytest.approx(0.5, rel=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("beta", [0.5, 1.3])
    def test_bias(self, beta):
        found = fit(biased_curve(4, 0.5, beta), prompt=64, depth=4, bias=None, amplitude=1)
        assert found.bias.value == pytest.approx(beta, abs=1e-5)
        assert found.relay.value == pytest.approx(0.5, rel=1e-5)
        assert not found.amplitude[0].fitted

    @pytest.mark.slow
    @pytest.mark.parametrize(("recency", "sink"), [(0.7, 0), (-1.0, 0), (0.5, 0.02)])
    def test_recency_and_sink(self, recency, sink):
        model = RelayModel.uniform(64, 6, 0.5, recency=recency, sink=sink)
        t = np.geomspace(16, 1024, 24).round()
        found = fit(Curve(t, 3 * influence(model, t)), prompt=64, depth=6, recency=None, sink=None if sink else 0)
        assert found.recency.value == pytest.approx(recency, abs=1e-5)
        assert found.relay.value == pytest.approx(0.5, rel=1e-5)
        assert found.sink.value == pytest.approx(sink, rel=1e-4)
        assert found.names == ("relay", "recency", "sink")[: 3 if sink else 2]
        assert "relay and recency trade off" in found.identifiability
        assert found.model.layers[0].recency == found.recency.value
        assert found.model.layers[0].sink == found.sink.value
        # fitted without a bias, it predicts curves under others
        for bias in (1, 2.5):
            simulated = simulate(model, 1024, bias=PromptBias(bias), samples=t)
            assert found.predict(t, bias=bias) == pytest.approx(3 * simulated.distance, rel=1e-6)

    @pytest.mark.slow
    def test_without_recency_a_bias_is_not_predicted(self, rng):
        # noise leaves strength and recency open along a line, on which all models do the same under a bias
        model = RelayModel.uniform(64, 12, 0.2, recency=0.7)
        t = np.geomspace(16, 1024, 32).round()
        curve = Curve(t, influence(model, t) * np.exp(0.01 * rng.standard_normal(32)))
        free, uniform = fit(curve, prompt=64, depth=12, recency=None), fit(curve, prompt=64, depth=12)
        assert free.recency.upper - free.recency.lower > 0.1
        biased = simulate(model, 1024, bias=PromptBias(2), samples=t).distance
        wrong = [np.abs(np.log(found.predict(t, bias=2) / biased)).max() for found in (free, uniform)]
        assert wrong[0] < wrong[1] / 4

    def test_a_sink_that_is_not_there_is_bounded(self, rng):
        found = fit(curve_of(4, 0.5, wiggle=0.01 * rng.standard_normal(SPARSE.size)), depth=4, sink=None)
        assert found.sink.lower == 0 < found.sink.upper < 0.01
        assert not found.sink.identified
        assert f"sink is at most {found.sink.upper:.2g}" in found.identifiability

    def test_recencies_are_fitted_within_bounds(self):
        curve = curve_of(2, 0.5)
        with pytest.raises(ValueError, match="recency must be None, to be fitted, or -4 to 0.99, got 0.999"):
            fit(curve, recency=0.999)
        with pytest.raises(ValueError, match="sink must be None, to be fitted, or 0 to 4, got -1"):
            fit(curve, sink=-1)
        far = Curve(np.geomspace(16, 1e13, 30), np.geomspace(1, 1e-9, 30), provenance={"prompt": "64"})
        with pytest.raises(ValueError, match="in a fit with a recency, got 1e"):
            fit(far, recency=None)
        with pytest.raises(ValueError, match="bias must be None, to be fitted, or -1 to 3, got 9"):
            fit(curve, depth=2).predict([100.0], bias=9)

    def test_prediction_and_exponent(self):
        found = fit(curve_of(6, 0.5))
        t = np.array([1000.0, 1.0, 30.0])  # in any order, beyond the window
        model = RelayModel.uniform(64, 6, 0.5)
        assert found.predict(t) == pytest.approx(3 * influence(model, t), rel=1e-6)
        assert found.local_exponent(t) == pytest.approx(local_exponent(model, t), abs=1e-4)

    @pytest.mark.slow
    def test_strength_and_depth_trade_off_and_it_says_so(self, rng):
        trades = []
        for _ in range(3):
            found = fit(curve_of(6, 0.5, wiggle=0.3 * rng.standard_normal(SPARSE.size)))
            trades.append(found.correlations["relay", "depth"])
            assert ("trade off" in found.identifiability) == (abs(trades[-1]) > 0.9)
            assert not (found.depth.identified and found.relay.identified)
            assert "not determined" in found.identifiability
        assert np.median(trades) < -0.99  # less where the strength ends at its bound
        held = fit(curve_of(6, 0.5, wiggle=0.3 * rng.standard_normal(SPARSE.size)), depth=6)
        assert held.correlations == {}
        assert held.relay.identified

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [0, 16])
    def test_one_layer_does_not_tell_strength_from_factor(self, seed):
        t = np.geomspace(16, 4096, 40)
        wiggle = 0.02 * np.random.default_rng(seed).standard_normal(40)
        curve = Curve(t, 64 / (64 + t) * np.exp(wiggle), provenance={"prompt": "64"})
        for found in (fit(curve, depth=1), fit({1: curve}), fit(curve)):
            assert not found.relay.identified
            assert not found.amplitude[0].identified
            assert (found.relay.lower, found.relay.upper) == pytest.approx((1e-3, 16))
            assert "relay" in found.identifiability
        assert found.depth.lower <= 1.0001 < found.depth.upper

    @pytest.mark.parametrize("factor", [1e-300, 1e200])
    def test_the_unit_of_distance_is_free(self, rng, factor):
        curve = curve_of(6, 0.5, wiggle=0.02 * rng.standard_normal(SPARSE.size))
        scaled = Curve(curve.t, factor * curve.distance, provenance=curve.provenance)
        before, after = fit(curve, depth=6), fit(scaled, depth=6)
        assert after.relay.upper == pytest.approx(before.relay.upper, rel=1e-4)
        for name in ("lower", "value", "upper"):
            assert getattr(after.amplitude[0], name) / factor == pytest.approx(
                getattr(before.amplitude[0], name), rel=1e-3
            )

    @pytest.mark.slow
    def test_a_factor_without_end_is_not_determined(self, rng):
        t = np.geomspace(16, 60, 12)
        open_ends = 0
        for _ in range(6):
            curve = Curve(t, np.exp(0.3 * rng.standard_normal(12)), provenance={"prompt": "64"})
            factor = fit(curve).amplitude[0]
            reaches = factor.lower < 1e-99 * factor.value or factor.upper > 1e99 * factor.value
            assert factor.identified != reaches
            open_ends += reaches
        assert open_ends > 0

    @pytest.mark.slow
    @pytest.mark.parametrize("power", [0.25, 0.6, 0.9])
    def test_a_curve_beyond_the_bounds_is_still_followed(self, rng, power):
        # no relay model of 1 to 64 layers is a power law: parameters end at a bound, and the factor must go with them
        curve = Curve(
            SPARSE, 5 * SPARSE**-power * np.exp(0.01 * rng.standard_normal(SPARSE.size)), provenance={"prompt": "64"}
        )
        found = fit(curve)
        part = curve.window(*found.window)
        ratio = np.log(part.distance / found.predict(part.t))
        assert abs(np.mean(ratio)) < 0.1 * np.ptp(np.log(part.distance))
        amplitude = found.amplitude[0]
        assert amplitude.lower <= amplitude.value <= amplitude.upper

    def test_layers_at_once(self, rng):
        layers = {
            l: curve_of(l, 0.3, factor=1 + l, wiggle=0.02 * rng.standard_normal(SPARSE.size)) for l in (1, 2, 4, 6)
        }
        found = fit(layers)
        assert found.layers == (1, 2, 4, 6)
        assert abs(found.relay.value - 0.3) < 3 * found.relay.stderr < 0.05
        assert [a.value for a in found.amplitude] == pytest.approx([2, 3, 5, 7], rel=0.1)
        assert found.adequate
        assert found.predict([100.0], curve=2)[0] == pytest.approx(
            5 * influence(RelayModel.uniform(64, 4, 0.3), 100), rel=0.05
        )

    def test_layers_with_the_same_noise_are_not_independent(self, rng):
        wiggle = 0.03 * rng.standard_normal(SPARSE.size)
        same = fit({l: curve_of(l, 0.3, wiggle=wiggle) for l in range(2, 8)})
        own = fit({l: curve_of(l, 0.3, wiggle=0.03 * rng.standard_normal(SPARSE.size)) for l in range(2, 8)})
        assert same.relay.stderr > 1.6 * own.relay.stderr  # of six, by the root of 6 if they pulled alike

    def test_layers_share_the_t_they_have_in_common(self):
        found = fit({2: curve_of(2, 0.3), 4: curve_of(4, 0.3, DENSE)})
        assert found.points == np.intersect1d(SPARSE[SPARSE >= 16], DENSE).size
        assert found.relay.value == pytest.approx(0.3, rel=1e-4)

    def test_outliers_count_for_little(self, rng):
        wiggle = 0.02 * rng.standard_normal(DENSE.size)
        wiggle[rng.integers(16, DENSE.size, 100)] += rng.choice([2.0, 3.0], 100)
        curve = curve_of(6, 0.5, DENSE, wiggle=wiggle)
        plain, robust = fit(curve, depth=6), fit(curve, depth=6, robust=True)
        assert abs(robust.relay.value - 0.5) < 0.25 * abs(plain.relay.value - 0.5)
        assert robust.relay.stderr < 0.3 * plain.relay.stderr
        assert abs(robust.relay.value - 0.5) < 4 * robust.relay.stderr

    def test_a_quarter_of_outliers_on_one_side_moves_the_factor_only(self):
        for seed in (1, 2):
            rng = np.random.default_rng(seed)
            wiggle, out = 0.02 * rng.standard_normal(SPARSE.size), rng.random(SPARSE.size) < 0.25
            wiggle[out] += rng.uniform(0.5, 2, out.sum())
            found = fit(curve_of(6, 0.5, wiggle=wiggle), depth=6, robust=True)
            assert found.relay.value == pytest.approx(0.5, abs=0.02)

    @pytest.mark.parametrize("sets", [24, pytest.param(100, marks=pytest.mark.exhaustive)])
    @pytest.mark.parametrize("noise", ["white", "of words"])
    def test_intervals_cover(self, rng, noise, sets):
        hits, values, lengths = [], [], []
        for _ in range(sets):
            drive = rng.standard_normal(4096)
            if noise == "of words":
                from scipy.signal import lfilter

                drive = np.sqrt(0.8) * lfilter([np.sqrt(1 - 0.95**2)], [1, -0.95], drive) + np.sqrt(
                    0.2
                ) * rng.standard_normal(4096)
            found = fit(curve_of(6, 0.5, wiggle=0.05 * drive[SPARSE.astype(int) - 1]), depth=6)
            hits.append(found.relay.lower <= 0.5 <= found.relay.upper)
            values.append(np.log(found.relay.value))
            lengths.append(np.log(found.relay.upper / found.relay.lower))
        assert np.sum(hits) >= fewest(sets)
        assert np.median(lengths) / 3.92 == pytest.approx(np.std(values), rel=0.35)

    @pytest.mark.slow
    def test_pairs_know_what_they_share(self, rng):
        # each pair turns the whole curve a little, which leaves no scatter along t
        hits, lone = [], []
        for _ in range(20):
            x = np.log(SPARSE)
            turns = 0.03 * rng.standard_normal((8, 1)) * (x - x.mean()) + 0.01 * rng.standard_normal((8, x.size))
            found = fit([curve_of(6, 0.5, wiggle=w) for w in turns], depth=6)
            assert found.pairs == 8
            hits.append(found.relay.lower <= 0.5 <= found.relay.upper)
            alone = fit(curve_of(6, 0.5, wiggle=turns.mean(axis=0)), depth=6)
            lone.append(alone.relay.lower <= 0.5 <= alone.relay.upper)
        assert np.sum(hits) >= fewest(20)
        assert np.sum(lone) < fewest(20)

    def test_errors_stated_by_the_curve_weigh(self, rng):
        relative = np.where(SPARSE < 200, 0.005, 0.5)
        curve = curve_of(6, 0.5, wiggle=relative * rng.standard_normal(SPARSE.size))
        told = fit(Curve(curve.t, curve.distance, relative * curve.distance, curve.provenance), depth=6)
        assert told.relay.stderr < fit(curve, depth=6).relay.stderr / 2

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"prompt": 0}, ValueError, "prompt must be at least 1"),
            ({"relay": 0}, ValueError, "relay must be None, to be fitted, or 0.001 to 16"),
            ({"depth": 100}, ValueError, "depth must be None"),
            ({"position": -1}, ValueError, "position must be None"),
            ({"bias": "0"}, TypeError, "bias must be an int"),
            ({"amplitude": 0}, ValueError, "amplitude must be positive"),
            ({"relay": 1, "depth": 2, "amplitude": 1}, ValueError, "must be None, to be fitted, got values for all"),
            ({"prompt": 10**7}, ValueError, "prompt must be at most 1000000"),
            ({"t_min": np.nan}, ValueError, "t_min must be finite"),
        ],
    )
    def test_bad_input(self, options, error, message):
        with pytest.raises(error, match=message):
            fit(curve_of(2, 0.5), **options)

    @pytest.mark.parametrize(
        ("curves", "error", "message"),
        [
            (Curve(SPARSE, 1 / SPARSE), ValueError, "prompt must be given"),
            ([], ValueError, "at least one Curve"),
            ({}, ValueError, "at least one layer"),
            ("curve.csv", TypeError, "curves must be a Curve or a list"),
            ([curve_of(2, 0.5), 3], TypeError, "at index 1"),
            ([curve_of(2, 0.5), curve_of(2, 0.5, DENSE)], ValueError, "same t"),
            ({0: curve_of(2, 0.5)}, ValueError, "layer must be at least 1"),
            ({1: 3}, TypeError, "for layer 1"),
            (curve_of(2, 0.5, np.array([20.0, 30, 40, 50, 60, 70, 1e16])), ValueError, "t must be at most 1e\\+14"),
        ],
    )
    def test_bad_curves(self, curves, error, message):
        with pytest.raises(error, match=message):
            fit(curves)

    def test_layers_have_their_depths(self):
        with pytest.raises(ValueError, match="depth must be None for layers"):
            fit({1: curve_of(1, 0.5)}, depth=3)

    def test_too_few_points_for_the_parameters(self):
        with pytest.raises(UnderdeterminedError, match="at least 8 points for 4 parameters") as caught:
            fit(curve_of(2, 0.5, np.array([1.0, 10, 100, 300, 600, 900, 1000])), position=None, bias=None)
        assert 0 < caught.value.partial < 1

    def test_result(self):
        found = fit(Curve(SPARSE, 1 / (64 + SPARSE), provenance={"prompt": "64", "source": "<b>hand</b>"}), depth=2)
        assert "&lt;b&gt;hand" in found._repr_html_()
        assert "relay = " in repr(found)
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.method = "other"
