"""Each rung's bound is that of its relay layers, and knowledge brings it down."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import Layer, RelayModel, certify, influence
from relaymodel.certificate.ladder import build
from relaymodel.certificate.runs import follow
from relaymodel.certificate.weights import read
from tests.certificate.cases import example


def test_the_bound_of_each_rung_is_that_of_its_relay_layers(rng):
    certificate = certify(*example(rng, steps=20))
    for rung in certificate.ladder.rungs.values():
        if rung.sources is not None:
            continue
        x = [Fraction(value) for value in rung.start]
        for l, layer in enumerate(rung.layers, start=1):
            x = list(layer.apply(x))
            found = rung.bound.log10[l]
            exact = np.array([math.log10(value.numerator) - math.log10(value.denominator) for value in x])
            assert np.all(found - exact < 1e-8)
            mantissa, exponent = rung.bound.mantissa[l], int(rung.bound.exponent[l])
            for value, bound in zip(x, mantissa, strict=True):
                assert value <= Fraction(bound) * Fraction(2) ** exponent


def test_the_exact_solution_is_the_bound(rng):
    certificate = certify(*example(rng))
    rung = certificate.ladder.section_8
    D = influence(RelayModel(certificate.prompt, rung.layers), certificate.t)
    assert_allclose(certificate.log10_bound("section_8"), np.log10(certificate.unit * D), atol=1e-9)
    above = np.log10(certificate.unit * influence(certificate.model, certificate.t))
    assert np.all(above >= certificate.log10_bound("smallest") - 1e-9)


def test_given_prompts_are_sums_of_exact_solutions(rng):
    """x' = rho x + lambda (P X/n + C x) is D of the layers left with 1/z for the first, less D without it."""
    certificate = certify(*example(rng, steps=30))
    rung, P = certificate.ladder.prompts, certificate.prompt
    mean = rung.sources.mean(axis=1)
    total = np.zeros(certificate.t.size)
    for l, layer in enumerate(rung.layers):
        rest = rung.layers[l + 1 :]
        with_mean = influence(RelayModel(P, (Layer(1, 0), *rest)), certificate.t)
        without = influence(RelayModel(P, rest), certificate.t) if rest else 0
        total += float(layer.relay) * mean[l] * (with_mean - without)
    assert_allclose(10 ** certificate.log10_bound("prompts"), total, rtol=1e-6)


def test_the_ladder_descends_where_knowledge_grows(rng):
    for settings_ in ({}, {"norm": "rms", "gated": True, "activation": "silu", "positions": "rotary", "key_heads": 2}):
        ladder = certify(*example(rng, **settings_)).heights
        order = ["weights", "hypotheses", "covariance", "positions", "secants", "smallest"]
        for crude, fine in pairwise(order):
            assert ladder[crude] > ladder[fine]
        assert ladder["section_8"] > ladder["covariance"]
        assert ladder["secants"] > ladder["prompts"]
        assert 0 <= ladder["smallest_prompts"] < 1


def test_rungs_and_layers_that_are_not_there_are_refused(rng):
    certificate = certify(*example(rng, depth=2, steps=6))
    ladder = certificate.ladder
    assert ladder.find("prompts") is ladder.prompts
    assert ladder.find(ladder.prompts) is ladder.prompts
    for other in ("magic", 3, ["prompts"]):
        with pytest.raises(ValueError, match="rung must be one of 'weights', 'hypotheses'"):
            ladder.find(other)
    assert certificate.distance(np.int64(2)).tolist() == certificate.distance().tolist()
    for layer in (True, 1.5, -1, 3):
        with pytest.raises(ValueError, match="layer must be from 0 to 2"):
            certificate.distance(layer)


@pytest.mark.parametrize("name", ["positions", "secants"])
def test_targets_beyond_floats_are_refused(rng, name):
    certificate = certify(*example(rng, depth=2, steps=6))
    network, low, high = certificate.subject.network, certificate.low, certificate.high
    norms = [read(block, network.architecture) for block in network.weights.blocks]
    runs = [run for _, run in follow(network, norms, certificate.subject.tokens, None) if run]
    beyond = getattr(runs[1], name).copy()
    beyond[3] = np.inf
    constants = [certificate.ladder.section_8.constants] * 3
    build(*constants, runs, low, high, 1.0, 5)
    with pytest.raises(ValueError, match="float64 can hold"):
        build(*constants, [runs[0], replace(runs[1], **{name: beyond})], low, high, 1.0, 5)


def test_what_is_enclosed_without_room_is_not_taken_as_proven(rng):
    """Equal in exact arithmetic is less than 1 after rounding down, and by no more than rounding."""
    rung = replace(certify(*example(rng, depth=1, steps=6)).ladder.section_8, formula=lambda c: Layer(0, 1))
    low = np.tile(rng.uniform(1, 2, 11), (2, 1))
    found = rung.excess(low, low)
    assert np.all(found < 1)
    assert np.all(found > 1 - 1e-13)
