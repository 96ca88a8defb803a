"""Commands that evaluate a model."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from relaymodel import Curve, Layer, RelayModel
from tests.cli.cases import exact, near


def test_influence_is_the_recursion(result):
    found = result("influence --prompt 5 --relay 1/2,1,0.1 --residual 1,1/3,1 --position 0,-1/2,2 --t 1,7,20")
    layers = [
        Layer(Fraction(1, 2)),
        Layer(1, Fraction(1, 3), Fraction(-1, 2)),
        Layer(Fraction(1, 10), 1, 2),
    ]
    model = RelayModel(5, layers)
    assert list(found) == ["t", "influence", "local_exponent"]
    assert found["t"] == [1, 7, 20]
    for t, D in zip(found["t"], found["influence"], strict=True):
        assert near(D, exact(model, t))
    # central difference in t
    slope = -20 * (exact(model, 21) - exact(model, 19)) / 2 / exact(model, 20)
    assert near(found["local_exponent"][2], slope, rel=1e-2)


def test_one_number_is_for_all_layers_and_lists_set_the_depth(result):
    assert near(result("influence --prompt 3 --relay 2 --depth 2 --t 4")["influence"][0], exact(twice(3), 4))
    assert near(result("influence --prompt 3 --relay 2,2 --t 4")["influence"][0], exact(twice(3), 4))


def twice(prompt):
    return RelayModel.uniform(prompt=prompt, depth=2, relay=2)


@pytest.mark.parametrize("written", ["1e400", "1" + "0" * 400, "10e399"])
def test_t_of_any_size_is_taken_exactly(result, written):
    found = result(f"influence --prompt 3 --depth 1 --relay 1/7 --t 1e3,{written}")
    assert found["t"] == [1000, 10**400]
    D = found["influence"][1]  # below the float range, and still a JSON number
    assert near(D, Fraction(3, 7 * (3 + 10**400)), rel=1e-15)
    assert near(found["local_exponent"][1], 1)


def test_values_above_the_float_range_are_numbers_too(result, run):
    found = result("influence --prompt 1 --depth 2 --residual 0 --relay 1e200 --t 1")
    assert near(found["influence"][0], exact(RelayModel.uniform(1, 2, 10**200, 0), 1), rel=1e-15)
    assert "e+399" in run("influence --prompt 1 --depth 2 --residual 0 --relay 1e200 --t 1")[1]


def test_real_t(result):
    found = result("influence --prompt 3 --depth 1 --t 1/2,0.1,2.5")
    assert [float(t) for t in found["t"]] == [0.5, 0.1, 2.5]
    for t, D in zip((Fraction(1, 2), Fraction(1, 10), Fraction(5, 2)), found["influence"], strict=True):
        assert near(D, 3 / (3 + t))


def test_default_grid(result):
    t = result("influence --t-max 1e4 --points 9")["t"]
    assert t == [1, 3, 10, 32, 100, 316, 1000, 3162, 10000]
    assert result("influence --t-max 1e400 --points 3")["t"] == [1, 10**200, 10**400]


def test_bound_brackets_the_value(result):
    found = result("bound --prompt 4 --relay 1/2,1,2 --t 1,10,50")
    assert list(found) == ["t", "lower", "influence", "upper", "tightness"]
    model = RelayModel(4, [Layer(Fraction(1, 2)), Layer(1), Layer(2)])
    for t, low, D, high, tightness in zip(*found.values(), strict=True):
        assert Fraction(low) < exact(model, t) < Fraction(high)
        assert near(D, exact(model, t))
        assert near(tightness, Fraction(high) / Fraction(low), rel=1e-14)


def test_bound_at_astronomical_t(result):
    found = result("bound --depth 3 --t 1e300,1e4000")
    assert found["lower"][1] < found["influence"][1] < found["upper"][1] < Decimal("1e-3000")
    assert 1 < found["tightness"][1] < found["tightness"][0] < Decimal("1.0001")


def test_bound_of_two_layers_is_an_equality(result):
    found = result("bound --depth 2 --t 5")
    assert found["tightness"] == [1]
    assert found["lower"][0] < found["influence"][0] < found["upper"][0]


def test_simulation_agrees_with_the_recursion(result):
    found = result("simulate --prompt 4 --depth 3 --relay 1/2 --t 1,9,30")
    model = RelayModel.uniform(4, 3, Fraction(1, 2))
    assert list(found) == ["t", "distance", "influence", "relative_difference"]
    assert found["t"] == [1, 9, 30]
    for t, distance, value in zip(found["t"], found["distance"], found["influence"], strict=True):
        assert near(distance, exact(model, t), rel=1e-14)
        assert near(value, exact(model, t))
    assert all(0 <= difference < 1e-14 for difference in found["relative_difference"])


def test_csv_of_influence_is_a_curve(run, tmp_path):
    code, _, err = run("influence --prompt 5 --depth 2 --t 1,10,1e20 --csv out.csv")
    assert (code, err) == (0, "wrote out.csv\n")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[1:4] == [
        "# prompt: 5",
        "# layers: 2 x (relay 1, residual 1, position 0)",
        "t,influence,local_exponent",
    ]
    assert lines[-1].startswith("100000000000000000000,")
    curve = Curve.from_csv(tmp_path / "out.csv")
    assert near(curve.distance[1], exact(RelayModel.uniform(5, 2, 1), 10))


def test_csv_of_negative_influence_holds_its_size(run, tmp_path, result):
    assert near(result("influence --prompt 1 --depth 1 --relay -1 --t 1,3")["influence"][1], Fraction(-1, 4))
    run("influence --prompt 1 --depth 1 --relay -1 --t 1,3 --csv out.csv")
    curve = Curve.from_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(curve.distance, [1 / 2, 1 / 4], rtol=1e-12)


def test_csv_on_standard_output_is_the_file(run, tmp_path):
    run("influence --t 1,10 --csv out.csv")
    assert run("influence --t 1,10 --csv -") == (0, (tmp_path / "out.csv").read_text(), "")
    assert run("influence --t 1,10 --csv - --json")[0] == 2
    assert run("simulate --t 1,10 --csv -")[1].splitlines()[-3] == "t,distance"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_hours_of_simulation_are_refused(run):
    code, _, err = run("simulate --t-max 1e13")
    assert code == 2
    assert re.search(r"--t-max must be smaller: simulating 1e\+13 tokens would take about \d+ (days|hours)", err)


def test_layers_are_counted_from_one(run):
    assert "in layer 2" in run("bound --position 0,1/2")[2]
    assert "(relay 1, residual 1, position 0, sink 1) in layer 1" in run("bound --sink 1")[2]


def test_heads_are_written_as_text(run):
    assert "--relay must not be given together with --heads" in run("influence --heads 1+2 --relay 1")[2]
    assert run("influence --heads 1:colour=2")[2].startswith("relaymodel: --heads: heads must be")


def test_a_long_simulation_is_announced(run, monkeypatch):
    import relaymodel as rm
    from relaymodel import simulation

    def refuse(*_, **__):
        raise ValueError("enough")

    monkeypatch.setattr(simulation, "expected_seconds", lambda *_: 100.0)
    monkeypatch.setattr(rm, "simulate", refuse)
    assert run("simulate --t-max 1e5")[2] == "relaymodel: this takes about 2 minutes\nrelaymodel: enough\n"


@pytest.mark.parametrize("command", ["influence --depth 65 --points 20", "derive --depth 40"])
def test_deep_work_is_announced(run, monkeypatch, command):
    assert run(command)[2] == ""
    monkeypatch.setattr("relaymodel.cli.inputs.PATIENCE", 1e-3)
    assert "relaymodel: this takes about 0 seconds\n" in run(command)[2]
