"""The bound itself."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer
from relaymodel.certificate.majorant import majorant


@given(
    st.lists(st.tuples(st.integers(0, 10**400), st.integers(0, 10**30)), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_the_majorant_is_above_the_exact_recursion(strengths, prompt):
    layers = tuple(Layer(Fraction(a, 10**15), Fraction(b, 10**15)) for a, b in strengths)
    bound = majorant(layers, np.where(np.arange(12) < prompt, 0.1, 0), prompt)
    x = [Fraction(0.1) if n < prompt else Fraction(0) for n in range(12)]
    for l, layer in enumerate(layers, start=1):
        x = list(layer.apply(x))
        for value, mantissa in zip(x, bound.mantissa[l], strict=True):
            found = Fraction(mantissa) * Fraction(2) ** int(bound.exponent[l])
            assert value <= found
            if mantissa > 1e-200:
                assert found <= value * (1 + Fraction(1, 10**12))


def test_nothing_is_lost_below_the_range_of_floats():
    """Shares of 1e-200 layer by layer: what is there stays there, and is covered; what is not is 0."""
    layers = tuple(Layer(Fraction(1, 10**200), Fraction(1, 10**150)) for _ in range(4))
    start = np.array([0.0, 1.0, 0.0, 1e-310])
    bound = majorant(layers, start, 4)
    x = [Fraction(value) for value in start]
    for l, layer in enumerate(layers, start=1):
        x = list(layer.apply(x))
        for n, (value, mantissa) in enumerate(zip(x, bound.mantissa[l], strict=True)):
            assert value <= Fraction(mantissa) * Fraction(2) ** int(bound.exponent[l]), (l, n)
            assert (value > 0) == (mantissa > 0)
    assert np.all(bound.covers(0, start))
    assert bound.covers(0, np.array([1e-320, 1.0, 0.0, 0.0])).tolist() == [False, True, True, True]
    assert bound.covers(4, np.array([0.0, 1e-200, 0.0, 0.0])).tolist() == [True, False, True, True]
    kept = majorant((Layer(1, 0),), start, 4)
    assert kept.mantissa[1, 0] == 0
    assert majorant((Layer(0, 1),), start, 4).mantissa[1, 2] == 0


def test_given_prompts_replace_what_is_computed():
    layers = Layer(1, 1), Layer(2, 1)
    sources = np.array([[1.0, 1.0], [0.5, 0.25], [0.125, 3.0]])
    bound = majorant(layers, np.array([9.0, 9.0, 0.0, 0.0]), 2, sources)
    x = [1.0, 1.0, 0.0, 0.0]
    for l, layer in enumerate(layers, start=1):
        x = [float(value) for value in layer.apply([Fraction(v) for v in x])]
        x[:2] = sources[l]
        assert np.all(np.ldexp(bound.mantissa[l], bound.exponent[l]) >= x)
        assert np.all(np.ldexp(bound.mantissa[l], bound.exponent[l]) <= np.array(x) * (1 + 1e-12))
    assert np.ldexp(bound.mantissa[0], bound.exponent[0]).tolist() == [1, 1, 0, 0]
