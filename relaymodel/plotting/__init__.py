"""Figures.  Every `plot_*` draws into `ax`, or into a new figure if there is none, and returns the axes.

Nothing is shown and no global setting is changed: figures are plain `matplotlib.figure.Figure` objects, which
`save` writes to files.
"""

from relaymodel.plotting.bound import plot_bracket, plot_rate, plot_tightness
from relaymodel.plotting.certificate import plot_certificate
from relaymodel.plotting.control import plot_bias, plot_phase_diagram, plot_reminders
from relaymodel.plotting.decay import plot_curve, plot_difference, plot_influence, plot_power_law
from relaymodel.plotting.exponent import plot_local_exponent
from relaymodel.plotting.figure import check_suffix, grid, panels, save, style
from relaymodel.plotting.fitting import plot_fit, plot_residuals
from relaymodel.plotting.formula import formula_svg
from relaymodel.plotting.measurement import plot_layer_exponents, plot_measurement
from relaymodel.plotting.networks import plot_prediction
from relaymodel.plotting.spread import plot_continuum, plot_token_influence
from relaymodel.plotting.training import plot_training

__all__ = [
    "check_suffix",
    "formula_svg",
    "grid",
    "panels",
    "plot_bias",
    "plot_bracket",
    "plot_certificate",
    "plot_continuum",
    "plot_curve",
    "plot_difference",
    "plot_fit",
    "plot_influence",
    "plot_layer_exponents",
    "plot_local_exponent",
    "plot_measurement",
    "plot_phase_diagram",
    "plot_power_law",
    "plot_prediction",
    "plot_rate",
    "plot_reminders",
    "plot_residuals",
    "plot_tightness",
    "plot_token_influence",
    "plot_training",
    "save",
    "style",
]
