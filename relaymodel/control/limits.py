"""Where the influence goes under a prompt bias: phase, limit, leading term, and the time at which it turns."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit

from relaymodel.checks import Number, positive_integer, show
from relaymodel.control.reminders import carried
from relaymodel.control.response import (
    LATEST,
    Bias,
    biased_influence,
    check_bias,
    check_bias_model,
    check_positive,
    find_turn,
    run,
)
from relaymodel.display import table
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import ConstantShare, PromptBias
from relaymodel.simulation.grid import LogGrid
from relaymodel.simulation.inputs import bias_function

PHASES = DECAY, PLATEAU, REVERSAL = "decay", "plateau", "reversal"
MOST_STEPS = 2**22


@dataclass(frozen=True)
class BiasLimit:
    r"""What D(t) does as $t \to \infty$ under a prompt bias: limit + amplitude (log t)^log_power / t^rate.

    Attributes
    ----------
    phase
        'decay' for strength below 1, 'plateau' at 1, 'reversal' above: the strength alone decides.
    exponent
        Limit of the local exponent -dlogD/dlogt: 1 - strength in the decay, else 0.
    limit
        D at infinity: 0 in the decay, the plateau's height, or what D returns to.
    rate, log_power
        How the distance from the limit falls: as (log t)^log_power / t^rate.
    factor, log_scale
        The amplitude of that is factor * exp(log_scale), the factor an exact rational for a rational strength; it is
        positive where D comes down to its limit, negative where it comes up.
    method
        How it was found, and where it holds.
    """

    model: RelayModel
    bias: Bias
    phase: str
    exponent: Number
    limit: Number
    rate: Number
    log_power: int
    factor: Fraction
    log_scale: float
    method: str

    @property
    def amplitude(self) -> float:
        """The product factor * exp(log_scale).  Raises `OverflowError` if it lies beyond the range of float64."""
        if self.factor == 0:
            return 0.0
        size = _log(abs(self.factor)) + self.log_scale
        if abs(size) > 708:
            raise OverflowError(
                f"the amplitude must lie within the range of float64, got about 1e{size / math.log(10):.0f}; "
                "use factor and log_scale"
            )
        try:
            return float(self.factor) * math.exp(self.log_scale)
        except OverflowError:
            return math.exp(size) if self.factor > 0 else -math.exp(size)

    def leading(self, t: float) -> float:
        """Return limit + amplitude (log t)^log_power / t^rate, the leading terms at t > 1."""
        if not 1 < t < math.inf:
            raise ValueError(f"t must be greater than 1 and finite, got {show(t)}")
        if self.factor == 0:
            return float(self.limit)
        size = _log(abs(self.factor)) + self.log_scale - float(self.rate) * math.log(t)
        size += self.log_power * math.log(math.log(t))
        return float(self.limit) + (math.exp(size) if self.factor > 0 else -math.exp(size))

    def __repr__(self) -> str:
        return f"BiasLimit({self.phase}, D tends to {float(self.limit):.6g}, exponent to {float(self.exponent):.6g})"

    def _repr_html_(self) -> str:
        return table(
            "Limit under a prompt bias",
            [
                ("bias", self.bias),
                ("phase", self.phase),
                ("limit of D", f"{float(self.limit):.9g}"),
                ("limit of the local exponent", f"{float(self.exponent):.9g}"),
                ("distance from the limit", describe_term(self)),
                ("prompt", self.model.prompt),
                ("depth", self.model.depth),
                ("method", self.method),
            ],
        )


def describe_term(limit: BiasLimit) -> str:
    """Return the leading distance from the limit in one line."""
    if limit.factor == 0:
        return "0 at every t" if isinstance(limit.bias, ConstantShare) else "falls faster than any term derived here"
    size = (_log(abs(limit.factor)) + limit.log_scale) / math.log(10)
    sign = "-" if limit.factor < 0 else ""
    amplitude = f"{limit.amplitude:.6g}" if abs(size) < 300 else f"{sign}1e{size:.2f}"
    log = f" (log t)^{limit.log_power}" if limit.log_power else ""
    return f"{amplitude}{log} / t^{float(limit.rate):.6g}"


def bias_limit(model: RelayModel, bias: Bias) -> BiasLimit:
    r"""Return the limit of D(t) under a prompt bias and how it is approached, in closed form (THEORY section 7).

    With $a = e^{\text{offset}}$, $X_l = \prod_{i \le l} (\rho_i + \lambda_i)$, $R = \prod_l \rho_l$ and m relaying
    layers:

    - $\beta = 0$: a prompt of $aP$ tokens, $D \sim aP\, \prod \lambda \prod \rho\, (\log t)^{m-1} / ((m-1)!\, t)$, the
      products over relaying and other layers;
    - $0 < \beta < 1$: $D \sim A_L\, t^{\beta-1}$ with
      $A_{l} = (\rho_l + \lambda_l/\beta) A_{l-1} + a P^{1-\beta} \lambda_l X_{l-1}$, $A_0 = 0$;
    - $\beta = 1$: the share tends to $c = a/(1+a)$, D to $X_L - \prod_l (\rho_l + \lambda_l (1-c))$, from above as
      $cP \prod \lambda (1-c) \prod \rho\, (\log t)^{m-1} / ((m-1)!\, t)$; with `ConstantShare` it is there at every t;
    - $\beta > 1$: D returns to $X_L - R$, all but what the token's own residual carries, from below as
      $\frac{P^{\beta-1}}{a} \bigl(\sum_l \lambda_l \prod_{i \ne l} \rho_i\bigr) t^{1-\beta}$.

    Parameters
    ----------
    model
        Position 0 in every layer; strengths of any sign, each layer its own.
    bias
        `PromptBias` of strength 0 or more, or `ConstantShare`.

    Returns
    -------
    BiasLimit
        The terms left out are smaller by $t^{-\beta} (\log t)^{m-1}$ and $t^{\beta-1}$ for $0 < \beta < 1$, by
        $1/\log t$ where there are logarithms: near strength 0 or 1 the leading term rules only when
        $\beta \log t$ and $|1 - \beta| \log t$ are large.  `biased_influence` has the values before that.

    Raises
    ------
    TypeError, ValueError
        For a model or a bias outside that range, and for a model with no influence.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=1)
    >>> bias_limit(model, PromptBias(1)).limit  # 4 - (3/2)^2
    Fraction(7, 4)
    >>> bias_limit(model, PromptBias(0.5)).factor  # times P^0.5: ((1 + 2) + 2)
    Fraction(5, 1)
    """
    check_bias(bias)
    check_bias_model(model)
    own, X = carried(model), model.saturation
    relaying = [relay for relay, _, _ in model.rational if relay]
    if not relaying:
        raise ValueError(f"model must have a relaying layer for a limit, got {show(model)}")
    mixed = math.prod(relaying) * math.prod(residual for relay, residual, _ in model.rational if not relay)
    P, m = model.prompt, len(relaying)
    if isinstance(bias, ConstantShare):
        plateau = _plateau(model, Fraction(bias.share))
        return BiasLimit(model, bias, PLATEAU, 0, plateau, 1, 0, Fraction(0), 0.0, "closed form, exact at every t")
    beta, offset = Fraction(bias.strength), float(bias.offset)
    if beta < 0:
        raise ValueError(
            f"bias must have a strength of at least 0 for a limit, got {show(bias.strength)}: below 0 the constant is "
            "a sum over the first tokens; biased_influence has the values"
        )
    if beta > 1:
        factor = -sum(
            (
                relay * math.prod(r for j, (_, r, _) in enumerate(model.rational) if j != l)
                for l, (relay, _, _) in enumerate(model.rational)
            ),
            Fraction(0),
        )
        scale = float(beta - 1) * math.log(P) - offset
        return BiasLimit(
            model, bias, REVERSAL, 0, X - own, beta - 1, 0, factor, scale, "closed form, leading term for large t"
        )
    method = "closed form, leading term for large t"
    if beta == 1:
        share: Number = Fraction(1, 2) if bias.offset == 0 else float(expit(offset))
        c = Fraction(share)
        limit: Number = _plateau(model, c)
        factor = c * P * mixed * (1 - c) ** m / math.factorial(m - 1)
        return BiasLimit(model, bias, PLATEAU, 0, limit, 1, m - 1, factor, 0.0, method)
    if beta == 0:
        factor = P * Fraction(mixed) / math.factorial(m - 1)
        return _decay(model, bias, 1, m - 1, factor, offset)
    factor, X = Fraction(0), Fraction(1)
    for relay, residual, _ in model.rational:
        factor = (residual + relay / beta) * factor + relay * X
        X *= relay + residual
    return _decay(model, bias, 1 - beta, 0, factor, offset + float(1 - beta) * math.log(P))


def _decay(model: RelayModel, bias: Bias, rate: Number, log_power: int, factor: Fraction, scale: float) -> BiasLimit:
    if factor == 0:
        raise ValueError(f"model must have a leading term other than 0 under this bias, got {show(model)}")
    method = "closed form, leading term for large t"
    return BiasLimit(model, bias, DECAY, rate, 0, rate, log_power, factor, scale, method)


def _plateau(model: RelayModel, share: Fraction) -> Fraction:
    """Return X_L - prod(rho + lambda (1 - c))."""
    gap = Fraction(1)
    for relay, residual, _ in model.rational:
        gap *= residual + relay * (1 - share)
    return model.saturation - gap


def _log(value: Fraction) -> float:
    """Return log(value), of any size."""
    return math.log(value.numerator) - math.log(value.denominator)


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
        P/(strength - 1): D does not rise before, at any depth (proved); 0 for other biases than `PromptBias`.
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

    Parameters
    ----------
    model
        Position 0, strengths not negative, at least one layer relaying.
    bias
        `PromptBias` of strength above 1.  With `steps`, any bias, a function of t among them.
    steps
        Look for the least D in the recursion over t = 1..steps, at most 2^22.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments; for a strength of at most 1, where D never rises (proved in the same way); if no turn
        is found up to `steps`, or up to t = 1e300.

    Examples
    --------
    >>> turning_point(RelayModel.uniform(prompt=64, depth=1, relay=1), PromptBias(1.25)).t
    256.0
    >>> turn = turning_point(RelayModel.uniform(prompt=64, depth=6, relay=1), PromptBias(1.25))
    >>> turn.t, turn.method
    (453.0, 'recursion')
    """
    check_positive(model, "for a turning point")
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
    relaying = [relay for relay, _, _ in model.rational if relay]
    if len(relaying) == 1:
        t = max(1.0, earliest)
        odds, _ = bias.log_odds(np.array([t]), model.prompt)
        others = math.prod(residual for relay, residual, _ in model.rational if not relay)
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
