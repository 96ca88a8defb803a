"""Hypothesis strategies for relay models: the one place where random models come from."""

from fractions import Fraction

from hypothesis import strategies as st

from relaymodel import Head, Layer, RelayModel

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

recency_exponents = st.one_of(
    st.just(Fraction(0)),
    st.fractions(min_value=-4, max_value=Fraction(19, 20), max_denominator=20),
    st.sampled_from(
        [Fraction(1, 10**12), 1 - Fraction(1, 10**9), Fraction(99, 100), Fraction(-1), Fraction(-4), Fraction(1, 2)]
    ),
)


def heads_with(relay=signed_strengths, position=position_exponents, recency=recency_exponents):
    """Any head."""
    return st.builds(Head, relay, position, recency)


heads = heads_with()


def layers_with(head=heads, residual=signed_strengths, sink=signed_strengths):
    """Layers of one to three heads."""
    return st.builds(
        lambda heads, residual, sink: Layer(heads=heads, residual=residual, sink=sink),
        st.lists(head, min_size=1, max_size=3),
        residual,
        sink,
    )


layers_of_heads = layers_with()


def models_of_heads(layer=layers_of_heads, *, depth=3, prompt=6):
    """Models with recencies, sinks and several heads, small enough for the exact recursion."""
    return st.builds(RelayModel, st.integers(1, prompt), st.lists(layer, min_size=1, max_size=depth))


positive_heads = models_of_heads(layers_with(heads_with(positive_strengths), strengths, strengths))
"""Nothing negative and everything relays: nothing can cancel."""
