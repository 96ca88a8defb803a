"""How exact fractions scale with the number of tokens.

python -m pytest benchmarks/test_rational_speed.py -s
"""

from fractions import Fraction
from functools import partial

from benchmarks.timing import lap, require, table
from relaymodel import RelayModel, derive, influence_fraction

FEW, MANY, LAST = 20_000, 160_000, 10**6


def test_fractions_are_near_linear():
    """Eight times the tokens in at most 14 times the time; the result itself is 8 times as long."""
    models = {L: RelayModel.uniform(64, L, Fraction(1, 2)) for L in (2, 6, 12)}
    calls = {f"influence_fraction, L = {L}": partial(influence_fraction, model) for L, model in models.items()}
    calls |= {f"derive({L}).evaluate": partial(derive(L).evaluate, 64) for L in (2, 6)}
    seconds = {
        name: [min(lap(partial(call, t)) for _ in range(5)) for t in (FEW, MANY)] for name, call in calls.items()
    }
    rows = [(name, *each, each[1] / each[0]) for name, each in seconds.items()]
    table("exact fractions, seconds", ("", f"t = {FEW}", f"t = {MANY}", "ratio"), rows)
    print(f"  t = {LAST}, L = 6: {lap(partial(influence_fraction, models[6], LAST)):.1f} s")
    require([(f"{name}, 8 times the tokens", b / a, "<=", 14) for name, (a, b) in seconds.items()])
