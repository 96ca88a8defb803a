"""Curves to estimate from, evaluated by themselves so that nothing here rests on relaymodel.exact."""

from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.special import digamma, zeta
from scipy.stats import binom

from relaymodel import Curve, RelayModel, influence, simulate

DATA = Path(__file__).parents[1] / "data"
DENSE = np.arange(1.0, 2049.0)
SPARSE = np.unique(np.rint(np.geomspace(4, 4096, 70)))


def relay_curve(prompt, depth, relay, t):
    """D(t) and alpha(t) of equal layers with uniform attention, by THEORY sections 2 and 3, in plain float64.

    An evaluation of its own, so that nothing here rests on relaymodel.exact; good to 1e-12 for t >> prompt/100.
    """
    t = np.asarray(t, dtype=float)
    N = prompt + t
    e = np.array([float(c) for c in np.polynomial.polynomial.polypow([1, relay], depth)])
    E = np.array([e[k + 1 :].sum() for k in range(depth)])
    p = [None, digamma(N + 1) - digamma(prompt + 1)]
    p += [zeta(i, prompt + 1) - zeta(i, N + 1) for i in range(2, depth + 1)]
    h = [np.ones_like(N)]
    for k in range(1, depth):
        h.append(sum(p[i] * h[k - i] for i in range(1, k + 1)) / k)
    slope = [sum((zeta(i + 1, N + 1) * h[k - i] for i in range(1, k + 1)), np.zeros_like(N)) for k in range(depth)]
    total = sum(E[k] * h[k] for k in range(depth))
    return prompt / N * total, t / N - t * sum(E[k] * slope[k] for k in range(depth)) / total


def noise(rng, size, correlated=0.0, length=1.0):
    """Noise of unit variance on t = 1, 2, ...: the share `correlated` decays as exp(-|t - t'|/length)."""
    white = rng.standard_normal(size)
    if not correlated:
        return white
    r = np.exp(-1 / length)
    drive = rng.standard_normal(size) * np.sqrt(1 - r * r)
    drive[0] = rng.standard_normal()
    return np.sqrt(1 - correlated) * white + np.sqrt(correlated) * lfilter([1], [1, -r], drive)


def fewest(sets):
    """How many of so many intervals of 95 % hold the truth, or fewer once in 500."""
    return binom.ppf(0.002, sets, 0.95)


def log_integers(first, last, count):
    return np.unique(np.rint(np.geomspace(first, last, count)))


def curve_of(depth, relay, t=SPARSE, *, prompt=64, position=0, factor=3.0, wiggle=0.0):
    D = influence(RelayModel.uniform(prompt, depth, relay, 1, position), t)
    return Curve(t, factor * D * np.exp(wiggle), provenance={"prompt": str(prompt)})


def biased_curve(depth, relay, beta, last=2048, prompt=64):
    model = RelayModel.uniform(prompt, depth, relay)
    return simulate(model, last, samples=np.arange(1, last + 1), bias=lambda t: beta * np.log1p(t / prompt))
