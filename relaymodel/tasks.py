"""Many independent tasks: here or by any executor, each result kept in a folder from which an interrupted run goes on.

`sweep` runs its blocks on it, `measure` keeps its pairs in its store, and `run` serves many fits or measurements.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from relaymodel import files
from relaymodel.checks import show
from relaymodel.progress import reporter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from relaymodel.progress import Report

    Arrays = Mapping[str, NDArray[Any]]

IN_FLIGHT = 32
"""Tasks that an executor has at a time: enough for its workers, few enough for the memory."""


class Executor(Protocol):
    """Anything with `concurrent.futures`' `submit`: its executors, or the client of Dask."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Return the future of a call."""
        ...


class Store:
    """A folder with one NPZ file for each finished task; several runs may share it.

    Parameters
    ----------
    folder
        Made if its parent exists.
    fingerprint
        What tells the work from other work (see `fingerprint`): a folder of other work is refused.
    writer, of
        Who does the work, and what it is and depends on, for messages: `measure`, and `measurement (network, texts)`.
    name, holds
        The files are called `name-0000.npz`, and hold arrays of these names.
    """

    def __init__(
        self, folder: files.PathLike, fingerprint: str, *, writer: str, of: str, name: str, holds: Sequence[str]
    ) -> None:
        self.folder, self.fingerprint = files.as_path("resume", folder), fingerprint
        self.writer, self.of, self.name, self.holds = writer, of, name, holds
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"resume must be a folder, and {folder} is a file")
        if not self.folder.absolute().parent.is_dir():
            raise FileNotFoundError(f"resume must be a folder in one that exists, got {folder}")
        self.folder.mkdir(exist_ok=True)

    def read(self, k: int) -> dict[str, NDArray[Any]] | None:
        """Return what is kept of task k; None if it has not been done.

        Raises `ValueError`, with the name of the file, if it is damaged or of other work.
        """
        path = self.path(k)
        if not path.exists():
            return None
        arrays, facts = files.read_npz(path, self.writer, self.holds)
        if facts.get("fingerprint") != self.fingerprint:
            what, _, differ = self.of.rstrip(")").partition(" (")
            raise ValueError(
                f"resume must be a folder of the same {what}, {path} is of another one ({differ} differ); "
                "name another folder"
            )
        return arrays

    def write(self, k: int, arrays: Arrays) -> Arrays:
        """Keep the result of task k, and return what is kept: another process may have been faster."""
        try:
            files.write_npz(self.path(k), arrays, {"fingerprint": self.fingerprint})
        except FileExistsError:
            kept = self.read(k)
            if kept is None:
                raise
            return kept
        return arrays

    def path(self, k: int) -> Path:
        """Return the file of task k."""
        return self.folder / f"{self.name}-{k:04d}.npz"


def fingerprint(*facts: Any) -> str:
    """Return a digest of arrays and of what JSON or `repr` can write.

    >>> fingerprint(1, np.arange(3.0)) == fingerprint(1, np.arange(3.0)) != fingerprint(1, np.arange(3))
    True
    """
    digest = hashlib.sha256()
    for fact in facts:
        if isinstance(fact, np.ndarray) and fact.dtype != object:
            digest.update(f"{fact.shape}{fact.dtype}".encode())
            digest.update(np.ascontiguousarray(fact).tobytes())
        else:
            digest.update(json.dumps(fact, default=repr).encode())
    return digest.hexdigest()


def run(
    function: Callable[..., Arrays],
    tasks: Sequence[tuple[Any, ...]],
    *,
    executor: Executor | None = None,
    store: Store | None = None,
    progress: bool | Report = False,
) -> Iterator[Arrays]:
    """Yield what the function returns for each task, in order.

    Parameters
    ----------
    function, tasks
        Returns arrays by name; an executor of other processes has to be able to import it.
    executor
        None: here.  Otherwise at most `IN_FLIGHT` tasks are given to it at a time.
    store
        Where results are kept when they are there, by this process; what is kept already is not done again.
    progress
        As everywhere, called with (tasks done, tasks in total).

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     [float(found["y"]) for found in run(lambda x: {"y": np.sqrt(x)}, [(1,), (4,)], executor=executor)]
    [1.0, 2.0]
    """
    check_executor(executor)
    if not isinstance(tasks, Sequence):
        raise TypeError(f"tasks must be a sequence of tuples of arguments, got {show(tasks)}")
    report, todo = reporter(progress), iter(enumerate(tasks))
    waiting = deque[tuple[int, Any, Any]]()  # number, what is kept, future
    try:
        for done in range(1, len(tasks) + 1):
            for k, task in islice(todo, (1 if executor is None else IN_FLIGHT) - len(waiting)):
                kept: Arrays | None = None if store is None else store.read(k)
                future = executor.submit(function, *task) if executor is not None and kept is None else None
                waiting.append((k, kept, future))
            k, kept, future = waiting.popleft()
            if kept is None:
                found = function(*tasks[k]) if future is None else future.result()
                kept = found if store is None else store.write(k, found)
            report(done, len(tasks))
            yield kept
    finally:
        for *_, future in waiting:
            if future is not None:
                future.cancel()


def check_executor(executor: object) -> None:
    """Refuse what has no `submit`."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(
            f"executor must have the submit of concurrent.futures, or be None, got {show(executor)}; "
            "a ProcessPoolExecutor, or the client of Dask, has it"
        )
