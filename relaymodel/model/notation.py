"""How heads and models are written: as text for a command line, as plain dictionaries for JSON; both exact."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

from relaymodel.checks import Number, real, show
from relaymodel.model.layer import Head, Layer

_NUMBER = re.compile(r"[+-]?(\d+(/\d+)?|(\d+\.\d*|\.\d+)([eE][+-]?\d+)?|\d+[eE][+-]?\d+)", re.ASCII)
LONGEST_NUMBER = 4000
"""Characters: Python reads integers of up to 4300 digits."""
HEAD = ("relay", "position", "recency", "decay")
_PLUS = re.compile(r"(?<![eE=:])\+")  # not the sign of an exponent or of a number


def parse_heads(text: str) -> tuple[Head, ...]:
    """Return the heads of a layer from text: `relay[:position=G][:recency=C][:decay=R]`, several joined by `+`.

    Numbers are integers, decimals or fractions such as 1/3.

    Raises
    ------
    ValueError
        For text that does not have this form, or numbers that a `Head` refuses.

    Examples
    --------
    >>> parse_heads("0.3:recency=0.7 + 1/5:position=0.5")
    (Head(relay=0.3, position=0, recency=0.7), Head(relay=Fraction(1, 5), position=0.5, recency=0))
    """
    if not isinstance(text, str):
        raise TypeError(f"heads must be text such as '0.3:recency=0.7', got {show(text)}")
    heads = []
    for part in _PLUS.split(text):
        relay, *options = (piece.strip() for piece in part.split(":"))
        values: dict[str, Number] = {"relay": _number("relay", relay, text)}
        for option in options:
            name, equals, value = (piece.strip() for piece in option.partition("="))
            if name not in HEAD[1:] or not equals:
                raise ValueError(
                    f"heads must be relay[:position=G][:recency=C][:decay=R], joined by +, got {show(option)} in "
                    f"{show(text)}"
                )
            if name in values:
                raise ValueError(f"heads must give {name} once for each head, got {show(part.strip())}")
            values[name] = _number(name, value, text)
        heads.append(Head(**values))
    return tuple(heads)


def describe_layers(layers: Iterable[Layer]) -> str:
    """Return the layers in one line, equal neighbours counted together.

    >>> describe_layers([Layer(0.5)] * 6)
    '6 x (relay 0.5, residual 1, position 0)'
    """
    return ", ".join(f"{len(list(group))} x ({_describe(layer)})" for layer, group in groupby(layers))


def _describe(layer: Layer) -> str:
    if len(layer.heads) > 1 or layer.heads[0].decay != 1:
        entries: dict[str, object] = {"heads": "+".join(map(str, layer.heads)), "residual": layer.residual}
    else:
        entries = {"relay": layer.relay, "residual": layer.residual, "position": layer.position}
        entries |= {"recency": layer.recency} if layer.recency else {}
    entries |= {"sink": layer.sink} if layer.sink else {}
    return ", ".join(f"{name} {value}" for name, value in entries.items())


def _number(name: str, text: str, whole: str) -> Number:
    """Return a number from its text, exactly."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"{name} must be a number of at most {LONGEST_NUMBER} digits, got {len(text)}")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{name} must be a number such as 0.3 or 1/3, got {show(text)} in {show(whole)}")
    if "/" in text:
        if not int(text.partition("/")[2]):
            raise ValueError(f"{name} must not have the denominator 0, got {show(text)}")
        return Fraction(text)
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    value = float(text)
    if math.isinf(value) or (value == 0 and re.search("[1-9]", re.split("[eE]", text)[0])):
        raise ValueError(f"{name} must be within the range of float64, got {show(text)}; a fraction has no such limits")
    return value


def layer_as_dict(layer: Layer) -> dict[str, Any]:
    """Return a layer as a dictionary of numbers and, for fractions, text; what has its default is left out."""
    if len(layer.heads) == 1 and layer.heads[0].decay == 1:
        entry = _head_as_dict(layer.heads[0])
    else:
        entry = {"heads": [_head_as_dict(head) for head in layer.heads]}
    entry["residual"] = _plain(layer.residual)
    if layer.sink != 0:
        entry["sink"] = _plain(layer.sink)
    return entry


def layer_from_dict(entry: object) -> Layer:
    """Return the layer that `layer_as_dict` wrote."""
    fields = _fields("layers", entry, ("relay", "residual", "position", "recency", "sink", "heads"))
    heads = fields.pop("heads", None)
    values: dict[str, Any] = {name: _exact(name, value) for name, value in fields.items()}
    if heads is None:
        return Layer(**values)
    if isinstance(heads, str) or not isinstance(heads, Sequence):
        raise TypeError(f"heads must be a list, got {show(heads)}")
    return Layer(
        **values,
        heads=[Head(**{k: _exact(k, v) for k, v in _fields("heads", head, HEAD).items()}) for head in heads],
    )


def _head_as_dict(head: Head) -> dict[str, Any]:
    return {name: _plain(value) for name, value in {"relay": head.relay, **head.options}.items()}


def _fields(name: str, entry: object, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise TypeError(f"{name} must hold dictionaries, got {show(entry)}")
    unknown = [key for key in entry if key not in known]
    if unknown:
        raise ValueError(f"{name} must have the entries {', '.join(known)}, got {show(unknown[0])}")
    return dict(entry)


def _plain(value: Number) -> int | float | str:
    """Return what JSON holds without loss: fractions as text."""
    return str(value) if isinstance(value, Fraction) else value


def _exact(name: str, value: object) -> Number:
    return _number(name, value, value) if isinstance(value, str) else real(name, value)
