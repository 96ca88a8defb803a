"""What is wrong does not pass."""

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

from relaymodel import Layer, certify
from relaymodel.certificate.majorant import majorant
from relaymodel.certificate.verification import Tally, Verification
from relaymodel.networks.protocol import measure
from relaymodel.networks.transformer import Transformer
from tests.certificate.cases import example, refused


@pytest.mark.parametrize("layer", [1, 3])
def test_a_doctored_curve_is_caught(rng, layer):
    certificate = certify(*example(rng))
    for factor in (2.0, 1.001):
        low, high = certificate.low.copy(), certificate.high.copy()
        excess = certificate.ladder.smallest.excess(low, high)[layer - 1]
        n = int(np.argmin(excess))  # where the bound is closest
        low[layer, n] *= factor
        high[layer, n] *= factor
        assert refused(replace(certificate, low=low, high=high), "does not dominate")


def forgeries(value, rng):
    """Copies of a value with one number, verdict or word changed in each: fields and entries one by one."""
    if is_dataclass(value):
        for field in fields(value):
            for other in forgeries(getattr(value, field.name), rng):
                yield replace(value, **{field.name: other})
    elif isinstance(value, tuple):
        for i, entry in enumerate(value):
            for other in forgeries(entry, rng):
                yield (*value[:i], other, *value[i + 1 :])
    elif isinstance(value, np.ndarray):
        for place in (rng.choice(np.flatnonzero(value.ravel())), int(np.argmax(value))):
            other = value.copy()
            other.flat[place] *= rng.choice([0, 0.5, 1 - 1e-12, 1 + 1e-12, 2])
            yield other
        yield value * 0
    elif isinstance(value, str):
        yield value + "."
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield value * 2
        if isinstance(value, float):
            yield value * (1 - 1e-12)


@pytest.mark.parametrize("name", ["low", "high", "omega", "noise", "hypotheses", "ladder"])
def test_everything_that_is_doctored_is_caught(rng, name):
    # a ladder has hundreds of entries, each of which is forged and verified
    certificate = certify(*example(rng, depth=1 if name == "ladder" else 2, heads=2, steps=6))
    assert certificate.holds
    count = 0
    for other in forgeries(getattr(certificate, name), rng):
        assert refused(replace(certificate, **{name: other}), f"{name}"), other
        count += 1
    assert count >= 3 + 150 * (name == "ladder")


def test_another_formula_another_bias_and_other_texts_are_caught(rng):
    certificate = certify(*example(rng, depth=1, steps=6))
    ladder, subject = certificate.ladder, certificate.subject
    less = replace(ladder.section_8, formula=type(ladder.section_8.constants[0]).covariance)
    assert refused(replace(certificate, ladder=replace(ladder, section_8=less)), "ladder.section_8.formula")
    assert refused(replace(certificate, ladder=replace(ladder, weights=None)), "ladder.weights")
    for other in (
        replace(subject, bias=subject.bias + np.arange(6)),
        replace(subject, tokens=(subject.tokens + 1) % 20),
        replace(subject, prompt=4, bias=np.zeros(7)),
        replace(subject, network=example(rng, depth=1)[0]),
    ):
        assert refused(replace(certificate, subject=other), "is not what the network gives")


def test_bounds_that_cross_and_lose_their_start_are_caught_as_such(rng):
    certificate = certify(*example(rng, depth=1, steps=6))
    assert refused(replace(certificate, low=certificate.high * 1.001), "lower bound is above its upper one")
    ladder = certificate.ladder
    for field, words in (("start", "below the embeddings"), ("sources", "below the prompts")):
        smaller = replace(ladder.prompts, **{field: getattr(ladder.prompts, field) * 0.9})
        forged = replace(certificate, ladder=replace(ladder, prompts=smaller))
        assert refused(forged, f"'prompts': starts {words}")
    number = replace(certificate, ladder=replace(ladder, secants=replace(ladder.secants, sources=1.0)))
    assert refused(number, "ladder.secants.sources is not what the network gives")
    eight = ladder.section_8
    beyond = replace(eight, constants=(replace(eight.constants[0], omega=math.inf),))
    useless = replace(certificate, ladder=replace(ladder, section_8=beyond))
    assert refused(useless, "rung 'section_8': no bound follows")
    assert useless.verify().failed == 2  # the number itself, and what follows from it


@pytest.mark.parametrize("part", ["output", "value", "down", "up"])
@pytest.mark.parametrize("place", [0, 2])
def test_doctored_weights_are_caught_where_they_are(rng, part, place):
    network, texts = example(rng)
    certificate = certify(network, texts)
    assert certificate.check(measure(network, texts)).passed
    blocks = list(network.weights.blocks)
    blocks[place] = replace(blocks[place], **{part: getattr(blocks[place], part) * 4})
    doctored = Transformer(network.architecture, replace(network.weights, blocks=tuple(blocks)))
    check = certificate.check(measure(doctored, texts))
    assert not check.passed
    assert f"layer {place + 1}:" in check.failures[0]


def test_another_measurement_must_be_of_the_same_shape(rng):
    network, (a, b, after) = example(rng)
    certificate = certify(network, (a, b, after))
    with pytest.raises(ValueError, match="number of tokens, 40, got 39"):
        certificate.check(measure(network, (a, b, after[:-1])))
    with pytest.raises(ValueError, match="prompt, 5, got 4"):
        certificate.check(measure(network, (a[1:], b[1:], after)))
    with pytest.raises(TypeError, match="must be a Measurement"):
        certificate.check(certificate)


def test_inequalities_are_counted_and_the_first_that_fail_are_named():
    tally = Tally()
    tally.add(np.array([True, False, True, False]), "one", offset=10)
    tally.add(np.array([False]), "two")
    tally.add(np.array([True]), "three")
    for i in range(6):
        tally.add(np.array([i % 2 == 0, i % 3 == 0]), f"more {i}")
    found = tally.result()
    assert (found.inequalities, found.failed, found.passed) == (18, 3 + 7, False)
    assert found.failures[:2] == ("one at 2 positions, the first n = 12", "two")
    assert len(found.failures) == 6
    assert found.failures[-1] == "and 2 more"
    assert found.failures[2] == "more 1 at 2 positions, the first n = 1"
    bound = majorant((Layer(0, 1),), np.array([1.0, 1.0, 1.0]), 3)
    tally = Tally()
    tally.cover(bound, np.array([[0.5, 2.0], [1.5, 0.5]]), [0, 1], "x")
    assert tally.result().failures == (
        "rung 'x', layer 0: a distance exceeds the bound at 1 positions, the first n = 3",
        "rung 'x', layer 1: a distance exceeds the bound at 1 positions, the first n = 2",
    )
    assert Tally().result() == Verification(0, 0, ())


def test_every_inequality_of_a_certificate_is_counted(rng):
    """For each rung: start, bounds and layers at every position; sources where they are given; low and high once."""
    certificate = certify(*example(rng, depth=2, steps=6))
    L, N, P = 2, 11, 5
    free, given = 7, 2
    each = N + (L + 1) * N
    expected = (L + 1) * N + (free + given) * each + free * L * N + given * (L * (N - P) + (L + 1) * P)
    assert certificate.verification.inequalities == expected


def test_progress_is_told_from_the_first_step_to_the_last(rng):
    told = []
    certify(*example(rng, depth=2, steps=6), progress=lambda *step: told.append(step))
    assert told[:4] == [(1, 13), (2, 13), (3, 13), (4, 13)]
    assert told[-1] == (13, 13)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_another_measurement_may_be_rounded_otherwise(rng):
    """The smallest layers of given prompts touch the distances: a measurement of a few roundings more passes."""
    network, pairs = example(rng, depth=1, steps=6)
    certificate, measured = certify(network, pairs), measure(network, pairs)
    bound = 10 ** certificate.log10_bound("smallest_prompts", 1)
    for factor, passes in ((1 + 5e-13, True), (1 + 5e-12, False)):
        same = replace(measured, euclidean=measured.euclidean * 0 + bound * factor)
        assert certificate.check(same).passed == passes
