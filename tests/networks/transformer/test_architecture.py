"""Architectures that cannot be built."""

import tracemalloc
from dataclasses import fields, replace

import numpy as np
import pytest

from relaymodel.networks.transformer import Architecture, Transformer, Weights
from tests.networks.transformer.shapes import GPT2, KINDS


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
        ({"activation": "tanh"}, ValueError, "activation must be one of"),
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


@KINDS
def test_parameters_are_counted(shape, rng):
    weights = Weights.random(shape, rng)
    arrays = [getattr(part, field.name) for part in (weights, *weights.blocks) for field in fields(part)]
    assert shape.parameters == sum(array.size for array in arrays if isinstance(array, np.ndarray))


def test_memory_and_operations_grow_as_they_must():
    """Twice the layers: the same memory, twice the operations; many more tokens: attention, which is quadratic."""
    a = replace(GPT2, depth=2)
    assert replace(a, depth=4).memory(1000) == a.memory(1000)
    assert replace(a, depth=4).operations(1000) == 2 * a.operations(1000)
    assert a.operations(10**7) / a.operations(10**6) == pytest.approx(100, rel=0.01)
    assert a.memory(10**6) / a.memory(10**5) == pytest.approx(10, rel=0.01)


def test_memory_is_what_a_run_takes(rng):
    """Seen by the allocator itself."""
    a = Architecture(depth=1, width=64, heads=4, vocabulary=256, positions="none")
    network, tokens = Transformer.random(a, rng), rng.integers(0, 256, (2, 3000))
    tracemalloc.start()
    network.observe(tokens, lambda *_: None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 < a.memory(3000) / peak < 2
