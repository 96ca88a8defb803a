"""Forgetting curves: how far two runs are apart, token by token, and the files they live in."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from immutabledict import immutabledict

from relaymodel import files
from relaymodel.checks import PLAIN_NUMBER, as_text, choice, demand, floating, numbers, positive_integer, series, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

COLUMNS = ("t", "layer", "distance", "stderr")
PAIR = "pair_"
ROUNDED = 1e-9
"""How far a mean may be from that of its pairs."""
SIGNED = "influence"
"""The column of a model's D(t), which may be negative: its size is read as the distance."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A forgetting curve: the distance between two runs at continuation tokens t.

    Parameters
    ----------
    t
        Shape (T,), T >= 2: token counts since the end of the prompt, positive and strictly increasing;
        gaps and non-integers are allowed.
    distance
        Shape (T,): positive distances, in any unit.
    stderr
        Shape (T,) or None: the standard error of each distance, not negative, in the same unit.
    provenance
        Where the numbers come from: any keys and values; stored as text.
    pairs
        Shape (K, T) or None: the distances of each of K >= 2 independent pairs of prompts, whose geometric mean is
        `distance`.  Estimators then take errors from how the pairs differ, and `stderr` is for the eye.

    The arrays are copied and read-only.  Two curves are equal if all five parts are.

    Raises
    ------
    TypeError
        For values that are not numbers.
    ValueError
        For unequal lengths, fewer than two points, NaN or infinite values, t that is not positive and
        strictly increasing, distances that are not positive, negative standard errors, pairs whose geometric mean is
        another.

    Examples
    --------
    >>> Curve([1, 2, 4], [1.0, 0.5, 0.25], provenance={"source": "by hand"})
    Curve(3 points, t = 1..4, distance = 1..0.25, source: by hand)
    >>> Curve([1, 2], [1.0, 0.0])
    Traceback (most recent call last):
    ValueError: distance must be positive, got 0.0 at index 1 (t = 2); a distance of exactly zero means ...
    """

    t: NDArray[np.float64]
    distance: NDArray[np.float64]
    stderr: NDArray[np.float64] | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    pairs: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        t, distance = series("t", self.t, least=2), series("distance", self.distance, least=2)
        if t.shape != distance.shape:
            raise ValueError(f"distance must have one value for each t, got {distance.size} for {t.size}")
        demand("t", t, t > 0, "positive")
        demand("t", t, np.diff(t, prepend=0) > 0, "strictly increasing")
        if not np.all(distance > 0):
            i = int(np.argmin(distance > 0))
            raise ValueError(
                f"distance must be positive, got {distance[i]} at index {i} (t = {t[i]:.15g}); a distance of exactly "
                "zero means that the runs cannot see the prompt any more (a sliding window), or are the same run"
            )
        stderr = None
        if self.stderr is not None:
            stderr = series("stderr", self.stderr)
            if stderr.shape != t.shape:
                raise ValueError(f"stderr must have one value for each t, got {stderr.size} for {t.size}")
            demand("stderr", stderr, stderr >= 0, "at least 0")
        pairs = None if self.pairs is None else self._checked_pairs(distance)
        for name, array in (("t", t), ("distance", distance), ("stderr", stderr), ("pairs", pairs)):
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        if not isinstance(self.provenance, Mapping):
            raise TypeError(f"provenance must be a dictionary, got {show(self.provenance)}")
        object.__setattr__(self, "provenance", immutabledict(as_text(self.provenance)))

    def _checked_pairs(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = numbers("pairs", self.pairs)
        if pairs.dtype == object:
            pairs = np.array([floating("pairs", value) for value in pairs.flat]).reshape(pairs.shape)
        pairs = pairs.astype(np.float64)
        if pairs.ndim != 2 or len(pairs) < 2 or pairs.shape[1] != distance.size:
            raise ValueError(f"pairs must have 2 rows or more of {distance.size} values, got shape {pairs.shape}")
        demand("pairs", pairs, np.isfinite(pairs) & (pairs > 0), "positive and finite")
        mean = np.exp(np.log(pairs).mean(axis=0))
        demand("distance", distance, np.abs(mean / distance - 1) < ROUNDED, "the geometric mean of the pairs")
        return pairs

    def __len__(self) -> int:
        return self.t.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curve):
            return NotImplemented
        arrays = ((getattr(self, name), getattr(other, name)) for name in ("t", "distance", "stderr", "pairs"))
        same = all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in arrays)
        return same and dict(self.provenance) == dict(other.provenance)

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        parts = [
            f"{len(self)} points",
            f"t = {self.t[0]:.6g}..{self.t[-1]:.6g}",
            f"distance = {self.distance[0]:.6g}..{self.distance[-1]:.6g}",
            *(["with stderr"] if self.stderr is not None else []),
            *(f"{key}: {value}" for key, value in self.provenance.items()),
        ]
        return f"Curve({', '.join(parts)})"

    def window(self, t_min: float | None = None, t_max: float | None = None) -> Curve:
        """Return the part of the curve with `t_min <= t <= t_max`; None leaves an end open.

        >>> Curve([1, 2, 4, 8], [8, 4, 2, 1]).window(t_min=2).t
        array([2., 4., 8.])
        """
        low = self.t[0] if t_min is None else floating("t_min", t_min)
        high = self.t[-1] if t_max is None else floating("t_max", t_max)
        keep = (self.t >= low) & (self.t <= high)
        if np.count_nonzero(keep) < 2:
            raise ValueError(
                f"the window from t_min = {low:.15g} to t_max = {high:.15g} must hold at least 2 points, "
                f"got {np.count_nonzero(keep)}; the curve runs from t = {self.t[0]:.15g} to {self.t[-1]:.15g}"
            )
        stderr = None if self.stderr is None else self.stderr[keep]
        pairs = None if self.pairs is None else self.pairs[:, keep]
        return Curve(self.t[keep], self.distance[keep], stderr, self.provenance, pairs)

    def to_csv(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write `# key: value` lines, a header and one row a point; numbers are written without loss."""
        return write_curves(path, {None: self}, overwrite=overwrite)

    @classmethod
    def from_csv(
        cls, path: files.PathLike, *, layer: int | None = None, columns: Mapping[str, str] | None = None
    ) -> Curve:
        """Read one curve from a table in a file, - being standard input; `layer` chooses among several.

        Columns `t` and `distance` (or `influence`, whose size is taken), in any order, `stderr`, `layer` and `pair_1`,
        `pair_2`, ... optional, others ignored; `columns` says what else they are called, {"t": "tokens"}.

        Commas, semicolons, tabs and spaces separate; the header may be a comment, as `numpy.savetxt` writes it.  Arrays
        in an NPZ file are read as well, and Parquet where pandas is installed.

        Raises `ValueError` naming the file and, for a bad row, its line.
        """
        return _chosen(read_curves(path, columns), layer, path)

    @classmethod
    def from_dataframe(cls, frame: Any, *, layer: int | None = None, columns: Mapping[str, str] | None = None) -> Curve:
        """Return a curve from a data frame with the columns of a file, see `from_csv`; its `attrs` are the provenance.

        >>> import pandas
        >>> frame = pandas.DataFrame({"tokens": [1, 2, 4], "distance": [4.0, 2.0, 1.0]})
        >>> Curve.from_dataframe(frame, columns={"t": "tokens"})
        Curve(3 points, t = 1..4, distance = 4..1)
        """
        if not hasattr(frame, "columns"):
            raise TypeError(f"frame must be a data frame of pandas, got {show(frame)} of type {type(frame).__name__}")
        table = files.table_of("frame", {name: frame[name] for name in frame.columns}, getattr(frame, "attrs", {}))
        return _chosen(_curves_of(table, columns), layer, "frame")

    def to_dataframe(self) -> Any:
        """Return a pandas data frame with the columns t, distance, stderr, pair_1, ..., as far as they are there.

        >>> Curve([1, 2, 4], [4, 2, 1]).to_dataframe().shape
        (3, 2)
        """
        return files.frame_of(*_columns({None: self}))

    def to_npz(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write a compressed NPZ file without pickled objects."""
        arrays = {"t": self.t, "distance": self.distance}
        if self.stderr is not None:
            arrays["stderr"] = self.stderr
        if self.pairs is not None:
            arrays["pairs"] = self.pairs
        return files.write_npz(path, arrays, {"provenance": dict(self.provenance)}, overwrite=overwrite)

    @classmethod
    def from_npz(cls, path: files.PathLike) -> Curve:
        """Read what `to_npz` wrote; pickled objects are refused."""
        arrays, facts = files.read_npz(path, "Curve.to_npz", ("t", "distance"))
        try:
            return cls(
                arrays["t"], arrays["distance"], arrays.get("stderr"), facts.get("provenance", {}), arrays.get("pairs")
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None


def write_curves(path: files.PathLike, curves: Mapping[int | None, Curve], *, overwrite: bool = False) -> Path:
    """Write curves to one table, told apart by a `layer` column unless the only key is None; see `files.write_table`.

    The provenance entries that all curves share are written as `# key: value` lines.
    """
    if not curves:
        raise ValueError("curves must hold at least one curve, got none")
    return files.write_table(path, *_columns(curves), overwrite=overwrite)


def _columns(curves: Mapping[int | None, Curve]) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the columns of a table of curves, and the provenance that they share."""
    first = next(iter(curves.values()))
    shared = {
        key: value
        for key, value in first.provenance.items()
        if all(curve.provenance.get(key) == value for curve in curves.values())
    }
    several = max(0 if curve.pairs is None else len(curve.pairs) for curve in curves.values())
    columns: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, *(f"{PAIR}{k + 1}" for k in range(several)))}
    for layer, curve in curves.items():
        nothing = [None] * len(curve)
        columns["t"] += [int(t) if t.is_integer() and t < 2**53 else t for t in curve.t.tolist()]
        columns["layer"] += [layer] * len(curve)
        columns["distance"] += curve.distance.tolist()
        columns["stderr"] += nothing if curve.stderr is None else curve.stderr.tolist()
        for k in range(several):
            some = curve.pairs is not None and k < len(curve.pairs)
            columns[f"{PAIR}{k + 1}"] += curve.pairs[k].tolist() if some else nothing  # type: ignore[index]
    if list(curves) == [None]:
        del columns["layer"]
    if all(curve.stderr is None for curve in curves.values()):
        del columns["stderr"]
    return columns, shared


def read_curves(path: files.PathLike, columns: Mapping[str, str] | None = None) -> dict[int | None, Curve]:
    """Read every curve of a file: {layer: curve}, or {None: curve} if there is no `layer` column.

    Raises `ValueError` naming the file and, for a bad row, its line.  See `Curve.from_csv` for formats and `columns`.
    """
    return _curves_of(files.read_table(path, "t and distance"), columns)


def _chosen(curves: Mapping[int | None, Curve], layer: int | None, path: files.PathLike) -> Curve:
    """Return the curve of a layer, or the only one."""
    if layer is not None:
        positive_integer("layer", layer, least=-sys.maxsize)
    if layer is None and len(curves) == 1:
        return next(iter(curves.values()))
    if layer not in curves:
        names = ", ".join("(no layer column)" if key is None else str(key) for key in curves)
        asked = "none was chosen" if layer is None else f"got {show(layer)}"
        raise ValueError(f"layer must be one of those in {path}: {names}; {asked}")
    return curves[layer]


def _renamed(table: files.Table, columns: Mapping[str, str]) -> files.Table:
    """Return the table with the columns that the values of `columns` name called as its keys are."""
    if not isinstance(columns, Mapping) or not all(isinstance(name, str) for name in columns.values()):
        raise TypeError(f"columns must be a dictionary such as {{'t': 'tokens'}}, got {show(columns)}")
    given = {name.strip().lower(): wanted for wanted, name in columns.items()}
    for name, wanted in given.items():
        choice("the key of columns", wanted, (*COLUMNS, SIGNED))
        if name not in table.names:
            raise ValueError(f"columns must name those of {table.path}, {', '.join(table.names)}, got {show(name)}")
    hidden = {*columns, *({"distance", SIGNED} if {"distance", SIGNED} & set(columns) else ())}
    names = (given.get(name, f"(not {name})" if name in hidden else name) for name in table.names)
    return replace(table, names=tuple(names))


def _curves_of(table: files.Table, columns: Mapping[str, str] | None) -> dict[int | None, Curve]:
    """Return the curves of a table."""
    table = _renamed(table, {} if columns is None else columns)
    pairs = [name for name in dict.fromkeys(table.names) if re.fullmatch(rf"{PAIR}[0-9]+", name)]
    found = {name: at for name in (*COLUMNS, SIGNED, *pairs) if (at := table.column(name)) is not None}
    for names, also in ((("t",), ""), (("distance", SIGNED), " (or influence instead)")):
        if sum(name in found for name in names) != 1:
            raise table.error(
                table.header,
                f"the header must name the column {names[0]} once{also}, got {show(','.join(table.names))}; "
                "write a first line such as t,distance",
            )
    points: dict[int | None, list[tuple[float, ...]]] = {}
    for number, fields in table:
        try:
            layer, point = _parse(fields, found)
        except ValueError as error:
            raise table.error(number, f"{error}, got {show(table.separator.join(map(str, fields)))}") from None
        known = points.setdefault(layer, [])
        if known and point[0] <= known[-1][0]:
            equal = "; as float64 they are equal" * (point[0] == known[-1][0])
            got = f"got {str(fields[found['t']]).strip()} after {known[-1][0]:.17g}{equal}"
            raise table.error(number, f"t must be strictly increasing (within a layer), {got}")
        known.append(point)
    if not points:
        raise ValueError(f"{table.path} must hold rows of numbers below its header, got none")
    curves: dict[int | None, Curve] = {}
    for layer, rows in points.items():
        # columns that are empty throughout are left out
        t, distance, *others = (None if np.isnan(column).all() else column for column in np.array(rows).T)
        each = np.array([pair for pair in others[1:] if pair is not None])
        try:
            curves[layer] = Curve(t, distance, others[0], table.facts, each if each.size else None)  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{table.path}{'' if layer is None else f', layer {layer}'}: {error}") from None
    return curves


def _parse(fields: Sequence[Any], columns: Mapping[str, int]) -> tuple[int | None, tuple[float, ...]]:
    """Return the layer and (t, distance, stderr, pairs...) of one row; the error says what is wrong with it."""
    layer = None
    numbers = {"t": np.nan, "distance": np.nan, "stderr": np.nan}
    for name, column in columns.items():
        value = fields[column]
        entry = "" if value is None or value != value else str(value).strip()  # NaN in arrays is what is missing
        if name == "layer":
            if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.0*)?", entry, re.ASCII):
                raise ValueError("layer must be an integer")
            layer = int(entry.partition(".")[0])
        elif entry or name in ("t", "distance", SIGNED):
            numbers["distance" if name == SIGNED else name] = _number(name, entry)
        else:
            numbers[name] = np.nan
    return layer, tuple(numbers.values())


def _number(name: str, entry: str) -> float:
    """Return the number in a field."""
    rule = {"stderr": "at least 0", SIGNED: "not 0"}.get(name, "positive")
    if not PLAIN_NUMBER.fullmatch(entry) and entry.lower().lstrip("+-") not in ("nan", "inf", "infinity"):
        hint = "; write a decimal point" if "," in entry else ""
        raise ValueError(f"{name} must be a number{hint}")
    value = abs(float(entry)) if name == SIGNED else float(entry)
    if not math.isfinite(value) or value < 0 or (name != "stderr" and value == 0):
        raise ValueError(f"{name} must be finite and {rule}")
    return value
