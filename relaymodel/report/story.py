"""The figure that tells the story of the report, in two panels."""

from typing import Any

from relaymodel import plotting
from relaymodel.model import RelayModel
from relaymodel.report.claim import Workspace

SHOWN_DEPTHS = (1, 2, 4, 8, 12)
MEASURED, REPORTED = (16, 4096), (0.2, 0.7)
"""Where networks are measured, and the exponents that are reported of them."""


def draw(workspace: Workspace) -> None:
    """Write the figures of the top: what is left of a prompt, and an exponent that tends to 1 too slowly to be seen."""
    models = {f"$L = {depth}$": RelayModel.uniform(prompt=64, depth=depth, relay=0.5) for depth in SHOWN_DEPTHS}
    (first, last), (low, high) = MEASURED, REPORTED

    def exponents(ax: Any) -> None:
        plotting.plot_local_exponent(models, plotting.grid(1, 1e300), ax=ax)
        ax.fill_between([first, last], low, high, color="0.8", zorder=0)
        ax.annotate("measured on networks", (last, low), (4, 4), textcoords="offset points", fontsize=10)

    workspace.image("forgotten", "", plotting.plot_influence(models, plotting.grid(1, 1e8)))
    workspace.image("exponent_rises", "", plotting.panels(exponents))
