r"""The influence under a prompt bias at any t: the recursion of THEORY section 7 on a grid in log t.

The first tokens are run one by one, the rest as smooth functions of log t whose sums over tokens are exact to rounding
(`relaymodel.simulation.grid`, which serves `relaymodel.fit` too): within 1e-13 of `simulate` as far as that runs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from relaymodel.checks import demand, numbers, show
from relaymodel.exact.promise import LARGEST_T
from relaymodel.exact.values import Points, Scalar, check_model
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import ConstantShare, PromptBias
from relaymodel.simulation.grid import FIRST_NODES, LogGrid
from relaymodel.simulation.headgrid import HeadGrid

Array = NDArray[np.float64]
Bias = PromptBias | ConstantShare

STEEPEST = 2.0
"""Powers of e by which the odds may vary within a panel of the grid."""
WHOLE = 2.0**14
"""Turns before this come as whole tokens."""
LATEST = LARGEST_T


@overload
def biased_influence(model: RelayModel, bias: Bias, t: Scalar) -> float: ...
@overload
def biased_influence(model: RelayModel, bias: Bias, t: Points) -> Array: ...
def biased_influence(model: RelayModel, bias: Bias, t: Scalar | Points) -> Array | float:
    r"""Return D(t) under a bias on the prompt's keys, at any t (THEORY section 7).

    $$ x'_t = \rho x_t + \lambda \Bigl[ s_t X + (1-s_t) \frac1t \sum_{u \le t} x_u \Bigr], \qquad
       s_t = \frac{P v_t}{P v_t + t}, \qquad v_t = e^{b_t}. $$

    The recursion is run on a grid in log t; `simulate` runs it token by token as far as time allows, and with any bias.

    Parameters
    ----------
    model
        Strengths of any sign; any heads and sinks, on whose shares the bias acts (THEORY section 10).
    bias
        `PromptBias`, or `ConstantShare` for uniform heads.
    t
        Whole numbers from 1 to 1e300, scalar or array of any shape; up to 2^40 with heads that are not uniform.

    Returns
    -------
    float or ndarray
        float64 of the shape of `t`; right to 1e-11 relative for strengths that are not negative, with heads that are
        not uniform under biases of strength -3 and more (1e-8 at -6).

    Raises
    ------
    TypeError, ValueError
        For unusable arguments, among them a bias that is a function: `simulate` takes it; for values below the range
        of float64.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=64, depth=6, relay=0.5)
    >>> biased_influence(model, PromptBias(1), [1, 1000, 1e100]).round(6)  # the last is 1.5^6 - 1.25^6
    array([10.344301,  7.889426,  7.575928])
    """
    check_bias_model(model)
    check_bias(bias)
    if isinstance(bias, ConstantShare) and not uniform(model):
        raise ValueError(
            "bias must be a PromptBias for heads that are not uniform, whose share no ConstantShare holds, got "
            f"{show(bias)}"
        )
    given = numbers("t", t)
    if given.dtype == object and any(abs(value) > LATEST for value in given.ravel()):
        raise ValueError(f"t must be whole numbers from 1 to 1e300, got {show(max(map(abs, given.ravel())))}")
    times = np.asarray(given, dtype=np.float64)
    demand("t", times, (times >= 1) & (times <= LATEST) & (times == np.floor(times)), "whole numbers from 1 to 1e300")
    order, inverse = np.unique(times, return_inverse=True)
    last = float(order.max(initial=1.0))
    if uniform(model):
        response = respond(model, bias, last)
        found = response.scales[-1] * response.grid.read(response.values[-1], order)
    else:
        assert isinstance(bias, PromptBias)
        found = heads_under_bias(model, bias, order)
    if not np.isfinite(found).all():
        raise ValueError(f"the values must stay within the range of float64, but do not for {show(model)}")
    lost = np.abs(found) < np.finfo(np.float64).tiny
    positive = all(
        min(layer.residual, layer.sink, *(head.relay for head in layer.heads)) >= 0 for layer in model.layers
    ) and any(layer.relays for layer in model.layers)
    if positive and lost.any():
        raise ValueError(
            f"the influence must lie within the range of float64, but at t = {order[np.argmax(lost)]:.6g} it does not "
            f"under {show(bias)}"
        )
    values = found[inverse].reshape(times.shape)
    return values if times.shape else float(values)


def heads_under_bias(model: RelayModel, bias: PromptBias, t: Array) -> Array:
    """Return D at whole t (T,), increasing, of any heads: the recursion on a `HeadGrid`, to t = 2^40."""
    grid = HeadGrid(model.prompt, float(t[-1]) if t.size else 1.0, first=math.ceil(FIRST_NODES * steepness(bias)))
    log_bias = bias.log_bias(grid.nodes.astype(float), model.prompt)
    x, X, scale = np.zeros(grid.nodes.size), 1.0, 1.0
    for layer in model.layers:
        residual, sink = _float("residual", Fraction(layer.residual)), _float("sink", Fraction(layer.sink))
        relays = [_float("relay", Fraction(head.relay)) for head in layer.heads]
        size = abs(residual) + abs(sink) + sum(map(abs, relays)) or 1.0
        passed = (residual / size) * x + (sink / size) * X
        for head, relay in zip(layer.heads, relays, strict=True):
            prompt, matrix = grid.attention(float(head.position), float(head.recency))
            rest = matrix.sum(axis=1)
            odds = log_bias + np.log(prompt / rest)
            passed += (relay / size) * (expit(odds) * X + expit(-odds) * (matrix @ x) / rest)
        x, X, scale = passed, X * ((residual + sink + sum(relays)) / size), scale * size
    return np.asarray(scale * grid.read(x, t))


@dataclass(frozen=True, eq=False)
class Response:
    r"""What the first 1..L layers give under a bias at the nodes of a grid, in units of `scales`; shape (L, K) each.

    Attributes
    ----------
    values, gaps
        x and X - x: the second has digits where the first is close to the value X on the prompt.
    steps
        $(t-1)(x_t - x_{t-1})$.  It is $(T-1)x$ with the T of THEORY section 2, of which the mean is a function, so that
        $(T-1)$ of a mean is the mean of $(T-1)x$: a recursion of its own, right also where x is flat to rounding.
    scales
        $\prod (|\lambda| + |\rho|)$ of the first layers, shape (L,).
    """

    grid: LogGrid
    values: Array
    gaps: Array
    steps: Array
    scales: Array

    def exponents(self, t: Array) -> Array:
        """Return the local exponents -dlog D/dlog t of every depth at whole t, shape (L, T)."""
        return -self.grid.read(self.values, t, slope=True) / self.grid.read(self.values, t)


def run(model: RelayModel, grid: LogGrid, odds: Array, odds_steps: Array) -> Response:
    """Run the recursion for log odds of the prompt's share (K,), and their change from t - 1 to t (K,)."""
    t = grid.nodes
    share, rest = expit(odds), expit(-odds)
    before = np.maximum(t - 1, 1.0)
    change = -np.where(t > 1, t - 1, 0) * expit(odds - odds_steps) * rest * np.expm1(odds_steps)  # (T-1) of rest
    x, gap, step, X, scale = np.zeros_like(t), np.ones_like(t), np.zeros_like(t), 1.0, Fraction(1)
    rows, scales = [], []
    for (relay, residual), (exact, own) in zip(strengths(model), exact_strengths(model), strict=True):
        size = abs(relay) + abs(residual) or 1.0
        lam, rho = relay / size, residual / size
        mean_gap, mean_step = grid.sums(gap) / t, grid.sums(step) / t
        x = rho * x + lam * (share * X + rest * (grid.sums(x) / t))
        step = rho * step + lam * (rest * mean_step + change * (mean_gap - mean_step / before))
        gap = rho * gap + lam * rest * mean_gap
        X, scale = (rho + lam) * X, scale * (abs(exact) + abs(own))
        rows.append((x, gap, -step))
        scales.append(_float("the product of |relay| + |residual|", scale))
    values, gaps, steps = np.array(rows).transpose(1, 0, 2)
    return Response(grid, values, gaps, steps, np.array(scales))


def respond(model: RelayModel, bias: Bias, last: float) -> Response:
    """Return the response to a bias up to `last`."""
    grid = biased_grid(model.prompt, bias, last)
    t = grid.nodes
    return run(model, grid, bias.log_odds(t, model.prompt), bias.odds_steps(np.maximum(t - 1, 0.5), model.prompt))


def steepness(bias: Bias) -> float:
    """Return the power of t, 1 or more, that the odds P v/t vary by at most.

    Where they are far from 1 by e^750, share and rest are 0 and 1.
    """
    return max(1.0, abs(float(bias.strength) - 1)) if isinstance(bias, PromptBias) else 1.0


def biased_grid(P: int, bias: Bias, last: float) -> LogGrid:
    """Return a grid on which the share of the prompt is smooth."""
    steep = steepness(bias)

    def rough(start: float, end: float) -> bool:
        if steep * (end - start) <= STEEPEST:
            return False
        odds = bias.log_odds(np.exp(np.linspace(start, end, 33)), P)
        jump = float(np.abs(np.diff(odds)).max())
        return bool(32 * jump > STEEPEST and np.abs(odds).min() < 750 + jump)

    return LogGrid(last, first=math.ceil(FIRST_NODES * steep), rough=rough)


def find_turn(model: RelayModel, bias: Bias, after: float, until: float) -> float:
    """Return the first t at which D turns from falling to rising, infinity if there is none up to `until`.

    It is known not to turn before `after`.
    """
    found = respond(model, bias, until)
    t, steps, first = found.grid.nodes, found.steps[-1:], found.grid.first
    rises = np.flatnonzero((steps[0] > 0) & (t >= after - 1))
    if not rises.size:
        return math.inf
    k = int(rises[0])
    if k < first:  # the least value is the one before
        return float(t[k]) - 1
    zero = brentq(lambda at: float(found.grid.read(steps, np.array([at]))[0, 0]), float(t[k - 1]), float(t[k]))
    return float(math.floor(zero)) if zero < WHOLE else float(zero) - 0.5


def uniform(model: RelayModel) -> bool:
    """Return whether all heads are uniform and there is no sink, so that section 7 holds."""
    return all(not (head.position or head.recency or layer.sink) for layer in model.layers for head in layer.heads)


def exact_strengths(model: RelayModel) -> list[tuple[Fraction, Fraction]]:
    """Return (relay, residual) of every layer of uniform heads."""
    return [
        (sum((Fraction(head.relay) for head in layer.heads), Fraction(0)), Fraction(layer.residual))
        for layer in model.layers
    ]


def strengths(model: RelayModel) -> list[tuple[float, float]]:
    """Return them as floats."""
    return [(_float("relay", relay), _float("residual", residual)) for relay, residual in exact_strengths(model)]


def _float(name: str, value: Fraction) -> float:
    """Return a float, or say that the value is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must lie within the range of float64; use smaller strengths or fewer layers"
        ) from None


def check_bias(bias: object) -> None:
    """Refuse a bias whose behaviour at large t is not known."""
    if not isinstance(bias, (PromptBias, ConstantShare)):
        raise TypeError(
            f"bias must be a PromptBias or a ConstantShare, got {show(bias)} of type {type(bias).__name__}; "
            "simulate takes any function of t"
        )


def check_bias_model(model: object) -> None:
    """Refuse what is not a model, and a prompt that cannot be counted in float64."""
    check_model(model)
    assert isinstance(model, RelayModel)
    if model.prompt > LATEST:
        raise ValueError(f"prompt must be at most 1e300 under a prompt bias, got {show(model.prompt)}")


def check_positive(model: RelayModel, purpose: str) -> None:
    """Refuse negative strengths, and a model without influence."""
    check_bias_model(model)
    for i, layer in enumerate(model.layers):
        if min(layer.residual, layer.sink, *(head.relay for head in layer.heads)) < 0:
            raise ValueError(f"model must have no negative strength {purpose}, got {show(layer)} in layer {i + 1}")
    if model.saturation == 0 or not any(layer.relays for layer in model.layers):
        raise ValueError(f"model must have an influence other than 0 {purpose}, got {show(model)}")
