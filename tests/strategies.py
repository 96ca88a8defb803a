"""Hypothesis strategies for relay models: the one place where random models come from."""

from fractions import Fraction

from hypothesis import strategies as st

from relaymodel import Layer, RelayModel

# Ranges of the promise of `relaymodel.exact`: relay up to 8, position in (-1, 4].
strengths = st.fractions(min_value=0, max_value=8, max_denominator=12)
positive_strengths = st.fractions(min_value=Fraction(1, 12), max_value=8, max_denominator=12)
signed_strengths = st.fractions(min_value=-8, max_value=8, max_denominator=12)
position_exponents = st.one_of(
    st.just(Fraction(0)),
    st.fractions(min_value=Fraction(-99, 100), max_value=4, max_denominator=100),
    st.sampled_from([Fraction(-999, 1000), Fraction(1, 10**12), Fraction(-1, 10**12), Fraction(1), Fraction(4)]),
)


def models(relay=strengths, residual=strengths, position=position_exponents, *, depth=6, prompt=12):
    """Models of at most `depth` layers and `prompt` prompt tokens, with exact rational parameters."""
    layers = st.lists(st.builds(Layer, relay, residual, position), min_size=1, max_size=depth)
    return st.builds(RelayModel, st.integers(1, prompt), layers)


uniform_attention = models(relay=positive_strengths, position=st.just(Fraction(0)))
"""Position 0, nothing negative, every layer relays: the models of the two-sided bound."""

common_position = st.one_of(position_exponents).flatmap(lambda g: models(position=st.just(g)))
signed = models(relay=signed_strengths, residual=signed_strengths)
"""Everything the package accepts, small enough for the exact recursion."""
