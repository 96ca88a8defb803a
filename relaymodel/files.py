"""Output that is written whole or not at all."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PathLike = str | os.PathLike[str]


def claim(path: PathLike, *, overwrite: bool = False) -> Path:
    """Return `path` after checking that it may be written: before long work, not after it.

    Raises `FileExistsError` if something is there (an empty folder excepted) and `overwrite` is false; `OSError` for a
    device, a pipe or a socket, whatever `overwrite` says; `FileNotFoundError` if the folder around it is missing,
    `PermissionError` if it cannot be written.

    >>> claim("/no/such/folder/curve.csv")
    Traceback (most recent call last):
    FileNotFoundError: cannot write /no/such/folder/curve.csv: the folder /no/such/folder does not exist
    """
    target = Path(path)
    folder = target.absolute().parent
    if not folder.exists():
        raise FileNotFoundError(f"cannot write {target}: the folder {folder} does not exist")
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write {target}: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {target}: the folder {folder} is not writable")
    if target.exists() and not (target.is_file() or target.is_dir()):
        # the last step moves a file here, which would take a device or a pipe away, whoever is allowed to
        raise OSError(f"{target} is neither a file nor a folder and is left alone; name an ordinary file")
    occupied = any(target.iterdir()) if target.is_dir() else target.exists() or target.is_symlink()
    if occupied and not overwrite:
        raise FileExistsError(f"{target} exists already; choose another path or ask for it to be overwritten")
    return target


def write(path: PathLike, fill: Callable[[Path], None], *, overwrite: bool = False) -> Path:
    """Let `fill` write a file under a temporary name beside `path`, then move it there in one step.

    If `fill` raises, or the process is interrupted, `path` is as it was before.
    """
    import tempfile  # loaded only when something is written

    target = claim(path, overwrite=overwrite)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    with _naming(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.absolute().parent)
        os.close(handle)
    temporary = Path(name)
    try:
        fill(temporary)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return target


def write_text(path: PathLike, text: str, *, overwrite: bool = False) -> Path:
    """Write `text` as UTF-8 with Unix line ends, whole or not at all."""

    def fill(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8", newline="\n")

    return write(path, fill, overwrite=overwrite)


@contextmanager
def folder(path: PathLike, *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; at the end of the block it takes the place of `path` as a whole.

    If the block raises, `path` is as it was before.
    """
    import shutil
    import tempfile

    target = claim(path, overwrite=overwrite)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is a file; name a folder")
    parent = target.absolute().parent
    with _naming(target):
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=parent))
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        if target.is_dir():
            retired = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=parent))
            target.replace(retired)  # an empty folder may be replaced by a rename
            temporary.replace(target)
            shutil.rmtree(retired)
        else:
            temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Name the target in the system's error, which speaks of the temporary file."""
    try:
        yield
    except OSError as error:
        raise type(error)(f"cannot write {target}: {error.strerror}") from None
