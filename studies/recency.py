"""What recency does to forgetting: D and alpha against gamma, exactly.

    python -m studies recency --csv docs/recency.csv --plot docs/recency.png

Relay 1/2, residual 1, 64 prompt tokens.  Heads that favour near keys (gamma > 0) see less of the beginning of the
context, p(0) = 1 - gamma of what uniform attention sees: they forget faster at every t, and their exponent has the same
limit, 1 (THEORY section 10).
"""

from pathlib import Path

import numpy as np

from relaymodel import RelayModel, influence, local_exponent
from studies import tables

PROMPT, RELAY = 64, 0.5
DEPTHS = (2, 6, 12)
GAMMAS = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.7, 0.8, 0.9)
TIMES = (1e2, 1e4, 1e6, 1e8, 1e10, 1e12)

MAKES = "docs/recency.csv, docs/recency.png"


def rows():
    """Yield depth, gamma, t, D and alpha."""
    for depth in DEPTHS:
        for gamma in GAMMAS:
            model = RelayModel.uniform(PROMPT, depth, RELAY, recency=gamma)
            for t, D, alpha in zip(TIMES, influence(model, TIMES), local_exponent(model, TIMES), strict=True):
                yield {
                    "depth": depth,
                    "recency": gamma,
                    "t": f"{t:.0e}",
                    "influence": f"{D:.6g}",
                    "local_exponent": f"{alpha:.6f}",
                }


def figure(depth=6):
    """Return a figure of D, relative to its value on the prompt, and of alpha for some gammas."""
    from matplotlib.figure import Figure

    t = np.geomspace(1, 1e8, 400)
    drawn = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = drawn.subplots(1, 2)
    shades = ["#9ecae1", "#222222", "#fdae6b", "#e6550d", "#a63603"]
    for gamma, colour in zip((-1.0, 0.0, 0.5, 0.7, 0.9), shades, strict=True):
        model = RelayModel.uniform(PROMPT, depth, RELAY, recency=gamma)
        text = {-1.0: r"$\gamma = -1$, far keys", 0.0: r"$\gamma = 0$, uniform"}.get(gamma, rf"$\gamma = {gamma}$")
        left.plot(t, influence(model, t) / float(model.saturation), color=colour, lw=2, label=text)
        right.plot(t, local_exponent(model, t), color=colour, lw=2, label=text)
    left.plot(t, PROMPT / (PROMPT + t), color="#777777", ls=":", lw=1.5, label="dilution $P/(P+t)$")
    left.set(xscale="log", yscale="log", ylabel="influence $D(t)$ / its value on the prompt", ylim=(1e-7, 2))
    right.axhline(1, color="#777777", ls=":", lw=1.5)
    right.text(1e5, 1.02, "limit of all of them", color="#555555", fontsize=9)
    right.axvspan(16, 2048, color="#000000", alpha=0.05, lw=0)
    right.text(180, 1.03, "what is measured", color="#555555", fontsize=9, ha="center")
    right.set(xscale="log", ylabel=r"local exponent $\alpha(t)$", ylim=(0, 1.1))
    for ax in (left, right):
        ax.set_xlabel("continuation token $t$")
        ax.grid(alpha=0.25)
    left.legend(frameon=False, fontsize=9)
    drawn.suptitle(f"Attention that favours near keys forgets faster ({depth} layers, relay 1/2, 64 prompt tokens)")
    return drawn


def taste(folder):
    return ["--csv", str(folder / "recency.csv"), "--plot", str(folder / "recency.png")]


def add_options(parser):
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--plot", type=Path)


def main(options):
    found = list(rows())
    for depth in DEPTHS:
        print(f"\nL = {depth}: alpha (D)\n{'gamma':>6s}" + "".join(f"{t:>20.0e}" for t in TIMES))
        for gamma in GAMMAS:
            line = [row for row in found if row["depth"] == depth and row["recency"] == gamma]
            cells = (f"{float(row['local_exponent']):.3f} ({float(row['influence']):.3g})" for row in line)
            print(f"{gamma:6.2f}" + "".join(f"{cell:>20s}" for cell in cells))
    if options.csv is not None:
        tables.write(options.csv, found)
    if options.plot is not None:
        figure().savefig(options.plot, dpi=130)
