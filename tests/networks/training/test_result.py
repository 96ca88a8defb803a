"""What came of a training: means over seeds, files."""

import numpy as np

from relaymodel.networks.training import Training
from tests.networks.training.grown import PLAIN, planted


class TestProgression:
    def test_mean_and_error_over_seeds(self):
        one = planted({PLAIN: (0.4, 0.6)}).alpha(PLAIN)
        np.testing.assert_allclose(one.alpha, [0.4, 0.42, 0.6])
        np.testing.assert_allclose(one.stderr, 0.01)  # +-d: standard deviation d sqrt 2, over sqrt 2

    def test_steps_that_a_seed_has_not_reached_are_left_out(self):
        whole = planted({PLAIN: (0.4, 0.6)})
        short = Training(None, {}, tuple(row for row in whole.rows if (row.seed, row.step) != (1, 100)))
        assert short.alpha(PLAIN).steps.tolist() == [0, 10]
