"""Distance told from dilution: on powers known, in noise, and refused."""

import numpy as np
import pytest

from relaymodel.inference import distance_or_dilution

N = np.arange(1, 257)
D = N[:, None] - N[None, :]


def matrix(p, q):
    """The weights d^-p n^-q below the diagonal."""
    return np.where(D > 0, np.maximum(D, 1.0) ** -p * N[:, None] ** -float(q), 0.0)


@pytest.mark.parametrize(
    ("p", "q", "verdict"), [(0, 1, "dilution"), (0.7, 0.3, "both"), (1.5, 0, "distance"), (0, 0, "neither")]
)
def test_powers_are_found_exactly(p, q, verdict):
    found = distance_or_dilution(matrix(p, q))
    assert found.distance.value == pytest.approx(p, abs=1e-10)
    assert found.dilution.value == pytest.approx(q, abs=1e-10)
    assert found.verdict == verdict


def test_without_n_dilution_reads_as_a_law_of_distance():
    """What is apparent is the slope of the mean weight of cells on log d alone."""
    assert 0.3 < distance_or_dilution(matrix(0, 1)).apparent < 0.6
    assert distance_or_dilution(matrix(0.5, 0)).apparent == pytest.approx(0.5, abs=1e-9)


@pytest.mark.slow
def test_intervals_over_samples_hold_the_truth():
    rng = np.random.default_rng(7)
    print("seed 7")
    held = 0
    for _ in range(20):
        noise = np.exp(rng.normal(size=(6, N.size, N.size)) + 0.2 * rng.normal(size=(6, 1, 1)) * np.log(N)[:, None])
        found = distance_or_dilution(matrix(0.3, 0.6) * noise)
        assert found.groups == 6
        held += (found.distance.lower < 0.3 < found.distance.upper) + (
            found.dilution.lower < 0.6 < found.dilution.upper
        )
    assert 34 <= held <= 40  # of 40, 95 % of them expected


def test_sinks_and_near_keys_are_left_out():
    weights = matrix(0.4, 0.5)
    weights[:, 0] = 10
    weights += 3 * np.eye(N.size) + 2 * np.eye(N.size, k=-1)
    found = distance_or_dilution(weights)
    assert (found.distance.value, found.dilution.value) == pytest.approx((0.4, 0.5), abs=1e-9)
    assert distance_or_dilution(weights, first=1).dilution.value != pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones((20, 20)), "n of at least 32"),
        (np.ones((64, 32)), "shape"),
        (np.full((64, 64), np.nan), "finite"),
        (-np.ones((64, 64)), "not negative"),
        (np.where(np.arange(64)[:, None] - np.arange(64) > 10, 0.0, 1.0), "vanish in a whole cell"),
    ],
)
def test_what_is_no_attention_is_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        distance_or_dilution(weights)


def test_other_kinds_are_refused():
    with pytest.raises(TypeError, match="without a mask"):
        distance_or_dilution(np.ma.masked_less(matrix(0, 1), 0.001))
    with pytest.raises(ValueError, match="at least 16 of 256 keys"):
        distance_or_dilution(matrix(0, 1), nearest=250)
