"""What the page shows when it opens, and the link that says so."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.simulation import PromptBias, Reminders

LAST = 100_000
"""The page's curves end at this continuation token."""

RANGES: dict[str, tuple[Number, Number]] = {
    "prompt": (1, 4096),
    "depth": (1, 32),
    "relay": (0.01, 2),
    "residual": (0, 1.5),
    "position": (-0.9, 1),
    "recency": (-1, 0.95),
    "strength": (0, 4),
    "offset": (-3, 5),
    "every": (2, 8192),
    "length": (1, 4096),
    "from": (1, LAST // 2),
    "to": (2, LAST),
}
"""Least and largest value of each slider."""


@dataclass(frozen=True)
class Setting:
    """L equal layers behind a prompt, with or without a bias and reminders: where the page's sliders stand.

    Parameters
    ----------
    prompt, depth, relay, residual, position, recency
        As in `RelayModel.uniform`, all layers equal.
    bias
        A bias on the prompt's keys, or None.
    reminders
        The prompt returned in the last tokens of every so many, or None.
    window
        First and last token of the straight line; the last at least twice the first.

    Raises
    ------
    TypeError, ValueError
        For a value outside its slider's bounds, which `relaymodel.explore.setting.RANGES` has.

    Examples
    --------
    >>> Setting(prompt=128, bias=PromptBias(3)).fragment
    '#P=128&L=12&relay=0.2&residual=1&position=0&recency=0&bias=3&offset=0&from=16&to=1024'
    >>> Setting(depth=100)
    Traceback (most recent call last):
    ValueError: depth must be from 1 to 32 for the page's slider, got 100
    """

    prompt: int = 64
    depth: int = 12
    relay: Number = 0.2
    residual: Number = 1
    position: Number = 0
    recency: Number = 0
    bias: PromptBias | None = None
    reminders: Reminders | None = None
    window: tuple[int, int] = (16, 1024)

    def __post_init__(self) -> None:
        for name in ("prompt", "depth"):
            object.__setattr__(self, name, positive_integer(name, getattr(self, name)))
        for name in ("relay", "residual", "position", "recency"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if self.bias is not None and not isinstance(self.bias, PromptBias):
            raise TypeError(f"bias must be a PromptBias or None, got {show(self.bias)}")
        if self.reminders is not None:
            if not isinstance(self.reminders, Reminders):
                raise TypeError(f"reminders must be Reminders or None, got {show(self.reminders)}")
            if self.reminders.first != self.reminders.every - self.reminders.length + 1:
                raise ValueError(
                    f"reminders must be the last tokens of every {self.reminders.every} on the page, got "
                    f"first = {self.reminders.first}; leave `first` out"
                )
        try:
            first, last = (positive_integer("window", end) for end in self.window)
        except (TypeError, ValueError):
            raise ValueError(f"window must be two whole numbers, first and last t, got {show(self.window)}") from None
        if last < 2 * first:
            raise ValueError(f"window must end at twice its start or later, got {first} to {last}")
        object.__setattr__(self, "window", (first, last))
        for name, value in self._values().items():
            low, high = RANGES[name]
            if not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high} for the page's slider, got {show(value)}")

    def _values(self) -> dict[str, Number]:
        """Return the sliders that are in use and their values."""
        names = ("prompt", "depth", "relay", "residual", "position", "recency")
        values: dict[str, Number] = {name: getattr(self, name) for name in names}
        if self.bias is not None:
            values |= {"strength": self.bias.strength, "offset": self.bias.offset}
        if self.reminders is not None:
            values |= {"every": self.reminders.every, "length": self.reminders.length}
        return values | {"from": self.window[0], "to": self.window[1]}

    @property
    def fragment(self) -> str:
        """The end of a link to the page that carries this setting, from `#` on."""
        short = {"prompt": "P", "depth": "L", "strength": "bias"}
        return "#" + "&".join(f"{short.get(name, name)}={_plain(value)}" for name, value in self._values().items())

    def to_dict(self) -> dict[str, Any]:
        """Return what the page's script takes: every slider, in use or not, and both switches."""
        at_hand = {"strength": 1, "offset": 0, "every": 512, "length": 64}
        values = {name: _plain(value) for name, value in (at_hand | self._values()).items()}
        return values | {"bias": self.bias is not None, "remind": self.reminders is not None}


def _plain(value: Number) -> int | float:
    """Return an integer as such, everything else as float64."""
    return int(value) if Fraction(value).denominator == 1 else float(value)
