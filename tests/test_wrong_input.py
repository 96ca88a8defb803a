"""Arguments of any kind, far beyond float64 and of the wrong type: refused by name, in the package's own words."""

import re

import numpy as np
import pytest

import relaymodel as rm
from relaymodel import tasks
from relaymodel.model import parse_heads
from relaymodel.networks.calibration import calibrate
from relaymodel.networks.protocol import draw_pairs
from relaymodel.networks.transformer import Architecture, Transformer

CURVE = rm.Curve(np.arange(1.0, 41), np.arange(1.0, 41) ** -0.5)
MODEL = rm.RelayModel.uniform(8, 2, 1)
HUGE = 10**400


class Frame(dict):
    """What is asked of a data frame, without pandas."""

    columns = property(dict.keys)


FRAME = Frame(t=CURVE.t, distance=CURVE.distance)
FIT = rm.fit(rm.Curve(CURVE.t, rm.influence(MODEL, CURVE.t)), prompt=8)
SHAPE = Architecture(depth=1, width=16, heads=2, vocabulary=64, context=40)
NETWORK = Transformer.random(SHAPE, np.random.default_rng(0))
PAIRS = draw_pairs(NETWORK, pairs=2, prompt=4, steps=16)
MEASURED, CALIBRATED = rm.measure(NETWORK, PAIRS), calibrate(NETWORK, PAIRS)

REFUSED = [
    (lambda: rm.Curve([1, 2], [1, HUGE]), ValueError, "distance[1] must be within the range of float64"),
    (lambda: rm.Curve([1, 2], [2, 1], None, {}, [[HUGE, 1], [1, 1]]), ValueError, "pairs must be within the range"),
    (lambda: rm.Curve([1, 2], [2, 1], None, 3), TypeError, "provenance must be a dictionary, got 3"),
    (lambda: rm.Curve([1, 2], [2, 1], None, "ab"), TypeError, "provenance must be a dictionary, got 'ab'"),
    (lambda: CURVE.window("3"), TypeError, "t_min must be an int, float, Fraction or NumPy scalar, got '3'"),
    (lambda: CURVE.window(1 + 2j), TypeError, "t_min must be an int, float"),
    (lambda: CURVE.window(t_max=HUGE), ValueError, "t_max must be within the range of float64"),
    (lambda: CURVE.window(t_max=np.ma.masked), TypeError, "t_max must be an int, float"),
    (lambda: rm.fit_power_law(CURVE, t_min=HUGE), ValueError, "t_min must be within the range of float64"),
    (lambda: rm.fit(CURVE, prompt=8, relay=HUGE), ValueError, "relay must be within the range of float64"),
    (lambda: rm.fit(CURVE, prompt=8, amplitude=HUGE), ValueError, "amplitude must be within the range of float64"),
    (lambda: rm.extrapolate_exponent(MODEL, t_min=HUGE), ValueError, "t_min must be within the range of float64"),
    (lambda: rm.Curve.from_csv(3), TypeError, "path must be a path, text or a path object, got 3 of type int"),
    (lambda: rm.Curve.from_csv("a\0b"), ValueError, "path must not hold a zero character"),
    (lambda: CURVE.to_csv(None), TypeError, "path must be a path, text or a path object, got None"),
    (lambda: rm.reproduce(None), TypeError, "path must be a path, text or a path object, got None"),
    (lambda: rm.sweep(t=1, resume=3.5), TypeError, "resume must be a path, text or a path object, got 3.5"),
    (
        lambda: tasks.Store([1], "", writer="run", of="x (y)", name="x", holds=["y"]),
        TypeError,
        "resume must be a path, text or a path object",
    ),
    (lambda: rm.Curve.from_dataframe([[1, 2]]), TypeError, "frame must be a data frame of pandas, got [[1, 2]]"),
    (lambda: rm.sweep(t=1, quantities=2.5), TypeError, "quantities must be a list of names, got 2.5"),
    (lambda: rm.sweep(t=1, quantities="influence"), TypeError, "quantities must be a list of names"),
    (lambda: rm.sweep(t=1, quantities=[["influence"]]), ValueError, "quantities must be one of 'influence'"),
    (lambda: rm.RelayModel.uniform(8, 10**9, 1), ValueError, "depth must be at most 1000000, got 1000000000"),
    (lambda: rm.simulate(MODEL, 9, samples=[1, [2]]), ValueError, "samples must be a number or a rectangular array"),
    (lambda: rm.Curve.from_dataframe(FRAME, columns=["t"]), TypeError, "columns must be a dictionary such as"),
    (lambda: rm.Curve.from_dataframe(FRAME, columns={"t": 1}), TypeError, "columns must be a dictionary such as"),
    (lambda: rm.Curve.from_dataframe(FRAME, layer=[1]), TypeError, "layer must be an integer, got [1]"),
    (lambda: rm.Curve.from_dataframe(FRAME, layer=1), ValueError, "layer must be one of those in frame"),
    (lambda: rm.RelayModel.from_json(None), TypeError, "text must be a JSON document, got None of type NoneType"),
    (lambda: rm.extrapolate_exponent(CURVE, prompt=HUGE), ValueError, "prompt must be within the range of float64"),
    (lambda: FIT.predict([1, 2], curve=1), ValueError, "curve must be at most 0, the last of those fitted, got 1"),
    (lambda: FIT.predict([1, 2], curve=True), TypeError, "curve must be an integer, got True"),
    (lambda: list(tasks.run(print, {"a": 1})), TypeError, "tasks must be a sequence of tuples of arguments"),
    (lambda: MEASURED.alpha(True), TypeError, "layer must be an integer, got True"),
    (lambda: MEASURED.curve([1]), TypeError, "layer must be an integer, got [1]"),
    (lambda: CALIBRATED.predict(1, HUGE), ValueError, "t must be within the range of float64"),
    (lambda: parse_heads("1e400"), ValueError, "relay must be within the range of float64, got '1e400'"),
    (lambda: parse_heads("1:position=1e-400"), ValueError, "position must be within the range of float64"),
    (lambda: parse_heads("9" * 5000), ValueError, "relay must be a number of at most 4000 digits, got 5000"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_more_samples_than_tokens_are_all_tokens():
    for samples in (10**6, HUGE):
        assert rm.simulate(MODEL, 50, samples=samples).t.tolist() == list(range(1, 51))


def test_a_prompt_length_in_a_file_is_one_that_can_be():
    for stated in ("9" * 5000, "-3", "64.0", "\u0663", ""):
        curve = rm.Curve(CURVE.t, CURVE.distance, provenance={"prompt": stated})
        with pytest.raises(ValueError, match="the curve's provenance states no prompt length, got"):
            rm.fit(curve)
        assert rm.extrapolate_exponent(curve).value == pytest.approx(0.5, abs=1e-3)
