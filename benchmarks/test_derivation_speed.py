"""How long derivations take: against depth, and against SymPy asked for the nested sums.

python -m pytest benchmarks/test_derivation_speed.py -s
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sympy.core.cache import clear_cache

from benchmarks.timing import lap, require, table
from relaymodel import RelayModel
from relaymodel.derivation import derive

PARTS = {
    "closed form": lambda d: d.closed_form,
    "harmonic form": lambda d: d.harmonic_form,
    "local exponent": lambda d: d.local_exponent,
    "series of D, order L": lambda d: d.asymptotic_series(d.depth),
    "series of alpha, order 6": lambda d: d.exponent_series(6),
    "steps": lambda d: d.steps,
}
TIME_LIMIT = 15


@pytest.mark.parametrize(
    ("kind", "depths", "limit"), [("equal", (1, 2, 4, 8, 12, 16), 3), ("different", (1, 2, 3, 4, 6, 8), 10)]
)
def test_against_depth(benchmark, kind, depths, limit):
    """Each part by itself, with SymPy's cache emptied before."""
    least = {}

    def derive_all():
        for depth in depths:
            for name, part in PARTS.items():
                clear_cache()
                seconds = lap(lambda depth=depth, part=part: part(derive(depth, relay=kind)))
                least[depth, name] = min(seconds, least.get((depth, name), seconds))

    benchmark.pedantic(derive_all, rounds=5)
    benchmark.extra_info.update({f"{name}, L = {depth}": seconds for (depth, name), seconds in least.items()})
    rows = [(f"L = {depth}", *(least[depth, name] * 1e3 for name in PARTS)) for depth in depths]
    table(f"derive, {kind} strengths, milliseconds from an empty cache", ("", *PARTS), rows)
    slowest = depths[-2]  # 12 equal, 6 different
    require([(f"all of L = {slowest}, seconds", sum(least[slowest, name] for name in PARTS), "<=", limit)])


def ask(depth, way):
    """Return seconds and outcome of asking in a fresh interpreter."""
    script = [sys.executable, str(Path(__file__).with_name("nested_sums.py")), str(depth), way]
    try:
        run = subprocess.run(script, check=True, capture_output=True, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"none in {TIME_LIMIT} s"
    answer = json.loads(run.stdout)
    assert answer["at P=2, t=3"] == str(RelayModel.uniform(2, depth, 1).differences(5)[-1])
    return answer["seconds"], f"{answer['sums left']} sums left" if answer["sums left"] else "closed form"


def test_against_sympy_asked_for_the_nested_sums(benchmark):
    """SymPy has no closed form for the sum of harmonic(s)/s: it stops at depth 2, and that needs coaxing."""
    ways = {
        "derive(L).harmonic_form": "derive",
        "Sum(...).doit()": "doit",
        "summation(...)": "summation",
        "summation from 1, term by term": "difference",
    }
    depths = (1, 2, 3, 4, 6)
    least, outcomes = {}, {}

    def ask_all():
        for depth in depths:
            for way in ways.values():
                if outcomes.get((depth, way), "").startswith("none"):
                    continue
                seconds, outcomes[depth, way] = ask(depth, way)
                if seconds is not None:
                    least[depth, way] = min(seconds, least.get((depth, way), seconds))

    benchmark.pedantic(ask_all, rounds=2)
    rows = [
        (
            name,
            *(
                f"{least[depth, way] * 1e3:.0f} ms, {outcomes[depth, way]}"
                if (depth, way) in least
                else outcomes[depth, way]
                for depth in depths
            ),
        )
        for name, way in ways.items()
    ]
    table("D(t) from the recursion, equal strengths, fresh interpreters", ("", *(f"L = {L}" for L in depths)), rows)
    assert all(outcomes[depth, "derive"] == "closed form" for depth in depths)
    fastest = min(least[2, way] for way in ways.values() if outcomes[2, way] == "closed form" and way != "derive")
    require([("SymPy's fastest closed form / derive, L = 2", fastest / least[2, "derive"], ">=", 1)])
