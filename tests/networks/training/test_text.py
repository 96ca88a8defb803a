"""Bytes and byte pairs as tokens."""

import numpy as np
import pytest

from relaymodel.networks.texts import english
from relaymodel.networks.training import Recipe
from relaymodel.networks.training.text import BytePairs, Bytes, split

tokenizers = pytest.importorskip("tokenizers")


def test_bytes_are_tokens():
    assert Bytes().encode("é!", add_special_tokens=False) == [195, 169, 33]


def test_units_are_the_most_frequent_pairs():
    """ab stands 50 times, " a" 49 times, cd 20 times; then " ab" is the most frequent."""
    text = "ab " * 50 + "cd " * 20
    units = BytePairs(text, 258)
    assert units.encode("ab") == [256]
    assert units.encode("q ab") == [units.encode("q")[0], 257]
    assert len(units.encode("cd")) == 2


def test_units_are_learned_on_the_training_part_and_shorten_the_text():
    recipe = Recipe(vocabulary=400, positions="rotary", pairs=2)
    text = english()[:60_000]
    corpus, same = split(text, recipe), split(text[:54_000] + "z" * 6_000, recipe)
    assert np.array_equal(corpus.training, same.training)  # the held-out end does not count
    assert 256 <= corpus.training.max() < 400
    assert corpus.training.size < 0.8 * 54_000
    assert corpus.windows(recipe).shape[1] == recipe.context
    assert corpus.batch(recipe, 0, 3).shape == (recipe.batch, recipe.context)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"vocabulary": 255}, "vocabulary must be from 256"),
        ({"positions": "absolute"}, "positions must be"),
        ({"positions": "rotary", "width": 20}, "even for rotary"),
    ],
)
def test_recipes_that_cannot_be(setting, words):
    with pytest.raises(ValueError, match=words):
        Recipe(**setting)
