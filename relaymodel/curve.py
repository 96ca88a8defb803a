"""Forgetting curves: how far two runs are apart, token by token, and the files they live in."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.checks import demand, numbers, series, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from relaymodel import files

COLUMNS = ("t", "layer", "distance", "stderr")
PAIR = "pair_"
ROUNDED = 1e-9
"""How far a mean may be from that of its pairs."""


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
        provenance = {str(key): str(value) for key, value in dict(self.provenance).items()}
        object.__setattr__(self, "provenance", MappingProxyType(provenance))

    def _checked_pairs(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = numbers("pairs", self.pairs).astype(np.float64)
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
        low = self.t[0] if t_min is None else float(t_min)
        high = self.t[-1] if t_max is None else float(t_max)
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
    def from_csv(cls, path: files.PathLike, *, layer: int | None = None) -> Curve:
        """Read one curve; `layer` chooses among several in one file.

        Columns `t` and `distance`, in any order, `stderr`, `layer` and `pair_1`, `pair_2`, ... optional, others
        ignored.  Commas,
        semicolons and tabs separate; Windows line ends and a byte order mark are accepted.

        Raises `ValueError` naming the file and, for a bad row, its line.
        """
        curves = read_curves(path)
        if layer is None and len(curves) == 1:
            return next(iter(curves.values()))
        if layer not in curves:
            names = ", ".join("(no layer column)" if key is None else str(key) for key in curves)
            asked = "none was chosen" if layer is None else f"got {show(layer)}"
            raise ValueError(f"layer must be one of those in {path}: {names}; {asked}")
        return curves[layer]

    def to_npz(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write a compressed NPZ file without pickled objects."""
        import json  # here and below: what only files need is not loaded with the package

        from relaymodel import files

        arrays: dict[str, Any] = {"t": self.t, "distance": self.distance}
        if self.stderr is not None:
            arrays["stderr"] = self.stderr
        if self.pairs is not None:
            arrays["pairs"] = self.pairs
        arrays["provenance"] = np.array(json.dumps(dict(self.provenance)))

        def fill(temporary: Path) -> None:
            with temporary.open("wb") as stream:
                np.savez_compressed(stream, **arrays)

        return files.write(path, fill, overwrite=overwrite)

    @classmethod
    def from_npz(cls, path: files.PathLike) -> Curve:
        """Read what `to_npz` wrote; pickled objects are refused."""
        import json
        from zipfile import is_zipfile

        if not is_zipfile(path):
            raise ValueError(f"{path} must be an NPZ file that to_npz wrote, got something else")
        with np.load(path, allow_pickle=False) as data:
            for name in ("t", "distance"):
                if name not in data:
                    raise ValueError(f"{path} must hold an array named {name}, got {', '.join(data) or 'none'}")
            provenance = json.loads(str(data["provenance"])) if "provenance" in data else {}
            return cls(data["t"], data["distance"], data.get("stderr"), provenance, data.get("pairs"))


def write_curves(path: files.PathLike, curves: Mapping[int | None, Curve], *, overwrite: bool = False) -> Path:
    """Write curves to one CSV file, told apart by a `layer` column unless the only key is None.

    The provenance entries that all curves share are written as `# key: value` lines.
    """
    from relaymodel import files

    if not curves:
        raise ValueError("curves must hold at least one curve, got none")
    first = next(iter(curves.values()))
    layered = list(curves) != [None]
    with_errors = any(curve.stderr is not None for curve in curves.values())
    lines = [
        f"# {' '.join(key.split())}: {' '.join(value.split())}"
        for key, value in first.provenance.items()
        if all(curve.provenance.get(key) == value for curve in curves.values())
    ]
    several = max(0 if curve.pairs is None else len(curve.pairs) for curve in curves.values())
    columns = ["t"] + ["layer"] * layered + ["distance"] + ["stderr"] * with_errors
    lines.append(",".join(columns + [f"{PAIR}{k + 1}" for k in range(several)]))
    for layer, curve in curves.items():
        errors: Iterable[float | None] = [None] * len(curve) if curve.stderr is None else curve.stderr.tolist()
        pairs = [[]] * len(curve) if curve.pairs is None else curve.pairs.T.tolist()
        for t, distance, error, each in zip(curve.t.tolist(), curve.distance.tolist(), errors, pairs, strict=True):
            row = [f"{t:.0f}" if t.is_integer() and t < 2**53 else repr(t)]
            row += [str(layer)] * layered + [repr(distance)]
            row += ["" if error is None else repr(error)] * with_errors
            row += [repr(value) for value in each] + [""] * (several - len(each))
            lines.append(",".join(row))
    return files.write_text(path, "\n".join(lines) + "\n", overwrite=overwrite)


def read_curves(path: files.PathLike) -> dict[int | None, Curve]:
    """Read every curve of a CSV file: {layer: curve}, or {None: curve} if there is no `layer` column.

    Raises `ValueError` naming the file and, for a bad row, its line.  See `Curve.from_csv` for the format.
    """
    import csv
    from pathlib import Path

    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}") from None
    provenance, rows = {}, []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            key, colon, value = line[1:].strip().partition(":")
            if colon:
                provenance[key.strip()] = value.strip()
        elif line.strip():
            rows.append((number, line.strip()))
    if not rows:
        raise ValueError(f"{path} must hold a header with t and distance and rows of numbers, got an empty file")
    number, header = rows[0]
    separator = next((s for s in ";\t" if s in header), ",")
    names = [name.strip().lower() for name in next(csv.reader([header], delimiter=separator))]
    for name in ("t", "distance"):
        if names.count(name) != 1:
            raise ValueError(
                f"{path}, line {number}: the header must name the column {name} once, got {show(header)}; "
                "write a first line such as t,distance"
            )
    columns = {name: names.index(name) for name in COLUMNS if name in names}
    columns |= {name: i for i, name in enumerate(names) if name.startswith(PAIR)}
    table: dict[int | None, list[tuple[float, ...]]] = {}
    for number, line in rows[1:]:
        fields = next(csv.reader([line], delimiter=separator))
        try:
            layer, point = _parse(fields, columns, len(names))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}, got {show(line)}") from None
        points = table.setdefault(layer, [])
        if points and point[0] <= points[-1][0]:
            raise ValueError(
                f"{path}, line {number}: t must be strictly increasing (within a layer), "
                f"got {point[0]:.15g} after {points[-1][0]:.15g}"
            )
        points.append(point)
    if not table:
        raise ValueError(f"{path} must hold rows of numbers below its header, got none")
    curves: dict[int | None, Curve] = {}
    for layer, points in table.items():
        t, distance, stderr, *pairs = np.array(points).T
        pairs = [row for row in pairs if not np.isnan(row).all()]
        try:
            stated = None if np.isnan(stderr).all() else stderr
            curves[layer] = Curve(t, distance, stated, provenance, np.array(pairs) if pairs else None)
        except ValueError as error:
            raise ValueError(f"{path}{'' if layer is None else f', layer {layer}'}: {error}") from None
    return curves


def _parse(fields: list[str], columns: Mapping[str, int], width: int) -> tuple[int | None, tuple[float, ...]]:
    """Return the layer and (t, distance, stderr, pairs...) of one row; the error says what is wrong with it."""
    if len(fields) != width:
        raise ValueError(f"expected {width} columns, found {len(fields)}")
    numbers = {}
    for name, column in columns.items():
        entry = fields[column].strip()
        if name == "layer" or (not entry and name not in ("t", "distance")):
            continue
        try:
            numbers[name] = float(entry)
        except ValueError:
            hint = "; write a decimal point" if "," in entry else ""
            raise ValueError(f"{name} must be a number{hint}") from None
        if not np.isfinite(numbers[name]) or numbers[name] < 0 or (name != "stderr" and numbers[name] == 0):
            raise ValueError(f"{name} must be finite and {'at least 0' if name == 'stderr' else 'positive'}")
    layer = None
    if "layer" in columns:
        try:
            layer = int(fields[columns["layer"]])
        except ValueError:
            raise ValueError("layer must be an integer") from None
    pairs = (numbers.get(name, np.nan) for name in columns if name.startswith(PAIR))
    return layer, (numbers["t"], numbers["distance"], numbers.get("stderr", np.nan), *pairs)
