r"""Limits of long sequences and of infinite depth: densities over the relative position r = s/n (THEORY section 6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from relaymodel.derivation.poles import SymbolicPole
from relaymodel.derivation.stack import N, P, SymbolicLayer, expression
from relaymodel.derivation.steps import atom

r = sympy.Symbol("r", real=True)
"""Relative position of the source, 0 < r < 1."""
c = sympy.Symbol("c", positive=True)
"""Total relay strength of infinitely many layers."""


@dataclass(frozen=True)
class Density:
    r"""How the influence on a late token is spread over relative positions (THEORY section 6).

    Attributes
    ----------
    variable
        The symbol r.
    density
        q(r) for 0 < r < 1.
    atom
        The weight at r = 1: what the token keeps of itself.
    influence
        $\int_0^{P/(P+t)} q\,dr$, the continuum's approximation to D(t), in P and t.
    """

    variable: sympy.Symbol
    density: sympy.Expr
    atom: sympy.Expr
    influence: sympy.Expr


def continuum_density(layers: Sequence[SymbolicLayer], poles: Sequence[SymbolicPole]) -> Density:
    r"""Return the continuum limit of a finite stack.

    $\mu^j = \bigl(\frac{1+g}{z+g}\bigr)^j$ is the Mellin transform of
    $(1+g)^j r^g \log(1/r)^{j-1}/(j-1)!$, and in the influence
    $\Phi_g$ becomes $(P/N)^{1+g}$, $h_k$ becomes $\log(N/P)^k/k!$.
    """
    tau = sympy.log(1 / r)
    density = sympy.Add(
        *(
            r**pole.position
            * sympy.Add(
                *(
                    coefficient * (1 + pole.position) ** j * tau ** (j - 1) / math.factorial(j - 1)
                    for j, coefficient in enumerate(pole.coefficients, start=1)
                )
            )
            for pole in poles
        )
    )
    influence = sympy.Add(
        *(
            (P / N) ** (1 + pole.position)
            * sympy.Add(*(weight * sympy.log(N / P) ** k / math.factorial(k) for k, weight in enumerate(pole.weights)))
            for pole in poles
        )
    )
    return Density(r, density, atom(layers), influence)


def infinite_depth_density(strength: Any = c, *, position: Any = 0) -> Density:
    r"""Return the limit of infinitely many layers of relay c/L and residual 1 (THEORY section 6).

    $f = \exp\bigl(c\frac{1+g}{z+g}\bigr)$ and, with $\tau = \log(1/r)$ and $b = c(1+g)$,

    $$ q(r) = r^g \sqrt{b/\tau}\; I_1(2\sqrt{b\tau}), \qquad \text{atom } 1. $$

    Parameters
    ----------
    strength
        c, a positive number or SymPy expression.
    position
        Position exponent g > -1.

    Returns
    -------
    Density
        Its `influence` is an unevaluated integral; `.subs` numbers for P and t, then `.evalf()`.

    Raises
    ------
    TypeError, ValueError
        For a strength that is not positive, a position of -1 or less, and what is not a real number.

    Examples
    --------
    >>> infinite_depth_density(1).density
    sqrt(1/log(1/r))*besseli(1, 2*sqrt(log(1/r)))
    """
    b = expression("strength", strength)
    if b.is_nonpositive:
        raise ValueError(f"strength must be positive, got {b}")
    g = expression("position", position, position=True)
    b *= 1 + g
    tau = sympy.log(1 / r)
    density = r**g * sympy.sqrt(b / tau) * sympy.besseli(1, 2 * sympy.sqrt(b * tau))
    return Density(r, density, sympy.Integer(1), sympy.Integral(density, (r, 0, P / N)))
