"""Networks that misread a bias are refused."""

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.networks.protocol import RandomTokens, measure
from relaymodel.networks.protocol.probe import check_bias
from tests.networks.protocol.wrapped import Wrapped


@pytest.mark.parametrize(
    ("misread", "complaint"),
    [
        (lambda b: None, "hidden by a bias of -1e4 still reaches"),
        (lambda b: np.where(b < -100, -1e9, 0), "keys beside one with a bias of 1e4 still count"),
        (lambda b: np.where(np.abs(b) > 100, b, 0), "multiplies its effect by 1 instead of e"),
        (lambda b: b - 3, "a bias of 0 changes"),
        (lambda b: b / 1e4, "hidden by a bias of -1e4 still reaches"),
    ],
    ids=["ignored", "taken for yes or no", "small ones dropped", "shifted", "scaled away"],
)
def test_a_network_that_misreads_the_bias_is_refused(network, misread, complaint):
    check_bias(network)
    with pytest.raises(ValueError, match=complaint):
        measure(Wrapped(network, bias=misread), ([1, 2], [3, 4], RandomTokens(20)), bias=rm.PromptBias(1))
