"""Rules of the prompt's share on networks, and reminders in their texts (THEORY section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from relaymodel.checks import show
from relaymodel.simulation.inputs import interval_table

if TYPE_CHECKING:
    from relaymodel.simulation.share import ShareRule

Array = NDArray[np.float64]
Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class PromptShares:
    """A rule of the share of the first `prompt` keys, for the queries behind them, in every head."""

    rule: ShareRule
    prompt: int

    def factors(self, inside: Array, outside: Array) -> tuple[Array, Array]:
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

    def share_odds(self, log_odds: Array) -> Array:
        """Return the log-odds under the bias."""
        return log_odds + self.bias

    def log_bias(self, t: Array, prompt: int) -> Array:  # noqa: ARG002
        """Return the bias, for every t."""
        return np.full_like(t, self.bias)


def remind(tokens: Tokens, prompt: int, reminders: object) -> tuple[Tokens, NDArray[np.bool_]]:
    """Return texts, (2, P + T), with reminders put in, and at which continuation tokens they stand, shape (T,).

    Each run is reminded of its own prompt, a reminder of R tokens of the prompt's first R, from the beginning again if
    R > P.  The continuation goes on behind a reminder where it was interrupted; its end falls away.

    >>> remind(np.array([[1, 2, 7, 8, 9, 10], [3, 4, 7, 8, 9, 10]]), 2, [(2, 3)])[0].tolist()
    [[1, 2, 7, 1, 2, 8], [3, 4, 7, 3, 4, 8]]
    """
    steps = tokens.shape[1] - prompt
    own = np.zeros(steps, dtype=bool)
    result = tokens.copy()
    for start, stop in interval_table(reminders, steps):
        stop = min(int(stop), steps)
        own[start - 1 : stop] = True
        result[:, prompt + start - 1 : prompt + stop] = tokens[:, np.arange(stop - start + 1) % prompt]
    if own.all():
        raise ValueError(f"reminders must leave tokens of the continuation between them, got {show(reminders)}")
    result[:, prompt:][:, ~own] = tokens[:, prompt : prompt + np.sum(~own)]
    return result, own
