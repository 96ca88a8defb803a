"""Architectures that cannot be built."""

from dataclasses import replace

import pytest

from tests.networks.transformer.shapes import GPT2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"depth": 0}, ValueError, "depth must be at least 1, got 0"),
        ({"width": 2.5}, TypeError, "width must be an integer"),
        ({"heads": True}, TypeError, "heads must be an integer"),
        ({"heads": 5}, ValueError, "heads must divide width if head_width is not given, got heads = 5 and width = 24"),
        ({"vocabulary": -1}, ValueError, "vocabulary must be at least 1"),
        ({"context": 0}, ValueError, "context must be at least 1"),
        ({"context": None}, ValueError, "context must be given for learned positions"),
        ({"key_heads": 3}, ValueError, "key_heads must divide heads = 4, got 3"),
        ({"head_width": 0}, ValueError, "head_width must be at least 1"),
        ({"head_width": 3, "positions": "rotary"}, ValueError, "head_width must be even for rotary positions, got 3"),
        ({"mlp_width": -1}, ValueError, "mlp_width must be at least 0"),
        ({"activation": "relu"}, ValueError, "activation must be one of"),
        ({"gated": 1}, TypeError, "gated must be True or False, got 1"),
        ({"norm": "batch"}, ValueError, "norm must be one of"),
        ({"positions": "alibi"}, ValueError, "positions must be one of"),
        ({"rotary_base": 0}, ValueError, "rotary_base must be positive"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be positive"),
        ({"epsilon": float("nan")}, ValueError, "epsilon must be finite"),
    ],
)
def test_architectures_that_cannot_be_built(change, error, words):
    with pytest.raises(error, match=words):
        replace(GPT2, **change)
