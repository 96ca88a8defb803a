"""Texts for tiny models."""

import pytest


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 60, (2, 20))
