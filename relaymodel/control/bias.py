"""Biases on the prompt's keys: which share of the attention they leave to the prompt (THEORY section 7)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relaymodel.checks import Number, positive_integer, real, series, show

Floats = NDArray[np.float64]


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
            if abs(value) > LARGEST:
                raise ValueError(f"{name} must be at most {LARGEST:.0e} in size, got {show(value)}")
            object.__setattr__(self, name, value)

    def log_bias(self, t: ArrayLike, prompt: int) -> Floats:
        """Return b_t, shape (T,), for continuation tokens t >= 0, shape (T,), behind `prompt` tokens."""
        return float(self.offset) + float(self.strength) * np.log1p(tokens(t) / positive_integer("prompt", prompt))


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
        c = float(self.share)
        return math.log(c) - math.log1p(-c) + np.log(tokens(t, least=1) / positive_integer("prompt", prompt))


LARGEST = 1e6
"""Bound on strength and offset: the products with log t stay far within the range of float64."""


def tokens(t: ArrayLike, *, least: int = 0) -> Floats:
    """Return continuation tokens as a float64 array (T,)."""
    values = series("t", t)
    if np.any(values < least):
        raise ValueError(f"t must be at least {least}, counted in continuation tokens, got {values.min():.15g}")
    return values
