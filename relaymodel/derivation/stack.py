"""The parameters of a stack of layers as SymPy expressions, and the symbols P and t of every result."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from relaymodel.checks import real, show
from relaymodel.model import RelayModel

P = sympy.Symbol("P", integer=True, positive=True)
"""Prompt length."""
t = sympy.Symbol("t", positive=True)
"""Continuation token, any positive real."""
N = P + t

LETTERS = {"relay": "lambda", "residual": "rho", "position": "g"}
OTHER_LETTERS = {"recency": "gamma", "sink": "sigma"}


@dataclass(frozen=True)
class SymbolicLayer:
    """One relay layer (THEORY section 1) whose relay, residual and position are SymPy expressions."""

    relay: sympy.Expr
    residual: sympy.Expr
    position: sympy.Expr


@dataclass(frozen=True)
class SymbolicHead:
    """One head (THEORY section 10) whose relay, position and recency are SymPy expressions."""

    relay: sympy.Expr
    position: sympy.Expr
    recency: sympy.Expr


@dataclass(frozen=True)
class SymbolicHeads:
    """One layer of any heads (THEORY section 10), with its residual and sink."""

    residual: sympy.Expr
    sink: sympy.Expr
    heads: tuple[SymbolicHead, ...]


def heads_of(model: RelayModel) -> tuple[SymbolicHeads, ...]:
    """Return the layers of a model of any heads with their exact values as SymPy rationals."""
    model.demand_solvable()

    def exact(value: Any) -> sympy.Expr:
        return sympy.Rational(Fraction(value))

    return tuple(
        SymbolicHeads(
            exact(layer.residual),
            exact(layer.sink),
            tuple(SymbolicHead(exact(h.relay), exact(h.position), exact(h.recency)) for h in layer.heads),
        )
        for layer in model.layers
    )


def head_stack(
    depth: int, relay: Any, residual: Any, position: Any, recency: Any, sink: Any
) -> tuple[SymbolicHeads, ...]:
    """Return `depth` layers of one head; see `derive` for what each parameter may be."""
    given = {"relay": relay, "residual": residual, "position": position, "recency": recency, "sink": sink}
    columns = {name: _column(name, value, depth) for name, value in given.items()}
    for value in columns["recency"]:
        if (1 - value).is_nonpositive:
            raise ValueError(
                f"recency must be less than 1, got {show(value)}; at 1 a head attends to its own token alone"
            )
    return tuple(
        SymbolicHeads(rho, sigma, (SymbolicHead(lam, g, gamma),))
        for lam, rho, g, gamma, sigma in zip(*columns.values(), strict=True)
    )


def stack_of(model: RelayModel) -> tuple[SymbolicLayer, ...]:
    """Return the layers of a model with their exact values as SymPy rationals."""
    return tuple(SymbolicLayer(*(sympy.Rational(value) for value in layer)) for layer in model.rational)


def stack(depth: int, relay: Any, residual: Any, position: Any) -> tuple[SymbolicLayer, ...]:
    """Return `depth` layers; see `derive` for what each parameter may be."""
    columns = (
        _column("relay", relay, depth),
        _column("residual", residual, depth),
        _column("position", position, depth),
    )
    return tuple(SymbolicLayer(*values) for values in zip(*columns, strict=True))


def _column(name: str, value: Any, depth: int) -> tuple[sympy.Expr, ...]:
    """Return the values of one parameter in all layers."""
    if isinstance(value, str):
        letter = {**LETTERS, **OTHER_LETTERS}[name]
        if value == "equal":
            return (sympy.Symbol(letter, real=True),) * depth
        if value == "different":
            return tuple(sympy.Symbol(f"{letter}_{l}", real=True) for l in range(1, depth + 1))
        raise ValueError(
            f"{name} must be 'equal' or 'different', a number, a SymPy expression, or a list with one of these for "
            f"each layer, got {show(value)}"
        )
    if isinstance(value, (list, tuple, np.ndarray, sympy.Tuple)) and np.ndim(value) == 1:
        if len(value) != depth:
            raise ValueError(f"{name} must have one value for each of the {depth} layers, got {len(value)}")
        return tuple(expression(f"{name}[{i}]", item, position=name == "position") for i, item in enumerate(value))
    return (expression(name, value, position=name == "position"),) * depth


def expression(name: str, value: Any, *, position: bool = False) -> sympy.Expr:
    """Return a number as an exact Rational, a SymPy expression as it is; refuse what cannot be real.

    >>> expression("relay", 0.5)
    1/2
    >>> expression("position", sympy.Integer(-1), position=True)
    Traceback (most recent call last):
    ValueError: position must be greater than -1, got -1; ...
    """
    if not isinstance(value, sympy.Expr):
        result = sympy.Rational(Fraction(real(name, value)))
    elif value.is_extended_real is False or value.is_finite is False or value is sympy.nan:
        raise ValueError(f"{name} must be a finite real number, got {show(value)}")
    elif value.has(t):
        raise ValueError(f"{name} must not depend on t, got {show(value)}; a relay layer is the same for every token")
    else:
        # binary floats are exact rationals, as they are in a RelayModel
        result = value.xreplace({number: sympy.Rational(number) for number in value.atoms(sympy.Float)})
    if position and (1 + result).is_nonpositive:
        raise ValueError(
            f"{name} must be greater than -1, got {show(value)}; "
            "the attention weights Gamma(s+g)/Gamma(s) are positive only there"
        )
    return result
