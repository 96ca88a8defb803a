"""The specification: what a layer does, and what is refused."""

import pickle
from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import relaymodel as rm
from relaymodel import Head, Layer, RelayModel
from relaymodel.bounds import rate
from relaymodel.model import parse_heads
from tests.strategies import heads, layers_of_heads, models_of_heads, position_exponents, signed


@given(st.lists(st.fractions(-5, 5, max_denominator=9), min_size=1, max_size=8), st.integers(-0, 3))
def test_layer_is_the_weighted_causal_average(values, g):
    """For integer g the weights Gamma(s+g)/Gamma(s) = s(s+1)...(s+g-1) are integers: average by the definition."""
    layer = Layer(Fraction(2, 3), Fraction(1, 5), g)
    weights = [Fraction(int(np.prod(range(s, s + g)))) for s in range(1, len(values) + 1)]
    for n, result in enumerate(layer.apply(values), start=1):
        mean = sum(w * x for w, x in zip(weights[:n], values[:n], strict=True)) / sum(weights[:n])
        assert result == Fraction(1, 5) * values[n - 1] + Fraction(2, 3) * mean


@given(signed)
def test_prompt_positions_hold_the_saturation(model):
    assert set(model.differences(model.prompt)) == {model.saturation}


@given(position_exponents, st.integers(1, 20))
def test_eigenvalue_is_the_diagonal_of_a_layer(g, n):
    unit = [int(k == n) for k in range(1, n + 1)]
    layer = Layer(3, 2, g)
    assert list(layer.apply(unit))[-1] == RelayModel(1, [layer]).eigenvalue(n)


@given(heads, st.lists(st.fractions(-5, 5, max_denominator=9), min_size=1, max_size=8))
def test_a_head_weighs_by_gamma_functions(head, values):
    """Against the definition in floating point: w_ns = Gamma(s+g)/Gamma(s) Gamma(n-s+1-gamma)/Gamma(n-s+1)."""
    g, delta = float(head.position), 1 - float(head.recency)
    for n, mean in enumerate(head.means(values), start=1):
        s = np.arange(1, n + 1)
        weights = np.exp(gammaln(s + g) - gammaln(s) + gammaln(n - s + delta) - gammaln(n - s + 1))
        expected = weights @ np.array([float(x) for x in values[:n]]) / weights.sum()
        assert float(mean) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(heads, st.integers(1, 8))
def test_a_head_maps_constants_to_constants_and_has_its_eigenvalue_on_the_diagonal(head, n):
    assert set(head.means([3] * n)) == {3}
    assert list(head.means([int(k == n) for k in range(1, n + 1)]))[-1] == head.eigenvalue(n)


@pytest.mark.slow
@given(layers_of_heads, st.lists(st.fractions(-5, 5, max_denominator=9), min_size=1, max_size=6))
def test_a_layer_is_the_sum_of_its_parts(layer, x):
    means = [list(head.means(x)) for head in layer.heads]
    for n, value in enumerate(layer.apply(x)):
        parts = sum(Fraction(h.relay) * m[n] for h, m in zip(layer.heads, means, strict=True))
        assert value == Fraction(layer.residual) * x[n] + parts + Fraction(layer.sink) * x[0]


@pytest.mark.slow
@given(models_of_heads(), st.integers(1, 6), st.randoms(use_true_random=False))
def test_layers_commute_and_so_do_heads(model, t, random):
    shuffled = [
        Layer(heads=random.sample(l.heads, len(l.heads)), residual=l.residual, sink=l.sink) for l in model.layers
    ]
    random.shuffle(shuffled)
    length = model.prompt + t
    assert RelayModel(model.prompt, shuffled).differences(length) == model.differences(length)


@given(models_of_heads())
def test_the_prompt_holds_the_saturation_with_heads_and_sinks(model):
    assert set(model.differences(model.prompt)) == {model.saturation}
    assert model.plateau == model.saturation - model.eigenvalue(1)


@pytest.mark.slow
@given(models_of_heads(), st.fractions(-3, 3, max_denominator=5))
def test_a_layer_is_linear(model, factor):
    layer, x, y = model.layers[0], [1, 2, -1, 3], [2, 0, 5, Fraction(1, 3)]
    both = [a + factor * b for a, b in zip(x, y, strict=True)]
    separate = zip(layer.apply(x), layer.apply(y), strict=True)
    assert list(layer.apply(both)) == [a + factor * b for a, b in separate]


@given(signed)
def test_one_head_of_recency_zero_is_the_layer_of_old(model):
    same = RelayModel(model.prompt, [Layer(heads=l.heads, residual=l.residual) for l in model.layers])
    assert same == model
    assert hash(same) == hash(model)
    assert same.plain
    assert repr(same) == repr(model)


@pytest.mark.slow
@given(models_of_heads())
def test_models_survive_json_text_and_pickle(model):
    for copy in (RelayModel.from_json(model.to_json()), pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert copy == model
    for layer in model.layers:
        assert parse_heads("+".join(map(str, layer.heads))) == layer.heads
        assert parse_heads(" + ".join(map(str, layer.heads))) == layer.heads


def test_heads_are_read_from_text():
    assert parse_heads("1e-3:recency=-1.5e+0+-.5:position=1/3") == (
        Head(0.001, recency=-1.5),
        Head(-0.5, position=Fraction(1, 3)),
    )


RECENT = RelayModel.uniform(4, 2, 1, recency=0.5)


@pytest.mark.parametrize(
    "model", [RECENT, RelayModel.uniform(4, 2, 1, sink=1), RelayModel(4, [Layer(heads=[Head(1)] * 2)])]
)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda model: rm.bracket(model, 5), "the two-sided bound"),
        (rate, "rate"),
        (lambda model: rm.rms_influence(model, 5), "rms_influence"),
        (lambda model: model.rational, "the reduction to relay, residual and position"),
    ],
)
def test_what_knows_one_plain_head_only_says_so(model, call, name):
    with pytest.raises(ValueError, match=f"^{name} needs layers of one head with recency 0 and sink 0, got Layer"):
        call(model)


def test_parameters_keep_their_exact_value():
    layer = Layer(np.float32(0.1), np.int64(2), Fraction(1, 3))
    assert (layer.relay, layer.residual, layer.position) == (float(np.float32(0.1)), 2, Fraction(1, 3))
    long = np.nextafter(np.longdouble(1), np.longdouble(2))
    assert Fraction(Layer(long).relay) == Fraction(*long.as_integer_ratio())


def test_models_are_values():
    a, b = RelayModel.uniform(4, 2, 0.5), RelayModel(4, [Layer(Fraction(1, 2))] * 2)
    assert a == b
    assert hash(a) == hash(b)
    with pytest.raises(AttributeError):
        a.prompt = 5


BAD = [
    (lambda: RelayModel(0, [Layer(1)]), ValueError, "prompt must be at least 1, got 0"),
    (lambda: RelayModel(-3, [Layer(1)]), ValueError, "prompt must be at least 1, got -3"),
    (lambda: RelayModel(2.5, [Layer(1)]), TypeError, "prompt must be an integer, got 2.5 of type float"),
    (lambda: RelayModel(True, [Layer(1)]), TypeError, "prompt must be an integer, got True of type bool"),
    (lambda: RelayModel("64", [Layer(1)]), TypeError, "prompt must be an integer, got '64'"),
    (lambda: RelayModel(float("nan"), [Layer(1)]), TypeError, "prompt must be an integer, got nan"),
    (lambda: RelayModel(4, []), ValueError, "layers must hold at least one Layer"),
    (lambda: RelayModel(4, Layer(1)), TypeError, r"pass \[layer\]"),
    (lambda: RelayModel(4, [Layer(1), 0.5]), TypeError, "layers must be Layer objects, got 0.5 at index 1"),
    (lambda: RelayModel(4, None), TypeError, "layers must be a sequence"),
    (lambda: RelayModel.uniform(4, 0, 1), ValueError, "depth must be at least 1, got 0"),
    (lambda: Layer(float("nan")), ValueError, "relay must be finite, got nan"),
    (lambda: Layer(np.float32("inf")), ValueError, "relay must be finite, got inf"),
    (lambda: Layer("0.5"), TypeError, "relay must be an int, float, Fraction or NumPy scalar, got '0.5'"),
    (lambda: Layer(True), TypeError, "relay must be a number, not a boolean"),
    (lambda: Layer(np.bool_(True)), TypeError, "relay must be a number, not a boolean"),
    (lambda: Layer(1j), TypeError, "relay must be an int, float"),
    (lambda: Layer(1, None), TypeError, "residual must be an int, float"),
    (lambda: Layer(1, 1, -1), ValueError, "position must be greater than -1, got -1"),
    (lambda: Layer(1, 1, -1.5), ValueError, "position must be greater than -1, got -1.5"),
    (lambda: Layer(1, recency=1), ValueError, "recency must be less than 1, got 1; .* belongs to residual"),
    (lambda: Head(1, recency=float("nan")), ValueError, "recency must be finite, got nan"),
    (lambda: Layer(), TypeError, "relay must be .* or heads be given, got neither"),
    (lambda: Layer(1, heads=[Head(1)]), ValueError, "heads must not be given together with relay, .* got relay=1"),
    (lambda: Layer(recency=0.5, heads=[Head(1)]), ValueError, "heads must not be given together"),
    (lambda: Layer(heads=[]), ValueError, "heads must hold at least one Head"),
    (lambda: Layer(heads=Head(1)), TypeError, r"pass \[head\]"),
    (lambda: Layer(heads=[Head(1), 2]), TypeError, "heads must be Head objects, got 2 at index 1"),
    (lambda: Layer(heads=3), TypeError, "heads must be a sequence of Head objects, got 3"),
    (
        lambda: Layer(heads=[Head(1), Head(2)]).relay,
        ValueError,
        "relay must be read off each of heads: the layer has 2",
    ),
    (lambda: Layer(1, sink="0"), TypeError, "sink must be an int"),
    (lambda: Head(1, recency=0.5).eigenvalue(2.5), ValueError, "n must be an integer from 1"),
    (lambda: parse_heads("0.3:recent=1"), ValueError, "joined by \\+, got 'recent=1' in '0.3:recent=1'"),
    (lambda: parse_heads("0.3:recency=.1:recency=.2"), ValueError, "recency once for each head"),
    (lambda: parse_heads("0.3+"), ValueError, "relay must be a number such as .* got '' in '0.3\\+'"),
    (lambda: parse_heads("1_0"), ValueError, "relay must be a number such as"),
    (lambda: parse_heads("1/0"), ValueError, "relay must not have the denominator 0"),
    (lambda: parse_heads("1:recency=2"), ValueError, "recency must be less than 1, got 2"),
    (lambda: parse_heads(0.3), TypeError, "heads must be text"),
    (lambda: RelayModel.from_json("{"), ValueError, "text must be a JSON document"),
    (lambda: RelayModel.from_dict({"prompt": 1}), ValueError, "entries must be 'prompt' and 'layers'"),
    (
        lambda: RelayModel.from_dict({"prompt": 1, "layers": [{"relay": 1, "x": 2}]}),
        ValueError,
        "layers must have .* 'x'",
    ),
    (
        lambda: RelayModel.from_dict({"prompt": 1, "layers": [{"heads": "1"}]}),
        TypeError,
        "heads must be a list, got '1'",
    ),
    (lambda: RelayModel.from_dict({"prompt": 1, "layers": [3]}), TypeError, "layers must hold dictionaries, got 3"),
    (lambda: RelayModel(1, [Layer(1)]).eigenvalue(0), ValueError, "n must not be a pole"),
    (lambda: RelayModel(1, [Layer(1)]).differences(0), ValueError, "length must be at least 1"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD, ids=[message[:50] for _, _, message in BAD])
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
