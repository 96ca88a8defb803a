"""Biases on the prompt's keys: which share of the attention they leave to the prompt (THEORY section 7)."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import Number, positive_integer, real, series, show

Floats = NDArray[np.float64]


LARGEST_STRENGTH = 1000
"""Bound on strength and offset, far beyond any use."""


@dataclass(frozen=True)
class PromptBias:
    r"""The bias $b_t = \text{offset} + \beta \log(1 + t/P)$ on the logits of the prompt's keys (THEORY section 7).

    With $a = e^{\text{offset}}$ the prompt's share of the attention of continuation token t is
    $s_t = P v_t / (P v_t + t)$, $v_t = a (1 + t/P)^\beta$.  It falls as $t^{\beta-1}$ for $\beta < 1$, tends to
    $a/(1+a)$ for $\beta = 1$, and to 1 for $\beta > 1$.  Only the prompt's keys: a bias common to all keys cancels.

    Parameters
    ----------
    strength
        $\beta$, any finite real; 0 is a constant bias.
    offset
        Constant part of the bias, any finite real, in units of a logit (nats).

    Examples
    --------
    >>> PromptBias(1).log_bias([64, 192], prompt=64) / np.log(2)
    array([1., 2.])
    """

    strength: Number
    offset: Number = 0

    def __post_init__(self) -> None:
        for name in ("strength", "offset"):
            value: Number = real(name, getattr(self, name))
            if not -LARGEST_STRENGTH <= value <= LARGEST_STRENGTH:
                raise ValueError(f"{name} must be at most {LARGEST_STRENGTH} in size, got {show(value)}")
            object.__setattr__(self, name, value)

    def log_bias(self, t: ArrayLike, prompt: int) -> Floats:
        """Return b_t, shape (T,), for continuation tokens t >= 0, shape (T,), behind `prompt` tokens."""
        return float(self.offset) + float(self.strength) * np.log1p(tokens(t) / positive_integer("prompt", prompt))

    def log_odds(self, t: Floats, prompt: int) -> Floats:
        r"""Return $\log\frac{s_t}{1-s_t} = b_t + \log\frac Pt$, t > 0, shape (T,)."""
        u = t / prompt
        odds: Floats = float(self.offset) + float(self.strength) * np.log1p(u) - np.log(u)
        return odds

    def odds_steps(self, t: Floats, prompt: int) -> Floats:
        """Return the change of `log_odds` from t to t + 1, shape (T,), without cancellation."""
        n = prompt + t
        steps: Floats = float(self.strength - 1) * np.log1p(1 / n) + np.log1p(-(prompt / n) / (t + 1))
        return steps


@dataclass(frozen=True)
class ConstantShare:
    r"""The bias $b_t = \log\frac{c}{1-c} + \log\frac tP$, which holds the prompt's share at c (THEORY section 7).

    Parameters
    ----------
    share
        c, strictly between 0 and 1.

    Examples
    --------
    >>> P, t = 64, np.array([1.0, 1e6])
    >>> v = np.exp(ConstantShare(0.25).log_bias(t, P))
    >>> (P * v / (P * v + t)).round(12)
    array([0.25, 0.25])
    """

    share: Number

    def __post_init__(self) -> None:
        value = real("share", self.share)
        if not 0 < value < 1 or not 0 < float(value) < 1:
            raise ValueError(
                f"share must lie between 0 and 1, the ends excluded, got {show(value)}; PromptBias(0) lets the share "
                "fall to 0, PromptBias(2) lets it rise to 1"
            )
        object.__setattr__(self, "share", value)

    def log_bias(self, t: ArrayLike, prompt: int) -> Floats:
        """Return b_t, shape (T,), for continuation tokens t >= 1, shape (T,), behind `prompt` tokens."""
        return self._odds + np.log(tokens(t, least=1) / positive_integer("prompt", prompt))

    def log_odds(self, t: Floats, prompt: int) -> Floats:  # noqa: ARG002
        r"""Return $\log\frac{c}{1-c}$, shape (T,)."""
        return np.full_like(t, self._odds)

    def odds_steps(self, t: Floats, prompt: int) -> Floats:  # noqa: ARG002
        """Return the change of `log_odds` from t to t + 1, which is 0, shape (T,)."""
        return np.zeros_like(t)

    @property
    def _odds(self) -> float:
        return math.log(self.share) - math.log1p(-float(self.share))


def scalable_softmax(scale: Number, gap: Number, prompt: int) -> PromptBias:
    r"""Return the bias that scalable softmax gives a prompt whose logits are higher by `gap` (THEORY section 7).

    Scalable softmax multiplies the logits by $s \log n$ at position n, so that a gap $\Delta$ becomes
    $b_t = s\Delta \log(P+t)$: strength $\beta = s\Delta$ and offset $s\Delta \log P$, exactly.

    Parameters
    ----------
    scale
        s, the factor of log n.
    gap
        $\Delta$, how much higher the prompt's logits are before scaling; negative if they are lower.
    prompt
        P.

    Examples
    --------
    >>> bias = scalable_softmax(scale=0.5, gap=3, prompt=64)
    >>> bias.strength
    1.5
    >>> bias.log_bias([36], 64) / np.log(100)
    array([1.5])
    """
    strength = Fraction(real("scale", scale)) * Fraction(real("gap", gap))
    offset = float(strength) * math.log(positive_integer("prompt", prompt))
    return PromptBias(float(strength), offset)


def plain_softmax(gap: Number) -> PromptBias:
    r"""Return the bias of a prompt whose logits are higher by a constant gap: strength 0, offset `gap`.

    It makes the prompt longer, $P e^\Delta$ tokens in place of P, and leaves the exponent at 1 (THEORY section 7).

    >>> plain_softmax(2).log_bias([1, 1000], prompt=64)
    array([2., 2.])
    """
    return PromptBias(0, gap)


def tokens(t: ArrayLike, *, least: int = 0) -> Floats:
    """Return continuation tokens as a float64 array (T,)."""
    values = series("t", t)
    if np.any(values < least):
        raise ValueError(f"t must be at least {least}, counted in continuation tokens, got {values.min():.15g}")
    return values
