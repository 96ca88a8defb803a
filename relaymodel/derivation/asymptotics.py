r"""What remains at large t: a polynomial in log t, and the series of the exponent in 1/log t.

With the poles at $-g$, $g \ge g^*$, and m poles at $g^*$, a power of t separates $g^*$ from everything else:

$$ D = \frac{\Gamma(P+1+g^*)}{\Gamma(P)}\, t^{-(1+g^*)}
   \Bigl[ \sum_{k<m} E_k (1+g^*)^k \eta_k(\log t) + O(t^{-\delta}) \Bigr], \qquad
   \sum_k \eta_k(\ell) x^k = e^{\ell x}\, \frac{\Gamma(P+1+g^*-x)}{\Gamma(P+1+g^*)}, $$

because $h_k$ differs from $\eta_k(\log t)$ by $O(\log^k t / t)$.  The bracket is
$A' (\log t)^{m-1} (1 + c_1/\log t + \dots + c_{m-1}/\log^{m-1} t)$: the series in 1/log t of D ends.  That of the
exponent, $1 + g^* - d\log[\dots]/d\log t$, does not.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import sympy
from sympy.utilities.iterables import partitions

from relaymodel.checks import positive_integer
from relaymodel.derivation.notation import ALPHA, D, latex
from relaymodel.derivation.poles import SymbolicPole, complete_homogeneous, hurwitz, is_small_integer
from relaymodel.derivation.stack import P, t

LOG = sympy.log(t)


@dataclass(frozen=True)
class AsymptoticSeries:
    r"""`quantity` at large t with all else fixed: `leading` times a polynomial in 1/log t, up to O(`error`).

    Attributes
    ----------
    quantity
        What is expanded.
    leading
        The leading term, or 1.
    coefficients
        $c_0, c_1, \dots$, where $c_n$ multiplies $1/\log^n t$.
    error
        The remainder is at most a constant times this, for t large enough.
    """

    quantity: sympy.Expr
    leading: sympy.Expr
    coefficients: tuple[sympy.Expr, ...]
    error: sympy.Expr

    @property
    def expression(self) -> sympy.Expr:
        """The series without its remainder."""
        return self.leading * sympy.Add(*self._terms())

    def _terms(self) -> list[sympy.Expr]:
        terms = [c / LOG**n for n, c in enumerate(self.coefficients)]
        return [term for term in terms if term != 0]

    def __str__(self) -> str:
        bracket = _join(str(term) for term in self._terms())
        if self.leading != 1:
            bracket = str(self.leading) if bracket == "1" else f"{self.leading} * [{bracket}]"
        return f"{self.quantity} = {bracket} + O({self.error})"

    def _latex(self, printer: Any) -> str:
        """Return LaTeX: what `sympy.latex` asks for."""
        quantity, leading, error = map(printer.doprint, (self.quantity, self.leading, self.error))
        bracket = _join(printer.doprint(term) for term in self._terms())
        if self.leading != 1:
            bracket = leading if bracket == "1" else rf"{leading} \left[{bracket}\right]"
        return rf"{quantity} = {bracket} + O\left({error}\right)"

    def latex(self) -> str:
        """Return the statement in LaTeX."""
        return latex(self)

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {latex(self)}$"


def _join(terms: Iterable[str]) -> str:
    """Return a sum in the order given, which SymPy's printers would change."""
    return " + ".join(terms).replace("+ - ", "- ").replace("+ -", "- ")


@dataclass(frozen=True)
class LeadingTerm:
    r"""The leading term $D \sim A\,\frac{\Gamma(P+1+g^*)}{\Gamma(P)} (\log t)^{m-1} t^{-(1+g^*)}$ (THEORY section 3).

    Attributes
    ----------
    exponent
        $1 + g^*$, the limit of the local exponent.
    log_power
        m - 1, one less than the number of layers at the smallest position exponent $g^*$.
    A
        The constant, free of P.  For uniform attention $A = \prod\lambda_l/(L-1)!$ and
        $D \sim A P (\log t)^{L-1}/t$.
    leading
        The leading term itself.
    """

    exponent: sympy.Expr
    log_power: int
    A: sympy.Expr
    leading: sympy.Expr


def increasing(poles: Sequence[SymbolicPole]) -> list[SymbolicPole]:
    """Return the poles with their position exponents in increasing order.

    Where SymPy cannot tell, the order given is taken to be increasing; `ValueError` if it cannot be.
    """
    if not poles:
        raise ValueError("the relay strengths must not all vanish: the influence is 0 for every t, without a limit law")
    below = [_below(a, b) for a, b in combinations(poles, 2)]
    if None not in below:
        return sorted(poles, key=lambda pole: sum(bool(_below(other, pole)) for other in poles))
    if False in below:
        raise ValueError(
            "position must be listed in increasing order where SymPy cannot compare all exponents, got "
            f"{', '.join(str(pole.position) for pole in poles)}; reorder them, or give the symbols assumptions"
        )
    return list(poles)


def _below(a: SymbolicPole, b: SymbolicPole) -> bool | None:
    """Return whether a has the smaller position exponent, None if SymPy cannot tell."""
    verdict: bool | None = (b.position - a.position).is_positive
    return verdict


def limit(poles: Sequence[SymbolicPole]) -> LeadingTerm:
    """Return the leading term of D at large t (THEORY section 3)."""
    pole = increasing(poles)[0]
    m = pole.multiplicity
    A = pole.weights[-1] / math.factorial(m - 1)
    exponent = 1 + pole.position
    return LeadingTerm(exponent, m - 1, A, A * prompt_factor(pole) * LOG ** (m - 1) * t**-exponent)


def prompt_factor(pole: SymbolicPole) -> sympy.Expr:
    """Return Gamma(P+1+g)/Gamma(P)."""
    g = pole.position
    return sympy.rf(P, 1 + g) if is_small_integer(g) else sympy.gamma(P + 1 + g) / sympy.gamma(P)


def relative_coefficients(pole: SymbolicPole, count: int) -> tuple[sympy.Expr, ...]:
    """Return c_0 = 1, c_1, ... of the bracket (see the module), at most `count` of the m there are."""
    count = min(count, pole.multiplicity)
    m, a = pole.multiplicity, P + 1 + pole.position
    gammas = complete_homogeneous([-sympy.digamma(a), *(hurwitz(i, a) for i in range(2, count))])
    ratios = [
        sympy.Add(*(term / pole.weights[-1] for term in sympy.Add.make_args(weight)))
        for weight in pole.weights[::-1][:count]
    ]
    return tuple(
        sympy.ff(m - 1, n) * sympy.Add(*(ratios[n - i] * gammas[i] for i in range(n + 1))) for n in range(count)
    )


def influence_series(poles: Sequence[SymbolicPole], order: int) -> AsymptoticSeries:
    """Return D with relative error O(1/log^order t), or with the power of t that separates it from the rest."""
    order = positive_integer("order", order)
    pole = increasing(poles)[0]
    if order < pole.multiplicity:
        error = t ** -(1 + pole.position) * LOG ** (pole.multiplicity - 1 - order)
    else:
        error = _power_error(poles, t ** -(1 + pole.position), pole.multiplicity - 1)
    return AsymptoticSeries(D, limit(poles).leading, relative_coefficients(pole, order), error)


def exponent_series(poles: Sequence[SymbolicPole], order: int) -> AsymptoticSeries:
    """Return the local exponent with error O(1/log^order t), or a power of t if no logarithm enters."""
    order = positive_integer("order", order)
    pole = increasing(poles)[0]
    m = pole.multiplicity
    if m == 1:
        error = _power_error(poles, sympy.Integer(1), 0)
        return AsymptoticSeries(ALPHA, sympy.Integer(1), (1 + pole.position,), error)
    c = relative_coefficients(pole, order - 1)
    terms = [1 + pole.position, sympy.Integer(1 - m), *(log_derivative(c, n) for n in range(1, order - 1))]
    return AsymptoticSeries(ALPHA, sympy.Integer(1), tuple(terms[:order]), LOG**-order)


def log_derivative(c: Sequence[sympy.Expr], n: int) -> sympy.Expr:
    """Return n times the coefficient of u^n in log(1 + c_1 u + c_2 u^2 + ...), a sum over partitions of n."""
    terms = []
    for partition in partitions(n, k=len(c) - 1):
        parts = sum(partition.values())
        # Waring's coefficients are integers
        count = n * math.factorial(parts - 1) // math.prod(map(math.factorial, partition.values()))
        terms.append((-1) ** (parts - 1) * count * sympy.Mul(*(c[i] ** r for i, r in partition.items())))
    return sympy.Add(*terms)


def _power_error(poles: Sequence[SymbolicPole], scale: sympy.Expr, log_power: int) -> sympy.Expr:
    """Return what lies a power of t below `scale * log^log_power t`: corrections 1/t, and the next pole."""
    first, *others = increasing(poles)
    nearest = scale * LOG**log_power / t
    if not others:
        return nearest
    gap, extra = others[0].position - first.position, others[0].multiplicity - first.multiplicity
    second = scale * LOG ** (log_power + extra) * t**-gap
    sooner = (gap - 1).is_positive, (1 - gap).is_positive
    if sooner[0] or (gap == 1 and extra <= 0):
        return nearest
    return second if sooner[1] or gap == 1 else nearest + second
