"""Heads that decay with distance: against the recursion in fractions, and refused by what is exact."""

from fractions import Fraction

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.control import bias_limit
from relaymodel.model import describe_layers, parse_heads
from relaymodel.simulation import Layout, token_weights
from tests.simulation.cases import in_pieces

TINY_LAYOUT = Layout(1, 4)
HALF = rm.Head(0.5, decay=0.5)
MODEL = rm.RelayModel(
    7,
    [
        rm.Layer(heads=[HALF, rm.Head(0.25, decay=Fraction(99, 100))], sink=0.125),
        rm.Layer(heads=[rm.Head(0.3), rm.Head(0.2, position=0.5), rm.Head(0.1, recency=0.5)], residual=0.5),
        rm.Layer(heads=[rm.Head(1, decay=1 - 1e-9)]),
    ],
)


@pytest.mark.parametrize("layout", [Layout(), TINY_LAYOUT])
def test_the_simulation_is_the_recursion(tmp_path, layout):
    _, D = in_pieces(MODEL, [3, 17, 40], tmp_path, layout)
    np.testing.assert_allclose(D, [float(x) for x in MODEL.differences(47)[7:]], rtol=1e-12)


def test_a_decay_of_nothing_forgets_at_once_and_of_1_is_uniform_attention():
    near = rm.RelayModel(5, [rm.Layer(heads=[rm.Head(1, decay=1e-100)])])
    np.testing.assert_allclose(rm.simulate(near, 3).distance, [1e-100, 1e-200, 1e-300], rtol=1e-12)
    assert rm.Head(1, decay=1) == rm.Head(1)
    slow = rm.RelayModel(5, [rm.Layer(heads=[rm.Head(1, decay=1 - 1e-15)])])
    uniform = rm.RelayModel(5, [rm.Layer(1)])
    np.testing.assert_allclose(rm.simulate(slow, 50).distance, rm.simulate(uniform, 50).distance, rtol=1e-12)


def test_a_long_run_forgets_as_the_decay_says():
    """One head: D = (r^t - r^N) / (1 - r^N), by hand."""
    r, P = 0.999, 50
    model = rm.RelayModel(P, [rm.Layer(heads=[rm.Head(1, decay=r)])])
    curve = rm.simulate(model, 20_000)
    t = np.asarray(curve.t, float)
    np.testing.assert_allclose(curve.distance, (r**t - r ** (t + P)) / (1 - r ** (t + P)), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 12])
def test_the_weights_are_the_row_of_the_recursion(n):
    rows = []
    for s in range(n):
        values = [int(i == s) for i in range(n)]
        for layer in MODEL.layers:
            values = list(layer.apply(values))
        rows.append(float(values[-1]))
    np.testing.assert_allclose(token_weights(MODEL, n), rows, rtol=1e-13, atol=1e-300)


def test_the_weights_are_those_of_the_exact_solution():
    model = rm.RelayModel(1, [rm.Layer(heads=[rm.Head(0.5, recency=0.7), rm.Head(0.2, 0.5, -1)])] * 3)
    s = np.arange(1, 301)
    np.testing.assert_allclose(token_weights(model, 300), rm.token_influence(model, s, 300), rtol=1e-12)


def test_a_bias_acts_on_the_share_of_the_prompt():
    bias = rm.PromptBias(1)
    weights = [Fraction(1) + Fraction(t, 7) for t in range(1, 13)]
    plain = rm.RelayModel(7, [rm.Layer(heads=[HALF], sink=0.125)])
    found = rm.simulate(plain, 12, bias=bias).distance
    x = []
    for t, weight in enumerate(weights, start=1):
        w = np.array([0.5 ** (7 + t - s) * (float(weight) if s <= 7 else 1) for s in range(1, 8 + t)])
        x.append(0.125 + 0.5 * w[:7].sum() / w.sum())
    np.testing.assert_allclose(found, x, rtol=1e-12)


def test_it_is_written_and_read():
    heads = parse_heads("0.5:decay=0.5 + 1/4:decay=99/100")
    assert heads == (HALF, rm.Head(Fraction(1, 4), decay=Fraction(99, 100)))
    assert parse_heads("+".join(map(str, heads))) == heads
    assert rm.RelayModel.from_json(MODEL.to_json()) == MODEL
    assert "decay=0.5" in describe_layers([rm.Layer(heads=[HALF])])
    assert "decay=0.5" in repr(rm.Layer(heads=[HALF]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decay": 0}, "decay must be above 0 and at most 1, got 0"),
        ({"decay": 1.5}, "decay must be above 0 and at most 1, got 1.5"),
        ({"decay": 0.5, "recency": 0.5}, "decay must be 1 with a position or recency"),
        ({"decay": 0.5, "position": 0.5}, "decay must be 1 with a position or recency"),
    ],
)
def test_what_a_decay_may_not_be(options, words):
    with pytest.raises(ValueError, match=words):
        rm.Head(1, **options)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: rm.influence(m, 5),
        lambda m: rm.influence(m, 500.0),
        lambda m: rm.local_exponent(m, [5, 6]),
        lambda m: rm.influence_ball(m, 5),
        lambda m: rm.influence_fraction(m, 5),
        lambda m: rm.token_influence(m, 1, 5),
        lambda m: rm.derive(m),
        lambda m: rm.bracket(m, 5),
        lambda m: rm.rms_influence(m, 5),
        lambda m: bias_limit(m, rm.PromptBias(1)),
    ],
)
def test_what_is_exact_refuses_it(ask):
    for model in (MODEL, rm.RelayModel(50, [rm.Layer(heads=[HALF])] * 2)):
        with pytest.raises(ValueError, match="decay"):
            ask(model)
    with pytest.raises(ValueError, match="target must be at most 65536"):
        token_weights(MODEL, 1 << 17)
