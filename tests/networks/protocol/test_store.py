"""The folder of a measurement: damaged files, files of others, and two measurements at once."""

import numpy as np
import pytest

from relaymodel import files
from relaymodel.networks.protocol import draw_pairs, measure
from tests.networks.protocol.wrapped import Wrapped


@pytest.fixture
def pairs(network):
    return draw_pairs(network, pairs=2, prompt=5, steps=30)


@pytest.fixture
def store(network, pairs, tmp_path):
    measure(network, pairs, resume=tmp_path / "store")
    return tmp_path / "store"


def rewritten(path, change):
    """Replace the numbers of a file by others, under the same fingerprint."""
    arrays, facts = files.read_npz(path, "measure", ("values",))
    files.write_npz(path, {"values": change(arrays["values"])}, facts, overwrite=True)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.write_bytes(b""), "NPZ file that measure wrote"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "NPZ file that measure wrote"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"values", b"value_")), "hold an array named values"),
        (lambda path: path.write_text("not mine"), "NPZ file that measure wrote"),
        (lambda path: np.savez(path, values=np.ones(3)), "is of another one"),
        (lambda path: rewritten(path, lambda values: values[:, :, 1:]), r"must hold \(4, 3, 30\) finite numbers"),
        (lambda path: rewritten(path, lambda values: values * np.nan), r"must hold \(4, 3, 30\) finite numbers"),
        (lambda path: rewritten(path, lambda values: values.astype(int)), r"must hold \(4, 3, 30\) finite numbers"),
    ],
    ids=["empty", "truncated", "bytes changed", "text", "foreign", "shorter", "not numbers", "integers"],
)
def test_a_file_that_is_damaged_is_named(network, pairs, store, spoil, words):
    path = store / "pair-0001.npz"
    spoil(path)
    with pytest.raises(ValueError, match=rf"pair-0001\.npz .*{words}|pair-0001\.npz {words}"):
        measure(network, pairs, resume=store)


def test_a_folder_in_the_place_of_a_file_is_named(network, pairs, store):
    (store / "pair-0000.npz").unlink()
    (store / "pair-0000.npz").mkdir()
    with pytest.raises(OSError, match=r"pair-0000\.npz"):
        measure(network, pairs, resume=store)


def test_the_slower_of_two_measurements_reads_what_the_faster_one_left(network, pairs, tmp_path):
    """The faster one finishes while the slower is at its first pair, with numbers that tell whose they are."""
    store = tmp_path / "store"

    class Overtaken(Wrapped):
        def observe(self, *arguments, **more):
            super().observe(*arguments, **more)
            if self.calls == 1:
                measure(network, pairs, resume=store)
                for path in store.iterdir():
                    rewritten(path, lambda values: values * 2)

    slow = Overtaken(network)
    measured, alone = measure(slow, pairs, resume=store), measure(network, pairs)
    assert slow.calls == 1
    np.testing.assert_array_equal(measured.euclidean, 2 * alone.euclidean)
    assert len(list(store.iterdir())) == 2


def test_folders_that_cannot_be_used(network, pairs, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="resume must be a folder, and .*file is a file"):
        measure(network, pairs, resume=tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="resume must be a folder in one that exists"):
        measure(network, pairs, resume=tmp_path / "no" / "such")
