"""`derive`, and the `Derivation` that it returns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import sympy

from relaymodel.checks import choice, positive_integer, show
from relaymodel.derivation import asymptotics, continuum, poles, steps
from relaymodel.derivation.asymptotics import AsymptoticSeries, LeadingTerm
from relaymodel.derivation.continuum import Density
from relaymodel.derivation.functions import numeric
from relaymodel.derivation.heads import HeadDerivation
from relaymodel.derivation.notation import latex
from relaymodel.derivation.poles import SymbolicPole
from relaymodel.derivation.stack import P, SymbolicLayer, head_stack, heads_of, stack, stack_of, t
from relaymodel.derivation.steps import DerivationStep
from relaymodel.model import RelayModel


@dataclass(frozen=True)
class Derivation:
    r"""What follows from a stack of relay layers, as SymPy expressions; made by `derive`.

    Everything is worked out on first use and kept.  Results contain the symbols `P` (prompt length) and `t`
    (continuation token, any positive real) and those of `relay`, `residual` and `position`; substitute by these
    attributes, as in `d.closed_form.subs({d.P: 64, d.t: 1000})`.  Polygamma functions at integers become exact
    rationals there, which takes SymPy seconds from t of a few thousand on: substitute a `sympy.Float` then.

    Attributes
    ----------
    layers
        The layers as triples of expressions.
    """

    layers: tuple[SymbolicLayer, ...]

    P = P
    t = t

    def __repr__(self) -> str:
        parts = [f"depth {self.depth}"]
        for name in ("relay", "residual", "position"):
            values = getattr(self, name)
            parts.append(f"{name} {values[0] if len(set(values)) == 1 else ', '.join(map(str, values))}")
        return f"Derivation({'; '.join(parts)})"

    @property
    def depth(self) -> int:
        """Number of layers L."""
        return len(self.layers)

    @property
    def relay(self) -> tuple[sympy.Expr, ...]:
        """Relay strength of each layer."""
        return tuple(layer.relay for layer in self.layers)

    @property
    def residual(self) -> tuple[sympy.Expr, ...]:
        """Residual strength of each layer."""
        return tuple(layer.residual for layer in self.layers)

    @property
    def position(self) -> tuple[sympy.Expr, ...]:
        """Position exponent of each layer."""
        return tuple(layer.position for layer in self.layers)

    @cached_property
    def poles(self) -> tuple[SymbolicPole, ...]:
        """The partial fractions of f, one `SymbolicPole` for each position exponent."""
        return poles.partial_fractions(self.layers)

    @cached_property
    def recursion(self) -> sympy.Eq:
        """What layer l does (THEORY section 1).

        >>> derive(2).recursion
        Eq(x(l, n), lambda*Sum(x(l - 1, s), (s, 1, n))/n + x(l - 1, n))
        """
        return steps.recursion(self.layers)

    @cached_property
    def closed_form(self) -> sympy.Expr:
        r"""D(t) in polygamma functions, and gamma functions if a position exponent is not 0 (THEORY section 2).

        Exact for real t > 0.  It has as many terms as there are partitions of 0, ..., m-1, if m layers share a position
        exponent: 195 for m = 12, 35 471 for m = 32; above that `ValueError`, see `compact_form`.
        In double precision gamma functions overflow at P + t > 170: for numbers use `relaymodel.influence`, for this
        very formula `function`.

        >>> derive(2).closed_form
        P*(lambda**2*(-polygamma(0, P + 1) + polygamma(0, P + t + 1)) + lambda**2 + 2*lambda)/(P + t)
        """
        return poles.closed_form(self.poles, poles.power_sum_polygamma)

    @cached_property
    def harmonic_form(self) -> sympy.Expr:
        r"""D(t) in generalised harmonic numbers $H_N^{(k)} - H_P^{(k)}$, N = P + t (THEORY section 2).

        A position exponent g moves the arguments to N + g and P + g: $H_{N+g}^{(k)} - H_{P+g}^{(k)}$ is the sum of
        $(s+g)^{-k}$ over s = P+1, ..., N for every g > -1, whole or not.  Same size as `closed_form`; `sympy.lambdify`
        is right for SciPy and mpmath (with SymPy's own harmonic numbers it is not).

        >>> derive(2).harmonic_form
        P*(lambda**2*(-harmonic(P) + harmonic(P + t)) + lambda**2 + 2*lambda)/(P + t)
        """
        return poles.closed_form(self.poles, poles.power_sum_harmonic)

    @cached_property
    def compact_form(self) -> sympy.Eq:
        """D(t) in symbols E_k and h_k, which `definitions` explain; small at any depth (THEORY section 2).

        >>> derive(3).compact_form
        Eq(D(t), P*(E_0 + E_1*h_1 + E_2*h_2)/(P + t))
        """
        return steps.compact_form(self.poles)

    @cached_property
    def definitions(self) -> tuple[sympy.Eq, ...]:
        """E_k, p_i and h_k, each by the ones before it; a second index numbers the poles, if there are several.

        >>> derive(2).definitions
        (Eq(E_0, lambda**2 + 2*lambda), Eq(E_1, lambda**2), Eq(p_1, -polygamma(0, P + 1) + polygamma(0, P + t + 1)),
         Eq(h_1, p_1))
        """
        return steps.definitions(self.poles)

    @cached_property
    def local_exponent(self) -> sympy.Expr:
        """The exact local exponent -dlogD/dlogt, for real t > 0 (THEORY section 3).

        Raises `ValueError` if D is 0 for every t, and as `closed_form` does.

        >>> derive(1).local_exponent
        t/(P + t)
        """
        asymptotics.increasing(self.poles)
        poles.check_size(self.poles)
        return poles.local_exponent(
            self.poles, [poles.complete_homogeneous(pole.power_sums(poles.power_sum_polygamma)) for pole in self.poles]
        )

    def asymptotic_series(self, order: int) -> AsymptoticSeries:
        r"""Return D at large t, $A' (\log t)^{m-1} t^{-(1+g^*)} [1 + c_1/\log t + \dots + O(1/\log^k t)]$, k = `order`.

        m layers have the smallest position exponent $g^*$.  The series ends with $c_{m-1}$: from order m on the error
        is smaller by a power of t, and stated so.  Where SymPy cannot compare position exponents, the order given is
        taken to be increasing.  P is fixed: the series is of use when log t exceeds log P by far.

        Raises
        ------
        TypeError, ValueError
            If order is not an integer of at least 1; if D is 0; if the position exponents are not in increasing order
            where that has to be assumed.

        Examples
        --------
        >>> print(derive(2).asymptotic_series(1))
        D(t) = P*lambda**2*log(t)/t + O(1/t)
        >>> print(derive(2).asymptotic_series(2).error)
        log(t)/t**2
        """
        return asymptotics.influence_series(self.poles, order)

    @cached_property
    def asymptotic(self) -> AsymptoticSeries:
        """`asymptotic_series(3)`."""
        return self.asymptotic_series(3)

    def exponent_series(self, order: int) -> AsymptoticSeries:
        r"""Return the local exponent at large t, $1 + g^* - (m-1)/\log t + \dots + O(1/\log^k t)$, k = `order`.

        With a single layer at the smallest position exponent no logarithm enters, and the error is a power of t.
        Raises as `asymptotic_series`.

        >>> print(derive(2).exponent_series(2))
        alpha(t) = 1 - 1/log(t) + O(log(t)**(-2))
        """
        return asymptotics.exponent_series(self.poles, order)

    @cached_property
    def limit(self) -> LeadingTerm:
        r"""The limit $1 + g^*$ of the exponent, and the leading term of D (THEORY section 3).

        >>> derive(3).limit
        LeadingTerm(exponent=1, log_power=2, A=lambda**3/2, leading=P*lambda**3*log(t)**2/(2*t))
        """
        return asymptotics.limit(self.poles)

    @cached_property
    def continuum_density(self) -> Density:
        r"""How a long sequence's influence is spread over relative positions r (THEORY section 6).

        With L equal layers at g = 0 the density is the Laguerre polynomial
        $\lambda\rho^{L-1} L^{(1)}_{L-1}(-\lambda\log(1/r)/\rho)$.

        >>> derive(2).continuum_density
        Density(variable=r, density=lambda**2*log(1/r) + 2*lambda, atom=1,
                influence=P*(lambda**2*log((P + t)/P) + lambda**2 + 2*lambda)/(P + t))
        """
        return continuum.continuum_density(self.layers, self.poles)

    @cached_property
    def steps(self) -> tuple[DerivationStep, ...]:
        """The derivation, step by step, from one layer to the exponent's series.

        >>> [step.title for step in derive(2).steps][:3]
        ['One layer', 'The mean as an inverse', 'The stack as one function']
        """
        return steps.steps(self.layers, self.poles)

    @property
    def equations(self) -> tuple[sympy.Eq, ...]:
        """The compact form and what its letters stand for."""
        return self.compact_form, *self.definitions

    @property
    def parameters(self) -> dict[str, tuple[sympy.Expr, ...]]:
        """What the layers have, by name."""
        return {"relay strength": self.relay, "residual strength": self.residual, "position exponent": self.position}

    def evaluate(self, P: int, t: int, *, relay: Any = None, residual: Any = None, position: Any = None) -> sympy.Expr:
        """Return D exactly at integers P and t: a Rational, or an expression in the symbols that are left.

        Parameters
        ----------
        P, t
            Integers of at least 1.
        relay, residual, position
            Values to put in, one for all layers or a list; None leaves what is there.

        Raises
        ------
        TypeError, ValueError
            For P or t that are not positive integers, and for position exponents that are not rational.

        Examples
        --------
        >>> derive(2).evaluate(P=2, t=2)
        19*lambda**2/24 + lambda
        >>> derive(2).evaluate(P=2, t=2, relay=0.5)
        67/96
        """
        prompt, token = positive_integer("P", P), positive_integer("t", t)
        layers = stack(
            self.depth,
            self.relay if relay is None else relay,
            self.residual if residual is None else residual,
            self.position if position is None else position,
        )
        for layer in layers:
            if not layer.position.is_Rational:
                raise ValueError(
                    f"position must be rational for an exact value, got {show(layer.position)}; pass position=..."
                )
        return poles.value(poles.partial_fractions(layers), prompt, token)

    @property
    def arguments(self) -> tuple[sympy.Symbol, ...]:
        """The symbols of every result: P, t, then those of relay, residual and position, each once."""
        parameters = (
            x for values in (self.relay, self.residual, self.position) for value in values for x in _symbols(value)
        )
        return tuple(dict.fromkeys((self.P, self.t, *parameters)))

    def function(self, form: str | sympy.Expr = "closed_form", *, digits: int | None = None) -> Callable[..., Any]:
        """Return a formula as a Python function of `arguments`, in that order.

        Parameters
        ----------
        form
            'closed_form', 'harmonic_form' or 'local_exponent', or an expression in the symbols of this derivation, such
            as `limit.leading` or `asymptotic.expression`.
        digits
            None computes with float64 arrays, and formulas lose what cancels in them, 1e-16 times a power of P; else
            with that many digits in mpmath, for numbers.

        Raises
        ------
        ValueError
            For another word, and an expression with symbols of its own.

        Examples
        --------
        >>> import numpy as np
        >>> D = derive(2).function()
        >>> D(3, np.array([7.0, 70.0]), 0.5).round(6)
        array([0.457173, 0.082615])
        >>> import mpmath
        >>> mpmath.nstr(derive(2).function("harmonic_form", digits=30)(3, 7, 0.5), 30)
        '0.457172619047619047619047619048'
        """
        if isinstance(form, str):
            form = getattr(self, choice("form", form, ("closed_form", "harmonic_form", "local_exponent")))
        foreign = form.free_symbols - set(self.arguments)
        if foreign:
            raise ValueError(f"form must be in {', '.join(map(str, self.arguments))}, got {show(foreign)} besides")
        return numeric(form, self.arguments, digits)

    def latex(self) -> str:
        r"""Return the derivation as a LaTeX fragment: a paragraph with an `align*` for each step (needs amsmath)."""
        return "\n\n".join(step.latex() for step in self.steps)

    def _repr_latex_(self) -> str:
        lines = [latex(self.compact_form), *map(latex, self.definitions)]
        if self.poles:
            lines.append(self.exponent_series(3).latex())
        body = " \\\\\n".join(f"& {line}" for line in lines)
        return f"$$\\begin{{aligned}}\n{body}\n\\end{{aligned}}$$"


def _symbols(expression: sympy.Expr) -> list[sympy.Symbol]:
    return sorted(expression.free_symbols, key=str)


@overload
def derive(model_or_depth: int, *, relay: Any = ..., residual: Any = ..., position: Any = ...) -> Derivation: ...
@overload
def derive(
    model_or_depth: RelayModel | int,
    *,
    relay: Any = ...,
    residual: Any = ...,
    position: Any = ...,
    recency: Any = ...,
    sink: Any = ...,
) -> Any: ...
def derive(
    model_or_depth: RelayModel | int,
    *,
    relay: Any = "equal",
    residual: Any = 1,
    position: Any = 0,
    recency: Any = 0,
    sink: Any = 0,
) -> Derivation | HeadDerivation:
    r"""Derive the influence D(t), its local exponent and their limits, symbolically (THEORY sections 2, 3 and 6).

    Parameters
    ----------
    model_or_depth
        Number of layers L, an integer of at least 1; or a `RelayModel`, whose exact parameters are then used.  P stays
        a symbol in either case: `.subs(d.P, model.prompt)` puts the model's in.
    relay, residual, position, recency, sink
        Of the layers of a given depth, with one head each, each one of

        - `"equal"`: one symbol for all layers (lambda, rho, g, gamma, sigma);
        - `"different"`: a symbol for each (lambda_1, lambda_2, ...);
        - a number, taken exactly, or a real SymPy expression, for all layers;
        - a list with a number or expression for each layer.

        Position exponents written differently are taken to be different, and, where it matters (series, limit)
        and SymPy cannot tell, increasing in the order given.

    Returns
    -------
    Derivation
        `recursion`, `closed_form`, `harmonic_form`, `local_exponent`, `asymptotic`, `limit`, `steps`, ...
    HeadDerivation
        For a recency or a sink other than 0, and a model with several heads in a layer (THEORY section 10): no closed
        form, but `symbol`, `contour_form`, `residue`, `asymptotic`, `limit`, `steps`, ...

    Raises
    ------
    TypeError
        For a depth that is neither an integer nor a model, parameters beside a model, values that are not real numbers.
    ValueError
        For a depth below 1, other words, lists of the wrong length, NaN, infinities, and position <= -1.

    Examples
    --------
    >>> d = derive(2, relay="different")
    >>> d.closed_form
    P*(lambda_1*lambda_2*(-polygamma(0, P + 1) + polygamma(0, P + t + 1)) + lambda_1*lambda_2
       + lambda_1 + lambda_2)/(P + t)
    >>> d.closed_form.subs({d.P: 2, d.t: 2, d.relay[0]: 1, d.relay[1]: 1})
    43/24
    """
    if isinstance(model_or_depth, RelayModel):
        given = (("relay", relay, "equal"), ("residual", residual, 1), ("position", position, 0))
        for name, value, default in (*given, ("recency", recency, 0), ("sink", sink, 0)):
            if type(value) is not type(default) or value != default:
                raise TypeError(f"{name} must not be given beside a RelayModel, which has its own, got {show(value)}")
        model = model_or_depth
        return Derivation(stack_of(model)) if model.plain else HeadDerivation(heads_of(model))
    try:
        depth = positive_integer("depth", model_or_depth)
    except TypeError as error:
        raise TypeError(f"{error}; pass a number of layers or a RelayModel") from None
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0 for value in (recency, sink)):
        return Derivation(stack(depth, relay, residual, position))
    return HeadDerivation(head_stack(depth, relay, residual, position, recency, sink))
