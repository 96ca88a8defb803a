"""The relay layers that enclose distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from relaymodel import Layer, certify
from relaymodel.certificate.enclosure import _corners, _frontier, enclose
from relaymodel.certificate.majorant import majorant
from tests.certificate.cases import example


@given(st.integers(0, 2**32 - 1))
def test_enclosures_are_tight_and_complete(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 20))
    level, slope = rng.standard_normal(count), rng.exponential(size=count)
    corners = [x for x in _corners(level, slope) if np.isfinite(x)]
    assert corners == sorted(corners)
    knots = np.array([0, *corners, 1e12])

    def largest(x):
        return np.maximum(np.max(level - slope * np.atleast_1d(x)[:, None], axis=1), 0)

    x = rng.exponential(3, 50)
    assert_allclose(np.interp(x, knots, largest(knots)), largest(x), atol=1e-9)


def test_the_enclosure_finds_layers_that_are_there(rng):
    layers = Layer(0.7, 1.1), Layer(1.3, 0.9), Layer(0.2, 1.0)
    start = np.where(np.arange(60) < 4, 1.0, 0.0)
    rows = [start]
    for layer in layers:
        rows.append(np.array([float(x) for x in layer.apply(rows[-1])]))
    found = enclose(rows[1:], np.array(rows), start, 4)
    for layer, other in zip(layers, found, strict=True):
        assert_allclose((other.relay, other.residual), (layer.relay, layer.residual), rtol=2e-6)


def test_the_enclosure_is_the_best_of_all_pairs_of_corners(rng):
    certificate = certify(*example(rng, depth=2, steps=25))
    low, high, P = certificate.low, certificate.high, certificate.prompt
    for sources in (None, high[:, :P]):

        def last(layers, given=sources):
            return majorant(layers, high[0], P, given).log10[-1, P:].mean()

        corners = [_frontier(high[l + 1], low[l], P, sources is not None) for l in range(2)]
        options = [[Layer(x, y) for x, y in zip(f.relay, f.residual, strict=True)] for f in corners]
        best = min(last((one, other)) for one in options[0] for other in options[1])
        assert_allclose(last(enclose(list(high[1:]), low, high[0], P, sources)), best, atol=0.005)


def test_no_layer_of_an_enclosure_can_be_bettered_alone(rng):
    certificate = certify(*example(rng, depth=5, std=0.3, steps=25))
    low, high, P = certificate.low, certificate.high, certificate.prompt
    for sources in (None, high[:, :P]):
        found = enclose(list(high[1:]), low, high[0], P, sources)
        reached = majorant(found, high[0], P, sources).log10[-1, P:].mean()
        for l in range(5):
            corners = _frontier(high[l + 1], low[l], P, sources is not None)
            for x, y in zip(corners.relay, corners.residual, strict=True):
                other = (*found[:l], Layer(x, y), *found[l + 1 :])
                assert majorant(other, high[0], P, sources).log10[-1, P:].mean() > reached - 1e-3


def test_runs_that_differ_too_early_are_named():
    low, target = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 2.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="differ at position 2"):
        _frontier(target, low, 1, False)


def test_deep_stacks_are_enclosed_layer_by_layer(monkeypatch, rng):
    """Beyond DEEP layers nothing is moved along the frontiers, and the layers enclose as well."""
    certificate = certify(*example(rng, depth=3, steps=10))
    low, high = certificate.low, certificate.high
    moved = enclose(high[1:], low, high[0], 5)
    monkeypatch.setattr("relaymodel.certificate.enclosure.DEEP", 2)
    still = enclose(high[1:], low, high[0], 5)
    n = np.arange(1, 16)
    for layers in (moved, still):
        for l, layer in enumerate(layers):
            assert np.all(layer.residual * low[l] + layer.relay * np.cumsum(low[l]) / n >= high[l + 1])
    ends = [majorant(layers, high[0], 5).log10[-1, 5:].mean() for layers in (moved, still)]
    assert ends[0] <= ends[1]


def test_of_lines_that_are_parallel_the_higher_counts():
    assert _corners(np.array([1.0, 2.0]), np.array([1.0, 1.0])) == _corners(np.array([2.0]), np.array([1.0])) == [2.0]
    assert _corners(np.array([2.0, 1.0]), np.array([1.0, 1.0])) == [2.0]
