"""`sweep`: the influence of every combination of parameters, and the tasks that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel import __version__, tasks
from relaymodel.checks import Number, choice, demand, numbers, positive_integer, real, show
from relaymodel.exact.promise import LARGEST_T
from relaymodel.exact.values import times
from relaymodel.many.block import VALUES, Place, Strength, evaluate
from relaymodel.many.dataset import Dataset
from relaymodel.memory import demand_memory
from relaymodel.model import Layer
from relaymodel.simulation.bias import PromptBias

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from relaymodel import files
    from relaymodel.progress import Report
    from relaymodel.tasks import Executor

MOST_T, BLOCK, BIASED_BLOCK, SLOW_BLOCK = 1 << 12, 1 << 16, 1 << 12, 1 << 10
"""Tokens of a task; its points, also where biases share a grid, and where models are evaluated one by one."""
AXES = ("prompt", "depth", "relay", "residual", "position", "recency", "sink", "bias", "t")


def sweep(
    *,
    t: ArrayLike,
    prompt: int | Sequence[int] | NDArray[np.integer[Any]] = 64,
    depth: int | Sequence[int] | NDArray[np.integer[Any]] = 6,
    relay: Number | ArrayLike = 1,
    residual: Number | ArrayLike = 1,
    position: Number | ArrayLike = 0,
    recency: Number | ArrayLike = 0,
    sink: Number | ArrayLike = 0,
    bias: Number | ArrayLike = 0,
    quantities: Sequence[str] = VALUES,
    executor: Executor | None = None,
    resume: files.PathLike | None = None,
    progress: bool | Report = False,
) -> Any:
    r"""Evaluate D and its local exponent of every combination of parameters, models of equal layers (THEORY section 2).

    Parameters
    ----------
    t, prompt, depth, relay, residual, position, recency, sink
        As of `RelayModel.uniform` and `influence`: a number, or a sequence (n,) that becomes a dimension.
    bias
        Strength of a `PromptBias` (THEORY section 7), likewise; t are whole numbers then, and values are those of
        `relaymodel.control.biased_influence`.
    quantities
        `"influence"`, `"local_exponent"`, or both.
    executor
        None computes here.  Otherwise anything with the `submit` of `concurrent.futures`: a `ProcessPoolExecutor`, or
        the client of Dask.  The numbers are the same to the last bit.
    resume
        A folder that receives finished blocks of the grid, as NPZ files.  A sweep that was interrupted goes on from it;
        a folder of another sweep is refused.
    progress
        True shows a bar on a terminal; a function is called with (blocks done, blocks in total).

    Returns
    -------
    xarray.Dataset
        With a dimension for each parameter that is a sequence, in the order of the arguments of
        `RelayModel.uniform`, then bias and t; the other parameters are coordinates without a dimension.  Without
        xarray it is a `relaymodel.many.Dataset`, whose `to_xarray` gives the same.

        Values are float64 and as exact as single ones: 1e-12 relative (exponents absolute), or handed over to
        `influence`, which decides by balls.  Models of recency 0 without sinks share their sums: 1e6 points of 12
        layers take about a tenth of a second.  Those of uniform heads under a bias share a grid in log t; all others
        are evaluated one model at a time.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments; for a relay of 0 with the local exponent, which it does not have.
    OverflowError
        If a value lies beyond the float range.

    Examples
    --------
    >>> found = sweep(t=[1, 1000], depth=[1, 6, 12], relay=0.5)
    >>> np.asarray(found["local_exponent"])[:, 1].round(4)
    array([0.9398, 0.5117, 0.255 ])
    """
    given = {
        "prompt": prompt,
        "depth": depth,
        "relay": relay,
        "residual": residual,
        "position": position,
        "recency": recency,
        "sink": sink,
        "bias": bias,
        "t": t,
    }
    return grid_of(given, quantities, executor=executor, resume=resume, progress=progress).labelled()


def grid_of(
    given: Mapping[str, Any],
    quantities: Sequence[str] = VALUES,
    *,
    executor: Executor | None = None,
    resume: files.PathLike | None = None,
    progress: bool | Report = False,
) -> Dataset:
    """Return what `sweep` returns, always as a `Dataset`."""
    axes = {name: _axis(name, given[name]) for name in AXES}
    if not isinstance(quantities, (list, tuple)):
        raise TypeError(f"quantities must be a list of names, got {show(quantities)}")
    wanted = tuple(dict.fromkeys(choice("quantities", name, VALUES) for name in quantities))
    if not wanted:
        raise ValueError("quantities must name 'influence' or 'local_exponent', got none")
    _check(axes, wanted)
    lengths = {name: len(axis) for name, axis in axes.items()}
    points = prod(lengths.values())
    demand_memory("the grid", 8.0 * len(wanted) * points, f"a grid of {points} points")
    places = [Place(*x) for x in product(*(axes[name] for name in Place._fields))]
    strengths = [Strength(*x) for x in product(*(axes[name] for name in Strength._fields))]
    shape = (len(places), len(strengths), len(axes["t"]))
    blocks = Blocks(places, strengths, axes["t"], wanted)
    store = None
    if resume is not None:
        known = tasks.fingerprint(__version__, [list(axes.items()), wanted, blocks.steps])
        of = "sweep (parameters or quantities)"
        store = tasks.Store(resume, known, writer="sweep", of=of, name="block", holds=wanted)
    out = {name: np.empty(shape) for name in wanted}
    for k, found in enumerate(tasks.run(evaluate, blocks, executor=executor, store=store, progress=progress)):
        for name in wanted:
            out[name][blocks.place(k)] = found[name]
    inner = (*Place._fields, *Strength._fields, "t")
    back = [inner.index(name) for name in AXES]
    kept = [name for name in AXES if np.ndim(given[name])]
    data = {
        name: values.reshape([lengths[x] for x in inner]).transpose(back).reshape([lengths[x] for x in kept])
        for name, values in out.items()
    }
    coords = {name: as_array(list(axes[name])) for name in (*kept, *(x for x in AXES if x not in kept))}
    coords = {name: values if name in kept else values[:1].reshape(()) for name, values in coords.items()}
    return Dataset(data, coords, {"source": f"relaymodel {__version__}, sweep"})


class Blocks(Sequence[tuple[Any, ...]]):
    """The tasks of a sweep, each made when it is asked for."""

    def __init__(self, places: list[Place], strengths: list[Strength], t: Any, wanted: tuple[str, ...]) -> None:
        self.axes, self.wanted = (places, strengths, t), wanted
        alone = any(not (place.plain or place.shares_grid) for place in places)
        points = SLOW_BLOCK if alone else BLOCK if all(place.plain for place in places) else BIASED_BLOCK
        last = min(len(t), MOST_T)
        middle = min(len(strengths), max(1, points // last))
        self.steps = min(len(places), max(1, points // (middle * last))), middle, last
        self.counts = [ceil(len(axis) / step) for axis, step in zip(self.axes, self.steps, strict=True)]

    def __len__(self) -> int:
        return prod(self.counts)

    def place(self, k: int) -> tuple[slice, ...]:
        """Return where the result of task k belongs."""
        index = np.unravel_index(k, self.counts)
        return tuple(slice(int(i) * step, (int(i) + 1) * step) for i, step in zip(index, self.steps, strict=True))

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        return (*(axis[part] for axis, part in zip(self.axes, self.place(k), strict=True)), self.wanted)


def _axis(name: str, given: Any) -> Any:
    """Return the values of a parameter: a list, of t an array."""
    if name == "t":
        exact, floats, shape = times(given)
        values: Any = floats if exact is None else as_array(exact)
    else:
        array = numbers(name, given)
        shape = array.shape
        check = positive_integer if name in ("prompt", "depth") else real
        values = [check(name, value) for value in array.ravel().tolist()]
    if len(shape) > 1:
        raise ValueError(f"{name} must be a number or one-dimensional, got shape {shape}")
    if not len(values):
        raise ValueError(f"{name} must have at least one value, got none")
    return values


def as_array(values: Sequence[Any]) -> NDArray[Any]:
    """Return numbers as integers or floats, where these say it all, or else as they are.

    >>> as_array([1, 2]).dtype.name, as_array([1, 0.5]).dtype.name, as_array([1, 10**400]).dtype.name
    ('int64', 'float64', 'object')
    """
    if all(isinstance(x, int) for x in values):
        return np.array(values, dtype=np.int64 if max(map(abs, values)) < 2**63 else object)
    return np.array(values, dtype=np.float64 if all(abs(x) <= LARGEST_T for x in values) else object)


def _check(axes: dict[str, Any], wanted: tuple[str, ...]) -> None:
    """Refuse values that no model, no bias, or no exponent has."""
    for name in ("residual", "position", "recency", "sink"):
        for value in axes[name]:
            Layer(1, **{name: value})
    if "local_exponent" in wanted and 0 in axes["relay"]:
        raise ValueError(
            "relay must not be 0 for a local exponent, which nothing that is passed on has; leave 0 out, or ask for "
            f"quantities=['influence'], got {show(axes['relay'])}"
        )
    if any(PromptBias(value).strength for value in axes["bias"]):
        t = axes["t"]
        whole = np.array([1 <= x <= LARGEST_T and x == int(x) for x in t.tolist()])
        demand("t", t, whole, "whole numbers from 1 to 1e300 under a bias")
