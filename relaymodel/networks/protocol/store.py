"""The folder of a measurement: one file for each finished pair, from which an interrupted one goes on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.networks.protocol.pairs import Generated, RandomTokens

if TYPE_CHECKING:
    from relaymodel.networks.protocol.pairs import EncodedPairs

Array = NDArray[np.float64]


class Store:
    """A folder with one file for each finished pair; several measurements may share it.

    Parameters
    ----------
    folder
        Made if its parent exists.
    fingerprint
        What tells the measurement from others: see `fingerprint`.
    shape
        Of what is kept for a pair.
    """

    def __init__(self, folder: files.PathLike, fingerprint: str, shape: tuple[int, ...]) -> None:
        self.folder, self.fingerprint, self.shape = Path(folder), fingerprint, shape
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"resume must be a folder, and {folder} is a file")
        if not self.folder.absolute().parent.is_dir():
            raise FileNotFoundError(f"resume must be a folder in one that exists, got {folder}")
        self.folder.mkdir(exist_ok=True)

    def read(self, k: int) -> Array | None:
        """Return what is kept of pair k; None if it has not been measured.

        Raises `ValueError`, with the name of the file, if it is damaged or another measurement's.
        """
        path = self._path(k)
        if not path.exists():
            return None
        arrays, facts = files.read_npz(path, "measure", ("values",))
        if facts.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"resume must be a folder of the same measurement, {path} is of another one (network, texts, "
                "bias, layers or their number differ); name another folder"
            )
        values = arrays["values"]
        if values.shape != self.shape or values.dtype != np.float64 or not np.all(np.isfinite(values)):
            raise ValueError(f"{path} must hold {self.shape} finite numbers, it is damaged; delete it and go on")
        return values

    def write(self, k: int, values: Array) -> Array:
        """Keep the distances of pair k, and return what is kept: another process may have been faster."""
        try:
            files.write_npz(self._path(k), {"values": values}, {"fingerprint": self.fingerprint})
        except FileExistsError:
            kept = self.read(k)
            if kept is None:
                raise
            return kept
        return values

    def _path(self, k: int) -> Path:
        return self.folder / f"pair-{k:04d}.npz"


def fingerprint(pairs: EncodedPairs, bias: Array | None, layers: tuple[int, ...]) -> str:
    """Return a digest of all that a measurement depends on: network, texts, bias, layers."""
    after: Any = pairs.continuation
    if isinstance(after, (RandomTokens, Generated)):
        after = np.frombuffer(repr(after).encode(), dtype=np.uint8)
    digest = hashlib.sha256(json.dumps([dict(pairs.network.provenance), layers]).encode())
    for array in (pairs.prompt_a, pairs.prompt_b, after, np.empty(0) if bias is None else bias[:, 0]):
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
