"""Models at the ends of the promised domain: floats against balls, bounds around values, threads against one thread."""

import sys
import threading
from fractions import Fraction

import numpy as np

import relaymodel as rm
from relaymodel.exact import local_exponent_ball, token_influence_ball

PROMISE = 1e-12
SMALLEST = sys.float_info.min
POSITIONS = (0, 0, 0, 1e-12, -1e-12, 5e-324, -0.999, -0.5, 1, 4, Fraction(1, 3))
RECENCIES = (0, 0.7, 1e-12, 5e-324, 1 - 1e-9, 0.999, -1, -4, Fraction(1, 2))


def strength(rng, signed):
    """Return a strength: nothing, tiny, ordinary or large; sometimes negative."""
    size = [0, float(rng.uniform(0, 8)), 10.0 ** rng.uniform(-300, 0), 8, 1, Fraction(int(rng.integers(1, 9)), 3)]
    value = size[rng.integers(len(size))]
    return -value if signed and rng.random() < 0.3 else value


def model(rng, *, deepest=64, signed=True, positions=POSITIONS):
    """Return a model; equal and different layers, prompts of 1 to 10^9 tokens."""
    depth = int(rng.choice([1, 2, 3, 6, 12, deepest], p=[0.2, 0.2, 0.2, 0.2, 0.15, 0.05]))
    prompt = int(np.rint(10 ** rng.uniform(0, 9)))
    kinds = int(rng.integers(1, 4))
    some = [
        rm.Layer(strength(rng, signed), strength(rng, signed), positions[rng.integers(len(positions))])
        for _ in range(kinds)
    ]
    return rm.RelayModel(prompt=prompt, layers=[some[i] for i in np.sort(rng.integers(kinds, size=depth))])


def model_of_heads(rng):
    """Return a model of one to three heads a layer, with recencies and sinks."""

    def head():
        position, recency = (some[rng.integers(len(some))] for some in (POSITIONS, RECENCIES))
        return rm.Head(strength(rng, rng.random() < 0.3), position, recency)

    def layer():
        heads = [head() for _ in range(rng.integers(1, 4))]
        return rm.Layer(heads=heads, residual=strength(rng, False), sink=rng.choice([0, 0, 0.5, 8]))

    depth = int(rng.integers(1, 5))
    some = [layer() for _ in range(rng.integers(1, 3))]
    layers = [some[i] for i in np.sort(rng.integers(len(some), size=depth))]
    return rm.RelayModel(prompt=int(np.rint(10 ** rng.uniform(0, 9))), layers=layers)


def token(rng):
    """Return a t: small, real, large, or beyond any use."""
    kinds = [
        int(rng.integers(1, 50)),
        float(rng.uniform(1e-3, 10)),
        float(10 ** rng.uniform(0, 300)),
        10**17 + 1,
        1e300,
    ]
    return kinds[rng.integers(len(kinds))]


def close(value, ball, *, absolute, what):
    """Demand that a float is what a ball says, to the promise."""
    exact = float(ball.mid())
    if not absolute and 0 < abs(exact) < SMALLEST:
        return  # the README promises nothing below the smallest normal float
    allowed = PROMISE * (1.0 if absolute else abs(exact))
    assert abs(value - exact) <= allowed, f"{what}: {value!r} for {exact!r}"


def heads(rng):
    """As `values`, with attention by relative position, where balls take no seconds: whole t from P on, no exponent."""
    one = model_of_heads(rng)
    agree(rng, one, one.prompt + int(token(rng)), exponent=False)


def values(rng):
    """One model, one t: the influence, the local exponent and the weight of a token against balls."""
    agree(rng, model(rng), token(rng))


def agree(rng, one, t, *, exponent=True):
    """Demand of a model at one t what `values` says."""
    what = f"{one!r} at t = {t!r}"
    D = rm.influence(one, t)
    close(D, rm.influence_ball(one, t, 30), absolute=False, what=f"influence of {what}")
    if D != 0 and exponent:
        close(rm.local_exponent(one, t), local_exponent_ball(one, t, 30), absolute=True, what=f"exponent of {what}")
    s, n = sorted(int(10 ** rng.uniform(0, 9)) for _ in range(2))
    weight = rm.token_influence(one, s, n)
    close(weight, token_influence_ball(one, s, n, 30), absolute=False, what=f"weight of {s} on {n} in {one!r}")


def bounds(rng):
    """Both sides of the bound around the value, at every t > 0."""
    one, t = model(rng, signed=False, positions=(0,)), token(rng)
    lower, upper = rm.bracket(one, t)
    D = rm.influence(one, t)
    assert lower <= D * (1 + PROMISE), f"{lower!r} above {D!r}: {one!r} at t = {t!r}"
    assert upper * (1 + PROMISE) >= D, f"{upper!r} below {D!r}: {one!r} at t = {t!r}"


def threads(rng):
    """Eight threads that take turns all the time give what one thread gives."""
    models = [model(rng, deepest=24) for _ in range(8)]
    times = [int(rng.integers(1, 2000)) for _ in models]
    ask = [
        lambda one, t: rm.influence(one, [t, 1e6]).tolist(),
        lambda one, t: rm.influence_ball(one, t, 40).str(40),
        lambda one, t: rm.influence_fraction(one, min(t, 60)),
    ]

    def everything(one, t):
        found = []
        for question in ask:
            try:
                found.append(question(one, t))
            except (ValueError, OverflowError) as error:
                found.append(str(error))
        return found

    alone = [everything(one, t) for one, t in zip(models, times, strict=True)]
    together = [None] * len(models)

    def work(i):
        together[i] = everything(models[i], times[i])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        running = [threading.Thread(target=work, args=(i,)) for i in range(len(models))]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert together == alone, f"{models!r} at {times!r}"


KINDS = {"models": values, "heads": heads, "bounds": bounds, "threads": threads}
