"""Published statements on the weights of single tokens: continuum densities, masks, U shapes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaincc

from relaymodel import plotting
from relaymodel.exact import token_influence
from relaymodel.model import Head, Layer, RelayModel
from relaymodel.report.evidence.row import Outcome, PublishedNumber, number, published
from relaymodel.simulation import token_weights

ALIBI_HEADS, ALIBI_TARGET = 8, 1024
ALIBI_DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)


def laguerre(depth: int, a: float, tau: float, order: int = 0) -> float:
    r"""Return a derivative in $\tau = \log 1/r$ of the density q of THEORY section 6, $\lambda = a$, $\rho = 1 - a$."""
    return sum(
        math.comb(depth, m) * a**m * (1 - a) ** (depth - m) * tau ** (m - 1 - order) / math.factorial(m - 1 - order)
        for m in range(1 + order, depth + 1)
    )


def first_cell(depth: int, a: float, n: int) -> float:
    """Return what the density holds between 0 and 1/n."""
    return sum(
        math.comb(depth, m) * a**m * (1 - a) ** (depth - m) * float(gammaincc(m, math.log(n)))
        for m in range(1, depth + 1)
    )


@published(
    "The continuum density of position bias",
    source="Chowdhury, Lost in the Middle at Birth, arXiv 2603.10123",
    says="The influence of relative position r on the last token is a closed-form density, with a "
    "logarithmic divergence "
    "at the first tokens and an atom at the last one; it is called exact in the continuous limit.",
)
def continuum(_: Path) -> Outcome:
    """Hold the density against exact weights of the first token, and its first correction in 1/n against the rest."""
    comparisons = []
    for depth, n, density_off, cell_off in ((24, 2048, -0.92, 0.06), (12, 10**6, -0.39, 0.14)):
        model = RelayModel.uniform(1, depth, 0.5, 0.5)
        exact = token_influence(model, 1, n)
        at = laguerre(depth, 0.5, math.log(n)) / n / exact - 1
        cell = first_cell(depth, 0.5, n) / exact - 1
        comparisons.append(
            PublishedNumber(
                f"weight of the first of {n} tokens, H = {depth}, a = 1/2",
                f"density q(1/n)/n = {(1 + at) * exact:.5f}, its cell {(1 + cell) * exact:.5f}",
                f"{exact:.5f}: the density is {100 * at:+.0f} %, the cell {100 * cell:+.0f} % off",
                abs(at - density_off) < 0.01 and abs(cell - cell_off) < 0.01,
            )
        )
    tau, left = math.log(4), []
    one, two = (laguerre(12, 0.5, tau, order) for order in (1, 2))
    for n in (1000, 10_000, 100_000):
        s = n // 4
        exact = n * token_influence(RelayModel.uniform(1, 12, 0.5, 0.5), s, n)
        difference = exact - laguerre(12, 0.5, tau)
        correction = (two + one) / (2 * s) + (one - two) / (2 * n)
        left.append((difference, correction, (difference - correction) * n * n))
    comparisons.append(
        PublishedNumber(
            "n times the exact weight at r = 1/4, less q(r): first correction, H = 12",
            "none given",
            f"{left[-1][0]:.4e} at n = 100 000, formula {left[-1][1]:.4e}; what is left times n^2: "
            + ", ".join(f"{row[2]:.2f}" for row in left),
            max(row[2] for row in left) < 1.02 * min(row[2] for row in left),
        )
    )
    return Outcome(
        tuple(comparisons),
        "Exact weights by `token_influence`. With q' for the derivative in log 1/r, the weight times n is "
        "q(r) + (q'' + "
        "q')/(2 r n) + (q' - q'')/(2 n) + O(1/n^2), because Gamma(s-x)/Gamma(s) = s^-x (1 + x(x+1)/(2s) + ...) in the "
        "generating function of section 2 (docs/theory, section 6); integrated over its cell the density "
        "lacks q''/(2 r "
        "n) + (q' - q'')/(2 n). Neither helps at the first token, where the correction is as large as the density.",
    )


@published(
    "A dead zone in the middle",
    source="Chowdhury, arXiv 2603.10123",
    says="Between primacy and the last token lies a factorial dead zone of order 1/(H-1)!.",
)
def dead_zone(_: Path) -> Outcome:
    """Compare the exact weight in the middle of 2048 tokens, with and without residual, with 1/(H-1)!."""
    depth, n = 24, 2048
    bare, mixed = (n * token_influence(RelayModel.uniform(1, depth, a, 1 - a), n // 2, n) for a in (1.0, 0.5))
    size = 1 / math.factorial(depth - 1)
    return Outcome(
        (
            PublishedNumber(
                "n times the weight of token n/2, n = 2048, H = 24, no residual",
                f"order {size:.1e}",
                f"{bare:.1e}, (log 2)^23/23! = {math.log(2) ** 23 * size:.1e}",
                bare < size,
            ),
            PublishedNumber(
                "the same with residual, a = 1/2",
                f"order {size:.1e}",
                f"{mixed:.1e}",
                mixed < size,
            ),
        ),
        "Exact weights by `token_influence`. Without residual only H-fold averages count. A residual "
        "mixes in all shorter "
        "paths, and the density in the middle is a Laguerre polynomial: smaller than at the ends, but by no factorial.",
        "the statement may be meant for attention alone; with residual it fails at this depth by orders of magnitude",
    )


@published(
    "How fast a causal mask forgets late tokens",
    source="Wu, Wang, Jegelka, Jadbabaie, On the Emergence of Position Bias in Transformers, arXiv 2502.01951",
    says="Without residual, the weight of token j after t layers is at most C (1 - (j-1) eps)^t, eps the least weight.",
)
def masks(_: Path) -> Outcome:
    """Hold that bound and the sharper C(n-1, j-1) j^-t against exact weights."""
    n, t = 10, 8
    model = RelayModel.uniform(1, t, 1, 0)
    comparisons = []
    for j, exact, bound in ((2, 0.0270, 0.430), (3, 0.0030, 0.168)):
        weight = token_influence(model, j, n)
        comparisons.append(number(f"exact weight of token {j} of {n} after {t} layers", exact, weight, digits=4))
        theirs, sharper = (1 - (j - 1) / n) ** t, math.comb(n - 1, j - 1) * float(j) ** -t
        comparisons.append(number(f"their bound, j = {j}, C = 1, eps = 1/{n}", bound, theirs, digits=3))
        comparisons.append(
            PublishedNumber(f"a sharper bound, j = {j}", "none", f"{sharper:.4f}", weight <= sharper < theirs)
        )
    worst = 0.0
    for depth in (1, 2, 4, 8, 16, 32):
        for size in (5, 50, 500):
            every = np.arange(1, size + 1)
            weights = token_influence(RelayModel.uniform(1, depth, 1, 0), every, size)
            logs = [math.log(math.comb(size - 1, k - 1)) - depth * math.log(k) for k in range(1, size + 1)]
            worst = max(worst, float(np.max(np.log(weights) - logs)))
    comparisons.append(
        PublishedNumber(
            "largest quotient of exact weight and sharper bound, n to 500, t to 32",
            "at most 1",
            f"{math.exp(worst):.12g}",
            worst <= 1e-12,
        )
    )
    return Outcome(
        tuple(comparisons),
        "For attention by relative position u the weight is C(n-1, j-1) E[u^(j-1) (1-u)^(n-j)], u the product of t "
        "independent positions; 1 - u is at most 1, so that the weight is at most C(n-1, j-1) E[u^(j-1)], which is "
        "C(n-1, j-1) j^-t for uniform attention: the rate of the exact solution (docs/theory, section 10).",
    )


def alibi(depth: int) -> RelayModel:
    """Return layers of eight heads with the slopes of ALiBi, 2^-h, relay 1 and residual 1."""
    heads = [Head(1 / ALIBI_HEADS, decay=math.exp(-(2.0**-h))) for h in range(1, ALIBI_HEADS + 1)]
    return RelayModel(1, [Layer(heads=heads, residual=1)] * depth)


def u_shapes() -> Any:
    """Draw the weights of ALiBi's heads and of uniform ones."""
    models = {f"ALiBi, L = {depth}": alibi(depth) for depth in (1, 4, 12, 24)}
    return plotting.plot_token_influence(models | {"uniform, L = 4": RelayModel.uniform(1, 4, 1)}, ALIBI_TARGET)


@published(
    "A U shape from a mask and a decay",
    source="arXiv 2502.01951; ALiBi's slopes from Press, Smith, Lewis, arXiv 2108.12409",
    says="The causal mask favours early tokens more with every layer, a decay with distance near ones: a trade-off.",
    figure=u_shapes,
)
def u_shape(_: Path) -> Outcome:
    """Find the least weight among tokens before the last one, by depth."""
    inside, rows = [], []
    for depth in ALIBI_DEPTHS:
        weights = token_weights(alibi(depth), ALIBI_TARGET)[:-1]
        least = int(np.argmin(weights))
        if 0 < least < weights.size - 1:
            inside.append(depth)
        rows.append(f"{depth}: {least + 1}")
    flat = [
        int(np.argmin(token_weights(RelayModel.uniform(1, depth, 1), ALIBI_TARGET)[:-1])) for depth in ALIBI_DEPTHS[1:]
    ]
    return Outcome(
        (
            PublishedNumber(
                "token of least weight by depth, ALiBi, n = 1024",
                "inside, for some depths",
                "; ".join(rows),
                bool(inside),
            ),
            PublishedNumber(
                "depths with a minimum inside",
                "a trade-off: neither the shallowest nor the deepest",
                f"{min(inside, default=0)} to {max(inside, default=0)}, of 1 to {ALIBI_DEPTHS[-1]}",
                bool(inside) and 1 not in inside and ALIBI_DEPTHS[-1] not in inside,
            ),
            PublishedNumber(
                "token of least weight, uniform attention",
                "the last",
                "the last before the query itself, at every depth",
                all(least == ALIBI_TARGET - 2 for least in flat),
            ),
        ),
        "`token_weights` of relay layers with heads that decay as exp(-slope d), slopes 1/2 to 1/256. Such heads are "
        "outside the exactly solvable class; the query's own weight, which the residual keeps large, is left out.",
        "a linear model with equal layers: that trained networks have this shape for this reason is not shown",
    )
