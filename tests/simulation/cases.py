"""Models and layouts that the tests of the simulation share."""

from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
from hypothesis import strategies as st

from relaymodel import Layer, RelayModel
from relaymodel.simulation import Layout, Simulation, SimulationState
from tests import strategies

TINY = st.builds(Layout, rows=st.integers(1, 4), columns=st.sampled_from([1, 2, 4]))


def models(depth=4, position=strategies.position_exponents):
    return strategies.models(strategies.signed_strengths, strategies.signed_strengths, position, depth=depth, prompt=6)


def sizes(model):
    """The model whose values are the sums of the sizes of all terms: what rounding errors are relative to."""
    return RelayModel(model.prompt, [Layer(abs(l.relay), abs(l.residual), l.position) for l in model.layers])


def assert_close(values, exact, scale, tolerance=2e-14):
    for value, x, size in zip(values.tolist(), exact, scale, strict=True):
        assert abs(Fraction(value) - x) <= tolerance * size


def every(steps):
    return np.arange(1, steps + 1)


def in_pieces(model, stops, folder, layout, **extras):
    """Return t and D of a simulation that ends at each stop, is written to a file, and goes on from there."""
    pieces, state, file = [], None, folder / "state.npz"
    for first, stop in pairwise([0, *stops]):
        simulation = Simulation(model, state=state, layout=None if state else layout, **extras)
        pieces.append(simulation.advance(stop, samples=range(first + 1, stop + 1)))
        simulation.state.to_npz(file, overwrite=True)
        state = SimulationState.from_npz(file)
        assert state == simulation.state
        assert state.t == stop
    return tuple(np.concatenate(part) for part in zip(*pieces, strict=True))


@cache
def uniform_influence(prompt, n, strengths):
    """D at position n by the positive form of THEORY section 2: all positions 0, all residuals 1."""
    with mpmath.workdps(40):
        P, N, L = mpmath.mpf(prompt), mpmath.mpf(n), len(strengths)
        e = [mpmath.mpf(1)] + [mpmath.mpf(0)] * L
        for relay in strengths:
            for k in range(L, 0, -1):
                e[k] += mpmath.mpf(relay) * e[k - 1]
        p = [mpmath.psi(0, N + 1) - mpmath.psi(0, P + 1)]
        p += [mpmath.zeta(i, P + 1) - mpmath.zeta(i, N + 1) for i in range(2, L)]
        h = [mpmath.mpf(1)]
        for k in range(1, L):
            h.append(mpmath.fsum(p[i] * h[k - 1 - i] for i in range(k)) / k)
        return P / N * mpmath.fsum(mpmath.fsum(e[k + 1 :]) * h[k] for k in range(L))


def relative_error(value, exact):
    return float(abs(mpmath.mpf(float(value)) / exact - 1))


def uneven(depth):
    return tuple(np.linspace(0.5, 1, depth).tolist())


MODEL = RelayModel.uniform(prompt=4, depth=2, relay=1)
