"""What was measured: distances at every layer and token, for every pair, and the exponents read off them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relaymodel import files
from relaymodel.checks import choice, positive_integer, show
from relaymodel.curve import Curve, write_curves
from relaymodel.display import facts, figure, table
from relaymodel.networks.protocol.attention import Attention
from relaymodel.networks.protocol.curves import over_pairs
from relaymodel.networks.protocol.next_token import NextToken
from relaymodel.networks.protocol.response import TokenResponse
from relaymodel.networks.protocol.rounding import CLEARANCE, rounding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from relaymodel.inference import PowerLaw

Array = NDArray[np.float64]

ARRAYS = ("t", "euclidean", "norms", "radial")
SHAPE = ("prompt", "depth", "precision", "window")
METRICS = ("euclidean", "relative", "cosine")
LEAST_POINTS = 2  # tokens of a curve


@dataclass(frozen=True, eq=False)
class Measurement:
    r"""Distances between two runs of a network on the same continuation (THEORY sections 1 and 9).

    Attributes
    ----------
    t
        Shape (T,): continuation tokens, 1..T.
    layers
        The layers measured, M of them: 0 the embedding, l the residual stream behind block l, depth + 1 the last
        one after the final norm.
    euclidean
        Shape (K, M, T): $|x-\tilde x|$ for each of the K pairs.
    norms
        Shape (2, K, M, T): $|x|$ and $|\tilde x|$.
    radial
        Shape (K, M, T): $|x|^2-|\tilde x|^2$, without cancellation.
    prompt, depth
        P, and the number of blocks.
    precision
        Spacing at 1 of the numbers that the states were computed in.
    provenance
        The network, the texts, the bias, versions.
    instruments
        What the other instruments noted, by name; `next_token`, `attention` and `response` read it.

    Notes
    -----
    Two runs that differ by less than rounding are not told apart.  Each block rounds the residual stream twice, and
    matrix products round with every number they add up; the differences of two runs are then about
    $f = c\,\epsilon |x| \sqrt{(l+1)/3}$ (`floor`), c = 5 for float32 and float64, 1 for narrower numbers, whose
    products are summed in float32.  Seen: within a factor of 3 from width 128 on.  Rounding adds in squares, so a
    distance of 3 f is right to about 6 %; what is closer is left out of curves and fits.
    """

    t: NDArray[np.int64]
    layers: tuple[int, ...]
    euclidean: Array
    norms: Array
    radial: Array
    prompt: int
    depth: int
    precision: float
    window: int | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    instruments: Mapping[str, Array] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Number of pairs, K."""
        return len(self.euclidean)

    @property
    def next_token(self) -> NextToken:
        """How the predictions of the next token differ; `ValueError` if that was not measured."""
        return NextToken.of(self._noted("next_token"), self)

    @property
    def attention(self) -> Attention:
        """Where attention goes; `ValueError` if that was not measured."""
        return Attention.of(self._noted("attention"), self)

    @property
    def response(self) -> TokenResponse:
        """How states answer to a change of single tokens; `ValueError` if that was not measured."""
        return TokenResponse.of(self._noted("response"), self)

    def _noted(self, name: str) -> Array:
        if name not in self.instruments:
            raise ValueError(f'{name} was not measured; ask for it: measure(..., instruments=("distance", "{name}"))')
        return self.instruments[name]

    @property
    def floor(self) -> Array:
        """Shape (K, M, T): the Euclidean distance that rounding alone makes."""
        return np.stack([self._floor(m) for m in range(len(self.layers))], axis=1)

    def _floor(self, m: int) -> Array:
        """Return the floor at the layer of index m, shape (K, T)."""
        size = np.sqrt(np.mean(self.norms[:, :, m] ** 2, axis=0))
        return np.asarray(size * rounding(self.precision, min(self.layers[m], self.depth)))

    def distance(self, layer: int, *, metric: str = "euclidean") -> Array:
        r"""Return the distances at one layer, shape (K, T).

        "euclidean": $|x-\tilde x|$.  "relative": divided by the root mean square of the two norms.  "cosine":
        $1-\cos$ of the angle between the states, quadratic in small differences, so that its exponent is twice
        that of the others.
        """
        m = self._index(layer)
        choice("metric", metric, METRICS)
        euclidean, (a, b) = self.euclidean[:, m], self.norms[:, :, m]
        if metric == "euclidean":
            return euclidean
        if metric == "relative":
            return np.asarray(euclidean / np.sqrt((a**2 + b**2) / 2))
        lengths = self.radial[:, m] / (a + b)  # |x| - |x~|
        return np.asarray(np.maximum(euclidean**2 - lengths**2, 0) / (2 * a * b))

    def reliable(self, layer: int) -> NDArray[np.bool_]:
        """Return at which t, shape (T,), the distance of every pair is clear of rounding (3 times the floor)."""
        m = self._index(layer)
        return np.asarray(np.all(self.euclidean[:, m] > CLEARANCE * self._floor(m), axis=0))

    def curve(self, layer: int, *, metric: str = "euclidean", pair: int | None = None) -> Curve:
        """Return the forgetting curve at one layer: the geometric mean over pairs, or that of one pair.

        The standard error is that of the mean of log distances over pairs, which the curve carries along.  Tokens at
        which the runs of a pair are equal (a sliding window has lost the prompt) or not clear of rounding are left
        out, and the provenance says which.

        Raises `ValueError`, with the reason, if fewer than two tokens remain.
        """
        distance, keep = self.distance(layer, metric=metric), self.reliable(layer)
        left_out = self._left_out(layer, keep)
        if np.sum(keep) < LEAST_POINTS:
            hint = f"measure in a wider number format than one of spacing {self.precision:.2g}"
            if not np.any(self.euclidean[:, self._index(layer)]):
                hint = "the runs do not differ there; choose a deeper layer"
            if layer == 0:
                hint = "the embeddings of a common continuation are equal; choose a layer from 1 on"
            raise ValueError(
                f"the runs at layer {layer} must be apart at {LEAST_POINTS} tokens or more, got {np.sum(keep)} "
                f"(left out: {left_out}); {hint}"
            )
        if pair is not None:
            if not 0 <= pair < self.pairs:
                raise ValueError(f"pair must be from 0 to {self.pairs - 1}, got {show(pair)}")
            distance = distance[pair : pair + 1]
        known = dict(self.provenance) | {"layer": str(layer), "metric": metric, "pairs": str(len(distance))}
        if left_out:
            known["left out"] = left_out
        return over_pairs(self.t[keep], distance[:, keep], known)

    def curves(self, *, metric: str = "euclidean") -> dict[int | None, Curve]:
        """Return {layer: curve} of all layers at which the runs differ; see `curve`."""
        apart = [layer for layer in self.layers if np.sum(self.reliable(layer)) >= LEAST_POINTS]
        return {layer: self.curve(layer, metric=metric) for layer in apart or self.layers[-1:]}

    def alpha(
        self, layer: int, *, t_min: float | None = None, t_max: float | None = None, metric: str = "euclidean"
    ) -> PowerLaw:
        """Return the exponent at one layer: `fit_power_law` of its curve, errors over pairs (THEORY section 9).

        The layer and the metric are in its provenance, the exponent of each pair is in `each`.
        """
        from relaymodel.inference import fit_power_law

        return fit_power_law(self.curve(layer, metric=metric), t_min=t_min, t_max=t_max)

    def alphas(
        self, *, t_min: float | None = None, t_max: float | None = None, metric: str = "euclidean"
    ) -> tuple[dict[int, PowerLaw], dict[int, str]]:
        """Return {layer: exponent} of the layers from 1 on that have one, and {layer: reason} of those without.

        A layer whose attention has a sliding window may have too few tokens that still see the prompt.  `ValueError`
        if no layer has an exponent.
        """
        found, without = {}, {}
        for layer in filter(None, self.layers):
            try:
                found[layer] = self.alpha(layer, t_min=t_min, t_max=t_max, metric=metric)
            except ValueError as error:
                without[layer] = str(error)
        if not found:
            reason = next(iter(without.values()), "the embedding has none; measure layers from 1 on")
            raise ValueError(f"no layer has an exponent: {reason}")
        return found, without

    def to_csv(self, path: files.PathLike, *, metric: str = "euclidean", overwrite: bool = False) -> Path:
        """Write the curves of all layers to one CSV file, which `Curve.from_csv(path, layer=...)` reads."""
        return write_curves(path, self.curves(metric=metric), overwrite=overwrite)

    def to_npz(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write everything to a compressed NPZ file without pickled objects."""
        facts = {name: getattr(self, name) for name in ("layers", *SHAPE)} | {"provenance": dict(self.provenance)}
        arrays = {name: getattr(self, name) for name in ARRAYS} | dict(self.instruments)
        return files.write_npz(path, arrays, facts, overwrite=overwrite)

    @classmethod
    def from_npz(cls, path: files.PathLike) -> Measurement:
        """Read what `to_npz` wrote; pickled objects are refused."""
        arrays, shape = files.read_npz(path, "Measurement.to_npz", ARRAYS)
        try:
            own = {name: arrays.pop(name) for name in ARRAYS}
            return cls(**{**own, **shape, "layers": tuple(shape["layers"]), "instruments": arrays})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be an NPZ file that Measurement.to_npz wrote: {show(error)}") from None

    def to_xarray(self) -> Any:
        """Return an `xarray.Dataset`: arrays over pair, layer and t, with the provenance in its attributes.

        The two runs of `norms` have a dimension of their own, run.  `ImportError` without xarray.
        """
        each = ("pair", "layer", "t")
        data = {"euclidean": (each, self.euclidean), "norms": (("run", *each), self.norms)}
        data["radial"] = (each, self.radial)
        for name, noted in self.instruments.items():
            data[name] = (("pair", *(f"{name}_{axis}" for axis in range(1, noted.ndim))), noted)
        coordinates = {"pair": np.arange(self.pairs), "layer": list(self.layers), "t": self.t, "run": ["a", "b"]}
        facts = {name: value for name in SHAPE if (value := getattr(self, name)) is not None}
        xarray = files.optional("xarray", "make a data set of a measurement")
        return xarray.Dataset(data, coordinates, {**self.provenance, **facts})

    @classmethod
    def from_xarray(cls, data: Any) -> Measurement:
        """Return what `to_xarray` was made of; `ValueError` for other data sets."""
        try:
            arrays: dict[str, Any] = {name: np.asarray(data[name], dtype=np.float64) for name in ARRAYS[1:]}
            shape = {name: data.attrs[name] for name in SHAPE if name in data.attrs}
            counts = {name: int(value) for name, value in shape.items() if name != "precision"}
            known = {key: str(value) for key, value in data.attrs.items() if key not in SHAPE[1:]}
            layers, t = tuple(int(layer) for layer in data["layer"]), np.asarray(data["t"], dtype=np.int64)
            noted = {str(name): np.asarray(data[name]) for name in data.data_vars if name not in ARRAYS}
            return cls(t, layers, **arrays, **(shape | counts), provenance=known, instruments=noted)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"data must be a data set that Measurement.to_xarray made: {show(error)}") from None

    def to_netcdf(self, path: files.PathLike, *, overwrite: bool = False) -> Path:
        """Write `to_xarray` to a netCDF file."""
        data = self.to_xarray()
        return files.write(path, lambda temporary: data.to_netcdf(temporary, engine="scipy"), overwrite=overwrite)

    @classmethod
    def from_netcdf(cls, path: files.PathLike) -> Measurement:
        """Read what `to_netcdf` wrote."""
        xarray = files.optional("xarray", f"read {path}")
        try:
            return cls.from_xarray(xarray.load_dataset(path, engine="scipy"))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} must be a netCDF file that Measurement.to_netcdf wrote: {show(error)}") from None

    def __repr__(self) -> str:
        return (
            f"Measurement({self.pairs} pairs, prompt {self.prompt}, t = 1..{self.t[-1]}, layers "
            f"{self.layers[0]}..{self.layers[-1]}, {self.provenance.get('network', 'a network')})"
        )

    def _repr_html_(self) -> str:
        fits, _ = self.alphas()
        rows = [(layer, figure(f.value, f.stderr), f"{f.window[0]:g} to {f.window[1]:g}") for layer, f in fits.items()]
        return table("", rows, ("layer", "α", "window of t")) + facts(self.provenance)

    def _index(self, layer: int) -> int:
        positive_integer("layer", layer, least=0)
        if layer not in self.layers:
            raise ValueError(f"layer must be one of those measured, {', '.join(map(str, self.layers))}, got {layer!r}")
        return self.layers.index(layer)

    def _left_out(self, layer: int, keep: NDArray[np.bool_]) -> str:
        """Return which tokens are not kept, and why."""
        equal = np.any(self.euclidean[:, self._index(layer)] == 0, axis=0)
        parts = []
        if np.any(equal):
            parts.append(f"{np.sum(equal)} tokens, the first t = {self.t[equal][0]}, at which two runs are equal")
            if self.window is not None:
                reach = layer * (self.window - 1)
                parts[-1] += f": a sliding window of {self.window} keys reaches back at most {reach} tokens"
        if np.any(~keep & ~equal):
            close = f"{np.sum(~keep & ~equal)} tokens within {CLEARANCE:g} times the rounding of the states"
            parts.append(close)
        return "; ".join(parts)
