"""A head given by where its attention goes: a mixture of Beta heads, and what it misses (THEORY section 10)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import betainc

from relaymodel.checks import Number, demand, numbers, series, show
from relaymodel.display import brief
from relaymodel.model.layer import Head, Layer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

MIXTURE_POSITIONS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # heads that a mixture is begun with
MIXTURE_RECENCIES = (-4.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)  # in every combination
PROFILE_BINS = 32  # of a profile read off attention matrices
MOST_HEADS = 6  # heads of a mixture
NEAR_ENOUGH = 1e-6  # a mixture this near is near enough
WORTH_A_HEAD = 0.9  # another head must leave at most this share of the misfit


@dataclass(frozen=True, eq=False)
class HeadMixture:
    """Attention as a mixture of Beta heads: what `fit_heads` returns.

    Attributes
    ----------
    heads
        Beta heads; their relays are their shares of the attention.
    sink, own
        Shares of the first token, beyond the heads', and of the token itself; with the heads' they add up to 1.
    edges, profile, fitted
        Edges of the bins over relative position u, shape (B + 1,), the share of the attention in each, and the
        mixture's, both of shape (B,) and without `sink` and `own`.
    """

    heads: tuple[Head, ...]
    sink: float
    own: float
    edges: Array
    profile: Array
    fitted: Array

    def __repr__(self) -> str:
        return brief(self)

    @property
    def error(self) -> float:
        """The share of the attention that the mixture puts into wrong bins: their distance in total variation."""
        return float(0.5 * np.abs(self.profile - self.fitted).sum())

    @property
    def density_at_start(self) -> float:
        """p(0), the density of attention at the beginning of the context against uniform attention's 1."""
        return float(sum(h.relay * (1 - h.recency) for h in self.heads if h.position == 0))

    def layer(self, relay: Number, residual: Number = 1, *, sink: bool = False) -> Layer:
        """Return a layer that relays so: `own` joins the residual, and `sink`, if it carries a difference, the sink.

        The first token's values are near zero in trained networks: its share then only takes weight away.
        """
        strength = Fraction(relay)
        heads = [Head(float(strength * Fraction(h.relay)), h.position, h.recency) for h in self.heads]
        kept = float(strength * Fraction(self.own) + Fraction(residual))
        return Layer(heads=heads, residual=kept, sink=float(strength * Fraction(self.sink)) if sink else 0)


def fit_heads(attention: ArrayLike, edges: ArrayLike | None = None) -> HeadMixture:
    r"""Return the mixture of Beta heads nearest to a profile of attention over relative position (THEORY section 10).

    A head whose weights depend on u = s/n is exactly solvable, but a profile in bins or atoms has no fast contour.
    Out of 72 shapes $\mathrm{Beta}(1+g, 1-\gamma)$, g from 0 to 8 and gamma from -4 to .98, heads are added one at a
    time, the one that helps most first, all shares by nonnegative least squares, up to six or until another leaves
    more than 90 % of the misfit.  None has g < 0: attention is taken to be finite at the beginning of the context.
    What is below the first edge is not resolved: the influence where P/N lies there is an extrapolation.

    Parameters
    ----------
    attention
        A profile: shape (B,), the share of the attention in each bin of u, not negative.  Or attention matrices,
        shape (..., n, n) with n of at least 32, queries before keys, causal, rows adding up to 1: the profile is
        the mean over the later half of their rows; the token itself, and what the first token has beyond the
        second, are counted apart.
    edges
        Edges of the bins of a profile, shape (B + 1,), from 0 to 1; equal bins if None.

    Raises
    ------
    TypeError, ValueError
        For anything else, named.

    Examples
    --------
    >>> found = fit_heads([0.1] * 10)  # uniform attention
    >>> found.heads, found.error < 1e-12
    ((Head(relay=1.0, position=0, recency=0),), True)
    """
    array = numbers("attention", attention)
    if array.ndim >= 2:
        if edges is not None:
            raise ValueError("edges must be None with attention matrices, whose bins are equal")
        sink, own, profile = _profile(array)
        bounds = np.linspace(0, 1, PROFILE_BINS + 1)
    else:
        profile = series("attention", attention, least=2)
        demand("attention", profile, profile >= 0, "not negative")
        if not profile.sum() > 0:
            raise ValueError("attention must be positive somewhere, got zeros only")
        profile, sink, own = profile / profile.sum(), 0.0, 0.0
        bounds = np.linspace(0, 1, profile.size + 1) if edges is None else series("edges", edges, least=3)
    if bounds.size != profile.size + 1 or bounds[0] != 0 or bounds[-1] != 1 or not np.all(np.diff(bounds) > 0):
        raise ValueError(
            f"edges must rise from 0 to 1 and be one more than the {profile.size} shares, got {show(bounds.tolist())}"
        )
    shapes = [(g, gamma) for g in MIXTURE_POSITIONS for gamma in MIXTURE_RECENCIES]
    masses = np.array([np.diff(betainc(1 + g, 1 - gamma, bounds)) for g, gamma in shapes]).T
    # the sum of shares is held by a heavy row; bins are weighed as counts are
    weigh = 1 / np.sqrt(profile + 1e-3)
    design = np.vstack([masses * weigh[:, None], np.full(len(shapes), 1e3)])
    wanted = np.append(profile * weigh, 1e3 * profile.sum())
    chosen: list[int] = []
    shares, misfit = np.zeros(0), np.inf
    while len(chosen) < MOST_HEADS and misfit > NEAR_ENOUGH:
        tries = [(nnls(design[:, [*chosen, i]], wanted), i) for i in range(len(shapes)) if i not in chosen]
        (found, left), best = min(tries, key=lambda found: found[0][1])
        if left > WORTH_A_HEAD * misfit:
            break
        chosen, shares, misfit = [*chosen, best], found, left
    shares = shares * (profile.sum() / shares.sum())
    kept = sorted((i for i in range(len(chosen)) if shares[i] > 0), key=lambda i: -shares[i])
    heads = tuple(Head(float(shares[i]), *map(_whole, shapes[chosen[i]])) for i in kept)
    fitted = masses[:, chosen] @ shares
    return HeadMixture(heads, sink, own, bounds, profile, fitted)


def _whole(value: float) -> Number:
    return int(value) if value == int(value) else value


def _profile(matrices: NDArray[Any]) -> tuple[float, float, Array]:
    """Return the shares of the first token beyond the second's, of the token itself, and of the bins of the rest."""
    n = matrices.shape[-1]
    if matrices.shape[-2] != n or n < PROFILE_BINS or matrices.size == 0:
        raise ValueError(
            f"attention must be a profile (B,) or matrices (..., n, n) with n >= {PROFILE_BINS}, "
            f"got shape {matrices.shape}"
        )
    rows = matrices.reshape(-1, n, n).astype(np.float64)
    demand("attention", rows, np.isfinite(rows) & (rows >= 0), "finite and not negative")
    sums = rows.sum(axis=2)
    demand("attention", sums, np.abs(sums - 1) < 1e-3, "of rows that add up to 1")
    if np.triu(rows, 1).any():
        raise ValueError("attention must be causal: zero above the diagonal")
    mean = rows.mean(axis=0)
    first, own, profile = 0.0, 0.0, np.zeros(PROFILE_BINS)
    counted = range(n // 2, n)
    for i in counted:
        first += max(0.0, mean[i, 0] - mean[i, 1])
        own += mean[i, i]
        # the key s covers (s-1)/n < u < s/n of its row
        keys = np.concatenate([[min(mean[i, 0], mean[i, 1])], mean[i, 1:i]])
        cumulative = np.concatenate([[0], np.cumsum(keys), [keys.sum()]])
        profile += np.diff(np.interp(np.linspace(0, 1, PROFILE_BINS + 1), np.arange(i + 2) / (i + 1), cumulative))
    count = len(counted)
    return first / count, own / count, profile / count
