"""Claims about the local exponent (THEORY section 3)."""

import numpy as np

from relaymodel import plotting
from relaymodel.exact import local_exponent
from relaymodel.inference import extrapolate_exponent, fit_power_law
from relaymodel.model import RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.report.claims.solution import DEPTHS
from relaymodel.simulation import simulate


@claim("The local exponent rises to 1, where a straight fit reads a smaller exponent with tiny error bars", section="3")
def exponent_rises_to_one(workspace: Workspace) -> Verdict:
    """Show that the exact exponent rises; extrapolate it from simulated data; fit the same data by a straight line."""
    models = {f"$L = {depth}$": RelayModel.uniform(prompt=10, depth=depth, relay=1) for depth in DEPTHS}
    t = plotting.grid(1, 1e300, 400)
    rising, rows = True, []
    deviations, fits = [], []
    for depth, model in zip(DEPTHS, models.values(), strict=True):
        alpha = local_exponent(model, t)
        # beside 1 itself float64 has no room left to rise: L = 1 gets there to the last digit
        rising &= bool(np.all(np.diff(alpha) > -1e-12)) and 1 - alpha[-1] < 1.01 * (depth - 1) / np.log(1e300) + 1e-12
        curve = simulate(model, 10**7, samples=12).window(t_min=100)
        fit, limit = fit_power_law(curve, t_min=100), extrapolate_exponent(curve, t_min=100)
        off = abs(fit.alpha - 1) / fit.naive_stderr
        deviation = abs(limit.value - 1) / limit.stderr if limit.stderr else float(limit.value != 1)
        deviations.append(deviation)
        fits.append(1 - fit.alpha)
        rows.append((depth, float(alpha[-1]), fit.alpha, fit.naive_stderr, off, limit.value, limit.stderr, deviation))
    workspace.table(
        "exponents",
        "The limit is 1 for every depth. The straight fit and the extrapolation use the same simulated data, "
        "t = 100 to 10⁷, P = 10, λ = ρ = 1; 'off' is the distance from 1 in standard errors.",
        (
            "depth",
            "exact α(1e300)",
            "straight fit",
            "its textbook stderr",
            "off",
            "extrapolated",
            "stderr",
            "off (extr.)",
        ),
        rows,
    )
    workspace.image(
        "local_exponent",
        "Exact local exponents. The axis of t is logarithmic in log t: the rise to 1 takes that long.",
        plotting.plot_local_exponent(models, t),
    )
    caption = "A straight line through the simulated curve of depth 6, which bends all the way."
    workspace.image("straight_fit", caption, plotting.plot_power_law(curve, fit))
    points = [(f"{x:.17g}", *(float(local_exponent(model, x)) for model in models.values())) for x in t[::4].tolist()]
    workspace.table("local_exponent", "Exact local exponents.", ("t", *(f"L={depth}" for depth in DEPTHS)), points)
    return Verdict(
        rising and max(deviations) <= 2 and min(fits[1:]) > 0.05,
        f"extrapolated limits lie within {max(deviations):.2g} standard errors of 1; the straight fit is short by "
        f"{min(fits[1:]):.2f} to {max(fits):.2f} for depth 2 to 6, {max(row[4] for row in rows):.0f} of its error bars",
        (
            "For uniform attention $\\alpha(t) = 1 - (L-1)/\\log t + O(1/\\log^2 t)$: it rises to 1 and is never "
            "there. A straight line through log-log points measures the window, not the limit. Extrapolation in "
            "powers of $1/\\log t$ finds the limit from the same data, and says how well. The straight fit's stderr "
            "in the table is the textbook one, which takes the bend for noise; the one in the figure also "
            "counts the drift "
            "of the exponent over the window.",
        ),
    )
