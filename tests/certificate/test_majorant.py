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
