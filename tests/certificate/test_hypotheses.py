"""Every hypothesis has its verdict."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import PromptBias, certify
from relaymodel.certificate.hypotheses import examine, slope
from relaymodel.certificate.runs import follow
from relaymodel.certificate.weights import read
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import example


def test_every_hypothesis_has_its_verdict(rng):
    certificate = certify(*example(rng))
    assert {h.name: h.holds for h in certificate.hypotheses} == dict.fromkeys(
        ("pre-LN", "finite depth", "bounded logits", "activation floor", "same positions", "full attention"), True
    )
    assert "L = 3" in certificate.hypotheses[1].finding
    assert certificate.hypotheses[3].finding.startswith(f"σ ≥ {math.sqrt(1e-5):.3g} for every text")


@pytest.mark.slow
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
    first, last = (certificate.omega[:, P + t_ - 1].max() for t_ in (1, 300))
    assert f"from {first:.3g} at t = 1 to {last:.3g} at t = 300" in verdict.finding
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


def test_the_growth_of_omega_is_the_slope_of_a_straight_line():
    t = np.arange(1, 40)
    assert_allclose(slope(3 * (5 + t) ** 0.7, 5), 0.7)
    assert slope(np.array([2.0]), 5) == 0
    assert slope(np.array([1.0, 2.0]), 1) == pytest.approx(math.log(2) / math.log(1.5))


def test_keys_that_take_a_share_are_called_so(rng):
    """A first token that every query looks at: n A grows as n, and no omega shows."""
    network, (a, b, after) = example(rng, depth=1, width=4, heads=1, mlp_width=0, steps=60)
    embedding = np.tile(network.weights.embedding[:1], (20, 1)) + 0.01 * rng.standard_normal((20, 4))
    embedding[0] = [3, -3, 0, 0]
    block = network.weights.blocks[0]
    key = np.outer([1, -1, 0, 0], [1, 0, 0, 0])
    block = replace(block, key=8.0 * key, query_bias=np.array([9.0, 0, 0, 0]), query=block.query * 0)
    network = Transformer(network.architecture, replace(network.weights, embedding=embedding, blocks=(block,)))
    first = np.concatenate(([0], a[1:] % 19 + 1)), np.concatenate(([0], b[1:] % 19 + 1))
    certificate = certify(network, (*first, after % 19 + 1))
    assert "attention sinks" in certificate.hypotheses[2].finding
    assert "attention sinks" not in certify(*example(rng)).hypotheses[2].finding


def test_the_largest_of_all_layers_is_named(rng):
    certificate = certify(*example(rng, std=0.3), bias=PromptBias(1.0))
    omega = certificate.omega[:, 5:]
    first, last = omega[:, 0], omega[:, -1]
    assert f"{last.min():.3g}" != f"{last.max():.3g}"
    finding = certificate.hypotheses[2].finding
    assert f"from {first.max():.3g} at t = 1 to {last.max():.3g} at t = 40" in finding
    assert f"n A is at most {omega.max():.4g} " in finding


def test_the_smallest_floor_of_all_layers_is_named(rng):
    network, pairs = example(rng, std=0.3)
    certificate = certify(network, pairs)
    least = [run.least for _, run in follow(network, norms_of(network), certificate.subject.tokens, None) if run]
    assert f"{min(least):.3g}" != f"{max(least):.3g}"
    assert f"{min(least):.3g} on these runs" in certificate.hypotheses[3].finding


def norms_of(network):
    return [read(block, network.architecture) for block in network.weights.blocks]


@pytest.mark.parametrize("token", [0, 1, -1])
def test_embeddings_that_differ_behind_the_prompt_are_seen(rng, token):
    """At its first token as at its last."""
    certificate = certify(*example(rng))
    P, n = certificate.prompt, certificate.subject.tokens.shape[1]
    apart = np.zeros(n)
    apart[P:][token] = 1e-300
    run = SimpleNamespace(least=1.0, omega=np.ones(n))
    for embedded, holds in ((np.zeros(n), True), (apart, False)):
        found = examine(certificate.subject, [run], None, 1.0, embedded)
        assert {h.name: h.holds for h in found}["same positions"] == holds
