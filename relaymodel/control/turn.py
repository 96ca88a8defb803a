"""The time at which a bias turns the decay into a return (THEORY sections 7 and 10)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit

from relaymodel.checks import positive_integer, show
from relaymodel.control.response import (
    LATEST,
    biased_influence,
    check_positive,
    exact_strengths,
    find_turn,
    run,
    uniform,
)
from relaymodel.display import table
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import PromptBias
from relaymodel.simulation.grid import LogGrid
from relaymodel.simulation.inputs import bias_function
from relaymodel.simulation.run import Simulation


@dataclass(frozen=True)
class TurningPoint:
    """The time at which D(t) is least, before it rises for good; see `turning_point`.

    Attributes
    ----------
    t
        The time, in tokens: whole up to 2^14, else a real number between tokens.
    error
        Bound on its error: half a token, to a whole one, for the closed form, 0 for whole times from the recursion, an
        estimate for later ones.
    influence
        D there.
    earliest
        P/(strength - 1): D does not rise before, at any depth (proved); 0 for other biases than `PromptBias`, and for
        heads that are not uniform.
    method
        'closed form' or 'recursion'.
    """

    model: RelayModel
    bias: Any
    t: float
    error: float
    influence: float
    earliest: float
    method: str

    def _repr_html_(self) -> str:
        return table(
            "Turning point",
            [
                ("bias", self.bias),
                ("t", f"{self.t:.9g} ± {self.error:.2g}"),
                ("influence there", f"{self.influence:.9g}"),
                ("not before", f"{self.earliest:.6g}"),
                ("prompt", self.model.prompt),
                ("depth", self.model.depth),
                ("method", self.method),
            ],
        )


def turning_point(model: RelayModel, bias: Any, *, steps: int | None = None) -> TurningPoint:
    r"""Return the t at which the decay turns under a bias that more than compensates it (THEORY section 7).

    With one relaying layer D is proportional to the prompt's share, which is least at $t = P/(\beta-1)$: a closed form.
    With more layers there is none; the turn comes later, not before that time (the gap X - D of each layer is
    a mean of the layer below times 1 - share, and all of these rise until then).  It is found in the recursion of
    `biased_influence`, in which the steps of D have one of their own.

    With heads that are not uniform (THEORY section 10) the recursion runs token by token, to t = 2^22 at most.

    Parameters
    ----------
    model
        Strengths not negative, at least one layer relaying; any heads and sinks.
    bias
        `PromptBias` of strength above 1.  With `steps`, or other than uniform heads, any bias, a function of t among
        them.
    steps
        Look for the least D in the recursion over t = 1..steps, at most 2^22.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments; for a strength of at most 1, where with uniform heads D never rises (proved in the same
        way); if no turn is found up to `steps`, or up to t = 1e300, with other than uniform heads 2^22.

    Examples
    --------
    >>> turning_point(RelayModel.uniform(prompt=64, depth=1, relay=1), PromptBias(1.25)).t
    256.0
    >>> turn = turning_point(RelayModel.uniform(prompt=64, depth=6, relay=1), PromptBias(1.25))
    >>> turn.t, turn.method
    (453.0, 'recursion')
    """
    check_positive(model, "for a turning point")
    if not uniform(model):
        return _among_tokens(model, bias, None if steps is None else positive_integer("steps", steps, least=2))
    if steps is not None:
        return _searched(model, bias, positive_integer("steps", steps, least=2))
    if not isinstance(bias, PromptBias):
        raise TypeError(
            f"bias must be a PromptBias where steps is not given, got {show(bias)} of type {type(bias).__name__}; "
            "with steps the recursion is searched up to there"
        )
    if bias.strength <= 1:
        raise ValueError(
            f"bias must have a strength above 1 for a turning point, got {show(bias.strength)}: up to 1 the influence "
            "never rises"
        )
    excess = Fraction(bias.strength) - 1
    if model.prompt / excess > LATEST:
        raise ValueError(
            f"the turn must come before t = 1e300 to be found, but D falls until P/(strength - 1) under {show(bias)}"
        )
    earliest = float(model.prompt / excess)
    relaying = [relay for relay, _ in exact_strengths(model) if relay]
    if len(relaying) == 1:
        t = max(1.0, earliest)
        odds = bias.log_odds(np.array([t]), model.prompt)
        others = math.prod(residual for relay, residual in exact_strengths(model) if not relay)
        D = float(relaying[0] * others) * float(expit(odds[0]))
        return TurningPoint(model, bias, t, 0.5, D, earliest, "closed form")
    end = 0.0
    while end < LATEST:
        end = min(max(1e5, 100 * earliest, 1e3 * end), LATEST)
        t = find_turn(model, bias, earliest, end)
        if t < math.inf:
            D = biased_influence(model, bias, max(1.0, float(np.rint(t))))
            error = 0.0 if t == int(t) else max(1.0, TURN_ERROR * t)
            return TurningPoint(model, bias, t, error, D, earliest, "recursion")
    raise ValueError(f"the turn must come before t = 1e300 to be found, under {show(bias)} it does not")


MOST_STEPS = 2**22
"""Tokens that a recursion token by token is searched through."""

TURN_ERROR = 1e-9
"""Relative error of a late turning time: the zero of a function that is known to 1e-12 of its parts."""


def _searched(model: RelayModel, bias: Any, steps: int) -> TurningPoint:
    """Return the least D of the recursion up to `steps`, if D rises after it."""
    if steps > MOST_STEPS:
        raise ValueError(f"steps must be at most 2^22, got {show(steps)}; a PromptBias needs no steps")
    t = np.arange(1.0, steps + 1)
    odds = bias_function(bias, model.prompt)(t) + np.log(model.prompt / t)
    response = run(model, LogGrid(steps, first=steps), odds, np.diff(odds, prepend=0.0))
    x, gap = response.values[-1], response.gaps[-1]
    # whichever of the two has more digits
    at = int(np.argmin(x) if x.min() < gap.max() else np.argmax(gap))
    if at == steps - 1:
        raise ValueError(f"steps must reach beyond the turn, but the influence is least at the last of {steps} tokens")
    earliest = 0.0
    if isinstance(bias, PromptBias) and bias.strength > 1:
        earliest = float(model.prompt / (Fraction(bias.strength) - 1))
    return TurningPoint(model, bias, at + 1.0, 0.0, float(response.scales[-1] * x[at]), earliest, "recursion")


def _among_tokens(model: RelayModel, bias: Any, steps: int | None) -> TurningPoint:
    """Return the least D of a simulation, if D rises after it; without `steps`, of longer and longer ones."""
    if steps is not None and steps > MOST_STEPS:
        raise ValueError(f"steps must be at most 2^22, got {show(steps)}")
    for last in [2**k for k in range(12, 23, 2)] if steps is None else [steps]:
        _, D = Simulation(model, bias=bias).advance(last, samples=np.arange(1, last + 1))
        at = int(np.argmin(D))
        if at < last - 1 and (steps is not None or at < last // 2):
            return TurningPoint(model, bias, at + 1.0, 0.0, float(D[at]), 0.0, "recursion")
    raise ValueError(
        f"steps must reach beyond the turn, but the influence is least at the last of {last} tokens, or close to it"
    )
