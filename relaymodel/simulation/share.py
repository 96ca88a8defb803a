"""Interventions that set the prompt's share of each head's attention from the share it has (THEORY sections 7, 10)."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.simulation.bias import tokens

Floats = NDArray[np.float64]


@runtime_checkable
class ShareRule(Protocol):
    """What knows which share of a head's attention the prompt gets in place of the share that it has.

    A rule acts head by head and query by query, where a bias b_t is the same for all of them.  `log_bias` is the bias
    that does as much to uniform attention.
    """

    def share_odds(self, log_odds: Floats) -> Floats:
        """Return the log-odds of the share that takes the place of one of these log-odds, any shape."""
        ...

    def log_bias(self, t: Floats, prompt: int) -> Floats:
        """Return b_t, shape (T,), of uniform attention."""
        ...


@dataclass(frozen=True)
class SplitSoftmax:
    r"""Split-softmax: the prompt's share $\pi$ of each head's attention becomes $\pi^k$ (Li et al. 2024).

    The other keys share the rest, $1-\pi^k$, as before.  For uniform attention $\pi = P/(P+t)$, so that the share goes
    as $t^{-k}$ as under a bias of strength $\beta = 1-k$: exponent k in place of 1 (THEORY section 7).

    Parameters
    ----------
    power
        k, above 0 and at most 1; 1 changes nothing.

    Examples
    --------
    >>> P, t = 64, np.array([36.0, 936.0])
    >>> v = np.exp(SplitSoftmax(0.5).log_bias(t, P))
    >>> (P * v / (P * v + t)).round(12)  # the roots of 64/100 and 64/1000
    array([0.8       , 0.25298221])

    Sources: Li et al., Measuring and controlling instruction (in)stability in language model dialogs (2024).
    """

    power: Number

    def __post_init__(self) -> None:
        value = real("power", self.power)
        if not 0 < value <= 1:
            raise ValueError(f"power must be above 0 and at most 1, got {show(value)}; 1 changes nothing")
        object.__setattr__(self, "power", value)

    def share_odds(self, log_odds: Floats) -> Floats:
        r"""Return $\log\frac{\pi^k}{1-\pi^k}$ from $\log\frac{\pi}{1-\pi}$, any shape."""
        logs = np.logaddexp(0, -np.asarray(log_odds, dtype=np.float64))  # -log of the share
        with np.errstate(over="ignore"):
            return np.asarray(-np.log(np.expm1(float(self.power) * logs)))

    def log_bias(self, t: ArrayLike, prompt: int) -> Floats:
        """Return b_t, shape (T,), of uniform attention, for continuation tokens t >= 1."""
        odds = np.log(positive_integer("prompt", prompt) / tokens(t, least=1))
        return np.asarray(self.share_odds(odds) - odds)


@dataclass(frozen=True)
class ClampedShare:
    """The prompt's share of each head's attention held at c, for every query behind the prompt (THEORY section 7).

    For uniform attention it is `ConstantShare`; for any other, each head gets the bias that it needs.

    Parameters
    ----------
    share
        c, strictly between 0 and 1.

    >>> ClampedShare(0.25).share_odds(np.array([-3.0, 5.0])).round(6)  # -log 3
    array([-1.098612, -1.098612])
    """

    share: Number

    def __post_init__(self) -> None:
        value = real("share", self.share)
        if not 0 < value < 1 or not 0 < float(value) < 1:
            raise ValueError(f"share must lie between 0 and 1, the ends excluded, got {show(value)}")
        object.__setattr__(self, "share", value)

    def share_odds(self, log_odds: Floats) -> Floats:
        r"""Return $\log\frac{c}{1-c}$, whatever the share was."""
        return np.full(np.shape(log_odds), math.log(self.share) - math.log1p(-float(self.share)))

    def log_bias(self, t: ArrayLike, prompt: int) -> Floats:
        """Return b_t, shape (T,), of uniform attention, for continuation tokens t >= 1."""
        odds = np.log(positive_integer("prompt", prompt) / tokens(t, least=1))
        return np.asarray(self.share_odds(odds) - odds)


@dataclass(frozen=True)
class PromptShares:
    """A rule of the share of the first `prompt` keys, for the queries behind them, in every head."""

    rule: ShareRule
    prompt: int

    def factors(self, inside: Floats, outside: Floats) -> tuple[Floats, Floats]:
        """Return by what the weights of prompt keys and of others are multiplied.

        `inside` and `outside` are their sums, any shape; what they add up to stays.  Where one of them is 0 there is
        nothing to share.
        """
        inside, outside = np.asarray(inside, dtype=np.float64), np.asarray(outside, dtype=np.float64)
        both = (inside > 0) & (outside > 0)
        p, rest = np.where(both, inside, 1.0), np.where(both, outside, 1.0)
        odds = self.rule.share_odds(np.log(p) - np.log(rest))
        first, other = (np.where(both, expit(x) * (p + rest) / part, 1.0) for x, part in ((odds, p), (-odds, rest)))
        return first, other


@dataclass(frozen=True)
class Lifted:
    """The rule of a bias: it adds so much to the log-odds, as the bias does to the logits; for probes."""

    bias: float

    def share_odds(self, log_odds: Floats) -> Floats:
        """Return the log-odds under the bias."""
        return log_odds + self.bias

    def log_bias(self, t: Floats, prompt: int) -> Floats:  # noqa: ARG002
        """Return the bias, for every t."""
        return np.full_like(t, self.bias)
