"""Measurements: curves, exponents, rounding, files."""

import re

import numpy as np
import pytest
from scipy.stats import t as student

import relaymodel as rm
from relaymodel.networks.protocol import Measurement, RandomTokens, measure
from relaymodel.networks.protocol.rounding import rounding
from relaymodel.plotting import plot_layer_exponents, plot_measurement
from tests.networks.protocol.wrapped import Wrapped


def test_the_curve_is_the_geometric_mean_with_errors_over_pairs(measured):
    curve = measured.curve(2)
    logs = np.log(measured.euclidean[:, 1])
    np.testing.assert_allclose(curve.distance, np.exp(logs.mean(axis=0)), rtol=1e-13)
    np.testing.assert_allclose(curve.stderr / curve.distance, logs.std(axis=0, ddof=1) / 2, rtol=1e-12)
    single = measured.curve(2, pair=1)
    np.testing.assert_allclose(single.distance, measured.euclidean[1, 1], rtol=1e-13)
    assert single.stderr is None
    assert set(measured.curves()) == {1, 2, 3, 4}


def planted(alphas, steps=2000, precision=2.0**-52):
    """A measurement of one layer whose pairs follow power laws."""
    t = np.arange(1, steps + 1)
    euclidean = np.stack([0.3 * t**-a for a in alphas])[:, None]
    ones = np.ones((2, *euclidean.shape))
    return Measurement(t, (1,), euclidean, ones, np.zeros_like(euclidean), 10, 1, precision)


@pytest.mark.slow
def test_alpha_is_the_mean_over_pairs_with_its_standard_error():
    alphas = [0.5, 0.6, 0.4, 0.55]
    fit = planted(alphas).alpha(1, t_min=10)
    assert fit.each == pytest.approx(alphas, abs=1e-12)
    assert fit.alpha == pytest.approx(np.mean(alphas), abs=1e-12)
    over_pairs = np.std(alphas, ddof=1) / 2 * student.ppf(0.975, 3) / 1.96
    assert fit.stderr == fit.noise_stderr == pytest.approx(over_pairs, rel=1e-6)
    assert (fit.provenance["layer"], fit.provenance["pairs"]) == ("1", "4")
    assert fit.window == (10, 2000)
    # 1 - cos is quadratic in the distance
    assert planted(alphas).alpha(1, metric="cosine").alpha == pytest.approx(2 * np.mean(alphas), abs=1e-3)
    assert planted(alphas, steps=50).alpha(1).window == (1, 50)
    assert planted(alphas).alpha(1).window == (16, 2000)


def test_alpha_of_one_pair_has_the_error_of_the_fit():
    t = np.arange(1, 301)
    noisy = planted([0.5], steps=300)
    noisy.euclidean[0, 0] *= np.exp(0.1 * np.sin(7.0 * t))
    fit = noisy.alpha(1)
    assert fit.stderr > 0
    assert fit.alpha == pytest.approx(rm.fit_power_law(noisy.curve(1), t_min=16).alpha, abs=1e-12)


def test_equal_lengths_of_log_t_weigh_the_same():
    """A curve that bends at t = 100: each decade decides as much as the other."""
    bent = planted([1.0])
    t = bent.t
    bent.euclidean[:] = np.where(t < 100, t**-1.0, 100**-0.5 * t**-0.5)
    assert bent.alpha(1, t_min=10, t_max=1000).alpha == pytest.approx(0.75, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("bend", [0.0, 0.05], ids=["straight", "bent"])
def test_one_measurement_gives_one_exponent_whichever_way_it_is_asked(rng, tmp_path, bend):
    """By layer, from the pairs' curves, from the mean curve, and from files of it: value, errors and verdict."""
    walks = 0.02 * np.cumsum(rng.standard_normal((8, 400)), axis=1) / np.sqrt(np.arange(1, 401))
    factors = rng.standard_normal((8, 1))  # of each pair, which change no exponent
    several = planted(np.full(8, 0.6), steps=400)
    several.euclidean[:, 0] *= np.exp(factors + walks - bend * np.log(several.t) ** 2)
    direct = several.alpha(1)
    curve = several.curve(1)
    asked = {
        "pairs": rm.fit_power_law([several.curve(1, pair=k) for k in range(8)]),
        "mean": rm.fit_power_law(curve),
        "csv": rm.fit_power_law(rm.Curve.from_csv(curve.to_csv(tmp_path / "c.csv"))),
        "npz": rm.fit_power_law(rm.Curve.from_npz(curve.to_npz(tmp_path / "c.npz"))),
        "layers": rm.fit_power_law(rm.Curve.from_csv(several.to_csv(tmp_path / "l.csv"), layer=1)),
        "window": rm.fit_power_law(curve.window(16)),
    }
    assert direct.adequate == (bend == 0)
    for way, law in asked.items():
        for name in ("value", "stderr", "lower", "upper", "noise_stderr", "p_value", "each", "drift_stderr"):
            assert getattr(law, name) == pytest.approx(getattr(direct, name), rel=1e-9), (way, name)
        assert law.adequate == direct.adequate, way
    assert direct.value == pytest.approx(np.mean(direct.each), abs=1e-12)
    relaxed = direct.noise_stderr * 1.96 / student.ppf(0.975, 7)
    assert relaxed == pytest.approx(np.std(direct.each, ddof=1) / np.sqrt(8), rel=1e-6)


def test_points_within_rounding_are_left_out():
    coarse = planted([1.0, 1.0], precision=2.0**-10)
    floor = rounding(2.0**-10, 1)
    np.testing.assert_allclose(coarse.floor, floor)
    curve = coarse.curve(1)
    assert np.all(curve.distance > 3 * floor)
    assert curve.t[-1] == np.floor(0.3 / (3 * floor))
    assert re.match(r"\d+ tokens within 3 times", curve.provenance["left out"])
    assert "left out" not in planted([1.0, 1.0]).curve(1).provenance
    with pytest.raises(ValueError, match=r"apart at 2 tokens or more, got 0 .*wider number format"):
        planted([1.0, 1.0], precision=0.5).curve(1)


def test_tokens_beyond_a_sliding_window_are_left_out(network):
    def lose(layer, states):
        states = states.copy()
        states[1, 12:] = states[0, 12:]
        return states

    lost = measure(Wrapped(network, lose, window=3), ([1, 2], [3, 4], RandomTokens(50)))
    curve = lost.curve(1)
    assert curve.t.tolist() == list(range(1, 11))
    assert curve.provenance["left out"] == (
        "40 tokens, the first t = 11, at which two runs are equal: a sliding window of 3 keys reaches back at most "
        "2 tokens"
    )
    assert lost.alpha(3).window[1] == 10
    np.testing.assert_allclose(curve.distance, lost.euclidean[0, 0, :10], rtol=1e-14)


def test_one_layer_that_loses_the_prompt_leaves_the_others(network, tmp_path):
    """Layer 1 keeps the prompt at one token, layer 2 at ten, layer 3 at all."""

    def lose(layer, states):
        states = states.copy()
        if layer < 3:
            states[1, 3 if layer == 1 else 12 :] = states[0, 3 if layer == 1 else 12 :]
        return states

    lost, whole = (measure(net, ([1, 2], [3, 4], RandomTokens(50))) for net in (Wrapped(network, lose), network))
    found, without = lost.alphas()
    assert list(found) == [2, 3]
    assert list(without) == [1]
    assert re.search(r"apart at 2 tokens or more, got 1 \(left out: 49 tokens, the first t = 2, at which", without[1])
    assert found[3].value == whole.alpha(3).value
    assert found[2].provenance["left out"].startswith("40 tokens, the first t = 11")
    assert list(lost.curves()) == [2, 3]
    lost.to_csv(tmp_path / "c.csv")
    assert len(rm.Curve.from_csv(tmp_path / "c.csv", layer=2)) == 10
    assert lost._repr_html_().count("<tr>") == 3
    assert plot_layer_exponents({"lost": lost}).containers[0].lines[0].get_xdata().tolist() == [2, 3]
    assert len(plot_measurement(lost).get_lines()) == 3


def test_a_measurement_in_which_nothing_differs_has_no_exponents(network):
    def lose(layer, states):
        return np.repeat(states[:1], 2, axis=0)

    lost = measure(Wrapped(network, lose), ([1, 2], [3, 4], RandomTokens(50)))
    with pytest.raises(ValueError, match=r"no layer has an exponent: .* the runs do not differ there"):
        lost.alphas()


def test_layer_zero_says_why_it_has_no_curve(network):
    whole = measure(network, ([1, 2], [3, 4], RandomTokens(20)), layers=[0, 2])
    with pytest.raises(ValueError, match="layer 0 must be apart .* embeddings of a common continuation"):
        whole.curve(0)
    assert list(whole.curves()) == [2]


def test_measurement_files_keep_everything(measured, tmp_path):
    measured.to_npz(tmp_path / "m.npz")
    back = Measurement.from_npz(tmp_path / "m.npz")
    for name in ("t", "euclidean", "norms", "radial"):
        np.testing.assert_array_equal(getattr(back, name), getattr(measured, name))
    assert (back.layers, back.prompt, back.depth, back.window) == (measured.layers, 10, 3, None)
    assert dict(back.provenance) == dict(measured.provenance)
    measured.to_csv(tmp_path / "m.csv")
    assert rm.Curve.from_csv(tmp_path / "m.csv", layer=2).distance == pytest.approx(measured.curve(2).distance)
    (tmp_path / "other.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match="must be an NPZ file"):
        Measurement.from_npz(tmp_path / "other.npz")


def test_html_shows_each_layer(measured):
    html = measured._repr_html_()
    assert html.count("<tr>") == 5
    assert f"{measured.alpha(3).alpha:.3f}" in html


def test_data_sets_hold_it_all(measured, tmp_path):
    data = measured.to_xarray()
    assert data["euclidean"].dims == ("pair", "layer", "t")
    assert data["euclidean"].sel(pair=2, layer=3, t=17).item() == measured.distance(3)[2, 16]
    assert data.attrs["prompt"] == measured.prompt
    assert data.attrs["network"] == measured.provenance["network"]
    for again in (
        Measurement.from_xarray(data),
        Measurement.from_netcdf(measured.to_netcdf(tmp_path / "m.nc")),
    ):
        assert repr(again) == repr(measured)
        assert dict(again.provenance) == dict(measured.provenance)
        assert (again.precision, again.window, again.layers) == (measured.precision, None, measured.layers)
        for name in ("t", "euclidean", "norms", "radial"):
            np.testing.assert_array_equal(getattr(again, name), getattr(measured, name))


def test_other_data_sets_are_refused(measured, tmp_path):
    with pytest.raises(ValueError, match="data must be a data set that Measurement.to_xarray made"):
        Measurement.from_xarray(measured.to_xarray().drop_vars("radial"))
    (tmp_path / "m.nc").write_bytes(b"CDF nonsense")
    with pytest.raises(ValueError, match=r"m\.nc must be a netCDF file"):
        Measurement.from_netcdf(tmp_path / "m.nc")


def test_norms_are_of_run_a_and_run_b(network):
    """Of prompt A first, and both of the states behind the prompt."""
    texts = rm.Pairs([[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9, 10, 11, 12, 13]])
    found = measure(network, texts)
    for run, prompt in enumerate(([1, 2, 3], [4, 5, 6])):
        _, *states = network.hidden_states([[*prompt, 7, 8, 9, 10, 11, 12, 13]])
        norms = np.stack([np.linalg.norm(x[0, 3:], axis=-1) for x in states])
        np.testing.assert_allclose(found.norms[run, 0], norms, rtol=1e-10)
