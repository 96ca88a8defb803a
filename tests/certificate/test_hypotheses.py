"""Every hypothesis has its verdict."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import PromptBias, certify
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import example


def test_every_hypothesis_has_its_verdict(rng):
    certificate = certify(*example(rng))
    assert {h.name: h.holds for h in certificate.hypotheses} == dict.fromkeys(
        ("pre-LN", "finite depth", "bounded logits", "activation floor", "same positions", "full attention"), True
    )
    assert "L = 3" in certificate.hypotheses[1].finding
    assert certificate.hypotheses[3].finding.startswith(f"σ ≥ {math.sqrt(1e-5):.3g} for every text")


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_a_growing_bias_fails_and_says_how_omega_grows(rng, beta):
    """Without content the prompt's n A is n v/(P v + t), v = (1 + t/P)^beta, in closed form."""
    network, texts = example(rng, steps=300)
    blocks = tuple(replace(b, query=b.query * 0, key=b.key * 0) for b in network.weights.blocks)
    network = Transformer(network.architecture, replace(network.weights, blocks=blocks))
    certificate = certify(network, texts, bias=PromptBias(beta))
    assert not certificate.applies
    assert certificate.holds
    assert "weights" not in certificate.ladder.rungs
    verdict = next(h for h in certificate.hypotheses if h.name == "bounded logits")
    assert not verdict.holds
    t, P = certificate.t, certificate.prompt
    v = (1 + t / P) ** beta
    expected = (P + t) * v / (P * v + t)
    assert_allclose(certificate.omega[0, P:], expected, rtol=1e-9)
    n = np.log(P + t)
    assert f"n^{np.polyfit(n, np.log(expected), 1)[0]:.2f}" in verdict.finding
    assert "no ω holds for all n" in verdict.finding
    assert "FAILS" in certificate._repr_html_()


def test_a_falling_or_constant_bias_leaves_logits_bounded(rng):
    network, texts = example(rng)
    # without content omega is 1, and what is above it is the bias
    blocks = tuple(replace(b, query=b.query * 0, key=b.key * 0) for b in network.weights.blocks)
    network = Transformer(network.architecture, replace(network.weights, blocks=blocks))
    for bias in (PromptBias(-1), PromptBias(0, 2), lambda t: np.full_like(t, -1.5)):
        certificate = certify(network, texts, bias=bias)
        assert certificate.applies
        assert certificate.holds
        largest = [float(c.omega) for c in certificate.ladder.weights.constants]
        assert_allclose(certificate.omega.max(axis=1), largest, rtol=1e-9)
        assert largest[0] > 1.3
