"""What is integrated against f, and its power series at a pole: gamma functions of position, as balls."""

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, arb_series, fmpq

from relaymodel.exact.spectrum import rational
from relaymodel.exact.stirling import HUGE, digamma_difference, log_gamma_ratio


@dataclass(frozen=True)
class GammaKernel:
    r"""$\frac{\Gamma(a-z)\,\Gamma(b-1)}{\Gamma(a-\epsilon)\,\Gamma(b-z)\,(1-z)^\epsilon}$, $b > a$.

    The influence has a = P + 1, b = N + 1 and $\epsilon = 1$, `tokens` false; the weight of token s on token n has
    a = s, b = n + 1 and $\epsilon = 0$, `tokens` true (THEORY section 2).  `slope` stands for the factor
    $\psi(b-z) - \psi(b-1)$ of minus the derivative by t.
    """

    a: fmpq
    b: fmpq
    tokens: bool = False
    slope: bool = False

    @property
    def span(self) -> fmpq:
        """The difference b - a: t of the influence."""
        return self.b - self.a

    @property
    def start(self) -> fmpq:
        """The argument P or s of the gamma function in the denominator."""
        return self.a if self.tokens else self.a - 1

    def fall(self, X: fmpq | int = 0) -> float:
        """Return by how much the kernel's logarithm falls from one pole to the next, X poles on: log (b+X)/(a+X).

        Never 0, however close b and a are.
        """
        return max(float(arb(self.span / (self.a + X)).log1p().mid()), 1e-300)

    def series(self, q: fmpq | arb, order: int) -> arb_series:
        """Return the power series in w at z = w - q, q > -1."""
        offset = q if self.tokens else q + 1
        # a quotient of their exponentials would divide by balls that hold 0 where a position is huge
        value = (log_gamma_rise(self.start, offset, order) - log_gamma_rise(self.b - 1, q + 1, order)).exp()
        if not self.tokens:
            value /= arb_series([arb(1 + q), -1], order)
        if self.slope:
            value *= digamma_rise(self.b - 1, q + 1, order)
        return value


def log_gamma_rise(x: fmpq, a: fmpq | arb, order: int) -> arb_series:
    """Return log Gamma(x + a - w) / Gamma(x) as a power series in w."""
    if x >= HUGE:
        return log_gamma_ratio(x, a, order)
    return arb_series([arb(x + a), -1], order).lgamma() - arb(x).lgamma()


def digamma_rise(x: fmpq, a: fmpq | arb, order: int) -> arb_series:
    """Return psi(x + a - w) - psi(x) as a power series in w: psi^(k)(c)/k! = (-1)^(k+1) zeta(k+1, c)."""
    if x >= HUGE:
        return digamma_difference(x, a, order)
    c = arb(x + a)
    return arb_series([c.digamma() - arb(x).digamma()] + [-arb(k + 1).zeta(c) for k in range(1, order)], order)


def head_front(g: Fraction, delta: Fraction) -> arb:
    """Return Gamma(1 + g + delta) / Gamma(1 + g), which makes a head 1 at z = 1."""
    c = rational(1 + g)
    if delta.denominator == 1:
        return arb(math.prod((c + i for i in range(int(delta))), start=fmpq(1)))
    return arb(c + rational(delta)).gamma() * arb(c).rgamma()
