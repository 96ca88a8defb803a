"""Claims about attention by relative position (THEORY section 10)."""

import math
from fractions import Fraction

import numpy as np

from relaymodel import plotting
from relaymodel.exact import influence, local_exponent
from relaymodel.model import Head, Layer, RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.simulation import simulate

RECENCIES = (-1.0, 0.0, 0.5, 0.7, 0.9)
SPAN = (16.0, 2048.0)


@claim("Attention that favours near keys has a larger exponent at every t, and the same limit, 1", section="10")
def recency_raises_the_exponent(workspace: Workspace) -> Verdict:
    """Order exact exponents by recency, fit the window, and extrapolate from t = 1e300."""
    far = np.array([1e100, 1e200, 1e300])
    everywhere = np.concatenate([np.geomspace(1, 1e12, 300), far])
    inside = (everywhere >= SPAN[0]) & (everywhere <= SPAN[1])
    rows, ordered, apart, worst, agree = [], True, math.inf, 0.0, 0.0
    for depth in (2, 6, 12):
        models = {recency: RelayModel.uniform(64, depth, 0.5, recency=recency) for recency in RECENCIES}
        alphas = np.array([local_exponent(model, everywhere) for model in models.values()])
        gaps = np.diff(alphas, axis=0)
        ordered &= bool(np.all(gaps > 0))
        apart = min(apart, float(gaps[:, inside].min()))
        for (recency, model), alpha in zip(models.items(), alphas, strict=True):
            # alpha is a series in 1/log t, known at three far t to 1e-12: its value at 1/log t = 0
            limit = float(np.polyfit(1 / np.log(far), alpha[-3:], 2)[-1])
            curve = simulate(model, int(SPAN[1]), samples=64).window(t_min=SPAN[0])
            fitted = -float(np.polyfit(np.log(curve.t), np.log(curve.distance), 1)[0])
            agree = max(agree, float(np.abs(curve.distance / influence(model, curve.t) - 1).max()))
            rows.append((depth, recency, 1 - recency, fitted, float(alpha[-1]), limit))
            worst = max(worst, abs(limit - 1))
    workspace.table(
        "recency",
        "Slope of a simulated curve from t = 16 to 2048, the exact exponent at t = 1e300, and its limit, extrapolated "
        "in 1/log t; P = 64, λ = 1/2.",
        ("depth", "recency γ", "p(0)", "slope in the window", "exact α(1e300)", "limit"),
        rows,
    )
    shown = {rf"$\gamma = {recency:g}$": RelayModel.uniform(64, 6, 0.5, recency=recency) for recency in RECENCIES}
    workspace.image(
        "recency",
        "Exact local exponents of 6 layers, λ = 1/2, P = 64, for attention that falls with distance as $d^{-\\gamma}$.",
        plotting.plot_local_exponent(shown, plotting.grid(1, 1e12, 200)),
    )
    six = [row for row in rows if row[0] == 6]
    return Verdict(
        ordered and worst < 0.01 and agree < 1e-10,
        f"at {everywhere.size} t from 1 to 1e300 the exponent rises with recency, in the window by {apart:.3f} or more "
        f"from one to the next (6 layers: {six[0][3]:.2f} to {six[-1][3]:.2f}); all {len(rows)} limits lie within "
        f"{worst:.4f} of 1",
        (
            "A head that weighs a key at distance d by $d^{-\\gamma}$ gives the beginning of the context the density "
            "$p(0) = 1-\\gamma$ of what uniform attention gives it. It is a weaker relay, so that the exponent is "
            "nearer to that of dilution at every t, but it scales with the context as uniform attention does, and the "
            "limit stays 1: training may raise the exponent of a window without touching the theorem.",
            f"The simulated curves are exact within {agree:.1e}.",
        ),
    )


@claim(
    "The constant of the decay is the density of attention at the beginning: "
    r"$D \sim \prod_l(\sum_h\lambda_{lh}\,p_h(0))\,P(\log t)^{L-1}/((L-1)!\,t)$",
    section="10",
)
def density_is_the_constant(workspace: Workspace) -> Verdict:
    """Read the leading coefficient off exact values up to t = 1e300 and compare it with the product of densities."""
    rows, worst = [], 0.0
    models = {
        "6 layers, recency 7/10": [Layer(0.5, recency=Fraction(7, 10))] * 6,
        "12 layers, recency -2": [Layer(0.2, recency=-2)] * 12,
        "2 layers, recency 99/100": [Layer(1, recency=Fraction(99, 100))] * 2,
        "3 layers of two heads": [Layer(heads=[Head(0.3, recency=0.75), Head(0.2, recency=-1)], residual=0.5)] * 3,
        "4 unequal layers": [Layer(Fraction(l, 3), recency=Fraction(l, 6) - 1) for l in range(1, 5)],
        "3 layers, half on late keys": [Layer(heads=[Head(0.5, recency=0.5), Head(0.5, position=1)])] * 3,
    }
    for name, layers in models.items():
        model, depth = RelayModel(64, layers), len(layers)
        # t D/P is a polynomial in log t up to terms of order 1/t: its highest divided difference is its coefficient
        log = np.linspace(math.log(1e60), math.log(1e300), depth)
        t = np.exp(log)
        scaled = influence(model, t) * t / model.prompt
        weights = np.array([1 / np.prod([a - b for b in log if b != a]) for a in log])
        found = float(weights @ scaled) * math.factorial(depth - 1)
        lost = float(np.abs(weights * scaled).sum() / abs(weights @ scaled))  # how much of it cancels
        expected = float(math.prod(sum(Fraction(h.relay) * density(h) for h in layer.heads) for layer in layers))
        rows.append((name, expected, found, found / expected - 1, float(scaled[-1] / (log[-1] ** (depth - 1)))))
        worst = max(worst, abs(found / expected - 1) / lost)
    workspace.table(
        "densities",
        "The product of densities, the coefficient of exact values between t = 1e60 and 1e300, and how much of D at "
        "t = 1e300 is the leading term's power of log t alone; P = 64.",
        (
            "model",
            r"$\prod_l\sum_h\lambda_{lh}p_h(0)$",
            "from exact values",
            "relative difference",
            r"$t\,D/(P\log^{L-1}t)$ at 1e300",
        ),
        rows,
    )
    return Verdict(
        worst < 1e-11,
        f"the coefficients of {len(rows)} models, read off exact values up to t = 1e300, are the products of densities "
        f"within {max(abs(row[3]) for row in rows):.1e}",
        (
            "Near z = 0 the eigenvalue of a head of position exponent 0 is $p(0)/z$, with p the density of its "
            "attention over the relative position $u = s/n$ and $p(0) = 1-\\gamma$; a head whose density vanishes at "
            "the beginning adds nothing there. Hence the pole of order L, and",
            "$$ D(t) \\sim \\prod_l \\Bigl(\\sum_h \\lambda_h p_h(0)\\Bigr) \\frac{P (\\log t)^{L-1}}{(L-1)!\\, t} .",
            "What counts for the far future is how much attention falls on the beginning of the context.",
        ),
    )


def density(head: Head) -> Fraction:
    """Return p(0) of a head of position exponent 0 or more, relative to uniform attention."""
    return 1 - Fraction(head.recency) if head.position == 0 else Fraction(0)
