"""Checks of arguments, shared by every module: each error names the argument, the rule and the value."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Number = int | float | Fraction
"""A real parameter.  NumPy scalars are accepted everywhere and converted without loss."""

_EXACT = {int, Fraction}


PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""How a number is written in a file or an option; Python alone would also take 1_000, nan and every script's digits."""


def one_line(text: object) -> str:
    r"""Return text in one line that does nothing to a terminal: spaces joined, what cannot be printed escaped.

    >>> one_line("two\nlines, \x1b[31mred"), one_line("1 \u00b1 2")
    ('two lines, \\x1b[31mred', '1 ± 2')
    """
    joined = " ".join(str(text).split())
    if joined.isprintable():
        return joined
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


def show(value: object) -> str:
    """Return `repr(value)`, shortened so that an error message stays one line.

    >>> show(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17...'
    """
    try:
        text = one_line(repr(value))
    except ValueError:  # CPython refuses to print integers of more than 4300 digits
        text = f"<{type(value).__name__} too long to print>"
    return text if len(text) <= 64 else text[:61] + "..."


def real(name: str, value: object) -> Number:
    """Return a finite real number as int, float or Fraction, unchanged in value.

    Raises `TypeError` for anything that is not a real number (booleans and strings included) and
    `ValueError` for NaN and infinities.

    >>> real("relay", np.float32(0.5))
    0.5
    >>> real("relay", float("nan"))
    Traceback (most recent call last):
    ValueError: relay must be finite, got nan
    """
    number: Number
    if type(value) in _EXACT or (type(value) is float and math.isfinite(value)):  # most are
        return value  # type: ignore[return-value]
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a number, not a boolean, got {value!r}; pass int({value}) if you mean it")
    if isinstance(value, (Fraction, int)):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {float(value)!r}")
        number = float(value)
        # extended precision keeps its value as a Fraction
        return number if number == value else Fraction(*value.as_integer_ratio())
    raise TypeError(
        f"{name} must be an int, float, Fraction or NumPy scalar, got {show(value)} of type {type(value).__name__}"
    )


def floating(name: str, value: object) -> float:
    """Return a finite real number as a float; `ValueError` beyond the range of float64.

    >>> floating("t_min", 10**400)
    Traceback (most recent call last):
    ValueError: t_min must be within the range of float64, at most 1.8e308 in size, got 1000000000000000000000000000...
    """
    number = real(name, value)
    try:
        return float(number)
    except OverflowError:
        rule = "within the range of float64, at most 1.8e308 in size"
        raise ValueError(f"{name} must be {rule}, got {show(value)}") from None


def positive_integer(name: str, value: object, *, least: int = 1) -> int:
    """Return an integer that is at least `least`; floats are refused even when whole.

    >>> positive_integer("prompt", 2.5)
    Traceback (most recent call last):
    TypeError: prompt must be an integer, got 2.5 of type float
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {show(value)} of type {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {show(value)}")
    return int(value)


def positive(name: str, value: object) -> float:
    """Return a positive real number as a float.

    >>> positive("temperature", 0)
    Traceback (most recent call last):
    ValueError: temperature must be positive, got 0
    """
    number = floating(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {show(value)}")
    return number


def series(name: str, values: object, *, least: int = 1) -> NDArray[np.float64]:
    """Return a one-dimensional float64 array of at least `least` finite numbers, as a copy.

    >>> series("t", [1, float("nan")])
    Traceback (most recent call last):
    ValueError: t must be finite, got nan at index 1
    """
    array = numbers(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.dtype == object:
        array = np.array([floating(f"{name}[{i}]", value) for i, value in enumerate(array)])
    array = array.astype(np.float64)
    if array.size < least:
        raise ValueError(f"{name} must have at least {least} value{'s' * (least > 1)}, got {array.size}")
    demand(name, array, np.isfinite(array), "finite")
    return array


def numbers(name: str, values: object) -> NDArray[Any]:
    """Return `values` as an array of integers, floats or number objects of any shape.

    Booleans are refused, and arrays with masked entries, whose mask NumPy would drop.

    >>> numbers("t", [1, True])
    Traceback (most recent call last):
    TypeError: t must be numbers, not booleans, got [1, True]
    """
    items = values if isinstance(values, (list, tuple)) else ()
    if any(isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array) for array in (values, *items)):
        raise ValueError(f"{name} must not have masked entries, got {show(values)}; leave them out of every array")
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a number or a rectangular array of numbers, got {show(values)}") from None
    items = array.ravel().tolist() if array.dtype == object else items
    if array.dtype == bool or any(isinstance(item, (bool, np.bool_)) for item in items):
        raise TypeError(f"{name} must be numbers, not booleans, got {show(values)}")
    if array.dtype.kind not in "iufO" or (array.dtype == object and array.ndim == 0 and not isinstance(values, Real)):
        raise TypeError(f"{name} must be numbers, got {show(values)} of type {type(values).__name__}")
    return array


def token_ids(tokens: object, vocabulary: int) -> NDArray[np.int64]:
    """Return token ids, shape (B, n), as 64-bit integers.

    >>> token_ids([[1, 5]], vocabulary=5)
    Traceback (most recent call last):
    ValueError: tokens must be from 0 to 4, got 5
    """
    array = numbers("tokens", tokens)
    if array.dtype.kind not in "iu" or array.ndim != 2 or not array.size:
        raise ValueError(f"tokens must be integers of shape (B, n), got dtype {array.dtype}, shape {array.shape}")
    if array.min() < 0 or array.max() >= vocabulary:
        bad = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"tokens must be from 0 to {vocabulary - 1}, got {bad}")
    return array.astype(np.int64)


def sampling(context: int | None, prompt: int, count: object, temperature: object) -> tuple[int, float]:
    """Return how many tokens follow a prompt of so many, and how they are drawn; both must fit in the context.

    >>> sampling(8, 5, 4, 1)
    Traceback (most recent call last):
    ValueError: prompt and count must fit in context = 8 positions, got 9
    """
    number, warmth = positive_integer("count", count), positive("temperature", temperature)
    if context is not None and prompt + number > context:
        raise ValueError(f"prompt and count must fit in context = {context} positions, got {prompt + number}")
    return number, warmth


def demand(name: str, array: NDArray[Any], good: NDArray[np.bool_], rule: str) -> None:
    """Raise `ValueError` naming the first entry of `array` (any shape) at which `good` is false.

    >>> demand("t", np.array([1.0, -2.0]), np.array([True, False]), "positive")
    Traceback (most recent call last):
    ValueError: t must be positive, got -2.0 at index 1
    """
    if not np.all(good):
        index = np.unravel_index(int(np.argmin(good)), np.shape(good))
        where = ", ".join(str(int(i)) for i in index)
        place = f" at index {where}" if where else ""
        raise ValueError(f"{name} must be {rule}, got {show(np.asarray(array)[index].item())}{place}")


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """Return `value` if it is one of `options`.

    >>> choice("method", "magic", ["spline", "polynomial"])
    Traceback (most recent call last):
    ValueError: method must be one of 'spline', 'polynomial', got 'magic'
    """
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {show(value)}")
    return value


def as_text(facts: Mapping[Any, object] | None) -> dict[str, str]:
    """Return facts for a provenance, keys and values as text; none for None.

    >>> as_text({"seed": 1})
    {'seed': '1'}
    """
    return {str(key): str(value) for key, value in (facts or {}).items()}
