"""The theorem's constants."""

from dataclasses import replace

import numpy as np
import pytest

from relaymodel import certify
from tests.certificate import exact
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


@pytest.mark.parametrize("heads", [1, 3])
def test_layers_are_those_of_the_formulas(rng, heads):
    """For each rung of constants, in fifty digits: no less, and no more than the margin says."""
    ladder = certify(*example(rng, heads=heads, epsilon=0.5, std=0.05)).ladder
    for rung in (ladder.weights, ladder.hypotheses, ladder.section_8):
        for c in rung.constants:
            for layer, (relay, residual) in zip((c.section_8(), c.covariance()), exact.layers(c), strict=True):
                assert relay < layer.relay < relay * (1 + 1.1e-6)
                assert residual < layer.residual < residual * (1 + 1.1e-6)


def test_floors_and_omega_of_the_runs_are_taken_as_they_are(rng):
    certificate = certify(*example(rng, norm="rms"))
    for rung in (certificate.ladder.hypotheses, certificate.ladder.section_8):
        for l, c in enumerate(rung.constants):
            assert c.omega == pytest.approx(certificate.omega[l].max(), rel=1e-10)
    x = np.stack([next(certificate.subject.network.hidden_states([run]))[0] for run in certificate.subject.tokens])
    sigma = np.sqrt(np.mean(x**2, axis=-1) + 1e-5).mean(axis=0)
    assert certificate.ladder.hypotheses.constants[0].kappa == pytest.approx(1 / sigma.min(), rel=1e-9)
