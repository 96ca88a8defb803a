"""The theorem's constants."""

from dataclasses import replace

import pytest

from relaymodel import certify
from tests.certificate.cases import example


@pytest.mark.parametrize("name", ["kappa", "kappa_2", "omega", "mu", "query", "key", "value_radius", "value_norm"])
def test_every_constant_counts(rng, name):
    """The layers of section 8 fall with each constant but kappa_2, which is in mu."""
    constants = certify(*example(rng)).ladder.section_8.constants[1]
    value = getattr(constants, name)
    less = replace(constants, **{name: tuple(x / 2 for x in value) if isinstance(value, tuple) else value / 2})
    before, after = constants.section_8(), less.section_8()
    smaller = after.relay < before.relay or after.residual < before.residual
    assert smaller == (name != "kappa_2")
