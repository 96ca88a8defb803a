"""LaTeX as the theory writes it, and the names of the quantities that a derivation defines on its way."""

from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from relaymodel.derivation.stack import t

D = sympy.Function("D")(t)
ALPHA = sympy.Function("alpha")(t)


class _Printer(LatexPrinter):  # type: ignore[misc]
    r"""Prints $\psi$ and $H^{(i)}$ where SymPy prints function names."""

    def _print_polygamma(self, expr: Any, exp: str | None = None) -> str:
        order, argument = expr.args
        mark = "" if order == 0 else rf"^{{\left({self._print(order)}\right)}}"
        return self._power(rf"\psi{mark}\left({self._print(argument)}\right)", exp)

    def _print_harmonic(self, expr: Any, exp: str | None = None) -> str:
        order = expr.args[1] if len(expr.args) > 1 else sympy.Integer(1)
        mark = "" if order == 1 else rf"^{{\left({self._print(order)}\right)}}"
        return self._power(rf"H_{{{self._print(expr.args[0])}}}{mark}", exp)

    @staticmethod
    def _power(base: str, exp: str | None) -> str:
        return base if exp is None else rf"{{\left({base}\right)}}^{{{exp}}}"


def latex(expression: Any) -> str:
    r"""Return LaTeX with $\psi$ for polygamma functions and $H$ for harmonic numbers.

    >>> print(latex(sympy.polygamma(1, t) ** 2 + sympy.harmonic(t, 3)))
    H_{t}^{\left(3\right)} + {\left(\psi^{\left(1\right)}\left(t\right)\right)}^{2}
    """
    return str(_Printer().doprint(expression))


def indexed(letter: str, pole: int | None, i: int) -> sympy.Symbol:
    """Return the symbol of p_i, h_i or E_i, with the number of the pole if there are several."""
    return sympy.Symbol(f"{letter}_{i}" if pole is None else f"{letter}_{{{pole},{i}}}", real=True)


def symbol(name: str) -> sympy.Symbol:
    """Return a real symbol, to stand for a strength or an exponent in `derive`.

    >>> from relaymodel.derivation import derive
    >>> derive(1, relay=symbol("a")).closed_form
    P*a/(P + t)
    """
    return sympy.Symbol(name, real=True)
