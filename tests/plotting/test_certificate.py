"""The figure of a certificate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from relaymodel import certify
from relaymodel.plotting import plot_certificate
from tests.certificate.cases import example


def test_the_figure_shows_bounds_above_the_measurement(rng):
    certificate = certify(*example(rng))
    lines = plot_certificate(certificate, rungs=("section_8", "smallest"), layer=2).get_lines()
    measured = lines[-1].get_ydata()
    assert_allclose(measured, certificate.distance(2))
    assert all(np.all(line.get_ydata() >= measured) for line in lines[:-1])
    with pytest.raises(ValueError, match="rung must be one of 'weights'"):
        plot_certificate(certificate, rungs=("magic",))
    with pytest.raises(ValueError, match="layer must be from 0 to 3, got 4"):
        plot_certificate(certificate, layer=4)
    with pytest.raises(ValueError, match="differ at layer 0"):
        plot_certificate(certificate, layer=0)
    with pytest.raises(TypeError, match="must be a Certificate"):
        plot_certificate(certificate.ladder)
