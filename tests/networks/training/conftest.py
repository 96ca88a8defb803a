"""What all tests of trainings need."""

import pytest

from relaymodel.networks.training import Training


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As in the quick recipe, so that measurements agree to the last bit."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def training(grown):
    return Training.read(grown)
