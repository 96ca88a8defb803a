"""Reminders: the prompt's text returned in the continuation, and what they add, exactly (THEORY section 7)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from relaymodel.checks import demand, numbers, show
from relaymodel.display import table
from relaymodel.exact import influence, influence_ball, token_influence
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import rational
from relaymodel.exact.values import Points, Scalar, check_model
from relaymodel.model import RelayModel
from relaymodel.simulation.inputs import interval_table
from relaymodel.simulation.reminders import LATEST_TOKEN, MOST_TOKENS, EvenReminders, ReminderBlocks, Reminders

Schedule = Reminders | EvenReminders | ReminderBlocks
Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LONG = 1024
"""Blocks of more tokens are a difference of two balls; shorter ones are summed token by token, which is faster."""

WEIGHTS_AT_ONCE = 1 << 16  # weights summed at once: half a megabyte
TIMES = "whole numbers from 1 to 2^52, counted in continuation tokens"


@dataclass(frozen=True)
class ReminderLimit:
    r"""The limit of D(t) with reminders; see `reminder_limit`.

    Attributes
    ----------
    between
        Limit at ordinary tokens, exact.
    on_reminder
        Limit at tokens that are reminders themselves, exact.
    method
        How it was found.
    """

    model: RelayModel
    reminders: Schedule
    between: Fraction
    on_reminder: Fraction
    method: str = "closed form (THEORY section 7)"

    def _repr_html_(self) -> str:
        return table(
            "Limit with reminders",
            [
                ("at ordinary tokens", f"{float(self.between):.9g}"),
                ("at reminder tokens", f"{float(self.on_reminder):.9g}"),
                ("reminders", self.reminders),
                ("prompt", self.model.prompt),
                ("depth", self.model.depth),
                ("method", self.method),
            ],
        )


def reminder_limit(model: RelayModel, reminders: Schedule) -> ReminderLimit:
    r"""Return the limit of D(t) as $t \to \infty$ with reminders (THEORY section 7), an exact rational.

    R reminder tokens in every M, or a density R/M spread evenly, hold $\bigl(f(1) - \prod_l \rho_l\bigr) R/M$: the
    weights of all tokens on position n sum to f(1), that of n on itself tends to $\prod_l \rho_l$, and the others vary
    slowly, so that the part R/M of the tokens carries the part R/M of the weight.  A reminder token itself has
    $\prod_l \rho_l$ more.  A finite set of reminders holds nothing, but sinks do: their plateau comes on top (THEORY
    section 10).  Any heads, and strengths of any sign; the distance from the limit falls as D(t) without reminders
    does, and with a recency $\gamma > 0$ as $t^{\gamma-1}$ at least.

    Raises `TypeError` for other objects: other schedules have no limit in closed form, but `simulate` runs them.

    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=1)
    >>> reminder_limit(model, Reminders(every=64, length=8)).between  # (4 - 1)/8
    Fraction(3, 8)
    """
    check_model(model)
    if not isinstance(reminders, (Reminders, EvenReminders, ReminderBlocks)):
        raise TypeError(
            f"reminders must be Reminders, EvenReminders or ReminderBlocks for a limit, got {show(reminders)} of type "
            f"{type(reminders).__name__}; simulate takes any schedule"
        )
    own = carried(model)
    density = Fraction(0) if isinstance(reminders, ReminderBlocks) else Fraction(reminders.density)
    between = (model.eigenvalue(1) - own) * density + model.plateau
    return ReminderLimit(model, reminders, between, between + own)


def carried(model: RelayModel) -> Fraction:
    r"""Return $\prod_l \rho_l$: what the residual connections alone carry of a token's own difference."""
    return math.prod((Fraction(layer.residual) for layer in model.layers), start=Fraction(1))


@overload
def reminder_influence(model: RelayModel, reminders: Any, t: Scalar) -> float: ...
@overload
def reminder_influence(model: RelayModel, reminders: Any, t: Points) -> Array: ...
def reminder_influence(model: RelayModel, reminders: Any, t: Scalar | Points) -> Array | float:
    r"""Return D(t) with reminders by superposition, exactly (THEORY section 7).

    $$ D(t) = K(N, P) + \sum_i \bigl[ K(N, P + e_i) - K(N, P + s_i - 1) \bigr], \qquad N = P + t, $$

    over the blocks $[s_i, e_i]$ of continuation tokens, cut off at t; $K(n, p)$ is the influence of p prompt tokens
    on position n, and $K(n, n) = f(1)$.  Blocks of up to 1024 tokens are summed from `token_influence`, longer
    ones are differences of balls: nothing is lost to cancellation.

    Parameters
    ----------
    model
        Any relay model.
    reminders
        `Reminders`, `EvenReminders`, `ReminderBlocks`, pairs (start, stop), or any other `ReminderSchedule`.
    t
        Whole numbers from 1 to 2^52, scalar or array of any shape.  The work is a fraction of a microsecond for each
        reminder token before each t; more than 3 10^7 are refused (`simulate` costs O(t) in all).

    Returns
    -------
    float or ndarray
        float64 of the shape of `t`; right to 2e-12 relative for strengths that are not negative, else to 2e-12 of
        the sum of the parts' sizes.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=2, depth=1, relay=1)
    >>> reminder_influence(model, [(3, 3)], [1, 2, 3, 4])  # 2/3, 2/4, 1 + 3/5, 3/6
    array([0.66666667, 0.5       , 1.6       , 0.5       ])
    """
    check_model(model)
    given = numbers("t", t)
    flat = given.ravel()
    demand("t", given, np.asarray((given >= 1) & (given <= LATEST_TOKEN) & (given == given // 1), dtype=bool), TIMES)
    at = flat.astype(np.int64)
    blocks = interval_table(reminders, int(at.max(initial=1)))
    lengths = blocks[:, 1] - blocks[:, 0] + 1
    short, long = blocks[lengths <= LONG], blocks[lengths > LONG]
    total = int(lengths[lengths <= LONG].sum())
    tokens = _tokens(short) if total <= MOST_TOKENS else None
    if tokens is None or np.sum(np.searchsorted(tokens, at, side="right")) > MOST_TOKENS:
        raise ValueError(
            f"t must not ask for more than {MOST_TOKENS:.0e} weights of single reminder tokens, got {len(at)} times up "
            f"to {total}; ask for fewer t, or use simulate, whose work grows with the last t only"
        )
    values = np.asarray(influence(model, at.astype(np.float64)), dtype=np.float64).reshape(at.shape)
    for i, x in enumerate(at):
        n = model.prompt + int(x)
        until = int(np.searchsorted(tokens, x, side="right"))
        for first in range(0, until, WEIGHTS_AT_ONCE):
            sources = model.prompt + tokens[first : min(first + WEIGHTS_AT_ONCE, until)]
            values[i] += float(np.sum(token_influence(model, sources, n)))
        for start, stop in long:
            if start <= x:
                values[i] += _block(model, int(start), min(int(stop), int(x)), n)
    return values.reshape(given.shape) if given.shape else float(values[0])


def _tokens(blocks: Integers) -> Integers:
    """Return all tokens of the blocks, in order."""
    lengths = blocks[:, 1] - blocks[:, 0] + 1
    before = np.cumsum(lengths) - lengths
    return np.repeat(blocks[:, 0] - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


def _block(model: RelayModel, start: int, stop: int, n: int) -> float:
    """Return K(n, P + stop) - K(n, P + start - 1) from balls with digits to spare."""
    P = model.prompt
    with working(bits=256):
        whole = arb(rational(model.saturation))
        upto = whole if P + stop == n else influence_ball(model.with_prompt(P + stop), n - P - stop, 50)
        return float((upto - influence_ball(model.with_prompt(P + start - 1), n - P - start + 1, 50)).mid())
