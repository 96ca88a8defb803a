"""Every result pickles, copies and travels to other processes."""

import copy
import dataclasses
import importlib
import inspect
import multiprocessing
import pickle
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb

import relaymodel as rm
from relaymodel import bounds, control, derivation, exact, inference, report, simulation
from relaymodel.certificate import certify
from relaymodel.networks import protocol, transformer
from relaymodel.networks.calibration import calibrate
from relaymodel.networks.training.recipe import Recipe
from relaymodel.networks.training.result import Training

TRAINING = "docs/training"
HOMES = [
    "certificate",
    "control",
    "curve",
    "derivation",
    "exact",
    "inference",
    "model",
    "networks.calibration",
    "networks.protocol",
    "networks.training",
    "networks.transformer",
    "report",
    "simulation",
]
ELSEWHERE = {
    "LogBias",  # a protocol
    "ReminderSchedule",  # a protocol
    "HuggingFaceNetwork",  # holds a model of torch, which pickles as torch does
    "Network",  # a protocol
    "ShareRule",  # a protocol
    "Simulation",  # runs; its state is what is kept
}


@cache
def results():
    """One result of everything, by name."""
    rng = np.random.default_rng(20260101)
    t = np.unique(np.geomspace(1, 1e4, 60).round())
    curve = rm.Curve(t, t**-0.5 * np.exp(0.01 * rng.standard_normal(t.size)), 0.01 * t**-0.5, {"prompt": "8"})
    model = rm.RelayModel.uniform(prompt=8, depth=3, relay=0.5)
    shape = transformer.Architecture(depth=2, width=16, heads=2, vocabulary=32, positions="none")
    network = transformer.Transformer.random(shape, rng, std=0.15)
    a = rng.integers(0, 32, (1, 4))
    pairs = (a, (a + 1) % 32, rng.integers(0, 32, (1, 40)))
    measured = rm.measure(network, pairs, instruments=("next_token", "attention", "response"))
    formula = rm.derive(2)
    run = simulation.Simulation(model)
    run.advance(10)
    found = {
        "model": model,
        "curve": curve,
        "ball": rm.influence_ball(model, 7),
        "rational": rm.influence_fraction(model, 7),
        "imprecise": exact.PrecisionError("cannot tell", arb("0.5", "0.25")),
        "underdetermined": inference.UnderdeterminedError("too few", 0.5),
        "derivation": formula,
        "derivation of heads": rm.derive(rm.RelayModel.uniform(prompt=8, depth=2, relay=0.5, recency=0.5)),
        "series": formula.asymptotic,
        "alpha": formula.limit,
        "steps": formula.steps,
        "density": derivation.infinite_depth_density(),
        "bracket": bounds.bracket(model, 7.0),
        "balls": bounds.bracket_ball(model, 7),
        "state": run.state,
        "bias": simulation.PromptBias(0.5),
        "share": simulation.ConstantShare(0.5),
        "rules": (simulation.SplitSoftmax(0.5), simulation.ClampedShare(0.5)),
        "reminders": simulation.Reminders(100, 10),
        "blocks": simulation.ReminderBlocks(((1, 2), (5, 6))),
        "local": rm.estimate_exponent(curve),
        "law": rm.fit_power_law(curve),
        "extrapolated": rm.extrapolate_exponent(model),
        "fit": rm.fit(rm.Curve(t, rm.influence(model, t)), prompt=8),
        "laws": rm.compare_laws(curve),
        "decay": inference.distance_or_dilution(np.tril(np.ones((40, 40)))),
        "limit": control.bias_limit(model, simulation.PromptBias(2)),
        "turn": control.turning_point(model, simulation.PromptBias(2)),
        "phases": control.phase_diagram(model, [0, 1, 2], horizon=100),
        "plan": control.plan_reminders(model, 0.5),
        "reminded": control.reminder_limit(model, simulation.Reminders(100, 10)),
        "network": network,
        "pairs": protocol.Pairs(*pairs),
        "random": protocol.RandomTokens(5, 0),
        "generated": protocol.Generated(5, 0),
        "measured": measured,
        "readings": (measured.next_token, measured.attention, measured.response),
        "measured exponent": measured.alpha(1),
        "calibration": calibrate(network, pairs),
        "certificate": certify(network, pairs),
        "recipe": Recipe(),
        "training": Training.read(TRAINING),
        "progression": Training.read(TRAINING).alpha("plain"),
        "claim": report.Claim("title", "1", True, "found", (), (), ()),
    }
    found["verification"] = found["certificate"].verification
    found["poles"] = formula.poles
    return {**found, "report": report.Report(TRAINING, (found["claim"],), 1.0)}


def same(a, b):
    """Whether two objects hold the same, arrays included; of two balls the first may be a little wider."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, arb):
        return bool(a.contains(b)) and float(a.rad()) <= 1.001 * float(b.rad())
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, field.name), getattr(b, field.name)) for field in dataclasses.fields(a))
    if isinstance(a, Exception):
        return str(a) == str(b) and same(vars(a), vars(b))
    return a == b


def inside(value):
    """The classes of this package's objects in a result."""
    if str(type(value).__module__).startswith("relaymodel"):
        yield type(value).__name__
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from inside(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from inside(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from inside(item)


def echo(value):
    return value


@pytest.mark.slow
def test_results_pickle_and_copy():
    for name, value in results().items():
        for protocol_version in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert same(pickle.loads(pickle.dumps(value, protocol_version)), value), name
        assert same(copy.deepcopy(value), value), name
        assert same(copy.copy(value), value), name


@pytest.mark.slow
def test_results_travel_to_other_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.map(echo, results().values())
    pairs = zip(results().items(), back, strict=True)
    assert [name for (name, value), other in pairs if not same(other, value)] == []


def test_every_public_class_is_among_them():
    seen = {name for value in results().values() for name in inside(value)}
    public = set()
    for home in HOMES:
        module = importlib.import_module(f"relaymodel.{home}")
        names = getattr(module, "__all__", [name for name in vars(module) if name[0].isupper()])
        public |= {
            name
            for name in names
            if inspect.isclass(getattr(module, name)) and getattr(module, name).__module__.startswith("relaymodel")
        }
    assert public - seen - ELSEWHERE == set()


def test_the_comparison_tells_things_apart():
    curve = results()["curve"]
    other = dataclasses.replace(curve, provenance={"prompt": "9"})
    assert not same(curve, other)
    assert not same(curve, dataclasses.replace(curve, distance=2 * curve.distance))
    assert not same(arb("0.5", "0.5"), arb("0.5", "0.25"))
    assert not same((Fraction(1, 2),), (Fraction(1, 3),))


def test_provenance_is_read_only():
    curve = results()["curve"]
    with pytest.raises(TypeError):
        curve.provenance["prompt"] = "9"
    assert curve.provenance == {"prompt": "8"}


def test_results_of_networks_are_shown_in_a_line():
    """Neither weights nor arrays flood a terminal or a notebook."""
    shape = transformer.Architecture(2, 32, 2, vocabulary=256, context=64)
    network = transformer.Transformer.random(shape, np.random.default_rng(0))
    assert repr(network) == "Transformer(depth 2, width 32, heads 2, vocabulary 256, context 64)"
    pairs = protocol.draw_pairs(network, pairs=2, prompt=8, steps=32)
    found = rm.measure(network, pairs, instruments=["next_token", "attention", "response"])
    assert repr(found.next_token).startswith("NextToken(t: 32, total_variation: 2 x 32, jensen_shannon: 2 x 32, kl: 2")
    assert repr(found.response).startswith("TokenResponse(sources: 8, size: 2 x 8, single: 2 x 8 x 2 x 40, ")
    for result in (found.next_token, found.attention, found.response, found.attention.mixture(layer=2)):
        assert len(repr(result)) < 300
        assert "\n" not in repr(result)
