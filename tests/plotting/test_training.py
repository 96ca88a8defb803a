"""The figure of a training."""

import numpy as np
import pytest

from relaymodel.plotting import plot_training
from tests.networks.training.grown import ADDED, PLAIN, REMOVED, TRAINED, planted


class TestFigure:
    def test_lines_and_bars(self):
        training = planted({PLAIN: (0.4, 0.6), TRAINED: (0.1, -0.1), ADDED: (0.1, 0.2), REMOVED: (0.4, 0.7)})
        ax = plot_training(training)
        bars = {container.get_label(): container for container in ax.containers}
        assert list(bars) == [PLAIN, TRAINED, "bias at measurement only"]
        for arm, label in ((PLAIN, PLAIN), (TRAINED, TRAINED), (ADDED, "bias at measurement only")):
            line, _, (bar,) = bars[label].lines
            one = training.alpha(arm)
            np.testing.assert_array_equal(line.get_xdata(), [0, 10, 100])
            np.testing.assert_array_equal(line.get_ydata(), one.alpha)
            ends = np.array(bar.get_segments())[:, :, 1]
            np.testing.assert_allclose(ends.T, [one.alpha - one.stderr, one.alpha + one.stderr])
        transform = ax.transData.transform
        x = [transform((step, 0))[0] for step in (0, 10, 100)]
        assert ax.get_xlim()[0] < 0 < x[0] < x[1] < x[2]
        assert (x[2] - x[1]) / (x[1] - x[0]) == pytest.approx(np.log(11 / 2) / np.log(2), rel=1e-6)
        assert {0.0, 100.0} <= set(ax.get_xticks())

    def test_what_cannot_be_drawn(self):
        training = planted({PLAIN: (0.4, 0.6)})
        with pytest.raises(TypeError, match="training must be a Training"):
            plot_training("folder")
        with pytest.raises(ValueError, match="arm must be one of 'plain'"):
            plot_training(training, arms=[ADDED])
        with pytest.raises(ValueError, match="arms must name at least one"):
            plot_training(training, arms=[])
