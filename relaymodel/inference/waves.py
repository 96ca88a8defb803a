r"""Waves in log t: the columns that log-periodic modulations add to a regression, and which of them a curve shows.

A spline takes a wave faster than its bandwidth for noise, and with it a slope that is no noise of an exponent.
"""

from dataclasses import dataclass

import numpy as np

from relaymodel.inference.cells import Array
from relaymodel.inference.gls import Gls, rounding

PERIODS = 2.0
"""Fewest periods in the window: a slower wave is a bend, which the spline follows."""

FINENESS, ZOOMS = 4, 3
"""Frequencies tried for each that fits the window once more, and how often a finer grid between the best one's
neighbours is: the phase is off by .01 at the ends then, which the columns that grow with log t make good."""

FASTEST = 0.9
"""Frequency of the fastest wave against that of two points a period, at which values say nothing of slopes."""

CROWDED = 4
"""How much closer than if they were even points may be for fast waves to be looked for."""

WIDEST_GAP = 1 / 3
"""Part of the window without points beside which no waves are looked for."""

CERTAIN = 100.0
"""A wave is there where it makes the curve this much likelier: of curves without one, that happens to one in a hundred
at the most (Markov's inequality)."""

LEAST_WAVE = 256.0
"""Variance of what is not looked at, in units of that of rounding, which may well be periodic."""

MOST = 4
"""Most waves that are looked for."""

WAVE_COLUMNS = 6
"""Of the first wave and its overtone; the others have four."""

DISTINCT = 0.03
"""Least singular value, against the largest, of columns that the points tell apart."""


def columns(unit: Array, frequencies: tuple[float, ...], overtone: tuple[float, ...] = ()) -> Array:
    """Return what waves add to log D at log t in units of the curve's length of it (K,): four columns each.

    They are cosine and sine, and both times log t, for a frequency or an amplitude that is not quite constant.  An
    `overtone` has the first two.
    """
    phase, rest = np.multiply.outer(unit, np.array(frequencies)), np.multiply.outer(unit, np.array(overtone))
    once = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    return np.concatenate([once, (unit[:, None] - 0.5) * once, np.cos(rest), np.sin(rest)], axis=1)


def slopes(unit: Array, frequencies: tuple[float, ...], overtone: tuple[float, ...] = ()) -> Array:
    """Return their derivatives with respect to `unit`."""
    omega, fast = np.array(frequencies), np.array(overtone)
    phase, rest = np.multiply.outer(unit, omega), np.multiply.outer(unit, fast)
    once = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    turned = np.concatenate([-omega * np.sin(phase), omega * np.cos(phase)], axis=1)
    grown = (unit[:, None] - 0.5) * turned + once
    return np.concatenate([turned, grown, -fast * np.sin(rest), fast * np.cos(rest)], axis=1)


def overtone(unit: Array, known: tuple[float, ...]) -> tuple[float, ...]:
    """Return the first multiple of the first wave that is not among those known; empty where points cannot tell it.

    A wave that is no cosine has overtones whose slopes count before they stand out from the noise.
    """
    if not known:
        return ()
    next_one = next(k for k in range(2, len(known) + 2) if np.all(np.abs(k * known[0] - np.array(known)) > np.pi))
    fast = (next_one * known[0],)
    design = np.concatenate([np.ones((unit.size, 1)), unit[:, None], columns(unit, known, fast)], axis=1)
    size = np.linalg.svd(design, compute_uv=False)
    return fast if size[-1] > DISTINCT * size[0] else ()


def unseen(unit: Array, known: tuple[float, ...], coefficients: Array) -> float:
    """Return the variance of slopes from overtones beyond those fitted; waves are last of the `coefficients`.

    Each is taken to be as much smaller than the last as the first wave is than 1, twice what log(1 + A cos) has.
    """
    fast = overtone(unit, known)
    if not fast:
        return 0.0
    first, last = 4 * len(known) + 2, len(known)
    amplitude = np.hypot(coefficients[-first], coefficients[last - first])
    return float((amplitude * np.hypot(*coefficients[-2:]) * (fast[0] + known[0])) ** 2 / 2)


def said(length: float, known: tuple[float, ...]) -> tuple[str, ...]:
    """Return what is to be said of waves in a curve of some length of log t."""
    factors = ", ".join(f"{np.exp(2 * np.pi * length / omega):.3g}" for omega in known)
    return (f"log D waves in log t, once in each factor of {factors} of t",) if known else ()


def tried(unit: Array, known: tuple[float, ...]) -> Array:
    """Return the frequencies (W,) to look for: from two periods in all to nearly two points a period, and an overtone.

    Where points crowd together far more than on the whole, there are fewer; beside a wide gap, which a wave and a line
    may cross in any way, there are none.
    """
    gaps = np.diff(unit)
    if gaps.max() > WIDEST_GAP:
        return np.empty(0)
    closest = max(float(np.median(gaps)), 1 / (CROWDED * unit.size))
    step, fastest = 2 * np.pi / FINENESS, FASTEST * np.pi / closest
    grid = np.arange(PERIODS * 2 * np.pi, fastest, step)
    free = np.all(np.abs(grid[:, None] - np.array(known)) > 2 * np.pi, axis=1)
    return np.concatenate([grid[free], [omega for omega in overtone(unit, known) if omega > fastest]])


@dataclass(frozen=True, eq=False)
class Search:
    """Waves (W,) held against a spline: what contrasts see of cosine and sine (2, C, r, W), and their normal equations.

    `inverse` are the three entries of the inverse of the latter, shape (C, Q, W) each.
    """

    spline: Gls
    frequencies: Array
    seen: Array
    inverse: tuple[Array, Array, Array]

    @classmethod
    def of(cls, spline: Gls, unit: Array, frequencies: Array) -> "Search":
        """Prepare frequencies (W,) for cells at `unit` (K,)."""
        phase, back = unit[:, None] * frequencies, np.swapaxes(spline.vectors, 1, 2)
        seen = np.stack([back @ np.cos(phase), back @ np.sin(phase)])
        share = 1 / spline.shrunk
        cc, cs, ss = (share @ (seen[i] * seen[j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        # at two points a period cosine and sine may be one; then the gain counts it once or not at all
        determinant = np.maximum(cc * ss - cs * cs, 1e-9 * cc * ss) + np.finfo(float).tiny
        return cls(spline, frequencies, seen, (ss / determinant, -cs / determinant, cc / determinant))

    def gain(self, y: Array) -> Array:
        """Return by how much each wave makes y (K,) likelier, in logarithms, shape (W,).

        Noise and bandwidth are averaged over with the wave and without.  Its two coefficients have Zellner's prior, as
        much as one observation says of them.
        """
        posterior = self.spline.posterior(y[:, None], floor=LEAST_WAVE * rounding(y[:, None]))
        share = np.swapaxes(posterior.data, 1, 2) / self.spline.shrunk  # (C, Q, r)
        c, s = share @ self.seen[0], share @ self.seen[1]
        first, mixed, second = self.inverse
        explained = np.clip((c * c * first + 2 * c * s * mixed + s * s * second) / posterior.square, 0, 1)
        n = self.spline.freedom
        log = (n - 2) / 2 * np.log1p(n) - n / 2 * np.log1p(n * (1 - explained))
        chance = np.exp(posterior.evidence - posterior.evidence.max())
        top = float(log.max())
        return np.asarray(top + np.log(np.sum(chance * np.exp(log - top), axis=(0, 1)) / chance.sum()))
