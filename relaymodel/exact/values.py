"""The float64 values users ask for: the fast path where it keeps its promise, balls everywhere else."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from relaymodel.checks import Number, demand, numbers, real, show
from relaymodel.exact import bands, residues, scalar
from relaymodel.exact.ball import PrecisionError, influence_ball, local_exponent_ball, token_influence_ball
from relaymodel.exact.promise import (
    DEEPEST,
    LARGEST_PROMPT,
    LARGEST_T,
    PROMISE,
    STEEPEST_SERVED,
    outside,
    rounding_error,
)
from relaymodel.exact.spectrum import merged, own_weight, rational, symbol, without_influence
from relaymodel.model import RelayModel

CHUNK = 1 << 13  # points evaluated at once: enough to spread the calls, and small for the cache and the allocator
WORKSPACE = 1 << 16  # points times layers at once, likewise
LARGEST_RATIO = 10**280  # of strengths in a layer, beyond which the least loses digits to underflow in these units
FEW, MANY = 32, 1024  # points from which a contour is faster than balls, where position exponents differ and elsewhere

_PLAIN = {int, float, np.float64}

Array = NDArray[np.float64]
Scalar = Number | np.number[Any]
Points = NDArray[Any] | Sequence[Any]
Integer = int | np.integer[Any]


@overload
def influence(model: RelayModel, t: Scalar) -> float: ...
@overload
def influence(model: RelayModel, t: Points) -> Array: ...


def influence(model: RelayModel, t: Scalar | Points) -> float | Array:
    r"""Return D(t), the size of the difference at continuation token t (THEORY sections 1 and 2).

    $$ D(t) = \sum_g \mathrm{Res}_{z=-g}\, f(z)\, \Phi(-z), \qquad
       \Phi(-z) = \frac{\Gamma(P+1-z)\,\Gamma(N)}{\Gamma(P)\,\Gamma(N+1-z)\,(1-z)}, \quad N = P+t. $$

    Parameters
    ----------
    model
        Any relay model.
    t
        Real t > 0, scalar or array of any shape; integers of any size.

    Returns
    -------
    float or ndarray
        float64 of the shape of `t`, in units of the prompts' per-token difference.  Every value is right
        to 1e-12 relative, down to the smallest normal float: where float64 arithmetic cannot promise it, by
        its own condition number, certified balls are rounded instead (slower, a fraction of a millisecond
        a point).

    Raises
    ------
    TypeError, ValueError
        For `t` that is not a positive finite number; the first offender is named.
    OverflowError
        If a value lies beyond the float range; `influence_ball` gives it.

    Examples
    --------
    >>> from relaymodel import RelayModel
    >>> model = RelayModel.uniform(prompt=10, depth=6, relay=1)
    >>> influence(model, [1, 100, 10**6]).round(8)
    array([62.31448988, 34.16350632,  0.1573534 ])
    """
    if type(t) in _PLAIN and isinstance(model, RelayModel) and 0 < t <= LARGEST_T:  # type: ignore[operator]
        value = scalar.influence(model, float(t))  # type: ignore[arg-type]
        if value is not None:
            return value
    return _evaluate(model, t, exponent=False)


@overload
def local_exponent(model: RelayModel, t: Scalar) -> float: ...
@overload
def local_exponent(model: RelayModel, t: Points) -> Array: ...
def local_exponent(model: RelayModel, t: Scalar | Points) -> float | Array:
    r"""Return the local exponent $\alpha(t) = -d\log|D|/d\log t$ (THEORY section 3).

    $$ \alpha(t) = \frac tN - t\, \frac{\sum_k E_k h'_k}{\sum_k E_k h_k}, \qquad
       h'_k = \sum_{i=1}^{k} \zeta(i+1, N+1)\, h_{k-i} \qquad (g = 0). $$

    It tends to 1 + g*, g* the smallest position exponent of a relaying layer, as
    $1 + g_* - (m_*-1)/\log t$.  Arguments, shapes and errors as `influence`; each value is right to 1e-12
    absolute (relative, where it exceeds 1 beside a zero of D).  A model in which no layer relays has no
    exponent: `ValueError`.

    >>> from relaymodel import RelayModel
    >>> local_exponent(RelayModel.uniform(prompt=10, depth=6, relay=1), [1e2, 1e4, 1e6, 1e300]).round(9)
    array([0.3418535 , 0.60850179, 0.71596347, 0.99280985])
    """
    return _evaluate(model, t, exponent=True)


@overload
def token_influence(model: RelayModel, source: Integer, target: Integer) -> float: ...
@overload
def token_influence(model: RelayModel, source: Points, target: Integer | Points) -> Array: ...
@overload
def token_influence(model: RelayModel, source: Integer, target: Points) -> Array: ...
def token_influence(model: RelayModel, source: Integer | Points, target: Integer | Points) -> float | Array:
    r"""Return the weight of token s, `source`, on token n, `target`, after all layers (THEORY section 2).

    $\sum_g \mathrm{Res}_{z=-g} f(z) \frac{\Gamma(s-z)\Gamma(n)}{\Gamma(s)\Gamma(n+1-z)}$ for s < n; $f(n)$ for
    s = n; 0 for s > n, by causality.  For g = 0 it is $\frac1n \sum_m e_m h_{m-1}(1/s, \dots, 1/n)$.

    Parameters
    ----------
    model
        Any relay model; its prompt length plays no role.
    source, target
        Integers of at least 1, which broadcast against each other; any size.

    Returns
    -------
    float or ndarray
        Right to 1e-12 relative, as `influence`.

    Raises
    ------
    TypeError, ValueError
        For anything but integers of at least 1 (whole floats pass).

    Examples
    --------
    >>> from relaymodel import Layer, RelayModel
    >>> token_influence(RelayModel(1, [Layer(1)]), source=[1, 2, 3, 4], target=3).round(4)
    array([0.3333, 0.3333, 1.3333, 0.    ])
    """
    check_model(model)
    s: NDArray[Any] = _tokens("source", source)
    n: NDArray[Any] = _tokens("target", target)
    try:
        shape = np.broadcast_shapes(s.shape, n.shape)
    except ValueError:
        raise ValueError(f"source and target must broadcast, got shapes {s.shape} and {n.shape}") from None
    s = np.broadcast_to(s, shape).ravel()
    n = np.broadcast_to(n, shape).ravel()
    values = np.zeros(s.size)
    pending = s <= n
    if without_influence(model):
        values[s == n] = _float(own_weight(model))
        values[(s == 1) & pending] += _float(model.plateau)
        pending[:] = False
    elif symbol(model).plain and not model.plateau:
        for i in np.flatnonzero(s == n):
            values[i] = _float(merged(model).eigenvalue(int(n[i])))
        pending &= s < n
    if _served(model):
        for path, wanted in _paths(model, residues.token_influence, bands.token_influence):
            good = pending & (n <= 2**53)
            if np.count_nonzero(good) < wanted:
                continue
            for part in _chunks(good, model.depth):
                with np.errstate(over="ignore", invalid="ignore"):
                    sums = path(
                        merged(model) if path is residues.token_influence else model,
                        s[part].astype(float),
                        n[part].astype(float),
                    )
                values[part] = sums.value
                pending[part] = ~_promised(sums, model.depth)
    for i in np.flatnonzero(pending):
        values[i] = _by_balls(model, token_influence_ball, int(s[i]), int(n[i]))
    values += 0.0
    return values.reshape(shape) if shape else float(values[0])


def _evaluate(model: RelayModel, t: Scalar | Points, *, exponent: bool) -> float | Array:
    check_model(model)
    exact, floats, shape = times(t)
    result = np.zeros(floats.size)
    if without_influence(model):
        if exponent and not model.plateau:
            raise ValueError(f"model must have an influence other than 0 for a local exponent, got {show(model)}")
        if not exponent:
            result += _float(model.plateau)
        return result.reshape(shape) if shape else float(result[0])
    pending = np.ones(floats.size, dtype=bool)
    if model.prompt <= LARGEST_PROMPT and _served(model):
        for path, wanted in _paths(model, residues.influence, bands.influence):
            good = pending & (floats <= LARGEST_T)
            if np.count_nonzero(good) < wanted:
                continue
            for part in _chunks(good, model.depth):
                with np.errstate(over="ignore", invalid="ignore"):  # beyond float64 balls take over
                    sums = path(merged(model) if path is residues.influence else model, floats[part], exponent=exponent)
                result[part] = sums.alpha if exponent else sums.value
                pending[part] = ~_promised(sums, model.depth, exponent=exponent)
    evaluate = local_exponent_ball if exponent else influence_ball
    for i in np.flatnonzero(pending):
        result[i] = _by_balls(model, evaluate, float(floats[i]) if exact is None else exact[i])
    result += 0.0  # never -0.0, where a negative value is too small for float64
    return result.reshape(shape) if shape else float(result[0])


def _served(model: RelayModel) -> bool:
    """Whether float64 is tried: everything in the symbol is far within its range."""
    if model.depth > DEEPEST or abs(model.plateau) > LARGEST_T:
        return False
    layers = [[abs(x) for x in (residual, *(s for s, *_ in heads)) if x] for residual, heads in symbol(model).layers]
    # within a layer the least counts in units of the largest
    apart = any(layer and max(layer) > LARGEST_RATIO * min(layer) for layer in layers)
    parts = {x for layer in layers for x in layer}
    return (
        not apart
        and all(1 / Fraction(LARGEST_T) <= x <= LARGEST_T for x in parts)
        and all(g <= STEEPEST_SERVED and delta <= STEEPEST_SERVED for g, delta in symbol(model).shapes)
    )


Path = TypeVar("Path", bound=Callable[..., residues.Sums])


def _paths(model: RelayModel, by_residues: Path, by_contours: Path) -> list[tuple[Path, int]]:
    """Return the float64 paths that serve a model, in turn, each with the least number of points that is worth it."""
    if not symbol(model).plain or model.plateau:
        return [(by_contours, 1)]
    several = len({g for g, _ in symbol(model).shapes}) > 1
    return [(by_residues, 1), (by_contours, FEW if several else MANY)]


def check_model(model: object) -> None:
    """Raise `TypeError` unless `model` is a `RelayModel`, `ValueError` if it is outside the solvable class."""
    if not isinstance(model, RelayModel):
        raise TypeError(f"model must be a RelayModel, got {show(model)}")
    model.demand_solvable()


def _promised(sums: residues.Sums, depth: int, *, exponent: bool = False) -> NDArray[np.bool_]:
    """Return where the fast path keeps PROMISE, by its condition number and the rounding errors committed."""
    good: NDArray[np.bool_] = sums.condition * rounding_error(depth) <= PROMISE
    if exponent:
        return good & np.isfinite(sums.alpha)
    return good & np.isfinite(sums.value) & (np.abs(sums.value) >= np.finfo(float).tiny)


def times(t: object) -> tuple[list[Any] | None, Array, tuple[int, ...]]:
    """Return t as given (None if float64 says it all), as a flat float64 array, and its shape."""
    array = numbers("t", t)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        flat = np.ascontiguousarray(array, dtype=float).ravel()
        exact = None
    else:
        exact = [real("t", value) for value in array.ravel().tolist()]
        flat = np.array([_clip(value) for value in exact])
    shaped = flat.reshape(array.shape)
    demand("t", shaped, np.isfinite(shaped) if exact is None else shaped == shaped, "finite")
    demand("t", shaped, shaped > 0, "positive (it counts the tokens after the prompt)")
    return exact, flat, array.shape


def _clip(value: Any) -> float:
    """Return float(value), kept off 0 if positive, and infinity beyond the float range."""
    try:
        return max(float(value), 5e-324) if value > 0 else float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _tokens(name: str, values: object) -> NDArray[Any]:
    """Return an array of integers >= 1; whole floats pass, integers beyond 64 bits stay Python objects."""
    array = numbers(name, values)
    if array.dtype.kind == "f":
        demand(name, array, np.isfinite(array) & (array == np.floor(array)), "a whole number")
        array = array.astype(object if np.any(np.abs(array) > 2.0**62) else np.int64)
        if array.dtype == object:
            array = np.vectorize(int, otypes=[object])(array)
    if array.dtype == object:
        for value in array.ravel():
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"{name} must be integers, got {show(value)} of type {type(value).__name__}")
    demand(name, array, np.asarray(array >= 1, dtype=bool), "at least 1")
    return array


def _chunks(mask: NDArray[np.bool_], depth: int) -> list[NDArray[np.intp]] | list[slice]:
    """Return where `mask` is true, in chunks; slices, which copy nothing, if that is everywhere."""
    size = min(CHUNK, -(-WORKSPACE // depth))
    if mask.all():
        return [slice(i, i + size) for i in range(0, mask.size, size)]
    indices = np.flatnonzero(mask)
    return [indices[i : i + size] for i in range(0, indices.size, size)]


def _by_balls(model: RelayModel, evaluate: Callable[..., arb], *where: Any) -> float:
    """Return a value of balls; where they fail, the error says what of the model is beyond the promised domain."""
    try:
        return _to_float(evaluate(model, *where, 20))
    except PrecisionError as error:
        beyond = outside(model)
        if not beyond:
            raise
        reason = f"{error}; beyond the domain in which every value is promised: {beyond}"
        raise PrecisionError(reason, error.ball) from None


def _float(value: Fraction) -> float:
    """Return an exact value as float64."""
    return _to_float(arb(rational(value))) if abs(value) > LARGEST_T else float(value)


def _to_float(ball: arb) -> float:
    """Return the ball's midpoint rounded to float64; the ball is far narrower than a float's last place."""
    value = float(ball.mid())
    if not np.isfinite(value):
        raise OverflowError(
            f"the value {ball.str(10)} lies beyond the float range; influence_ball returns it as a ball"
        )
    return value
