r"""The influence under a prompt bias at any t: the recursion first, differential equations from there on.

The recursion of THEORY section 7 is run for the first 2^14 tokens.  Beyond, with $\tau = \log t$, the sum S of a
layer's input x over the continuation is the integral up to $t + \frac12$, so that $M = \frac1t \int^t x$ obeys
$M' = x - M$ and the layer's mean is $\frac St = M + \frac{x}{2t} + \frac{x'}{8t^2}$.  What the Euler-Maclaurin
formula leaves out is of the order $1/t^2$.  The same is done for the gap X - x, which has digits where x is close
to X, and for derivatives, which have them where x hardly changes.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit

from relaymodel.checks import demand, numbers, show
from relaymodel.exact.values import check_model
from relaymodel.model import RelayModel
from relaymodel.simulation.bias import ConstantShare, PromptBias

Array = NDArray[np.float64]
Bias = PromptBias | ConstantShare

RECURSION = 2**14
"""Tokens before the differential equations take over."""
TOLERANCE = 1e-11
LATEST = 1e300


@dataclass(frozen=True, eq=False)
class Response:
    """Every depth 1..L at once, row l-1 for the first l layers, at each t; shape (L, T): D, and dD/dlog t."""

    values: Array
    slopes: Array


def biased_influence(model: RelayModel, bias: Bias, t: ArrayLike) -> Any:
    r"""Return D(t) under a bias on the prompt's keys, at any t (THEORY section 7).

    $$ x'_t = \rho x_t + \lambda \Bigl[ s_t X + (1-s_t) \frac1t \sum_{u \le t} x_u \Bigr], \qquad
       s_t = \frac{P v_t}{P v_t + t}, \qquad v_t = e^{b_t}. $$

    Up to t = 2^14 this is the recursion, beyond it differential equations in log t with the first two terms of the
    Euler-Maclaurin formula; `simulate` runs the recursion as far as time allows, and with any bias.

    Parameters
    ----------
    model
        Position 0 in every layer; strengths of any sign.
    bias
        `PromptBias` or `ConstantShare`.
    t
        Whole numbers from 1 to 1e300, scalar or array of any shape.

    Returns
    -------
    float or ndarray
        float64 of the shape of `t`; right to 1e-9 relative for strengths that are not negative (1e-12 up to t = 2^14).

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
    given = numbers("t", t)
    if given.dtype == object and any(abs(value) > LATEST for value in given.ravel()):
        raise ValueError(f"t must be whole numbers from 1 to 1e300, got {show(max(map(abs, given.ravel())))}")
    times = np.asarray(given, dtype=np.float64)
    demand("t", times, (times >= 1) & (times <= LATEST) & (times == np.floor(times)), "whole numbers from 1 to 1e300")
    order, inverse = np.unique(times, return_inverse=True)
    found = respond(model, bias, order).values[-1]
    positive = all(min(pair) >= 0 < max(pair) for pair in strengths(model)) and any(l.relay for l in model.layers)
    lost = np.abs(found) < np.finfo(np.float64).tiny
    if positive and lost.any():
        raise ValueError(
            f"the influence must lie within the range of float64, but at t = {order[np.argmax(lost)]:.6g} it does not "
            f"under {show(bias)}"
        )
    values = found[inverse].reshape(times.shape)
    return values if times.shape else float(values)


def recursion(model: RelayModel, share: Array, rest: Array) -> tuple[Array, Array]:
    """Return x and X - x of every layer at t = 1..T for shares s and 1 - s, shape (T,); shape (L, T) each."""
    t = np.arange(1.0, share.size + 1)
    x, gap = np.zeros_like(t), np.ones_like(t)
    values, gaps = np.empty((model.depth, t.size)), np.empty((model.depth, t.size))
    for l, (X, (relay, residual)) in enumerate(zip(saturations(model), strengths(model), strict=True)):
        x = residual * x + relay * (share * X + rest * (np.cumsum(x) / t))
        gap = residual * gap + relay * (rest * (np.cumsum(gap) / t))
        values[l], gaps[l] = x, gap
    return values, gaps


def respond(model: RelayModel, bias: Bias, t: Array) -> Response:
    """Return D of every depth at the t given, whole and sorted, shape (T,)."""
    first = _Beginning(model, bias)
    near, far = t[t <= RECURSION], t[t > RECURSION]
    values, slopes = first.values[:, near.astype(np.intp) - 1], first.slopes(near)
    if far.size:
        flow = _Flow(model, bias)
        result = flow.solve(first.state(), float(far[-1]), at=far)
        out = np.array([flow.layers(tau, y) for tau, y in zip(np.log(far), result.y.T, strict=True)])
        values, slopes = np.hstack([values, out[:, 0].T]), np.hstack([slopes, out[:, 2].T])
    return Response(values, slopes)


def find_turn(model: RelayModel, bias: Bias, after: float, until: float) -> float:
    """Return the first t at which D turns from falling to rising, infinity if there is none up to `until`.

    It is known not to turn before `after`: there D may be flat to 1e-307, below what the equations are solved to.
    """
    first = _Beginning(model, bias)
    rises = first.steps[-1] > 0
    if rises.any():
        return float(np.argmax(rises)) + 1
    flow, falling_until = _Flow(model, bias), math.log(max(after, 1.0)) - 1e-9

    def rising(tau: float, state: Array) -> float:
        return -1.0 if tau < falling_until else float(flow.layers(tau, state)[2, -1])

    rising.terminal, rising.direction = True, 1.0  # type: ignore[attr-defined]
    found = flow.solve(first.state(), max(until, RECURSION + 1.0), event=rising).t_events[0]
    return float(np.exp(found[0])) if found.size else math.inf


class _Beginning:
    """The recursion up to t = 2^14 and a token beyond: D and X - D of every depth, shape (L, 2^14 + 1)."""

    def __init__(self, model: RelayModel, bias: Bias) -> None:
        t = np.arange(1.0, RECURSION + 2)
        odds, _ = bias.log_odds(t, model.prompt)
        self.values, self.gaps = recursion(model, expit(odds), expit(-odds))
        if not (np.isfinite(self.values).all() and np.isfinite(self.gaps).all()):
            raise ValueError(f"the values must stay within the range of float64, but do not for {show(model)}")
        # D(t+1) - D(t) and the gap's excess over its mean, by a recursion of their own: D may be flat to rounding
        change = -expit(odds[:-1]) * expit(-odds[1:]) * np.expm1(bias.odds_steps(t[:-1], model.prompt))
        rest = expit(-odds[1:])
        self.steps, self.excess = np.empty((model.depth, RECURSION)), np.empty((model.depth, RECURSION))
        step, mean, dmean = np.zeros(RECURSION), np.ones(RECURSION), np.zeros(RECURSION)
        for l, (relay, residual) in enumerate(strengths(model)):
            step = residual * step + relay * (change * mean + rest * dmean)  # of the gap
            sums = np.cumsum(t[:-1] * step)
            excess = np.append(0.0, sums[:-1]) / t[:-1]
            mean = np.cumsum(self.gaps[l, :-1]) / t[:-1]
            dmean = (excess + step) / t[1:]
            self.steps[l], self.excess[l] = -step, excess

    def slopes(self, t: Array) -> Array:
        """Return dD/dlog t at whole t <= 2^14, shape (L, T), from central differences (at t = 1 a forward one)."""
        at = t.astype(np.intp) - 1
        slopes: Array = t * 0.5 * (self.steps[:, at] + self.steps[:, np.maximum(at - 1, 0)])
        return slopes

    def state(self) -> Array:
        """Return the integral means of x and of the gap at t = 2^14, and h (see `_Flow`), shape (3L,)."""
        t, last = float(RECURSION), RECURSION - 1
        slope = self.slopes(np.array([t]))[:, 0]
        x, gap = self.values[:, :RECURSION], self.gaps[:, :RECURSION]
        M = (x.sum(axis=1) - 0.5 * x[:, last] - slope / (8 * t)) / t
        G = (gap.sum(axis=1) - 0.5 * gap[:, last] + slope / (8 * t)) / t
        return np.concatenate([M, G, slope / (8 * t * t) - self.excess[:, last]])


class _Flow:
    """The differential equations beyond t = 2^14, with tau = log t.

    The state holds, for each layer's output, the integral means M of x and G of the gap, and
    h = G - gap + gap/(2t), from which the mean's derivative is h + x'/(2t) without cancellation; h' = x' - h - x'/(2t).
    """

    def __init__(self, model: RelayModel, bias: Bias) -> None:
        self.depth, self.prompt, self.bias = model.depth, model.prompt, bias
        self.stack = [(X, *pair) for X, pair in zip(saturations(model), strengths(model), strict=True)]

    def layers(self, tau: float, state: Array) -> Array:
        """Return what every layer gives: x, X - x and dx/dtau, shape (3, L)."""
        t, L, means = math.exp(tau), self.depth, state.tolist()
        odds, slope = self.bias.log_odds(np.array([t]), self.prompt)
        share, rest = float(expit(odds[0])), float(expit(-odds[0]))
        change = share * rest * float(slope[0])
        x, gap, dx = 0.0, 1.0, 0.0  # what goes in
        mean, mean_gap, dmean = 0.0, 1.0, 0.0  # and its means over the continuation
        out = []
        for l, (X, relay, residual) in enumerate(self.stack):
            x, gap, dx = (
                residual * x + relay * (share * X + rest * mean),
                residual * gap + relay * rest * mean_gap,
                residual * dx + relay * (change * mean_gap + rest * dmean),
            )
            out.append((x, gap, dx))
            mean = means[l] + (0.5 * x + 0.125 * dx / t) / t
            mean_gap = means[L + l] + (0.5 * gap - 0.125 * dx / t) / t
            dmean = means[2 * L + l] + 0.5 * dx / t
        return np.array(out).T

    def equations(self, tau: float, state: Array) -> Array:
        """Return the derivative of the state by tau."""
        out = self.layers(tau, state)
        out[2] *= 1 - 0.5 * math.exp(-tau)
        change: Array = out.ravel() - state
        return change

    def solve(self, start: Array, last: float, *, at: Array | None = None, event: Any = None) -> Any:
        """Integrate from t = 2^14 to `last`, keeping the states `at` some t; stop at an event."""
        first, end = math.log(RECURSION), math.log(last)
        result = solve_ivp(
            self.equations,
            (first, end),
            start,
            method="DOP853",
            first_step=min(1e-3, end - first),
            t_eval=None if at is None else np.clip(np.log(at), first, end),
            events=event,
            rtol=TOLERANCE,
            atol=1e-307,
        )
        if not result.success:
            raise ValueError(
                f"the values must stay within the range of float64 for large t, but do not under {show(self.bias)} "
                f"({result.message.strip()}); use a smaller offset, or simulate"
            )
        return result


def saturations(model: RelayModel) -> list[float]:
    """Return X, the value on the prompt, before every layer."""
    X, found = Fraction(1), []
    for relay, residual, _ in model.rational:
        found.append(_float("the value on the prompt", X))
        X *= relay + residual
    _float("the value on the prompt", X)
    return found


def strengths(model: RelayModel) -> list[tuple[float, float]]:
    """Return (relay, residual) of every layer."""
    return [(_float("relay", relay), _float("residual", residual)) for relay, residual, _ in model.rational]


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
    """Refuse a model for which a prompt bias is not defined: another position exponent than 0."""
    check_model(model)
    assert isinstance(model, RelayModel)
    if model.prompt > LATEST:
        raise ValueError(f"prompt must be at most 1e300 under a prompt bias, got {show(model.prompt)}")
    for i, layer in enumerate(model.layers):
        if layer.position != 0:
            raise ValueError(
                f"model must have position 0 in every layer for a prompt bias, got {show(layer)} at layer {i}"
            )


def check_positive(model: RelayModel, purpose: str) -> None:
    """Refuse negative strengths, and a model without influence."""
    check_bias_model(model)
    for i, (relay, residual, _) in enumerate(model.rational):
        if relay < 0 or residual < 0:
            raise ValueError(
                f"model must have no negative strength {purpose}, got {show(model.layers[i])} at layer {i}"
            )
    if model.saturation == 0 or not any(relay for relay, _, _ in model.rational):
        raise ValueError(f"model must have an influence other than 0 {purpose}, got {show(model)}")
