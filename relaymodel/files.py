"""Files: tables (CSV), arrays (NPZ) and facts (JSON), each with one reader and one writer; whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaymodel.checks import PLAIN_NUMBER, one_line, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

PathLike = str | os.PathLike[str]

STDIO = Path("-")
"""Standard input where a file is read, standard output where one is written."""


def as_path(name: str, path: object) -> Path:
    """Return the path that a string or a path object names; `TypeError` for anything else.

    >>> as_path("resume", 3)
    Traceback (most recent call last):
    TypeError: resume must be a path, text or a path object, got 3 of type int
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, text or a path object, got {show(path)} of type {type(path).__name__}")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} must not hold a zero character, got {show(path)}")
    return Path(path)


def claim(path: PathLike, *, overwrite: bool = False) -> Path:
    """Return `path` after checking that it may be written: before long work, not after it.

    Raises `FileExistsError` if something is there (an empty folder excepted) and `overwrite` is false; `OSError` for a
    device, a pipe or a socket, whatever `overwrite` says; `FileNotFoundError` if the folder around it is missing,
    `PermissionError` if it cannot be written.

    >>> claim("/no/such/folder/curve.csv")
    Traceback (most recent call last):
    FileNotFoundError: cannot write /no/such/folder/curve.csv: the folder /no/such/folder does not exist
    """
    target = as_path("path", path)
    if target == STDIO:
        return target
    folder = target.absolute().parent
    if not folder.exists():
        raise FileNotFoundError(f"cannot write {target}: the folder {folder} does not exist")
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write {target}: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {target}: the folder {folder} is not writable")
    if target.exists() and not (target.is_file() or target.is_dir()):
        # the last step moves a file here, which would take a device or a pipe away, whoever is allowed to
        raise OSError(
            f"{target} is neither a file nor a folder and is left alone; name an ordinary file (- is standard output)"
        )
    occupied = any(target.iterdir()) if target.is_dir() else target.exists() or target.is_symlink()
    if occupied and not overwrite:
        raise FileExistsError(f"{target} exists already; choose another path or ask for it to be overwritten")
    return target


def write(path: PathLike, fill: Callable[[Path], None], *, overwrite: bool = False) -> Path:
    """Let `fill` write a file under a temporary name beside `path`, then move it there in one step.

    If `fill` raises, or the process is interrupted, `path` is as it was before.  For - it goes to standard output.
    """
    import tempfile  # loaded only when something is written

    target = claim(path, overwrite=overwrite)
    if target == STDIO:
        with tempfile.TemporaryDirectory() as around:
            fill(passing := Path(around) / "file")
            _pass_on(passing.read_bytes())
        return target
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file")
    with _naming(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.absolute().parent)
        os.close(handle)
    temporary = Path(name)
    try:
        with _naming(target):
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


def _pass_on(content: bytes) -> None:
    """Write to standard output, which a notebook may have put something in place of that takes text alone."""
    if sys.stdout is None:
        raise ValueError("- must not stand for a file where standard output is closed")
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is not None:
        stream.write(content)
        stream.flush()
        return
    try:
        sys.stdout.write(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("- must not stand for a file that is not text where standard output takes text only") from None


def read_bytes(path: PathLike) -> bytes:
    """Return what a file holds, or standard input for -; an `OSError` names the file."""
    file = as_path("path", path)
    if file != STDIO:
        return file.read_bytes()
    if sys.stdin is None:
        raise ValueError("- must not stand for a file where standard input is closed")
    stream = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode("utf-8") if stream is None else stream.read()


def read_text(path: PathLike) -> str:
    """Return the UTF-8 text of a file, with Unix line ends and without a byte order mark.

    Raises `OSError` and `ValueError`, both with the name of the file.
    """
    return _text(path, read_bytes(path))


def _text(path: PathLike, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}") from None


def read_json(path: PathLike) -> Any:
    """Return what a JSON file holds; `ValueError` naming the file if it is damaged or holds NaN."""
    text = read_text(path)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be a JSON file, it is damaged or something else: {error}") from None


def write_json(path: PathLike, value: Any, *, overwrite: bool = False) -> Path:
    """Write a JSON file, whole or not at all; `ValueError` for NaN and infinities."""
    return write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n", overwrite=overwrite)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


@dataclass(frozen=True)
class Table:
    """Facts, names of columns, and rows, parsed as they are asked for.

    Attributes
    ----------
    path, facts, names
        Where it is, what its comments say, and its columns, in small letters.
    header
        Number of the header's line.
    lines
        Numbers of the rows, and their texts or their fields.
    separator
        Of the fields in a text; a space is any white space.
    unit
        What the numbers of the rows count.
    """

    path: Path
    facts: Mapping[str, str]
    names: tuple[str, ...]
    header: int
    lines: Iterable[tuple[int, Any]]
    separator: str = ","
    unit: str = "line"

    def column(self, name: str) -> int | None:
        """Return the index of a column, None if there is none of the name; `ValueError` if there are several."""
        if self.names.count(name) > 1:
            raise self.error(self.header, f"the header must name the column {name} once, got {show(list(self.names))}")
        return self.names.index(name) if name in self.names else None

    def __iter__(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """Yield number and fields of each row; `ValueError`, with the number, for one of another width."""
        for number, line in self.lines:
            fields = _fields(self.path, number, line, self.separator) if isinstance(line, str) else line
            if len(fields) != len(self.names):
                raise self.error(number, f"expected {len(self.names)} columns, found {len(fields)}, got {show(line)}")
            yield number, fields

    def error(self, line: int, message: str) -> ValueError:
        """Return an error about a line of the file."""
        return ValueError(f"{self.path}{f', {self.unit} {line}' if line else ''}: {message}")


def read_table(path: PathLike, needs: str) -> Table:
    """Read a table; `needs` says in an error what its columns must be.

    Text: commas, semicolons, tabs or spaces separate; Windows line ends and a byte order mark are accepted, and so is a
    header that is a comment, as `numpy.savetxt` writes it.  NPZ: arrays of one length.  Parquet: with pandas.
    """
    raw = read_bytes(path)
    if raw.startswith(b"PK"):
        arrays, facts = read_npz(path, "numpy.savez", (), raw)
        return table_of(path, arrays, facts.get("provenance", facts))
    if raw.startswith(b"PAR1"):
        return _read_parquet(path, raw)
    known: dict[str, str] = {}
    lines: list[tuple[int, str]] = []
    comment: tuple[int, str] | None = None
    for number, line in enumerate(_text(path, raw).split("\n"), start=1):
        if line.startswith("#"):
            key, colon, value = line[1:].strip().partition(":")
            if colon:
                known[key.strip()] = value.strip()
            elif not lines:
                comment = number, line[1:].strip()
        elif line.strip():
            lines.append((number, line.strip(" ")))
    if not lines:
        raise ValueError(f"{path} must hold a header with {needs} and rows of numbers, got an empty file")
    number, first = lines[0]
    separator = next((sign for sign in ";\t," if sign in first), " " if len(first.split()) > 1 else ",")
    names = _fields(Path(path), number, first, separator)
    if comment is not None and all(PLAIN_NUMBER.fullmatch(name.strip()) for name in names):
        number, names = comment[0], re.split(r"\s*[,;\s]\s*", comment[1])
    else:
        del lines[0]
    return Table(Path(path), known, tuple(name.strip().lower() for name in names), number, lines, separator)


def table_of(path: PathLike, columns: Mapping[str, Any], facts: Mapping[str, Any]) -> Table:
    """Return arrays of one length as a table, `pairs` of shape (K, T) as pair_1, ...; `ValueError` for others."""
    vectors: dict[str, list[Any]] = {}
    for name, array in ((str(name).lower(), array) for name, array in columns.items()):
        if array.ndim == 1:
            vectors[name] = array.tolist()
        elif array.ndim == 2:
            vectors |= {f"{name.removesuffix('s')}_{k}": row.tolist() for k, row in enumerate(array, start=1)}
    lengths = {name: len(values) for name, values in vectors.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path} must hold columns of one length, got {show(lengths)}")
    known = {str(key): str(value) for key, value in facts.items()}
    rows = enumerate(zip(*vectors.values(), strict=True), start=1)
    return Table(Path(path), known, tuple(vectors), 0, rows, unit="row")


def _read_parquet(path: PathLike, raw: bytes) -> Table:
    import io

    pandas = optional("pandas", f"read {path}")
    try:
        frame = pandas.read_parquet(io.BytesIO(raw))
    except Exception as error:  # whatever pandas and its engine make of damaged bytes
        raise ValueError(f"{path} must be a Parquet file, it is damaged: {show(error)}") from None
    return table_of(path, {name: frame[name] for name in frame.columns}, frame.attrs)


def optional(library: str, purpose: str) -> Any:
    """Return a library of the extra `data`, pandas or xarray; `ImportError`, with what to install, without it."""
    try:
        return import_module(library)
    except ImportError:
        raise ImportError(
            f'{library} is needed to {purpose}; pip install ".[data]" in the checkout brings it'
        ) from None


def write_table(
    path: PathLike, columns: Mapping[str, Iterable[Any]], facts: Mapping[str, object], *, overwrite: bool = False
) -> Path:
    """Write a table: `# key: value` lines, a header, rows; floats without loss, None as an empty field.

    The suffix says how: .tsv with tabs, .npz arrays (numbers as float64), .parquet with pandas, everything else CSV.
    Raises `ValueError` for numbers that are not finite.
    """
    suffix = as_path("path", path).suffix.lower()
    if suffix == ".npz":
        return write_npz(path, {name: _array(values) for name, values in columns.items()}, facts, overwrite=overwrite)
    if suffix == ".parquet":
        frame = frame_of({name: _array(values) for name, values in columns.items()}, facts)
        return write(path, frame.to_parquet, overwrite=overwrite)
    separator = "\t" if suffix == ".tsv" else ","
    lines = [f"# {one_line(key).replace(':', ' ')}: {one_line(value)}" for key, value in facts.items()]
    lines.append(separator.join(map(_quoted, columns)))
    lines += [separator.join(map(_entry, row)) for row in zip(*columns.values(), strict=True)]
    return write_text(path, "\n".join(lines) + "\n", overwrite=overwrite)


def frame_of(columns: Mapping[str, Any], facts: Mapping[str, object]) -> Any:
    """Return a pandas data frame, with the facts in its `attrs`."""
    frame = optional("pandas", "make a data frame").DataFrame(dict(columns))
    frame.attrs = {str(key): str(value) for key, value in facts.items()}
    return frame


def _array(values: Iterable[Any]) -> NDArray[Any]:
    """Return a column as an array: texts, or float64 with NaN for None."""
    import numpy as np

    listed = list(values)
    if any(isinstance(value, str) for value in listed):
        return np.array([str(value) for value in listed])
    for value in listed:
        if value is not None and not abs(value) <= sys.float_info.max:
            rule = "finite numbers within the range of float64 (CSV takes larger ones)"
            raise ValueError(f"a table of arrays must hold {rule}, got {show(value)}")
    return np.array([np.nan if value is None else float(value) for value in listed])


def _fields(path: Path, number: int, line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}, line {number}: must be a row of CSV ({error}), got {show(line)}") from None


def _entry(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, Fraction)):
        if not math.isfinite(value):
            raise ValueError(f"a table must hold finite numbers, got {value}")
        return repr(float(value))
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """Return a text for a field, in quotes where it needs them.

    >>> _quoted("GPT-2"), _quoted("a, b")
    ('GPT-2', '"a, b"')
    """
    text = one_line(text)
    return '"' + text.replace('"', '""') + '"' if text[:1] == "#" or any(c in text for c in ',;"') else text


def write_npz(path: PathLike, arrays: Mapping[str, Any], facts: Mapping[str, Any], *, overwrite: bool = False) -> Path:
    """Write arrays, and `facts` as JSON, to a compressed NPZ file without pickled objects."""
    import numpy as np

    text = json.dumps(dict(facts), allow_nan=False)

    def fill(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            np.savez_compressed(stream, facts=np.array(text), **arrays)

    return write(path, fill, overwrite=overwrite)


def read_npz(
    path: PathLike, writer: str, names: Sequence[str], raw: bytes | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays of a file that `write_npz` wrote, and its facts; pickled objects are refused.

    `raw` is what the file holds, if it has been read.  Raises `ValueError` with the name of the file and of its
    `writer` if it is damaged, or lacks one of the `names`.
    """
    import io
    from zipfile import is_zipfile

    import numpy as np

    stream = io.BytesIO(read_bytes(path) if raw is None else raw)
    if not is_zipfile(stream):
        raise ValueError(f"{path} must be an NPZ file that {writer} wrote, got something else")
    stream.seek(0)
    try:
        with np.load(stream, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        known = json.loads(str(arrays.pop("facts", "{}")))
    except Exception as error:  # whatever zipfile, zlib, numpy and json make of damaged bytes
        raise ValueError(f"{path} must be an NPZ file that {writer} wrote, it is damaged: {show(error)}") from None
    for name in names:
        if name not in arrays:
            found = ", ".join(arrays) or "none"
            raise ValueError(f"{path} must hold an array named {name}, got {found}; {writer} writes all of them")
    if not isinstance(known, dict):
        raise ValueError(f"{path} must hold facts as {writer} writes them, got {show(known)}")
    return arrays, known


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Name the target in the system's error (a full disk, say), which speaks of the temporary file or of none."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # not the system's
            raise
        raise type(error)(f"cannot write {target}: {error.strerror}") from None
