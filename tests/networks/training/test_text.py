"""Bytes as tokens."""

from relaymodel.networks.training.text import Bytes


def test_bytes_are_tokens():
    assert Bytes().encode("é!", add_special_tokens=False) == [195, 169, 33]
