"""Figures of biases, reminders and phases."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

from relaymodel import PromptBias, Reminders, plotting
from relaymodel.control import (
    biased_influence,
    phase_diagram,
    reminder_influence,
    reminder_limit,
)
from tests.control.cases import SIX

DIAGRAM = phase_diagram(SIX, np.linspace(0, 2, 9), horizon=1000)


PLOTS = {
    "bias": lambda ax=None: plotting.plot_bias(SIX, {"a": PromptBias(0), "b": PromptBias(1.5)}, [1, 1e3, 1e5], ax=ax),
    "reminders": lambda ax=None: plotting.plot_reminders(SIX, Reminders(64, 8), [1, 60, 1e3, 1e4], level=2, ax=ax),
    "phases": lambda ax=None: plotting.plot_phase_diagram(DIAGRAM, ax=ax),
}


@pytest.mark.slow
@pytest.mark.parametrize("draw", PLOTS.values(), ids=PLOTS.keys())
def test_figures_are_labelled_and_legible(draw):
    ax = draw()
    assert isinstance(ax, Axes)
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert min(text.get_fontsize() for text in ax.figure.findobj(Text) if text.get_text()) >= 11
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 3
    other = plotting.panels().axes[0]
    assert draw(other) is other


def test_figures_show_the_values():
    curves = {line.get_label(): line.get_data() for line in PLOTS["bias"]().get_lines()}
    np.testing.assert_allclose(curves["b"][1], biased_influence(SIX, PromptBias(1.5), [1, 1e3, 1e5]))
    ax = PLOTS["reminders"]()
    t, D = ax.get_lines()[0].get_data()
    assert t.tolist() == [1, 1000, 10000]  # t = 60 is a reminder
    np.testing.assert_allclose(D, reminder_influence(SIX, Reminders(64, 8), t))
    plateau = float(reminder_limit(SIX, Reminders(64, 8)).between)
    assert [2, plateau] == sorted(line.get_ydata()[0] for line in ax.get_lines() if len(set(line.get_ydata())) == 1)[
        ::-1
    ]
    mesh = PLOTS["phases"]().collections[0].get_array()
    names = np.array(["decay", "plateau", "reversal"])[np.asarray(mesh, dtype=int)]
    assert names.tolist() == DIAGRAM.phases.tolist()
    with pytest.raises(TypeError, match="biases must be"):
        plotting.plot_bias(SIX, 1, [1, 2])
    with pytest.raises(ValueError, match="at least two strengths"):
        plotting.plot_phase_diagram(phase_diagram(SIX, [1]))
