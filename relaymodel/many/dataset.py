"""Values on a grid of parameters, with names and coordinates: what xarray does, for those who do not have it."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from immutabledict import immutabledict

from relaymodel import files
from relaymodel.display import facts, table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Arrays over named dimensions.

    Attributes
    ----------
    data
        Arrays by name, all of one shape.
    coords
        For each dimension, in order, its coordinates, shape (n,); and, of shape (), what is the same everywhere.
    attrs
        Where the numbers come from, as text.

    Examples
    --------
    >>> found = Dataset({"influence": np.array([0.5, 0.25])}, {"t": np.array([1, 2]), "prompt": np.array(8)})
    >>> found
    Dataset(influence; t: 2; prompt = 8)
    >>> found["influence"].tolist(), found.columns()["prompt"].tolist()
    ([0.5, 0.25], [8, 8])
    """

    data: Mapping[str, NDArray[Any]]
    coords: Mapping[str, NDArray[Any]]
    attrs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = tuple(self.coords[name].size for name in self.dims)
        for name, values in self.data.items():
            if values.shape != shape:
                raise ValueError(f"{name} must have the shape of its coordinates, {shape}, got {values.shape}")
        for name in ("data", "coords", "attrs"):
            object.__setattr__(self, name, immutabledict(getattr(self, name)))

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions, in order."""
        return tuple(name for name, values in self.coords.items() if values.ndim)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the array of a name, or the coordinates of one."""
        return self.data[name] if name in self.data else self.coords[name]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a table with a row for each point: all coordinates, then the data, shape (N,) each."""
        shape = next(iter(self.data.values())).shape
        names = {name: i for i, name in enumerate(self.dims)}
        spread = {
            name: values.reshape([-1 if i == names[name] else 1 for i in names.values()]) if values.ndim else values
            for name, values in self.coords.items()
        }
        return {name: np.broadcast_to(values, shape).ravel() for name, values in {**spread, **self.data}.items()}

    def to_xarray(self) -> Any:
        """Return it as an `xarray.Dataset`.

        Raises `ImportError`, with what to install, without xarray.
        """
        xarray = files.optional("xarray", "label a sweep")
        coords = {name: (name, values) if values.ndim else ((), values) for name, values in self.coords.items()}
        return xarray.Dataset({name: (self.dims, x) for name, x in self.data.items()}, coords, dict(self.attrs))

    def labelled(self) -> Any:
        """Return it as an `xarray.Dataset` if that is installed, as it is if not."""
        return self if find_spec("xarray") is None else self.to_xarray()

    def to_csv(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write the table of `columns` as a CSV file."""
        columns = {name: values.tolist() for name, values in self.columns().items()}
        return files.write_table(path, columns, self.attrs, overwrite=overwrite)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {self.coords[name].size}" for name in self.dims)
        same = ", ".join(f"{name} = {values}" for name, values in self.coords.items() if not values.ndim)
        return f"Dataset({'; '.join(part for part in (', '.join(self.data), sizes, same) if part)})"

    def _repr_html_(self) -> str:
        rows = [(name, values.size, f"{values.min()} … {values.max()}") for name, values in self.coords.items()]
        return table("", rows, ("coordinate", "values", "range")) + facts(self.attrs)
