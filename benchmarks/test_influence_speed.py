"""How fast the exact values are: against python-flint and `np.log`, and how they scale.

python -m pytest benchmarks/test_influence_speed.py -s
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_series, fmpq

from benchmarks.timing import require, table
from relaymodel import (
    Head,
    Layer,
    RelayModel,
    influence,
    influence_ball,
    local_exponent,
    rms_influence,
    token_influence,
)
from relaymodel.exact import bands
from relaymodel.exact.precision import working

P, DEPTH, RELAY = 64, 12, Fraction(1, 2)


def totals():
    """E_k of `DEPTH` equal layers of residual 1 (THEORY section 2)."""
    e = [math.comb(DEPTH, m) * RELAY**m for m in range(DEPTH + 1)]
    return [fmpq(E.numerator, E.denominator) for E in (sum(e[k + 1 :]) for k in range(DEPTH))]


def newton():
    """D(t) by digamma and Hurwitz zeta functions, and Newton's identities."""
    E, orders = [arb(value) for value in totals()], [arb(i) for i in range(2, DEPTH)]
    start = [arb(P + 1).digamma(), *(i.zeta(arb(P + 1)) for i in orders)]

    def D(t):
        N = arb(t) + P
        end = N + 1
        p = [end.digamma() - start[0], *(zeta - i.zeta(end) for i, zeta in zip(orders, start[1:], strict=True))]
        h = [arb(1)]
        for k in range(1, DEPTH):
            h.append(sum((p[i] * h[k - 1 - i] for i in range(1, k)), p[0] * h[k - 1]) / k)
        return sum((a * b for a, b in zip(E[1:], h[1:], strict=True)), E[0]) * P / N

    return D


def log_gamma():
    """D(t) by the generating function of h_k, the exponential of a series of log-gamma."""
    start = arb_series([arb(P + 1), -1]).gamma()
    # the coefficient of x^(L-1) in this times the sum of h_k x^k is the sum of E_k h_k: one product in C
    front = arb_series(totals()[::-1]) * start / start[0] * P

    def D(t):
        N = arb(t) + P
        series = arb_series([N + 1, -1]).lgamma()
        return (front * (series[0] - series).exp())[DEPTH - 1] / N

    return D


def reciprocal_gamma():
    """D(t) by the same generating function, from a series of 1/Gamma."""
    start = arb_series([arb(P + 1), -1]).gamma()
    front = arb_series(totals()[::-1]) * start / start[0] * P

    def D(t):
        N = arb(t) + P
        series = arb_series([N + 1, -1]).rgamma()
        return (front * series)[DEPTH - 1] / (series[0] * N)

    return D


def in_flint(make, points):
    """Return a call that evaluates all points at the least precision that gives each 53 bits, and that precision."""
    for bits in range(56, 256, 4):
        with working(bits=bits, order=DEPTH):
            D = make()
            if min(D(t).rel_accuracy_bits() for t in points) >= 53:
                break

    def call():
        with working(bits=bits, order=DEPTH):
            return [D(t) for t in points]

    return call, bits


@pytest.mark.parametrize("grid", ["logarithmic", "linear"])
def test_a_hundred_thousand_points_against_python_flint_and_log(race, grid):
    count = 10**5
    t = np.geomspace(1, 1e8, count) if grid == "logarithmic" else np.linspace(1, 1e8, count)
    model = RelayModel.uniform(P, DEPTH, RELAY)
    few, fewer = t[:: count // 500].tolist(), t[:: count // 100].tolist()
    rivals = {}
    for name, make, points in (
        ("python-flint, exp of a log-gamma series", log_gamma, few),
        ("python-flint, 1/gamma series", reciprocal_gamma, few),
        ("python-flint, digamma, zeta and Newton", newton, fewer),
    ):
        call, bits = in_flint(make, points)
        assert np.max(np.abs(np.array([float(D.mid()) for D in call()]) / influence(model, points) - 1)) < 1e-12
        rivals[f"{name}, {bits} bits"] = (call, len(points))
    contestants = {
        "np.log": (lambda: np.log(t), count),
        **rivals,
        "local_exponent": (lambda: local_exponent(model, t), count),
        "influence": (lambda: influence(model, t), count),
    }
    seconds = race({name: call for name, (call, _) in contestants.items()}, rounds=25)
    each = {name: seconds[name] / points for name, (_, points) in contestants.items()}
    own = each["influence"]
    table(
        f"L = {DEPTH}, P = {P}, 1e5 points, {grid} grid 1..1e8",
        ("", "ns per point", "/ influence"),
        [(name, value * 1e9, value / own) for name, value in each.items()],
    )
    require(
        [
            ("fastest python-flint / influence", min(each[name] for name in rivals) / own, ">=", 200),
            ("influence / np.log", own / each["np.log"], "<=", 400),
            ("local_exponent / influence", each["local_exponent"] / own, "<=", 2.5),
        ]
    )


def test_single_values(race):
    """A call on an existing model of 12 layers, and on a new one, against np.log of 4000 numbers."""
    t, numbers = np.geomspace(1, 1e8, 4000), itertools.count(2)
    model = RelayModel.uniform(P, DEPTH, RELAY)
    fractions = itertools.cycle([Fraction(1, next(numbers)) for _ in range(1000)])
    seconds = race(
        {
            "np.log of 4000 numbers": lambda: np.log(t),
            "influence, one t": lambda: influence(model, 1000.0),
            "influence, one t, new model": lambda: influence(RelayModel.uniform(P, DEPTH, next(fractions)), 1000.0),
        },
        rounds=25,
    )
    log, existing, new = seconds.values()
    table(f"single values, L = {DEPTH}", ("", "microseconds"), [(k, v * 1e6) for k, v in seconds.items()])
    require([("existing model / np.log", existing / log, "<=", 3), ("new model / np.log", new / log, "<=", 6)])


DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def test_against_depth(race):
    t = np.geomspace(1, 1e8, 10**4)
    tokens = np.geomspace(1, 1e4, 10**4).astype(int)
    functions = {
        "influence": lambda model: influence(model, t),
        "local_exponent": lambda model: local_exponent(model, t),
        "token_influence": lambda model: token_influence(model, tokens, tokens + 1000),
        "rms_influence": lambda model: rms_influence(model, t[:1000]),
    }
    points = {"rms_influence": 1000}
    models = {depth: RelayModel.uniform(P, depth, RELAY) for depth in DEPTHS}
    seconds = race(
        {
            (name, depth): lambda call=call, model=model: call(model)
            for name, call in functions.items()
            for depth, model in models.items()
        }
    )
    rows = [
        (f"L = {depth}", *(seconds[name, depth] / points.get(name, t.size) * 1e9 for name in functions))
        for depth in DEPTHS
    ]
    table("ns per point against depth, 1e4 points (rms 1e3)", ("", *functions), rows)


def test_against_number_of_points(race):
    model = RelayModel.uniform(P, DEPTH, RELAY)
    arrays = {f"{10**k:.0e} points": np.geomspace(1, 1e8, 10**k) for k in range(7)}
    numbers = itertools.count(1)
    seconds = race(
        {
            "one t, new model": lambda: influence(RelayModel.uniform(P, DEPTH, Fraction(1, next(numbers))), 1000.0),
            "one t": lambda: influence(model, 1000.0),
            "one t, influence_ball, 20 digits": lambda: influence_ball(model, 1000, 20),
        }
        | {name: lambda t=t: influence(model, t) for name, t in arrays.items()}
    )
    each = {name: value / (arrays[name].size if name in arrays else 1) for name, value in seconds.items()}
    table(
        f"influence against the number of points, L = {DEPTH}",
        ("", "microseconds", "ns per point"),
        [(name, value * 1e6, each[name] * 1e9) for name, value in seconds.items()],
    )
    require([("per point, 1e6 points / 1e5 points", each["1e+06 points"] / each["1e+05 points"], "<=", 1.5)])


def test_position_exponents(race):
    """Different exponents cancel in the partial fractions; where too much is lost, balls take over."""
    t = np.geomspace(1, 1e8, 200)
    kinds = {
        "one, 0": lambda depth: [0] * depth,
        "one, 1/2": lambda depth: [0.5] * depth,
        "two, 0 and 1": lambda depth: [i % 2 for i in range(depth)],
        "spread over -1/2..1": lambda depth: np.linspace(-0.5, 1, depth).tolist(),
        "1e-12 apart": lambda depth: [1e-12 * i for i in range(depth)],
    }
    depths = (2, 4, 8, 16, 32)
    models = {
        (kind, depth): RelayModel(P, [Layer(RELAY, position=g) for g in positions(depth)])
        for kind, positions in kinds.items()
        for depth in depths
    }
    seconds = race({key: lambda model=model: influence(model, t) for key, model in models.items()}, rounds=5)
    rows = [(kind, *(seconds[kind, depth] / t.size * 1e6 for depth in depths)) for kind in kinds]
    table("influence, microseconds per point, 200 points", ("position exponents", *(f"L = {L}" for L in depths)), rows)


def test_balls(race):
    """t of any size: the digits of t cost next to nothing."""
    exponents, depths = (3, 10, 100, 1000, 10_000, 100_000), (1, 4, 12, 32, 64)
    powers = {k: 10**k for k in exponents}
    models = {depth: RelayModel.uniform(P, depth, RELAY) for depth in depths}
    seconds = race(
        {
            (k, depth): lambda t=t, model=model: influence_ball(model, t)
            for k, t in powers.items()
            for depth, model in models.items()
        },
        rounds=7,
    )
    rows = [(f"t = 1e{k}", *(seconds[k, depth] * 1e6 for depth in depths)) for k in exponents]
    table("influence_ball, 50 digits, microseconds", ("", *(f"L = {L}" for L in depths)), rows)


def test_recency(race):
    """Heads with a recency: 1e5 points on a log grid, and balls, against the uniform case; as the first call, too."""
    t = np.geomspace(1, 1e8, 10**5)
    plain = RelayModel.uniform(P, DEPTH, RELAY)
    recent = RelayModel.uniform(P, DEPTH, RELAY, recency=Fraction(7, 10))
    heads = [Head(RELAY, Fraction(i, 10), Fraction(i, 20)) for i in range(3)]
    several = RelayModel(P, [Layer(heads=heads, sink=Fraction(1, 10))] * DEPTH)
    mixed = RelayModel(P, [Layer(RELAY, position=g) for g in np.linspace(-0.5, 1, DEPTH).tolist()])

    whole = np.unique(np.geomspace(1, 1e8, 24).round().astype(int)).tolist()
    few = t[::25]
    balls = {"uniform": plain, "recency 0.7": recent}
    seconds = race(
        {
            "uniform": lambda: influence(plain, t),
            "recency 0.7": lambda: influence(recent, t),
            "recency 0.7, first call": lambda: bands.NodeTable(recent).evaluate(t, exponent=False),
            "recency 0.7, local exponent": lambda: local_exponent(recent, t),
            "three heads and a sink": lambda: influence(several, t),
            "uniform, 4000 points": lambda: influence(plain, few),
            "mixed positions, 4000 points": lambda: influence(mixed, few),
            **{
                f"ball, {name}": lambda model=model: [influence_ball(model, x, 20) for x in whole]
                for name, model in balls.items()
            },
        },
        rounds=7,
    )
    own = seconds["uniform"]
    table("1e5 points, L = 12, P = 64", ("", "ms", "/ uniform"), [(k, v * 1e3, v / own) for k, v in seconds.items()])
    exponentials = sum(
        contour.nodes.size * (bands.CHEBYSHEV_DEGREE + 1)
        for contour in bands.table(recent).contours.values()
        if contour
    )
    require(
        [
            ("recency / uniform", seconds["recency 0.7"] / own, "<=", 20),
            ("first call / uniform", seconds["recency 0.7, first call"] / own, "<=", 100),
            ("complex exponentials a point", exponentials / t.size, "<=", 60),
            ("several heads / uniform", seconds["three heads and a sink"] / own, "<=", 20),
            (
                "mixed positions / uniform, 4000 points",
                seconds["mixed positions, 4000 points"] / seconds["uniform, 4000 points"],
                "<=",
                60,
            ),
            ("ball / uniform ball", seconds["ball, recency 0.7"] / seconds["ball, uniform"], "<=", 30),
        ]
    )
