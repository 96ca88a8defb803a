"""What a simulation is asked for: where to sample, the prompt-key bias, the reminders.  Checked once, here."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import demand, positive_integer, series, show
from relaymodel.model import RelayModel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PER_DECADE = 64
"""Sampled positions per factor of ten in t, unless the caller asks otherwise."""


@runtime_checkable
class LogBias(Protocol):
    """Anything that knows the logit bias of the prompt keys (THEORY section 7)."""

    def log_bias(self, t: Floats, prompt: int) -> Floats:
        """Return b_t, shape (T,), for the queries at continuation tokens t, shape (T,)."""
        ...


@runtime_checkable
class ReminderSchedule(Protocol):
    """Anything that knows where the prompt's text returns in the continuation (THEORY section 7)."""

    def intervals(self, steps: int) -> Any:
        """Return the inclusive intervals (start, stop) of t up to `steps`: sorted, disjoint, shape (K, 2).

        Asked for more steps, it must begin with the same intervals.
        """
        ...


def convolves(model: RelayModel, biased: bool) -> bool:
    """Return whether a simulation needs `HeadRecursion`: for other than plain layers, or a bias beside a position."""
    return not model.plain or (biased and any(layer.position != 0 for layer in model.layers))


def sample_points(samples: object, steps: int) -> Integers:
    """Return the continuation tokens at which to sample, shape (K,), strictly increasing, within 1..steps.

    An integer is a number of points per factor of ten: the distinct integers nearest to 10^(k/samples),
    and `steps` itself.  Anything else is taken as the points themselves.

    >>> sample_points(3, 30).tolist()
    [1, 2, 5, 10, 22, 30]
    >>> sample_points([3, 3], 30)
    Traceback (most recent call last):
    ValueError: samples must be strictly increasing, got 3.0 at index 1
    """
    if not isinstance(samples, (list, tuple)) and np.ndim(samples) == 0:  # type: ignore[arg-type]
        per_decade = min(positive_integer("samples", samples), 3 * steps)  # as many hit every integer
        # one exponent too many, so that rounding in log10 never loses a point
        exponents = np.arange(int(math.log10(steps) * per_decade) + 2) / per_decade
        grid = np.unique(np.rint(10.0**exponents))
        return np.append(grid[grid < steps], steps).astype(np.int64)
    points = series("samples", samples)
    demand("samples", points, points == np.rint(points), "whole numbers")
    demand("samples", points, (points >= 1) & (points <= steps), f"from 1 to steps = {steps}")
    demand("samples", points, np.diff(points, prepend=0) > 0, "strictly increasing")
    return points.astype(np.int64)


def bias_function(bias: object, prompt: int) -> Callable[[Floats], Floats]:
    """Return a function that evaluates the prompt-key bias b_t and checks what it gets.

    >>> b = bias_function(lambda t: np.log1p(t / 64), prompt=64)
    >>> b(np.array([64.0])) == np.log(2)
    array([ True])
    >>> bias_function(lambda t: 0.5, prompt=64)(np.array([1.0, 2.0]))
    Traceback (most recent call last):
    ValueError: bias must return one value for each t, shape (2,), got shape (); np.full_like(t, b) is a constant bias
    """
    if isinstance(bias, LogBias):
        method = bias.log_bias

        def evaluate(t: Floats) -> object:
            return method(t, prompt)
    elif callable(bias):
        evaluate = bias
    else:
        raise TypeError(
            f"bias must be a function of t or have a method log_bias(t, prompt), got {show(bias)} of type "
            f"{type(bias).__name__}; lambda t: np.full_like(t, b) is a constant bias"
        )

    def checked(t: Floats) -> Floats:
        value = np.asarray(evaluate(t.copy()))
        if value.shape != t.shape:
            raise ValueError(
                f"bias must return one value for each t, shape {t.shape}, got shape {value.shape}; "
                "np.full_like(t, b) is a constant bias"
            )
        finite = np.isfinite(value) if value.dtype.kind == "f" else np.array(True)
        if not np.all(finite):
            i = int(np.argmin(finite))
            raise ValueError(f"bias must return finite values, got {value[i]} at t = {t[i]:.15g}")
        return series("bias(t)", value)

    return checked


def interval_table(reminders: object, steps: int) -> Integers:
    """Return the reminders' intervals, shape (K, 2), after checking that they are sorted and disjoint.

    >>> interval_table([(1, 4), (9, 12)], steps=100).tolist()
    [[1, 4], [9, 12]]
    >>> interval_table([(1, 4), (4, 6)], steps=100)
    Traceback (most recent call last):
    ValueError: reminders must be sorted and must not overlap, got start 4 at index 1 after stop 4; merge intervals ...
    """
    given: object = reminders.intervals(steps) if isinstance(reminders, ReminderSchedule) else reminders
    table: Integers
    if isinstance(given, np.ndarray):
        if given.dtype.kind not in "iu":
            raise TypeError(f"reminders must be intervals of integers, got dtype {given.dtype}")
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"reminders must be pairs (start, stop), shape (K, 2), got shape {given.shape}")
        table = given.astype(np.int64)
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        table = np.array([_pair(i, pair) for i, pair in enumerate(given)], dtype=np.int64).reshape(-1, 2)
    else:
        raise TypeError(
            f"reminders must be pairs (start, stop) or have a method intervals(steps), got {show(reminders)} of type "
            f"{type(reminders).__name__}"
        )
    start, stop = table[:, 0], table[:, 1]
    demand("reminders (start)", start, start >= 1, "at least 1, counted in continuation tokens")
    demand("reminders (stop)", stop, stop >= start, "at least their start")
    late = start[1:] <= stop[:-1]
    if np.any(late):
        i = int(np.argmax(late)) + 1
        raise ValueError(
            f"reminders must be sorted and must not overlap, got start {start[i]} at index {i} after stop "
            f"{stop[i - 1]}; merge intervals that share tokens"
        )
    return table


def _pair(index: int, pair: object) -> tuple[int, int]:
    """Return one interval as two integers."""
    if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
        raise TypeError(f"reminders must be pairs (start, stop), got {show(pair)} at index {index}")
    start, stop = (positive_integer(f"reminders[{index}]", end) for end in pair)
    if max(start, stop) >= 2**63:
        raise ValueError(f"reminders[{index}] must be below 2^63, got {show(pair)}")
    return start, stop


def reminded(table: Integers, start: int, count: int) -> NDArray[np.bool_] | None:
    """Return which of the tokens t = start+1, ..., start+count are reminders, shape (count,); None if none is."""
    # the intervals that end after `start` and begin no later than the last token
    first = int(np.searchsorted(table[:, 1], start, side="right"))
    last = int(np.searchsorted(table[:, 0], start + count, side="right"))
    if first >= last:
        return None
    begin = np.maximum(table[first:last, 0] - (start + 1), 0)
    end = np.minimum(table[first:last, 1] - start, count)
    steps = np.zeros(count + 1, dtype=np.int8)
    # begins are distinct, ends are distinct, but the end of one may be the beginning of the next
    steps[begin] += 1
    steps[end] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)
