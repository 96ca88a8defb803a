r"""The influence under a prompt bias at any t: the recursion first, differential equations from there on.

The recursion of THEORY section 7 is run for the first 2^14 tokens.  Beyond, with $\tau = \log t$, the sum S of a
layer's input x over the continuation is the integral up to $t + \frac12$, so that $M = \frac1t \int^t x$ obeys
$M' = x - M$ and the layer's mean is $\frac St = M + \frac{x}{2t} + \frac{x'}{8t^2}$.  What the Euler-Maclaurin
formula leaves out is of the order $1/t^2$.  The same is done for the gap X - x, which has digits where x is close
to X, and for derivatives, which have them where x hardly changes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit

from relaymodel.checks import demand, numbers, show
from relaymodel.control.bias import ConstantShare, PromptBias
from relaymodel.exact.values import check_model
from relaymodel.model import RelayModel

Array = NDArray[np.float64]
Bias = PromptBias | ConstantShare

RECURSION = 2**14
"""Tokens before the differential equations take over."""
TOLERANCE = 1e-11
LATEST = 1e300


@dataclass(frozen=True, eq=False)
class Response:
    """Every depth 1..L at once, row l-1 for the first l layers, at each t; shape (L, T).

    `values` is D, `slopes` dD/dlog t.  `turns`, shape (L,), is the first t at which D turns from falling to rising,
    infinite where none was found or none was looked for.
    """

    values: Array
    slopes: Array
    turns: Array


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
        For unusable arguments, among them a bias that is a function: `simulate` takes it.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=64, depth=6, relay=0.5)
    >>> biased_influence(model, PromptBias(1), [1, 1000, 1e100]).round(6)  # the last is 1.5^6 - 1.25^6
    array([10.344301,  7.889426,  7.575928])
    """
    check_bias_model(model)
    check_bias(bias)
    given = numbers("t", t)
    times = np.asarray(given, dtype=np.float64)
    demand("t", times, (times >= 1) & (times <= LATEST) & (times == np.floor(times)), "whole numbers from 1 to 1e300")
    order, inverse = np.unique(times, return_inverse=True)
    values = respond(model, bias, order).values[-1][inverse].reshape(times.shape)
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


def respond(model: RelayModel, bias: Bias, t: Array, *, until: float | None = None) -> Response:
    """Return D of every depth at the t given, whole and sorted, shape (T,); search for turns up to t = `until`."""
    early = np.arange(1.0, RECURSION + 2)
    odds, _ = bias.log_odds(early, model.prompt)
    x, gap = recursion(model, expit(odds), expit(-odds))
    if not (np.isfinite(x).all() and np.isfinite(gap).all()):
        raise ValueError(f"the values must stay within the range of float64, but do not for {show(model)}")
    near, far = t[t <= RECURSION], t[t > RECURSION]
    at = near.astype(np.intp) - 1
    # differences from token to token, of whichever of the two has more digits
    steps = np.where(np.abs(gap[:, :-1]) < np.abs(x[:, :-1]), -np.diff(gap), np.diff(x))
    before = np.maximum(at - 1, 0)
    values, slopes = x[:, at], near * 0.5 * (steps[:, at] + steps[:, before])
    turns = np.full(model.depth, np.inf)
    last = max(far.tolist(), default=0.0)
    if until is not None:
        rises: NDArray[np.bool_] = np.greater(steps[:, :RECURSION], 0.0)
        turned = np.asarray(rises.any(axis=1))
        turns[turned] = rises[turned].argmax(axis=1) + 1.0
        relaying = np.cumsum([relay != 0 for relay, _ in strengths(model)]) > 0
        if not turned[relaying].all():
            last = max(last, until)
    if last > RECURSION:
        start = _start(x, gap, RECURSION * 0.5 * (steps[:, RECURSION - 1] + steps[:, RECURSION - 2]))
        later = _flow(model, bias, start, far, last, search=until is not None)
        values, slopes = np.hstack([values, later.values]), np.hstack([slopes, later.slopes])
        turns = np.minimum(turns, later.turns)
    return Response(values, slopes, turns)


def _start(x: Array, gap: Array, slope: Array) -> Array:
    """Return the integral means of x and of the gap, and minus the derivative of the latter, at t = 2^14; shape (3L,).

    `x` and `gap` have shape (L, >= 2^14), `slope` is dx/dlog t there, shape (L,).
    """
    t, last = float(RECURSION), RECURSION - 1
    M = (x[:, : last + 1].sum(axis=1) - 0.5 * x[:, last] - slope / (8 * t)) / t
    G = (gap[:, : last + 1].sum(axis=1) - 0.5 * gap[:, last] + slope / (8 * t)) / t
    return np.concatenate([M, G, G - gap[:, last]])


def _flow(model: RelayModel, bias: Bias, start: Array, t: Array, last: float, *, search: bool) -> Response:
    """Solve the differential equations from t = 2^14 to `last`."""
    L, P = model.depth, model.prompt
    layers = list(zip(saturations(model), *zip(*strengths(model), strict=True), strict=True))

    def through(tau: float, state: Array) -> Array:
        """Return what every layer gives: x, X - x and dx/dlog t, shape (3, L)."""
        at = math.exp(tau)
        odds, change = bias.log_odds(np.array([at]), P)
        share, rest = expit(odds[0]), expit(-odds[0])
        change = share * rest * change[0]
        x, gap, dx = 0.0, 1.0, 0.0  # what goes in
        mean, mean_gap, dmean = 0.0, 1.0, 0.0  # and its means over the continuation
        out = np.empty((3, L))
        for l, (X, relay, residual) in enumerate(layers):
            x, gap, dx = (
                residual * x + relay * (share * X + rest * mean),
                residual * gap + relay * rest * mean_gap,
                residual * dx + relay * (change * mean_gap + rest * dmean),
            )
            out[:, l] = x, gap, dx
            mean = state[l] + (0.5 * x + 0.125 * dx / at) / at
            mean_gap = state[L + l] + (0.5 * gap - 0.125 * dx / at) / at
            dmean = state[2 * L + l] + 0.5 * (dx + gap) / at
        return out

    def equations(tau: float, state: Array) -> Array:
        return through(tau, state).ravel() - state

    def turn(depth: int) -> Callable[[float, Array], float]:
        return lambda tau, state: float(through(tau, state)[2, depth])

    events = [turn(l) for l in range(L)] if search else []
    for event in events:
        event.direction = 1.0  # type: ignore[attr-defined]
    first, end = math.log(RECURSION), math.log(last)
    result = solve_ivp(
        equations,
        (first, end),
        start,
        method="DOP853",
        first_step=min(1e-3, end - first),
        t_eval=np.clip(np.log(t), first, end),
        events=events or None,
        rtol=TOLERANCE,
        atol=1e-307,
    )
    if not result.success:
        raise ArithmeticError(f"the equations for large t could not be solved: {result.message}")
    states = np.reshape(result.y, (3 * L, t.size)).T
    out = np.array([through(tau, state) for tau, state in zip(np.log(t), states, strict=True)]).reshape(-1, 3, L)
    turns = [np.exp(at[0]) if at.size else np.inf for at in result.t_events or [np.empty(0)] * L]
    return Response(out[:, 0].T, out[:, 2].T, np.array(turns))


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
