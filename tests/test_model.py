"""The specification: what a layer does, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from tests.strategies import position_exponents, signed


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
    (lambda: RelayModel(1, [Layer(1)]).eigenvalue(0), ValueError, "n must not be a pole"),
    (lambda: RelayModel(1, [Layer(1)]).differences(0), ValueError, "length must be at least 1"),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD, ids=[message[:50] for _, _, message in BAD])
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
