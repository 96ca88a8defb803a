"""The relay model fitted to curves: values against exact ones, errors against the spread they claim to describe."""

import dataclasses
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from relaymodel import Curve, RelayModel, influence, local_exponent, simulate
from relaymodel.cli import main
from relaymodel.curve import read_curves
from relaymodel.inference import Needed, UnderdeterminedError, compare_laws, fit, fit_power_law
from relaymodel.inference.cells import Cells
from relaymodel.inference.noise import Noise
from relaymodel.inference.regression import Problem, solve
from relaymodel.inference.shape import Shape

DATA = Path(__file__).parents[1] / "data"
DENSE = np.arange(1.0, 2049.0)
SPARSE = np.unique(np.rint(np.geomspace(4, 4096, 70)))


def curve_of(depth, relay, t=SPARSE, *, prompt=64, position=0, factor=3.0, wiggle=0.0):
    D = influence(RelayModel.uniform(prompt, depth, relay, 1, position), t)
    return Curve(t, factor * D * np.exp(wiggle), provenance={"prompt": str(prompt)})


def biased_curve(depth, relay, beta, last=2048, prompt=64):
    model = RelayModel.uniform(prompt, depth, relay)
    return simulate(model, last, samples=np.arange(1, last + 1), bias=lambda t: beta * np.log1p(t / prompt))


class TestShape:
    @pytest.mark.parametrize(("prompt", "last"), [(64, 4096), (1, 2048), (10, 10**7), (1000, 3000), (3, 10**12)])
    @pytest.mark.parametrize(
        ("depth", "relay", "position"),
        [(1, 1, 0), (2, 0.5, 0), (12, 1, 0), (6, 0.3, -0.5), (3, 0.5, 1), (64, 0.1, 0), (2, 8, 0.5), (4, 0.5, -0.9)],
    )
    def test_whole_depths_are_exact(self, prompt, last, depth, relay, position):
        t = np.unique(np.rint(np.geomspace(1, last, 40)))
        log = Shape(prompt, t).log_influence(relay, depth, position, 0)[:, 0]
        exact = influence(RelayModel.uniform(prompt, depth, relay, 1, position), t)
        assert np.max(np.abs(log - np.log(exact))) < 3e-8

    def test_t_need_not_be_whole(self):
        t = np.geomspace(0.5, 3000, 50)
        log = Shape(20, t).log_influence(0.7, 4, 0, 0)[:, 0]
        assert log == pytest.approx(np.log(influence(RelayModel.uniform(20, 4, 0.7), t)), abs=3e-8)

    @pytest.mark.parametrize("beta", [-0.5, 0.3, 1, 1.5])
    def test_bias_is_the_recursion(self, beta):
        curve = biased_curve(6, 0.5, beta)
        log = Shape(64, curve.t).log_influence(0.5, 6, 0, beta)[:, 0]
        assert log == pytest.approx(np.log(curve.distance), abs=3e-8)

    def test_between_two_depths_lies_the_power_of_the_symbol(self):
        # f(z) = (1 + relay/z)^L for real L, by a contour integral around [-relay, 0] of f(z) Phi(-z)
        from scipy.special import loggamma

        P, relay, t = 10, 0.5, np.array([5.0, 80.0, 900.0])
        z = -relay / 2 + 0.55 * np.exp(2j * np.pi * (np.arange(400) + 0.5) / 400)
        N = P + t[:, None]
        phi = np.exp(loggamma(P + 1 - z) - loggamma(P + 0j) + loggamma(N + 0j) - loggamma(N + 1 - z)) / (1 - z)
        for depth in (1.5, 2.5, 5.3, 17.6):
            D = np.mean(np.exp(depth * np.log(1 + relay / z)) * phi * (z + relay / 2), axis=1).real
            log = Shape(P, t).log_influence(relay, depth, 0, 0)[:, 0]
            assert log == pytest.approx(np.log(D), abs=3e-4)

    def test_many_at_once_are_each_alone(self):
        shape = Shape(64, SPARSE)
        sets = np.array([[0.1, 0.9, 3.0], [2.0, 7.5, 30.0], [0.0, -0.5, 1.0], [0.0, 0.5, 1.0]])
        together = shape.log_influence(*sets)
        for k in range(3):
            assert together[:, k] == pytest.approx(shape.log_influence(*sets[:, k])[:, 0], abs=1e-10)


class TestFit:
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

    @pytest.mark.parametrize(("position", "depth"), [(-0.5, 3), (0.7, 2)])
    def test_position(self, position, depth):
        found = fit(curve_of(depth, 0.5, position=position), depth=depth, position=None)
        assert found.position.value == pytest.approx(position, abs=1e-4)
        assert found.relay.value == pytest.approx(0.5, rel=1e-3)

    @pytest.mark.parametrize("beta", [0.5, 1.3])
    def test_bias(self, beta):
        found = fit(biased_curve(4, 0.5, beta), prompt=64, depth=4, bias=None, amplitude=1)
        assert found.bias.value == pytest.approx(beta, abs=1e-5)
        assert found.relay.value == pytest.approx(0.5, rel=1e-5)
        assert not found.amplitude[0].fitted

    def test_prediction_and_exponent(self):
        found = fit(curve_of(6, 0.5))
        t = np.array([1000.0, 1.0, 30.0])  # in any order, beyond the window
        model = RelayModel.uniform(64, 6, 0.5)
        assert found.predict(t) == pytest.approx(3 * influence(model, t), rel=1e-6)
        assert found.local_exponent(t) == pytest.approx(local_exponent(model, t), abs=1e-4)

    def test_strength_and_depth_trade_off_and_it_says_so(self, rng):
        found = fit(curve_of(6, 0.5, wiggle=0.3 * rng.standard_normal(SPARSE.size)))
        assert found.trade_off < -0.99
        assert "trade off" in found.identifiability
        assert not (found.depth.identified and found.relay.identified)
        assert "not determined" in found.identifiability
        held = fit(curve_of(6, 0.5, wiggle=0.3 * rng.standard_normal(SPARSE.size)), depth=6)
        assert held.trade_off is None
        assert held.relay.identified

    @pytest.mark.parametrize("seed", [0, 1, 2, 16])
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

    @pytest.mark.parametrize("noise", ["white", "of words"])
    def test_intervals_cover(self, rng, noise):
        hits, values, lengths = [], [], []
        for _ in range(100):
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
        assert np.sum(hits) >= 88  # 95 expected; fewer than 88 once in 500
        assert np.median(lengths) / 3.92 == pytest.approx(np.std(values), rel=0.35)

    def test_pairs_know_what_they_share(self, rng):
        # each pair turns the whole curve a little, which leaves no scatter along t
        hits, lone = [], []
        for _ in range(40):
            x = np.log(SPARSE)
            turns = 0.03 * rng.standard_normal((8, 1)) * (x - x.mean()) + 0.01 * rng.standard_normal((8, x.size))
            found = fit([curve_of(6, 0.5, wiggle=w) for w in turns], depth=6)
            assert found.pairs == 8
            hits.append(found.relay.lower <= 0.5 <= found.relay.upper)
            alone = fit(curve_of(6, 0.5, wiggle=turns.mean(axis=0)), depth=6)
            lone.append(alone.relay.lower <= 0.5 <= alone.relay.upper)
        assert np.sum(hits) >= 33  # 38 expected; fewer than 33 once in 500
        assert np.sum(lone) < 30

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


class TestLaws:
    x = np.geomspace(16, 4096, 60)

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

    def test_a_short_noisy_window_decides_nothing_and_says_what_would(self, rng):
        t = np.geomspace(16, 512, 40)
        D = influence(RelayModel.uniform(64, 6, 0.5), t)
        found = compare_laws(Curve(t, D * np.exp(0.15 * rng.standard_normal(40))), prompt=64)
        assert not found.told_apart
        assert "cannot tell" in found.verdict
        assert {need.rival for need in found.needed} == set(found.undecided)
        assert all(need.t_max is None or need.t_max > 512 for need in found.needed)

    def test_what_is_needed_does_it(self, rng):
        """A window as long as asked for tells the laws apart about as often as promised, four times in five."""
        model = RelayModel.uniform(64, 6, 0.5)

        def compare(last):
            t = np.geomspace(16, last, round(40 * np.log(last / 16) / np.log(4)))
            return compare_laws(Curve(t, influence(model, t) * np.exp(0.15 * rng.standard_normal(t.size))), prompt=64)

        last = []
        for _ in range(12):
            found = compare(256)
            if found.best.name == "relay model" and "power law" in found.undecided:
                last.append(next(need.t_max for need in found.needed if need.rival == "power law"))
        assert len(last) >= 2
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


class TestMeasured:
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


class TestRegression:
    def test_a_straight_line_under_white_noise_is_least_squares(self, rng):
        x = np.linspace(0, 5, 40)
        curve = Curve(np.exp(x), np.exp(-0.7 * x + 0.1 * rng.standard_normal(40)))
        cells = Cells.of(curve)
        y = cells.log(curve)
        problem = Problem(
            cells,
            y[:, None],
            lambda theta: (-x[:, None] * theta[0])[:, None, :],
            np.array([-9.0]),
            np.array([9.0]),
        )
        full = Noise.of(cells)
        white = Noise(full.inverses[:1], full.logdet[:1], full.lengths[:1], full.prior[:1])
        found = solve(problem, white, [np.array([0.1])])
        (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
        assert found.theta[0] == pytest.approx(-slope, abs=1e-7)
        assert found.covariance[0, 0] == pytest.approx(covariance[0, 0] * 38 / 36, rel=1e-4)  # of Student's t
        reach = 2.0243941 * np.sqrt(covariance[0, 0])  # its quantile with 38 degrees of freedom
        assert found.upper[0] - found.theta[0] == pytest.approx(reach, rel=1e-4)


class TestCommand:
    @pytest.fixture
    def run(self, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def call(command):
            code = main(shlex.split(command))
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return call

    def test_what_it_prints_and_writes(self, run, tmp_path):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, err = run("fit c.csv --depth 6 --plot c.svg --csv out.csv")
        assert code == 0, err
        assert "relay        0.5 (95 %: 0.5 to 0.5)" in out
        assert "depth        6 (held)" in out
        assert "power of log t" in out
        assert (tmp_path / "c.svg").read_text().startswith("<?xml")
        table = Curve.from_csv(tmp_path / "out.csv")
        assert table.t[0] == SPARSE[SPARSE >= 16][0]
        head = next(l for l in (tmp_path / "out.csv").read_text().splitlines() if not l.startswith("#"))
        assert head == "t,distance,fit,alpha"

    def test_json(self, run, tmp_path):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, _ = run("fit c.csv --json")
        result = json.loads(out)
        assert code == 0
        assert result["depth"]["value"] == pytest.approx(6, abs=1e-3)
        assert result["covariance"]["names"] == ["relay", "depth"]
        assert result["laws"][0]["name"] == "relay model"

    def test_few_points_are_fitted_though_laws_are_not_compared(self, run, tmp_path):
        curve_of(2, 0.5, np.geomspace(16, 1000, 7)).to_csv(tmp_path / "c.csv")
        code, out, err = run("fit c.csv --depth 2")
        assert code == 0, err
        assert "relay        0.5" in out
        assert "at least 9 points for laws" in out
        assert "laws" not in json.loads(run("fit c.csv --depth 2 --json")[1])

    def test_all_layers(self, run):
        code, out, err = run(f"fit {DATA / 'gpt2_untrained.csv'} --all-layers --json")
        assert code == 0, err
        result = json.loads(out)
        assert len(result["amplitude"]) == len(read_curves(DATA / "gpt2_untrained.csv"))
        assert "laws" not in result

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ("none.csv", "there is none at none.csv"),
            ("c.csv --layer 1 --all-layers", "--layer must not be given"),
            ("c.csv --depth 3 --all-layers", "--depth must not be given"),
            ("c.csv --all-layers", "no column of layers"),
            ("c.csv --relay x", "--relay must be a number"),
            ("c.csv --prompt 0", "--prompt must be at least 1"),
            ("c.csv --plot c.jpg", "suffix"),
        ],
    )
    def test_refusals(self, run, tmp_path, options, message):
        curve_of(6, 0.5).to_csv(tmp_path / "c.csv")
        code, out, err = run(f"fit {options}")
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1


def test_the_power_law_of_the_window_points_here():
    assert "compare_laws" in fit_power_law.__doc__
    assert "compare_laws" in fit_power_law(Curve(SPARSE, 1 / SPARSE))._repr_html_()
