"""Layers of any heads, with sinks, biases and reminders: against recursions in fractions, key by key."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Layer, PromptBias, RelayModel, Reminders, influence
from relaymodel.model import Head
from relaymodel.simulation import Layout, Simulation, simulate
from tests.simulation.cases import TINY, every, in_pieces
from tests.strategies import heads_with, layers_with, models_of_heads, positive_heads, strengths

SEVERAL = RelayModel(
    12,
    [
        Layer(heads=[Head(0.5, recency=0.7), Head(0.25, position=0.5)], sink=0.125),
        Layer(0.5, recency=-1.5),
        Layer(heads=[Head(0.3), Head(0.3, 1, Fraction(1, 3))], residual=0.5),
    ],
)
shallow = models_of_heads(
    layers_with(
        heads_with(strengths, recency=st.fractions(-4, Fraction(5, 6), max_denominator=6)), strengths, strengths
    ),
    depth=2,
    prompt=3,
)


def keywise(model, weights, sources=()):
    """Softmax attention with weight v_t on prompt keys (t > 0), key by key, in fractions; sinks are not weighed."""
    P, T = model.prompt, len(weights)
    x = [Fraction(1)] * P + [Fraction(int(t in sources)) for t in range(1, T + 1)]
    for layer in model.layers:
        out = [Fraction(layer.residual) * value + Fraction(layer.sink) * x[0] for value in x]
        for head in layer.heads:
            g, delta = Fraction(head.position), 1 - Fraction(head.recency)
            own, near = [Fraction(1)], [Fraction(1)]
            for n in range(1, P + T):
                own.append(own[-1] * (n + g) / n)
                near.append(near[-1] * (n - 1 + delta) / n)
            for n in range(P + T):
                v = weights[n - P] if n >= P else 1
                w = [own[s] * near[n - s] * (v if s < P else 1) for s in range(n + 1)]
                out[n] += Fraction(head.relay) * sum(a * b for a, b in zip(w, x, strict=False)) / sum(w)
        x = out
    return x[P:]


@pytest.mark.slow
@given(positive_heads, st.integers(1, 30), TINY)
def test_is_the_recursion_of_the_model(model, steps, layout):
    _, D = Simulation(model, layout=layout).advance(steps, samples=every(steps))
    exact = [float(x) for x in model.differences(model.prompt + steps)[model.prompt :]]
    np.testing.assert_allclose(D, exact, rtol=1e-12)


@pytest.mark.slow
@given(shallow, st.lists(st.integers(-4, 6), min_size=1, max_size=16), TINY, st.booleans())
def test_a_bias_makes_every_prompt_key_heavier_in_every_head(model, powers, layout, with_reminders):
    weights = [Fraction(2) ** k for k in powers]
    sources = {2, 3, 7, 8, 9} if with_reminders else set()
    extras = {"reminders": [(2, 3), (7, 9)]} if with_reminders else {}
    table = np.array(powers) * math.log(2)
    simulation = Simulation(model, bias=lambda t: table[t.astype(int) - 1], layout=layout, **extras)
    _, D = simulation.advance(len(powers), samples=every(len(powers)))
    np.testing.assert_allclose(D, [float(x) for x in keywise(model, weights, sources)], rtol=1e-12, atol=1e-300)


@pytest.mark.slow
@given(shallow, TINY)
def test_reminders_are_ordinary_keys(model, layout):
    _, D = Simulation(model, layout=layout, reminders=[(2, 3), (7, 9)]).advance(12, samples=every(12))
    exact = keywise(model, [Fraction(1)] * 12, {2, 3, 7, 8, 9})
    np.testing.assert_allclose(D, [float(x) for x in exact], rtol=1e-12, atol=1e-300)


@pytest.mark.slow
@given(
    shallow, st.sets(st.integers(1, 60), min_size=1, max_size=4), TINY, st.sampled_from(["plain", "bias", "reminders"])
)
def test_going_on_repeats_every_bit(tmp_path_factory, model, stops, layout, kind):
    extras = {"plain": {}, "bias": {"bias": PromptBias(1.5)}, "reminders": {"reminders": [(2, 3), (9, 30)]}}[kind]
    stops = sorted(stops)
    _, D = Simulation(model, layout=layout, **extras).advance(stops[-1], samples=every(stops[-1]))
    _, again = in_pieces(model, stops, tmp_path_factory.mktemp("state"), layout, **extras)
    if kind == "bias":  # a stage that ends within a chunk has not seen the bias behind it, which an FFT spreads
        np.testing.assert_allclose(again, D, rtol=1e-13)
        assert again[-1] == D[-1]
    else:
        assert again.tolist() == D.tolist()


@pytest.mark.parametrize("bias", [None, PromptBias(1.5, -1)], ids=["plain", "biased"])
def test_chunks_of_any_size_agree(bias):
    """What is near in one layout is far in the other: FFT against exponentials and running sums."""
    steps = 20_000
    large, small = (
        Simulation(SEVERAL, layout=layout, bias=bias, reminders=Reminders(5000, 7)).advance(steps, samples=20)[1]
        for layout in (Layout(), Layout(8, 16))
    )
    np.testing.assert_allclose(large, small, rtol=3e-12)


def test_one_uniform_head_is_the_other_recursion():
    """Recency 0 written as a head beside one that does nothing, so that both recursions run it."""
    model = RelayModel(9, [Layer(0.5, 1, 0.25), Layer(1, 0.5)])
    other = RelayModel(9, [Layer(heads=[l.heads[0], Head(0, recency=0.5)], residual=l.residual) for l in model.layers])
    for extras in ({}, {"reminders": Reminders(64, 8)}):
        a, b = (simulate(m, 10**5, **extras).distance for m in (model, other))
        np.testing.assert_allclose(b, a, rtol=1e-13)


def test_a_sink_without_recency_and_a_bias_behind_a_position():
    weights = [Fraction(2)] * 10
    for model in (
        RelayModel(3, [Layer(1, 1, sink=Fraction(1, 2))] * 2),
        RelayModel(3, [Layer(1, 1, Fraction(1, 2))] * 2),
    ):
        _, D = Simulation(model, bias=lambda t: np.full_like(t, math.log(2))).advance(10, samples=every(10))
        np.testing.assert_allclose(D, [float(x) for x in keywise(model, weights)], rtol=1e-13)


def test_the_reference_values():
    """Those up to t = 10^6 of the table that was made with 40 digits."""
    rows = json.loads((Path(__file__).parents[1] / "reference" / "heads.json").read_text())
    seen = 0
    for row in rows:
        if "." in row["t"] or int(row["t"]) > 10**6:
            continue
        layers = [
            Layer(
                residual=Fraction(l["residual"]),
                sink=Fraction(l["sink"]),
                heads=[Head(*map(Fraction, h)) for h in l["heads"]],
            )
            for l in row["layers"]
        ]
        t = int(row["t"])
        _, D = Simulation(RelayModel(row["prompt"], layers)).advance(t, samples=[t])
        assert D[0] == pytest.approx(float(row["influence"]), rel=1e-12)
        seen += 1
    assert seen >= 15


def test_memory_does_not_depend_on_the_number_of_steps():
    simulation = Simulation(SEVERAL)
    simulation.advance(10**4)
    size = simulation.state.carries.size
    simulation.advance(2 * 10**5)
    assert simulation.state.carries.size == size < 1000


BAD = [
    (lambda: Simulation(RelayModel.uniform(4, 1, 1, 1, 13, 0.5)), "position must be at most 12"),
    (lambda: Simulation(RelayModel.uniform(4, 1, 1, 1, 0, -13)), "-recency must be at most 12"),
    (lambda: simulate(RelayModel.uniform(4, 1, 1, 1, 0, 0.5), 2**40), "at most 2\\^40 with a recency"),
    (lambda: simulate(RelayModel.uniform(4, 1, 0, 0, 0, 0.5), 10), "relay must not be 0 in all layers"),
    (lambda: Simulation(RelayModel.uniform(2**30, 64, 1e4, 1, 12, 0.5)), "within the range of float64"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_state_of_other_heads_is_refused():
    simulation = Simulation(SEVERAL)
    simulation.advance(100)
    with pytest.raises(ValueError, match="state must come from the same model"):
        Simulation(SEVERAL.with_prompt(13), state=simulation.state)
    with pytest.raises(ValueError, match="state must come from the same model"):
        Simulation(SEVERAL, bias=PromptBias(1), state=simulation.state)


LONG = (
    SEVERAL,
    RelayModel(64, [Layer(heads=[Head(0.5, recency=0.7), Head(0.25, position=0.5)], sink=0.1)] * 4),
    RelayModel(1000, [Layer(0.5, recency=-1.5), Layer(0.3, recency=0.999), Layer(0.5, position=-0.5, recency=1e-9)]),
)


@pytest.mark.parametrize("steps", [10**5, pytest.param(10**6, marks=pytest.mark.exhaustive)])
def test_long_runs_end_at_the_exact_values(steps):
    samples = np.unique(np.geomspace(1, steps, 100).astype(int))
    for model in LONG:
        curve = simulate(model, steps, samples=samples)
        np.testing.assert_allclose(curve.distance, influence(model, curve.t), rtol=2e-14)
