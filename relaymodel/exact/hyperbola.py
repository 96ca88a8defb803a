r"""The contour integral as a ball: the trapezoidal rule on the hyperbola of `contour`, every error bounded.

It serves where the residues fall too slowly and t is no small integer: t below P, or small and not whole.

**Step.** $F(\zeta(u))\zeta'(u)$ is analytic for $|\mathrm{Im}\,u| \le d$; shifting u by $\pm id$ turns the hyperbola of
angle theta into those of angles $\theta \pm d$.  The rule is off by at most $(M_+ + M_-)/(e^{2\pi d/h} - 1)$,
$M_\pm$ the integrals of $|F\zeta'|$ along these (Trefethen and Weideman 2014, theorem 5.1).

**Majorant.** With x the real part of an argument, $|\Gamma(a-z)/\Gamma(b-z)| \le \Gamma(a-x)/\Gamma(b-x)$ for x < a,
and for a head, w = z + g,

- $\Gamma(x)/\Gamma(x+\delta)$ for x > 0, decreasing in x;
- $\prod_{i<j} (1 + \delta/|w+i|)\; \Gamma(x+j)/\Gamma(x+j+\delta)$, x + j > 1/2, between;
- $\coth(\pi |\mathrm{Im}\,w|)\; \Gamma(1-x-\delta)/\Gamma(1-x)$ for x < 1/2 - delta, by reflection.

The real part falls along the curve and the imaginary part grows, so that each factor is bounded on a piece by its
value at one end.  Beyond the last piece heads no longer grow, and with $B = \mu\sin\theta$ and $s = b + r$,
$r = \mu(\sin\theta\cosh u - 1)$, $\Gamma(a+r)/\Gamma(b+r)$ falls at least as fast as $s^{-\tau}$, $\tau = b - a$,
because $\psi(y+\tau) - \psi(y) \ge \tau/(y+\tau)$.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import acb, arb, fmpq

from relaymodel.exact.kernel import GammaKernel, head_front
from relaymodel.exact.spectrum import Symbol, rational

BALL_ANGLE, STRIP_WIDTH = 0.75, 0.45  # theta and d
PIECE = 0.25  # of u: each factor is bounded by its values at the ends of a piece
LARGEST_BAND = 300.0  # of u: a tail that is not small by then falls too slowly
MOST_BALL_NODES = 100_000  # of a contour; more are refused


class NoContourError(ArithmeticError):
    """The integrand falls too slowly along the contour."""


@dataclass(frozen=True)
class Hyperbola:
    """The integrand of one symbol and kernel on hyperbolas of scale mu, in zeta = z + g*, at the current precision."""

    symbol: Symbol
    kernel: GammaKernel

    @cached_property
    def low(self) -> fmpq:
        """g*."""
        return rational(self.symbol.lowest)

    @cached_property
    def layers(self) -> list[tuple[tuple[Fraction, tuple[tuple[Fraction, Fraction, Fraction], ...]], int]]:
        """The distinct layers and how often each stands."""
        return list(Counter(self.symbol.layers).items())

    @cached_property
    def fronts(self) -> dict[tuple[Fraction, Fraction], arb]:
        """What makes each head 1 at z = 1, at the precision of first use."""
        return {shape: head_front(*shape) for shape in self.symbol.shapes}

    @cached_property
    def mu(self) -> arb:
        """The scale: the curve of the least angle crosses left of 1 or of the pole at s."""
        top = float(self.kernel.a + self.low if self.kernel.tokens else 1 + self.low)
        several = sum(any(g == self.symbol.lowest for _, g, _ in heads) for _, heads in self.symbol.layers)
        far = (several + 1) / self.kernel.fall() / (1 - math.sin(BALL_ANGLE))
        return arb(min(0.8 * top / (1 - math.sin(BALL_ANGLE - STRIP_WIDTH)), far))

    @cached_property
    def constant(self) -> arb:
        """The logarithm of Gamma(b - 1) / Gamma(start)."""
        return arb(self.kernel.b - 1).lgamma() - arb(self.kernel.start).lgamma()

    def integral(self, bits: int, size: float) -> arb:
        """Return the influence, without sinks, off by about 2^-bits of `size`."""
        goal = arb(max(size, 1e-300)) * arb(2) ** -bits
        last = 2.0
        while not self.tail(BALL_ANGLE, last) < goal:
            last += 1.0
            if last > LARGEST_BAND:
                raise NoContourError
        upper = sum((self.majorant(BALL_ANGLE + sign * STRIP_WIDTH, last) for sign in (-1, 1)), arb(0))
        step = arb(2 * math.pi * STRIP_WIDTH / float((2 + upper / goal).log()))
        if not last < MOST_BALL_NODES * float(step):  # a step of no size is none
            raise NoContourError
        count = math.ceil(last / float(step))
        total = acb(0)
        for j in range(count + 1):
            zeta, speed = self.curve(arb(BALL_ANGLE), step * j)
            term = speed * self.value(zeta)
            total += term / 2 if j == 0 else term
        # the terms left out are a sum over a majorant that falls, but for its first
        rest = self.tail(BALL_ANGLE, last) * (1 + step * self.rate(BALL_ANGLE, last))
        off = upper / ((2 * arb.pi() * arb(STRIP_WIDTH) / step).exp() - 1) / 2
        value: arb = (total.imag * step + arb(0, (rest + off).upper())) / arb.pi()
        return value

    def curve(self, theta: arb, u: arb) -> tuple[acb, acb]:
        """Return zeta and its derivative by u."""
        sinh, cosh, sine, cosine = u.sinh(), u.cosh(), theta.sin(), theta.cos()
        return acb(1 - sine * cosh, cosine * sinh) * self.mu, acb(-sine * sinh, cosine * cosh) * self.mu

    def value(self, zeta: acb) -> acb:
        """Return f times the kernel."""
        kernel = self.kernel
        z = zeta - self.low
        value = (((kernel.a - z).lgamma()) - (kernel.b - z).lgamma() + self.constant).exp()
        if not kernel.tokens:
            value /= 1 - z
        if kernel.slope:
            value *= (kernel.b - z).digamma() - arb(kernel.b - 1).digamma()
        heads = {}
        for (g, delta), front in self.fronts.items():
            w = z + rational(g)
            heads[g, delta] = front * w.gamma() * (w + rational(delta)).rgamma()
        for (residual, own), count in self.layers:
            value *= sum((heads[g, d] * arb(rational(s)) for s, g, d in own), acb(rational(residual))) ** count
        return value

    def head(self, shape: tuple[Fraction, Fraction], low: arb, high: arb, height: arb) -> arb:
        """Return a bound on a head where the real part of zeta is from low to high and the imaginary part >= height."""
        g, delta = shape
        lift, d = rational(g) - self.low, arb(rational(delta))
        x0, x1, half = low + lift, high + lift, arb(0.5)
        parts = []
        if x1 > half:
            parts.append(gamma_quotient(x0.max(half), d))
        if x1 > half - d and x0 < half:
            start, product = x0.max(half - d), arb(1)
            lifts = max(0, math.ceil(float(half - start) + 1e-9))
            for i in range(lifts):
                apart = max(0.0, float(start) + i - 1e-9, -float(x1) - i - 1e-9)
                product *= 1 + d / (height**2 + arb(apart) ** 2).sqrt()
            parts.append(product * gamma_quotient(start + lifts, d))
        if not x0 > half - d:
            parts.append(gamma_quotient((1 - x1).max(half + d) - d, d) / (arb.pi() * height).tanh())
        bounds = [max(part.upper() for part in parts)] if all(part.is_finite() for part in parts) else []
        if x0 > 0:
            bounds.append(gamma_quotient(x0, d).upper())
        if not bounds:
            raise NoContourError
        return abs(self.fronts[shape]) * min(bounds)

    def stack(self, low: arb, high: arb, height: arb) -> arb:
        """Return a bound on |f|, likewise."""
        heads = {shape: self.head(shape, low, high, height) for shape in self.symbol.shapes}
        bound = arb(1)
        for (residual, own), count in self.layers:
            layer = sum((heads[g, d] * arb(rational(abs(s))) for s, g, d in own), arb(rational(abs(residual))))
            bound *= layer**count
        return bound

    def gammas(self, x: arb) -> arb:
        """Return the bound on the kernel's gamma functions where the real part of zeta is at most x."""
        z = x - self.low
        return ((self.kernel.a - z).lgamma() - (self.kernel.b - z).lgamma() + self.constant).exp()

    def rise(self, u: float) -> arb:
        """Return a bound on |psi(b - z) - psi(b - 1)| up to u, by |psi(s) - log s| <= 1 / Re s."""
        N = arb(self.kernel.b - 1)
        far = arb(1 + self.low) + self.mu * (1 + arb(u).cosh())
        return (1 + far / N).log() + arb.pi() / 2 + 2 / N

    def piece(self, theta: float, u: float, end: float) -> arb:
        """Return a bound on |F zeta'| between u and end."""
        at, _ = self.curve(arb(theta), arb(u))
        to, _ = self.curve(arb(theta), arb(end))
        bound = self.stack(to.real, at.real, at.imag) * self.gammas(at.real) * self.mu * arb(end).cosh()
        if not self.kernel.tokens:
            bound /= abs(1 + self.low - at)
        return bound * self.rise(end) if self.kernel.slope else bound

    def majorant(self, theta: float, last: float) -> arb:
        """Return a bound on the integral of |F zeta'| over the whole curve."""
        edges = [PIECE * i for i in range(int(last / PIECE) + 2)]
        inner = sum((self.piece(theta, u, u + PIECE) for u in edges[:-1]), arb(0)) * PIECE
        return 2 * (inner + self.tail(theta, edges[-1]))

    def rate(self, theta: float, u: float) -> arb:
        """Return how fast the majorant falls from u on, per unit of u."""
        B, A = self.mu * arb(theta).sin(), self.kernel.b + self.low - self.mu
        falling = (B * arb(u).sinh() / (A + B * arb(u).cosh())).min(arb(u).tanh()) * self.kernel.span
        return arb(falling - (1 if self.kernel.tokens else 0))

    def tail(self, theta: float, u: float) -> arb:
        """Return a bound on the integral of |F zeta'| from u to infinity."""
        rate = self.rate(theta, u)
        if not rate > 0:
            return arb("inf")
        at, _ = self.curve(arb(theta), arb(u))
        if any(not at.real + (rational(g) - self.low) < 1 - rational(d) for g, d in self.symbol.shapes):
            return arb("inf")  # heads may still grow
        bound = self.stack(at.real, at.real, at.imag) * self.gammas(at.real)
        bound *= self.mu * arb(u).cosh() if self.kernel.tokens else 1 / (arb(u).tanh() * arb(theta).cos())
        if self.kernel.slope:
            return bound * (self.rise(u) / rate + 1 / rate**2)
        return bound / rate


def gamma_quotient(x: arb, delta: arb) -> arb:
    """Return Gamma(x) / Gamma(x + delta) for x > 0."""
    return (x.lgamma() - (x + delta).lgamma()).exp()
