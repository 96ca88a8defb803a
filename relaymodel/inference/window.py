"""The part of a curve that is used."""

import re

import numpy as np

from relaymodel.curve import Curve

LEAST = 6
"""Fewest points from which an error can be estimated: a local quadratic leaves 3 degrees of freedom."""

FIRST = 16.0
"""Where a fit starts unless told otherwise: before it the first few tokens' own words dominate."""

STRAY, NEIGHBOURS = 8.0, 9
"""A point whose stated error is more than this many times the median of so many neighbours' is left out: none from as
few as two pairs is so by chance, and its weight would be below 1/64."""


class UnderdeterminedError(ValueError):
    """The curve holds too little to answer; `partial` holds what could be computed.

    Attributes
    ----------
    partial
        `PowerLaw` where a power law could still be fitted, otherwise a float: the slope
        -dlog D/dlog t between the first and the last point used, without an error.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message, partial)  # both, so that it pickles
        self.partial = partial

    def __str__(self) -> str:
        return str(self.args[0])


def stated_prompt(curve: Curve) -> int | None:
    """Return the prompt length that a curve's provenance states, None without one that could be."""
    stated = curve.provenance.get("prompt", "")
    return int(stated) if re.fullmatch("0*[1-9][0-9]{0,18}", stated) else None


def part(curve: Curve, t_min: float | None, t_max: float | None) -> Curve:
    """Return the part of the curve from `t_min` to `t_max`, both checked; None leaves an end open."""
    used = curve.window(t_min, t_max)
    if used.stderr is None or used.pairs is not None or len(used) < NEIGHBOURS:
        return used
    stated = used.stderr / used.distance
    first = np.clip(np.arange(len(used)) - NEIGHBOURS // 2, 0, len(used) - NEIGHBOURS)
    middle = np.median(stated[first[:, None] + np.arange(NEIGHBOURS)], axis=1)
    keep = (stated <= STRAY * middle) | (middle == 0)
    if keep.all():
        return used
    note = f"{np.sum(~keep)} points with {STRAY:g} times the error of their neighbours or more"
    facts = {**used.provenance, "left out of the fit": note}
    return Curve(used.t[keep], used.distance[keep], used.stderr[keep], facts)


def window(curve: Curve, t_min: float | None, t_max: float | None) -> Curve:
    """Return the part of the curve to fit: from `t_min`, by default from t = 16, to `t_max`, by default the end.

    The default start is 16 if at least a decade and `LEAST` points remain from there on; otherwise it is
    the curve's first point.
    """
    used = part(curve, t_min, t_max)
    if t_min is not None:
        return used
    rest = np.count_nonzero(used.t >= FIRST)
    return used.window(t_min=FIRST) if rest >= LEAST and used.t[-1] >= 10 * FIRST else used
