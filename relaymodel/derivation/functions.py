"""From expressions to numbers: harmonic numbers that SymPy prints as code rightly, and functions of arrays."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy.printing.numpy import SciPyPrinter

from relaymodel.checks import Number, positive_integer, real


class harmonic(sympy.harmonic):  # type: ignore[misc]  # noqa: N801  # printed under SymPy's name
    r"""Generalised harmonic numbers $H_n^{(m)}$, as SymPy's, but safe in `lambdify`.

    SymPy 1.14 rewrites them for SciPy as a sum, and writes this without brackets into a product:
    `lambdify(n, 2 * sympy.harmonic(n), "scipy")` computes $2\psi(n+1) + \gamma$.  For mpmath it has no second argument.

    >>> n = sympy.Symbol("n")
    >>> round(float(sympy.lambdify(n, 2 * harmonic(n), "scipy")(3)), 12)  # 2 (1 + 1/2 + 1/3)
    3.666666666667
    """

    def _in_polygamma(self, printer: Any) -> str:
        n, m = self.args[0], self.args[1] if len(self.args) > 1 else sympy.Integer(1)
        if not m.is_Integer:
            return str(printer._print_Function(self))
        constant = sympy.EulerGamma if m == 1 else sympy.zeta(m)
        if isinstance(printer, SciPyPrinter):
            constant = constant.evalf(20)
        sign = (-1) ** (m - 1) / sympy.factorial(m - 1)
        return f"({printer._print(constant)} + {printer._print(sign * sympy.polygamma(m - 1, n + 1))})"

    def _numpycode(self, printer: Any) -> str:
        return self._in_polygamma(printer) if isinstance(printer, SciPyPrinter) else str(printer._print_Function(self))

    def _mpmathcode(self, printer: Any) -> str:
        return self._in_polygamma(printer)


def numeric(expression: sympy.Expr, arguments: Sequence[sympy.Symbol], digits: int | None) -> Callable[..., Any]:
    """Return an expression as a function of its arguments: of float64 arrays, or in mpmath with that many digits."""
    if digits is None:
        function: Callable[..., Any] = sympy.lambdify(arguments, expression, "scipy")
        return function
    precise, places = sympy.lambdify(arguments, expression, "mpmath"), positive_integer("digits", digits)

    def evaluate(*values: Number) -> Any:
        import mpmath

        with mpmath.workdps(places + 10):
            exact = (Fraction(real("argument", value)) for value in values)
            return precise(*(mpmath.mpf(value.numerator) / value.denominator for value in exact))

    return evaluate
