"""The two-prompt measurement: texts, distances, precision, bias, resuming, the command."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

import relaymodel as rm
from relaymodel.cli import main
from relaymodel.networks.protocol import Generated, Measurement, Network, RandomTokens, draw_pairs, measure
from relaymodel.networks.protocol.measurement import rounding
from relaymodel.networks.protocol.runs import check_bias
from relaymodel.networks.transformer import Architecture, Transformer

SHAPE = Architecture(depth=3, width=48, heads=4, vocabulary=256, context=400)


@pytest.fixture(scope="module")
def network():
    return Transformer.random(SHAPE, np.random.default_rng(1), std=0.1)


@pytest.fixture(scope="module")
def measured(network):
    pairs = draw_pairs(network, pairs=4, prompt=10, steps=300, seed=3)
    return measure(network, pairs, final_norm=True)


class Wrapped:
    """A network that does with the states or the bias of another one what a test wants."""

    def __init__(self, inner, change=lambda layer, states: states, bias=lambda b: b, precision=None, window=None):
        self.inner, self.change, self.rebias = inner, change, bias
        self.precision = inner.precision if precision is None else precision
        self.window = window
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def observe(self, tokens, visit, *, bias=None, final_norm=False):
        self.calls += 1
        self.inner.observe(
            tokens,
            lambda layer, states: visit(layer, self.change(layer, states)),
            bias=None if bias is None else self.rebias(bias),
            final_norm=final_norm,
        )


def test_both_networks_satisfy_the_protocol(network):
    assert isinstance(network, Network)
    assert isinstance(Wrapped(network), Network)


def test_distances_are_those_of_two_separate_runs(network, measured):
    pairs = draw_pairs(network, pairs=4, prompt=10, steps=300, seed=3)
    for k in (0, 3):
        texts = pairs.encode(network).tokens(k)
        a, b = ([x[0, 10:] for x in network.hidden_states(text[None], final_norm=True)] for text in texts)
        for m, layer in enumerate(measured.layers):
            x, y = a[layer], b[layer]
            # round-off of the states themselves, which lie 1e-3 to 1 apart
            np.testing.assert_allclose(measured.euclidean[k, m], np.linalg.norm(x - y, axis=1), rtol=1e-11)
            cosine = 1 - np.sum(x * y, axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
            np.testing.assert_allclose(measured.distance(layer, metric="cosine")[k], cosine, rtol=1e-8, atol=1e-15)
            size = np.sqrt((np.sum(x**2, axis=1) + np.sum(y**2, axis=1)) / 2)
            relative = measured.distance(layer, metric="relative")[k]
            np.testing.assert_allclose(relative, np.linalg.norm(x - y, axis=1) / size, rtol=1e-11)
    assert measured.layers == (1, 2, 3, 4)


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
    with pytest.raises(ValueError, match="clear of rounding at 2 tokens"):
        planted([1.0, 1.0], precision=0.5).curve(1)


def test_low_precision_reads_half_the_exponent_and_is_announced(network):
    """The reason for the warning: states rounded to 8 bits turn 1/t into t^-1/2."""
    rng = np.random.default_rng(5)
    t = np.arange(100, 501)
    x = rng.standard_normal((t.size, 1024))
    y = x + rng.standard_normal((t.size, 1024)) / t[:, None] / 16

    def rounded(states):
        unit = 2.0 ** (np.floor(np.log2(np.abs(states))) - 7)
        return np.rint(states / unit) * unit

    distance = np.linalg.norm(rounded(x) - rounded(y), axis=1)
    slope = -np.polyfit(np.log(t), np.log(distance), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.1)
    with pytest.warns(UserWarning, match=r"root of \(difference \* spacing\).*float32 or better"):
        measure(Wrapped(network, precision=2.0**-7), ([1, 2], [3, 4], RandomTokens(20)))


def test_a_sliding_window_is_refused_by_name(network):
    def lose(layer, states):
        states = states.copy()
        states[1, 12:] = states[0, 12:]
        return states

    lost = measure(Wrapped(network, lose, window=3), ([1, 2], [3, 4], RandomTokens(50)))
    with pytest.raises(ValueError, match=r"exactly 0 at 40 tokens, the first t = 11: a sliding window of 3 keys .* 2 "):
        lost.curve(1)
    with pytest.raises(ValueError, match="exactly 0"):
        lost.alpha(3)


def test_layer_zero_says_why_it_has_no_curve(network):
    whole = measure(network, ([1, 2], [3, 4], RandomTokens(20)), layers=[0, 2])
    with pytest.raises(ValueError, match="layer 0 is exactly 0 .* embeddings of a common continuation"):
        whole.curve(0)
    assert list(whole.curves()) == [2]


def test_states_that_are_not_finite_are_named(network):
    def spoil(layer, states):
        states = states.copy()
        states[1, 7] = np.nan if layer == 2 else states[1, 7]
        return states

    with pytest.raises(ValueError, match="finite, got NaN or inf at layer 2, t = 6"):
        measure(Wrapped(network, spoil), ([1, 2], [3, 4], RandomTokens(20)))


def test_prompt_bias_changes_the_curves_as_a_mask_in_logits_does(network):
    P, T = 10, 40
    pairs = draw_pairs(network, pairs=1, prompt=P, steps=T)
    strength = 1.3
    measured = measure(network, pairs, bias=rm.PromptBias(strength))
    added = np.zeros((P + T, P + T))
    for t in range(1, T + 1):
        added[P + t - 1, :P] = strength * np.log1p(t / P)
    *_, last = network.hidden_states(pairs.encode(network).tokens(0), bias=added)
    np.testing.assert_allclose(measured.euclidean[0, -1], np.linalg.norm(last[0, P:] - last[1, P:], axis=1), rtol=1e-11)
    plain = measure(network, pairs)
    assert np.all(measured.curve(3).distance[-10:] > 1.2 * plain.curve(3).distance[-10:])
    same = measure(network, pairs, bias=lambda t: np.zeros_like(t))
    np.testing.assert_array_equal(same.euclidean, plain.euclidean)


@pytest.mark.parametrize(
    ("misread", "complaint"),
    [
        (lambda b: None, "hidden by a bias of -1e4 still reaches"),
        (lambda b: np.where(b < -100, -1e9, 0), "keys beside one with a bias of 1e4 still count"),
        (lambda b: np.where(np.abs(b) > 100, b, 0), "multiplies its effect by 1 instead of e"),
        (lambda b: b - 3, "a bias of 0 changes"),
        (lambda b: b / 1e4, "hidden by a bias of -1e4 still reaches"),
    ],
    ids=["ignored", "taken for yes or no", "small ones dropped", "shifted", "scaled away"],
)
def test_a_network_that_misreads_the_bias_is_refused(network, misread, complaint):
    check_bias(network)
    with pytest.raises(ValueError, match=complaint):
        measure(Wrapped(network, bias=misread), ([1, 2], [3, 4], RandomTokens(20)), bias=rm.PromptBias(1))


def test_an_interrupted_run_goes_on_where_it_stopped(network, tmp_path):
    pairs = draw_pairs(network, pairs=3, prompt=5, steps=30)
    whole = measure(network, pairs)
    store = tmp_path / "store"
    interrupted = Wrapped(network)

    def stop(done, total):
        if done > 2 * total // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(interrupted, pairs, resume=store, progress=stop)
    assert sorted(path.name for path in store.iterdir()) == ["pair-0000.npz", "pair-0001.npz"]
    again = Wrapped(network)
    resumed = measure(again, pairs, resume=store)
    assert again.calls == 1
    np.testing.assert_array_equal(resumed.euclidean, whole.euclidean)
    np.testing.assert_array_equal(resumed.radial, whole.radial)
    for other in (
        {"bias": rm.PromptBias(1)},
        {"layers": [1]},
    ):
        with pytest.raises(ValueError, match="resume must be a folder of the same measurement"):
            measure(network, pairs, resume=store, **other)
    with pytest.raises(ValueError, match="of the same measurement"):
        measure(network, replace(pairs, prompt_a=pairs.prompt_b, prompt_b=pairs.prompt_a), resume=store)


def test_progress_counts_layers_of_all_pairs(network):
    seen = []
    pairs = draw_pairs(network, pairs=2, prompt=5, steps=30)
    measure(network, pairs, progress=lambda *now: seen.append(now))
    assert seen == sorted(seen)
    assert seen[-1] == (8, 8)
    assert len(set(seen)) == 9


def test_texts_are_encoded_before_they_are_joined(network):
    def merging(text):
        return [ord(c) for c in text.replace("ab", "\x01")]

    wrapped = Wrapped(network)
    wrapped.encode = merging
    with pytest.raises(ValueError, match=r"equally many tokens, got 3 and 2 in pair 0; prompt = 2 cuts both"):
        measure(wrapped, ("xya", "xab", "b" * 30))
    measured = measure(wrapped, ("xya", "xza", "b" * 30))  # the seam "ab" stays two tokens
    assert measured.prompt == 3
    assert measured.t[-1] == 30
    assert measure(wrapped, rm.Pairs("xya", "xab", "b" * 30, prompt=2)).prompt == 2


def test_many_pairs_and_their_continuations(network):
    prompts = ["one prompt", "two prompt"], ["a  prompts", "other text"]
    shared = measure(network, (*prompts, "and so on " * 5))
    assert (shared.pairs, shared.prompt, shared.t[-1]) == (2, 10, 50)
    own = measure(network, (*prompts, ["and so on " * 5, "different " * 5]))
    np.testing.assert_array_equal(own.euclidean[0], shared.euclidean[0])
    assert np.any(own.euclidean[1] != shared.euclidean[1])
    random = measure(network, (*prompts, RandomTokens(50, seed=2)))
    assert np.any(random.norms[0, 0] != random.norms[0, 1])


def test_generated_continuations_follow_prompt_a(network):
    made = measure(network, (["abcd", "wxyz"], ["efgh", "efgh"], Generated(20, seed=4)))
    expected = network.generate(list(b"abcd"), 20, seed=4)
    direct = measure(network, (list(b"abcd"), list(b"efgh"), expected))
    np.testing.assert_array_equal(made.euclidean[0], direct.euclidean[0])


@pytest.mark.parametrize(
    ("a", "b", "after", "options", "error", "message"),
    [
        ([1, 2], [1, 2], [1, 2], {}, ValueError, r"must differ, got the same 2 tokens in pair 0"),
        ([1, 2], [1, 256], [1, 2], {}, ValueError, r"prompt_b must have token ids from 0 to 255, got 256"),
        ([1, 2], [1, -3], [1, 2], {}, ValueError, r"got -3"),
        ([1.5, 2], [1, 3], [1, 2], {}, TypeError, r"prompt_a must be a text or a sequence of token ids"),
        ([True, False], [1, 3], [1, 2], {}, TypeError, r"prompt_a must be numbers, not booleans"),
        ([1, 2], [1, 3], [5], {}, ValueError, r"continuation must have at least 2 tokens, got 1"),
        ("", "", [1, 2], {}, ValueError, r"prompt_a must have at least 1 token"),
        ([[1, 2]], [[1, 3], [2, 3]], [1, 2], {}, ValueError, r"equally many prompts, got 1 and 2"),
        ([[1, 2], [1, 2]], [[2, 2], [2, 1]], [[1, 2]] * 3, {}, ValueError, r"one for each of 2 pairs, got 3"),
        ([[1, 2], [1, 2, 3]], [[2, 2], [2, 1, 1]], [1, 2], {}, ValueError, r"got 2 in pair 0, 3 in 1"),
        ([1, 2], [1, 3], RandomTokens(399), {}, ValueError, r"context of 400 tokens, got 2 \+ 399 = 401"),
        ([1, 2], [1, 3], [1, 2], {"prompt": 3}, ValueError, r"prompt_a must have at least prompt = 3 tokens, got 2"),
        ([1, 2], [1, 3], [1, 2], {"layers": [4]}, ValueError, r"layers must be from 0 to 3, got 4; 4, after the final"),
        ([1, 2], [1, 3], [1, 2], {"layers": []}, ValueError, r"at least one layer"),
        ([1, 2], [1, 3], [1, 2], {"layers": [1.0]}, TypeError, r"layers must be an integer"),
        ([1, 2], [1, 3], [1, 2], {"bias": 1.0}, TypeError, r"bias must be a function of t or have"),
        ([1, 2], [1, 3], [1, 2], {"progress": 3}, TypeError, r"progress must be"),
    ],
)
def test_unusable_input_is_named(network, a, b, after, options, error, message):
    with pytest.raises(error, match=message):
        measure(network, rm.Pairs(a, b, after, prompt=options.pop("prompt", None)), **options)


@pytest.mark.parametrize("wrong", ["To be", ("one", "two"), ["one", "two", "three"], None, 3])
def test_what_is_not_pairs_is_refused_with_the_right_form(network, wrong):
    form = re.escape("pairs must be Pairs(prompt_a, prompt_b, continuation) or a tuple of these three, got ")
    with pytest.raises(TypeError, match=form + re.escape(repr(wrong))):
        measure(network, wrong)


@pytest.mark.parametrize(("prompt", "error"), [(0, ValueError), (2.0, TypeError), (True, TypeError)])
def test_pairs_check_their_cut_at_once(prompt, error):
    with pytest.raises(error, match="prompt must be"):
        rm.Pairs("a", "b", "after", prompt=prompt)


def test_pairs_hand_their_provenance_to_what_is_made_with_them(network):
    facts = {"continuation": "nursery rhymes", "edition": 3}
    pairs = rm.Pairs("one prompt", "two prompt", "and so on", provenance=facts)
    for result in (measure(network, pairs), rm.certify(network, pairs)):
        assert result.provenance["continuation"] == "nursery rhymes"
        assert result.provenance["edition"] == "3"
        assert result.provenance["prompt"] == "10"
    assert measure(network, pairs, provenance={"edition": "4"}).provenance["edition"] == "4"
    assert measure(network, ("one prompt", "two prompt", "and so on")).provenance["continuation"] == "given"


def test_what_is_not_a_network_is_refused():
    with pytest.raises(TypeError, match="network must offer depth, vocabulary, .* got 'gpt2' of type str"):
        measure("gpt2", ([1], [2], [3, 4]))


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


def test_draw_pairs_shares_no_token_of_the_text(network):
    letters = bytes(range(48, 48 + 64)).decode()
    drawn = draw_pairs(network, pairs=3, prompt=4, steps=12, text=letters, seed=1)
    used = np.concatenate([drawn.prompt_a.ravel(), drawn.prompt_b.ravel(), drawn.continuation.ravel()])
    assert len(set(used.tolist())) == used.size == 60
    assert all(np.all(np.diff(row) == 1) for part in (drawn.prompt_a, drawn.continuation) for row in part)
    with pytest.raises(ValueError, match=r"at least pairs \* \(2 \* prompt \+ steps\) = 80 tokens, got 64"):
        draw_pairs(network, pairs=4, prompt=4, steps=12, text=letters)


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_command_with_its_defaults_measures_a_numpy_network(capsys, tmp_path):
    options = ["--pairs", "2", "--t-max", "150", "--depth", "2", "--prompt", "8", "--layers", "1-2"]
    files = ["--csv", str(tmp_path / "c.csv"), "--plot", str(tmp_path / "p.png")]
    code, out, err = run(capsys, "measure", "untrained-numpy", *options, *files)
    assert code == 0, err
    assert "random tokens, seed 0" in out
    curve = rm.Curve.from_csv(tmp_path / "c.csv", layer=2)
    assert len(curve) == 150
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    code, out, err = run(capsys, "measure", "untrained-numpy", *options, "--json")
    result = json.loads(out)
    assert result["layer"] == [1, 2]
    assert result["alpha"][1] == pytest.approx(np.mean(result["each"][1]))


def test_command_reads_prompts_and_continuation_from_files(capsys, tmp_path):
    for name, text in (("a", "first prompt text"), ("b", "other prompt here"), ("c", "and the rest " * 20)):
        (tmp_path / name).write_text(text)
    command = ["measure", "untrained-numpy", "--depth", "1", "--prompt", "8", "--t-max", "200", "--json"]
    texts = [
        "--prompt-a",
        str(tmp_path / "a"),
        "--prompt-b",
        str(tmp_path / "b"),
        "--continuation",
        str(tmp_path / "c"),
    ]
    code, out, err = run(capsys, *command, *texts)
    assert code == 0, err
    network = Transformer.random(
        Architecture(depth=1, width=256, heads=8, vocabulary=256, context=208), np.random.default_rng(0)
    )
    direct = measure(network, ("first pr", "other pr", ("and the rest " * 20)[:200]))
    assert json.loads(out)["alpha"] == [direct.alpha(1).alpha]
    code, _, err = run(capsys, *command, *texts, "--pairs", "3")
    assert code == 2
    assert "--prompt-a must have at least 3 x 8 = 24 tokens" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt-a", "x"], "--prompt-a and --prompt-b must be given together"),
        (["--prompt-a", "no", "--prompt-b", "no"], "--prompt-a must be a text file, and there is none at no"),
        (["--continuation", "nowhere.txt"], "a text file, and there is none at nowhere.txt"),
        (["--layers", "5-2"], "--layers must go up"),
        (["--layers", "99", "--depth", "1"], "layers must be from 0 to 1, got 99"),
        (["--metric", "manhattan"], "--metric must be one of"),
        (["--t-max", "1"], "--t-max must be"),
        (["--bias", "nan"], "--bias must be"),
        (["--layers", "0"], "--layers must be at least 1"),
        (["--pairs", "1e9"], "--pairs must be at most"),
        (["--t-max", "1e12"], "--t-max must be at most"),
        (["--depth", "1e9"], "--depth must be at most"),
        (["--t-min", "19"], "--t-min must be at most half of --t-max"),
        (["--dtype", "float16"], "--dtype must be left out"),
        (["--resume", ""], "--resume must name a folder"),
        (["--csv", ""], "must name a file"),
    ],
)
def test_command_names_what_is_unusable(capsys, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "measure", "untrained-numpy", "--pairs", "1", "--t-max", "20", *arguments)
    assert code == 2
    assert message in err
    assert out == ""
    assert len(err.splitlines()) == 1


def test_untrained_exponent_rises_with_t_and_falls_with_depth():
    """The theory's signature, on a network: local exponents rise towards 1, deeper layers forget more slowly."""
    shape = Architecture(depth=4, width=96, heads=4, vocabulary=256, context=1100)
    network = Transformer.random(shape, np.random.default_rng(2))
    pairs = draw_pairs(network, pairs=3, prompt=16, steps=1024, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured = measure(network, pairs)
    for layer in (1, 2, 4):
        early, late = measured.alpha(layer, t_min=1, t_max=10), measured.alpha(layer, t_min=100)
        assert late.alpha > early.alpha + 0.2
        assert late.alpha < 1.1
    assert measured.alpha(1).alpha > measured.alpha(2).alpha > measured.alpha(4).alpha
