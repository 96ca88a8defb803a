"""Where the influence goes under a prompt bias: phase, limit, leading term (THEORY sections 7 and 10)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import expit

from relaymodel.checks import Number, show
from relaymodel.control.response import Bias, check_bias, uniform
from relaymodel.display import table
from relaymodel.exact.powersums import log_gamma_ratio
from relaymodel.exact.promise import LARGEST_T
from relaymodel.exact.values import check_model
from relaymodel.model import Head, RelayModel
from relaymodel.simulation.bias import ConstantShare, PromptBias

PHASES = DECAY, PLATEAU, REVERSAL = "decay", "plateau", "reversal"


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
        positive where D comes down to its limit, negative where it comes up, None where it is not derived.
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
    factor: Fraction | None
    log_scale: float
    method: str

    def __post_init__(self) -> None:
        if not -LARGEST_T <= self.limit <= LARGEST_T:  # as large as values of exact models are promised
            raise ValueError("the limit must lie within the range of float64; use smaller strengths or fewer layers")

    @property
    def amplitude(self) -> float:
        """The product factor * exp(log_scale).  Raises `OverflowError` if it lies beyond the range of float64."""
        if self.factor is None:
            raise ValueError(f"the amplitude must be derived to be had, but here it is not: {self.method}")
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
        if self.factor is None:
            raise ValueError(f"the leading term must be derived to be had, but here it is not: {self.method}")
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
    if limit.factor is None:
        return "not derived"
    if limit.factor == 0:
        return "0 at every t" if isinstance(limit.bias, ConstantShare) else "falls faster than any term derived here"
    size = (_log(abs(limit.factor)) + limit.log_scale) / math.log(10)
    sign = "-" if limit.factor < 0 else ""
    amplitude = f"{limit.amplitude:.6g}" if abs(size) < 300 else f"{sign}1e{size:.2f}"
    log = f" (log t)^{limit.log_power}" if limit.log_power else ""
    return f"{amplitude}{log} / t^{float(limit.rate):.6g}"


def bias_limit(model: RelayModel, bias: Bias) -> BiasLimit:
    r"""Return the limit of D(t) under a prompt bias and how it is approached, in closed form (THEORY sections 7, 10).

    With $a = e^{\text{offset}}$, $X_l = \prod_{i \le l} (\rho_i + \lambda_i)$, $R = \prod_l \rho_l$ and m relaying
    layers, for uniform attention:

    - $\beta = 0$: a prompt of $aP$ tokens, $D \sim aP\, \prod \lambda \prod \rho\, (\log t)^{m-1} / ((m-1)!\, t)$, the
      products over relaying and other layers;
    - $0 < \beta < 1$: $D \sim A_L\, t^{\beta-1}$ with
      $A_{l} = (\rho_l + \lambda_l/\beta) A_{l-1} + a P^{1-\beta} \lambda_l X_{l-1}$, $A_0 = 0$;
    - $\beta = 1$: the share tends to $c = a/(1+a)$, D to $X_L - \prod_l (\rho_l + \lambda_l (1-c))$, from above as
      $cP \prod \lambda (1-c) \prod \rho\, (\log t)^{m-1} / ((m-1)!\, t)$; with `ConstantShare` it is there at every t;
    - $\beta > 1$: D returns to $X_L - R$, all but what the token's own residual carries, from below as
      $\frac{P^{\beta-1}}{a} \bigl(\sum_l \lambda_l \prod_{i \ne l} \rho_i\bigr) t^{1-\beta}$.

    A head of position exponent g and recency exponent $\gamma$, $\delta = 1-\gamma$, has the share
    $\sim a q\, \frac{\Gamma(P+1+g)}{\Gamma(P)} P^{-\beta}\, t^{\beta-1-g}$ with
    $q = \Gamma(1+g+\delta)/(\Gamma(2+g)\Gamma(\delta))$, which is $\delta$ for g = 0: it is compensated at
    $\beta = 1+g$.  D tends to $X_L - \prod_l(\rho_l + \sum_h \lambda_h (1-c_h))$, $c_h$ being the share's limit: 0 for
    smaller strengths, 1 for larger ones, between at $1 + g$; with a sink that is not 0 where D would decay.  Below
    $1+g_*$, $g_*$ the smallest exponent, $1/\beta$ becomes $E[u^{\beta-1-g_*}]$.

    Parameters
    ----------
    model
        Strengths of any sign, each layer its own, with any heads and sinks.
    bias
        `PromptBias` of strength 0 or more; `ConstantShare` for uniform attention.

    Returns
    -------
    BiasLimit
        The terms left out are smaller by $t^{-\beta} (\log t)^{m-1}$ and $t^{\beta-1}$ for $0 < \beta < 1$, by
        $1/\log t$ where there are logarithms: near strength 0 or 1 the leading term rules only when
        $\beta \log t$ and $|1 - \beta| \log t$ are large.  `biased_influence` has the values before that.  How a
        plateau is approached is derived for uniform attention alone, the decay at strength 0 for one position exponent.

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
    >>> recent = RelayModel.uniform(prompt=64, depth=2, relay=1, recency=Fraction(1, 2))
    >>> bias_limit(recent, PromptBias(1)).limit  # the share is 1/3: 4 - (5/3)^2
    Fraction(11, 9)
    """
    check_bias(bias)
    check_model(model)
    if not any(layer.relays for layer in model.layers):
        raise ValueError(f"model must have a relaying layer for a limit, got {show(model)}")
    if isinstance(bias, ConstantShare):
        if not uniform(model):
            raise ValueError(
                f"bias must be a PromptBias for heads that are not uniform, whose share no ConstantShare holds, got "
                f"{show(bias)}"
            )
        plateau = _limit(model, lambda _: Fraction(bias.share))
        return BiasLimit(model, bias, PLATEAU, 0, plateau, 1, 0, Fraction(0), 0.0, "closed form, exact at every t")
    beta = Fraction(bias.strength)
    if beta < 0:
        raise ValueError(
            f"bias must have a strength of at least 0 for a limit, got {show(bias.strength)}: below 0 the constant is "
            "a sum over the first tokens; biased_influence has the values"
        )
    exponents = {Fraction(head.position) for layer in model.layers for head in layer.heads if head.relay}
    limit = _limit(model, lambda head: limiting_share(model.prompt, head, bias))
    if beta < 1 + min(exponents):
        return _decay(model, bias, beta, limit, exponents)
    if beta > 1 + max(exponents):
        return _reversal(model, bias, beta, limit, max(exponents))
    method = "closed form, leading term for large t"
    if not uniform(model):
        method = "closed form; how it is approached is not derived"
        return BiasLimit(model, bias, PLATEAU, 0, limit, 0, 0, None, 0.0, method)
    c = limiting_share(model.prompt, model.layers[0].heads[0], bias)
    strengths = [sum(Fraction(head.relay) for head in layer.heads) for layer in model.layers]
    m = sum(strength != 0 for strength in strengths)
    mixed = math.prod(
        lam * (1 - c) if lam else Fraction(layer.residual) for lam, layer in zip(strengths, model.layers, strict=True)
    )
    factor = c * model.prompt * mixed / math.factorial(m - 1)
    return BiasLimit(model, bias, PLATEAU, 0, limit, 1, m - 1, factor, 0.0, method)


def limiting_share(prompt: int, head: Head, bias: PromptBias) -> Fraction:
    """Return what the prompt's share in a head tends to under a bias; a fraction for g = 0 and offset 0."""
    beta, g = Fraction(bias.strength), Fraction(head.position)
    if beta != 1 + g:
        return Fraction(int(beta > 1 + g))
    if g == 0 and bias.offset == 0:
        return density(head) / (1 + density(head))
    log = float(bias.offset) + math.log(density(head)) + _log_prompt(prompt, g, beta)
    return Fraction(float(expit(log)))


def density(head: Head) -> Fraction:
    r"""Return $q = \Gamma(1+g+\delta)/(\Gamma(2+g)\Gamma(\delta))$: the unbiased share over $(P/t)^{1+g}$, P large."""
    g, delta = Fraction(head.position), 1 - Fraction(head.recency)
    if g == 0 or delta == 1:
        return delta if g == 0 else Fraction(1)
    return Fraction(math.exp(math.lgamma(1 + g + delta) - math.lgamma(2 + g) - math.lgamma(delta)))


def moment(head: Head, r: Fraction) -> Fraction:
    r"""Return $E[u^{-r}] = \frac{\Gamma(1+g+\delta)\Gamma(1+g-r)}{\Gamma(1+g)\Gamma(1+g+\delta-r)}$, r < 1 + g."""
    g, delta = Fraction(head.position), 1 - Fraction(head.recency)
    if delta == 1:
        return (1 + g) / (1 + g - r)
    logs = (1 + g + delta, 1 + g - r), (1 + g, 1 + g + delta - r)
    return Fraction(math.exp(sum(map(math.lgamma, logs[0])) - sum(map(math.lgamma, logs[1]))))


def _log_prompt(prompt: int, g: Fraction, beta: Fraction) -> float:
    """Return the logarithm of Gamma(P+1+g)/Gamma(P) P^-beta."""
    if g == 0:
        return float(1 - beta) * math.log(prompt)
    ratio = float(log_gamma_ratio(np.array([float(prompt)]), float(1 + g))[0])
    return ratio + float(1 + g) * math.log(prompt + 1 + g) - float(beta) * math.log(prompt)


def _limit(model: RelayModel, share: Callable[[Head], Fraction]) -> Fraction:
    """Return X_L - prod(rho + sum lambda (1 - c))."""
    gap = Fraction(1)
    for layer in model.layers:
        gap *= sum((Fraction(head.relay) * (1 - share(head)) for head in layer.heads), Fraction(layer.residual))
    return model.saturation - gap


def _decay(model: RelayModel, bias: PromptBias, beta: Fraction, limit: Fraction, exponents: set[Fraction]) -> BiasLimit:
    """Return how D falls to what the sinks keep, where no head is compensated."""
    g = min(exponents)
    rate, offset = 1 + g - beta, float(bias.offset)
    scale = offset + _log_prompt(model.prompt, g, beta)
    exponent: Number = 0 if limit else rate
    method = "closed form, leading term for large t"
    factor: Fraction | None
    if beta == 0:
        relaying = [[h for h in layer.heads if h.relay] for layer in model.layers]
        m = sum(bool(heads) for heads in relaying)
        if len(exponents) > 1:
            method = "closed form; the constant for different position exponents is a sum over the first tokens"
            return BiasLimit(model, bias, DECAY, exponent, limit, rate, m - 1, None, 0.0, method)
        product = Fraction(1)
        for layer, heads in zip(model.layers, relaying, strict=True):
            # near z = -g a head is (1+g) q / (z+g)
            near = sum(((1 + g) * Fraction(h.relay) * density(h) for h in heads), Fraction(0))
            product *= near if heads else Fraction(layer.residual)
        factor, power = product / (1 + g) / math.factorial(m - 1), m - 1
    else:
        factor, gap, power = Fraction(0), Fraction(1), 0
        for layer in model.layers:
            active, own = [head for head in layer.heads if head.relay], Fraction(layer.residual)
            kept = sum((Fraction(head.relay) * moment(head, rate) for head in active), own)
            new = sum((Fraction(h.relay) * density(h) for h in active if Fraction(h.position) == g), Fraction(0))
            factor = kept * factor + new * gap
            gap *= sum((Fraction(head.relay) for head in active), own)
    if factor == 0:
        raise ValueError(f"model must have a leading term other than 0 under this bias, got {show(model)}")
    return BiasLimit(model, bias, DECAY, exponent, limit, rate, power, factor, scale, method)


def _reversal(model: RelayModel, bias: PromptBias, beta: Fraction, limit: Fraction, g: Fraction) -> BiasLimit:
    """Return how D comes back where every head is more than compensated; the slowest are those of exponent g."""
    factor = Fraction(0)
    for l, layer in enumerate(model.layers):
        others = math.prod(Fraction(other.residual) for j, other in enumerate(model.layers) if j != l)
        factor -= others * sum(
            (Fraction(h.relay) / density(h) for h in layer.heads if h.relay and Fraction(h.position) == g), Fraction(0)
        )
    scale = -float(bias.offset) - _log_prompt(model.prompt, g, beta)
    method = "closed form, leading term for large t"
    return BiasLimit(model, bias, REVERSAL, 0, limit, beta - 1 - g, 0, factor, scale, method)


def _log(value: Fraction) -> float:
    """Return log(value), of any size."""
    return math.log(value.numerator) - math.log(value.denominator)
