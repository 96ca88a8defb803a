"""Pairs: texts and tokens, what follows them, what is unusable."""

import re

import numpy as np
import pytest

import relaymodel as rm
from relaymodel.networks.protocol import Generated, RandomTokens, draw_pairs, measure
from tests.networks.protocol.wrapped import Wrapped


def test_texts_are_encoded_before_they_are_joined(network):
    def merging(text):
        return [ord(c) for c in text.replace("ab", "\x01")]

    wrapped = Wrapped(network)
    wrapped.encode = merging
    with pytest.raises(ValueError, match=r"equally many tokens, got 3 and 2 in pair 0; prompt = 2 cuts both"):
        measure(wrapped, ("xya", "xab", "b" * 30))
    measured = measure(wrapped, ("xya", "xza", "b" * 30))  # the seam "ab" stays two tokens
    assert measured.prompt == 3
    assert measured.t[-1] == 30
    assert measure(wrapped, rm.Pairs("xya", "xab", "b" * 30, prompt=2)).prompt == 2


def test_many_pairs_and_their_continuations(network):
    prompts = ["one prompt", "two prompt"], ["a  prompts", "other text"]
    shared = measure(network, (*prompts, "and so on " * 5))
    assert (shared.pairs, shared.prompt, shared.t[-1]) == (2, 10, 50)
    own = measure(network, (*prompts, ["and so on " * 5, "different " * 5]))
    np.testing.assert_array_equal(own.euclidean[0], shared.euclidean[0])
    assert np.any(own.euclidean[1] != shared.euclidean[1])
    random = measure(network, (*prompts, RandomTokens(50, seed=2)))
    assert np.any(random.norms[0, 0] != random.norms[0, 1])


def test_generated_continuations_follow_prompt_a(network):
    made = measure(network, (["abcd", "wxyz"], ["efgh", "efgh"], Generated(20, seed=4)))
    expected = network.generate(list(b"abcd"), 20, seed=4)
    direct = measure(network, (list(b"abcd"), list(b"efgh"), expected))
    np.testing.assert_array_equal(made.euclidean[0], direct.euclidean[0])


@pytest.mark.parametrize(
    ("a", "b", "after", "options", "error", "message"),
    [
        ([1, 2], [1, 2], [1, 2], {}, ValueError, r"must differ, got the same 2 tokens in pair 0"),
        ([1, 2], [1, 256], [1, 2], {}, ValueError, r"prompt_b must have token ids from 0 to 255, got 256"),
        ([1, 2], [1, -3], [1, 2], {}, ValueError, r"got -3"),
        ([1.5, 2], [1, 3], [1, 2], {}, TypeError, r"prompt_a must be a text or a sequence of token ids"),
        ([True, False], [1, 3], [1, 2], {}, TypeError, r"prompt_a must be numbers, not booleans"),
        ([1, 2], [1, 3], [5], {}, ValueError, r"continuation must have at least 2 tokens, got 1"),
        ("", "", [1, 2], {}, ValueError, r"prompt_a must have at least 1 token"),
        ([[1, 2]], [[1, 3], [2, 3]], [1, 2], {}, ValueError, r"equally many prompts, got 1 and 2"),
        ([[1, 2], [1, 2]], [[2, 2], [2, 1]], [[1, 2]] * 3, {}, ValueError, r"one for each of 2 pairs, got 3"),
        ([[1, 2], [1, 2, 3]], [[2, 2], [2, 1, 1]], [1, 2], {}, ValueError, r"got 2 in pair 0, 3 in 1"),
        ([1, 2], [1, 3], RandomTokens(399), {}, ValueError, r"context of 400 tokens, got 2 \+ 399 = 401"),
        ([1, 2], [1, 3], [1, 2], {"prompt": 3}, ValueError, r"prompt_a must have at least prompt = 3 tokens, got 2"),
        ([1, 2], [1, 3], [1, 2], {"layers": [4]}, ValueError, r"layers must be from 0 to 3, got 4; 4, after the final"),
        ([1, 2], [1, 3], [1, 2], {"layers": []}, ValueError, r"at least one layer"),
        ([1, 2], [1, 3], [1, 2], {"layers": [1.0]}, TypeError, r"layers must be an integer"),
        ([1, 2], [1, 3], [1, 2], {"bias": 1.0}, TypeError, r"bias must be a function of t or have"),
        ([1, 2], [1, 3], [1, 2], {"progress": 3}, TypeError, r"progress must be"),
    ],
)
def test_unusable_input_is_named(network, a, b, after, options, error, message):
    with pytest.raises(error, match=message):
        measure(network, rm.Pairs(a, b, after, prompt=options.pop("prompt", None)), **options)


@pytest.mark.parametrize("wrong", ["To be", ("one", "two"), ["one", "two", "three"], None, 3])
def test_what_is_not_pairs_is_refused_with_the_right_form(network, wrong):
    form = re.escape("pairs must be Pairs(prompt_a, prompt_b, continuation) or a tuple of these three, got ")
    with pytest.raises(TypeError, match=form + re.escape(repr(wrong))):
        measure(network, wrong)


@pytest.mark.parametrize(("prompt", "error"), [(0, ValueError), (2.0, TypeError), (True, TypeError)])
def test_pairs_check_their_cut_at_once(prompt, error):
    with pytest.raises(error, match="prompt must be"):
        rm.Pairs("a", "b", "after", prompt=prompt)


def test_pairs_hand_their_provenance_to_what_is_made_with_them(network):
    facts = {"continuation": "nursery rhymes", "edition": 3}
    pairs = rm.Pairs("one prompt", "two prompt", "and so on", provenance=facts)
    for result in (measure(network, pairs), rm.certify(network, pairs)):
        assert result.provenance["continuation"] == "nursery rhymes"
        assert result.provenance["edition"] == "3"
        assert result.provenance["prompt"] == "10"
    assert measure(network, pairs, provenance={"edition": "4"}).provenance["edition"] == "4"
    assert measure(network, ("one prompt", "two prompt", "and so on")).provenance["continuation"] == "given"


def test_draw_pairs_shares_no_token_of_the_text(network):
    letters = bytes(range(48, 48 + 64)).decode()
    drawn = draw_pairs(network, pairs=3, prompt=4, steps=12, text=letters, seed=1)
    used = np.concatenate([drawn.prompt_a.ravel(), drawn.prompt_b.ravel(), drawn.continuation.ravel()])
    assert len(set(used.tolist())) == used.size == 60
    assert all(np.all(np.diff(row) == 1) for part in (drawn.prompt_a, drawn.continuation) for row in part)
    with pytest.raises(ValueError, match=r"at least pairs \* \(2 \* prompt \+ steps\) = 80 tokens, got 64"):
        draw_pairs(network, pairs=4, prompt=4, steps=12, text=letters)
