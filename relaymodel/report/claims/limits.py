"""Claims about the continuum and about infinite depth (THEORY section 6)."""

import math
from collections.abc import Callable

import numpy as np

from relaymodel import plotting
from relaymodel.derivation import Density, P, derive, infinite_depth_density, t
from relaymodel.derivation.functions import numeric
from relaymodel.exact import influence, local_exponent, token_influence
from relaymodel.model import RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim

LENGTH = 10**6


def share(density: Density) -> Callable[[int, int], float]:
    """Return the continuum's weight of all tokens up to a source on a position, as a function of both."""
    weight = numeric(density.influence, (P, t), 17)
    return lambda source, position: float(weight(source, position - source)) if source else 0.0


@claim("Continuum and infinite depth are good where they should be, and only there", section="6")
def continuum_limits(workspace: Workspace) -> Verdict:
    """Compare Laguerre and Bessel densities with exact values: near the first tokens, and far from them."""
    model = RelayModel.uniform(prompt=1, depth=12, relay=0.5, residual=0.5)
    below = share(derive(model).continuum_density)
    rows = []
    for source in (1, 2, 3, 10, 30, 100, 1000, 10_000, 100_000, 900_000):
        exact = token_influence(model, source, LENGTH)
        # the weight that the continuum gives to the token's cell (s-1)/n < r < s/n
        cell = below(source, LENGTH) - below(source - 1, LENGTH)
        rows.append((source, exact, cell, cell / exact - 1))
    first, late = rows[0][3], max(abs(row[3]) for row in rows if row[0] >= 1000)
    workspace.table(
        "continuum",
        "Weight of token s on position n = 10⁶ and the continuum's weight of its cell; L = 12, λ = ρ = 1/2.",
        ("s", "exact", "continuum", "relative error"),
        rows,
    )
    depths, strength, prompt = (4, 8, 16, 32, 64), 2.0, 1000
    bessel = share(infinite_depth_density(2))
    comparison = []
    for steps in (10**4, 10**6, 10**9):
        limit = bessel(prompt, prompt + steps)
        finite = (influence(RelayModel.uniform(prompt, depth, strength / depth), steps) for depth in depths)
        comparison.append((steps, limit, *(value / limit - 1 for value in finite)))
    workspace.table(
        "infinite_depth",
        "Relative distance of D(t) for L layers of strength 2/L from the limit of infinite depth; P = 1000.",
        ("t", "infinite depth", *(f"L = {depth}" for depth in depths)),
        comparison,
    )
    halving = [row[i] / row[i + 1] for row in comparison for i in (4, 5)]
    at = 1e300
    slow = [local_exponent(RelayModel.uniform(prompt, depth, strength / depth), at) for depth in depths]
    bessel_exponent = 1 - math.sqrt(strength / math.log(at))
    workspace.image(
        "continuum",
        "Weights of the tokens on position n = 10⁶, and the continuum's density; L = 12, λ = ρ = 1/2. Below the first "
        "token the density goes on rising, so that its cell holds more than the exact weight.",
        plotting.plot_continuum(model, LENGTH),
    )
    passed = 0.13 < first < 0.15 and late < 1e-2 and all(1.5 < ratio < 2.5 for ratio in halving)
    passed &= bool(np.all(np.diff(slow) < 0))
    return Verdict(
        passed,
        f"the continuum's weight of the first token's cell is {100 * first:.0f} % off, {late:.1e} from token 1000 on; "
        f"doubling L from 16 on brings infinite depth {min(halving):.2f} to {max(halving):.2f} times closer",
        (
            "The continuum replaces tokens by relative positions $r = s/n$. It is good to a relative error of order "
            "$1/s$: excellent in the middle of a long text, 14 % too high for its first token when integrated over the "
            "token's cell (the density at $1/n$ itself is 39 % low), which is where attention sinks are discussed. "
            "With $\\lambda = c/L$ and growing depth the density becomes a Bessel function, with "
            "error of order $1/L$ at fixed t; the exponent still tends to 1, as $1 - \\sqrt{c/\\log t}$ "
            f"(at t = 1e300 and c = 2 that is {bessel_exponent:.3f}; exact: "
            + ", ".join(f"{value:.3f} for L = {depth}" for value, depth in zip(slow, depths, strict=True))
            + ").",
        ),
    )
