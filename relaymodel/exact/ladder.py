r"""Residues of a symbol with any heads: ladders of poles at $-g-k$, as balls, with a bound on what is left out.

**Residues.** At $z = w - q$ each layer is a polynomial over the powers of w that its heads bring in; everything else
is a power series.  Poles that lie within `tau` of each other are one cluster: with offsets $\epsilon_1 \le \dots \le
\epsilon_M$ and S the product without their denominators, the sum of their residues is the divided difference of S at
the points $-\epsilon_i$,

$$ \sum_{j\ge 0} s_{M-1+j}\, h_j(-\epsilon_1, \dots, -\epsilon_M), $$

cut after j = J with Lagrange's remainder, $\binom{M+J}{M-1}\, s_{M+J}(\xi)\, \eta^{J+1}$ with $\xi, \eta$ in the hull
of the points.  So equal and nearly equal exponents cost no precision.

**Remainder.** The poles left of Re z = -X add up to an integral along that line.  There
$|\Gamma(w)/\Gamma(w+\delta)| \le \frac{\Gamma(1-x-\delta)}{\Gamma(1-x)\,|\sin \pi x|}$ for x = Re w < 1 - delta
(reflection, and $|B(u, \delta)| \le B(\mathrm{Re}\,u, \delta)$), and the kernel is at most its value at the real part
times $\frac{(p)_k}{|p-iy| \cdots}$ for a span of at least k: the integral over y is elementary.
"""

from collections import Counter
from fractions import Fraction
from math import comb, floor, lgamma, log

from flint import arb, arb_series, ctx, fmpq

from relaymodel.exact.kernel import Kernel, gamma_ratio, head_front
from relaymodel.exact.spectrum import Symbol, rational

MOST_POLES = 3000
CLOSE = 64  # bits: poles closer than 2^-64 are one cluster
WINDOW = 16  # bits without any gap above that

Shape = tuple[Fraction, Fraction]


class SlowSeriesError(ArithmeticError):
    """The residues fall too slowly to be summed."""


def residue_sum(found: Symbol, kernel: Kernel, bits: int) -> arb:
    """Return the sum of all residues as a ball, what is left out below 2^-bits of what is summed."""
    ladder = Ladder(found, kernel)
    total, summed = arb(0), fmpq(-1)
    if found.rational:
        last = max(rational(g + delta) for g, delta in found.shapes)
        return sum((ladder.cluster(poles) for poles in ladder.clusters(summed, last)), total)
    X = ladder.line(max(rational(g + delta) for g, delta in found.shapes) + 1)
    while True:
        if X > MOST_POLES:
            raise SlowSeriesError
        total += sum((ladder.cluster(poles) for poles in ladder.clusters(summed, X)), arb(0))
        summed = X
        rest = ladder.remainder(X)
        size = abs(total).upper()
        if rest <= size * arb(2) ** -bits or not total.is_finite():
            return total + arb(0, rest.upper())
        missing = float((rest / size).log()) + bits * log(2)
        gain = log(float(kernel.b - 1 + X) / float(kernel.start + X))
        X = ladder.line(X + max(1, min(500, floor(missing / gain))))


def terms_needed(found: Symbol, kernel: Kernel, bits: int) -> float:
    """Return about how many poles of each ladder count to 2^-bits; infinity if too many do."""
    if found.rational:
        return float(max(delta for _, delta in found.shapes))
    a, b = float(kernel.a), float(kernel.b)
    if b > 1e15:
        return bits * log(2) / log(b / a) + 1

    def height(x: float) -> float:
        return lgamma(a + x) - lgamma(b + x)

    x, top = 4.0, height(0.0) - bits * log(2)
    while height(x) > top:
        x *= 1.5
        if x > MOST_POLES:
            return float("inf")
    return x


class Ladder:
    """The poles of one symbol, and their residues against one kernel at the current precision."""

    def __init__(self, found: Symbol, kernel: Kernel) -> None:
        self.kernel = kernel
        self.layers = Counter((residual, heads) for residual, heads in found.layers)
        self.shapes = sorted(found.shapes)
        self.fronts = {shape: head_front(*shape) for shape in self.shapes}
        self.known: dict[tuple[Shape, Fraction, bool], tuple[Fraction, int, arb_series]] = {}
        self.kernels: dict[Fraction, tuple[Fraction, int, arb_series]] = {}
        places = sorted({g % 1 for g, _ in self.shapes})
        self.gaps = [(b - a, a) for a, b in zip(places, [*places[1:], places[0] + 1], strict=True)]
        power = CLOSE
        while any(1 <= gap * 2**power < 2**WINDOW for gap, _ in self.gaps):
            power += WINDOW
        self.tau = Fraction(1, 2**power)  # poles closer than that are one cluster; no gap is up to 2^16 times that
        self.apart = min((gap for gap, _ in self.gaps if gap >= self.tau), default=Fraction(1))

    def line(self, X: fmpq | int) -> fmpq:
        """Return a place of at least X whose fraction is farthest from all poles."""
        gap, start = max(self.gaps)
        return rational((start + gap / 2) % 1) + int(fmpq(X).ceil())

    def clusters(self, low: fmpq, high: fmpq) -> list[list[tuple[Fraction, Shape]]]:
        """Return the poles -q with low < q < high, as (q, shape), in clusters."""
        first, last = Fraction(int(low.p), int(low.q)), Fraction(int(high.p), int(high.q))
        poles = []
        for g, delta in self.shapes:
            k = max(0, floor(first - g) + 1)
            while g + k < last and not (delta.denominator == 1 and k >= delta):
                poles.append((g + k, (g, delta)))
                k += 1
        poles.sort()
        groups: list[list[tuple[Fraction, Shape]]] = []
        for pole in poles:
            if groups and pole[0] - groups[-1][-1][0] < self.tau:
                groups[-1].append(pole)
            else:
                groups.append([pole])
        return groups

    def cluster(self, poles: list[tuple[Fraction, Shape]]) -> arb:
        """Return the sum of the residues of a cluster."""
        q, polar = poles[0][0], {shape: place for place, shape in poles}
        offsets: list[Fraction] = []
        for (_, heads), count in self.layers.items():
            places = {polar[g, d] for _, g, d in heads if (g, d) in polar}
            offsets += [place - q for place in places] * count
        M, spread = len(offsets), max(offsets)
        if spread == 0:
            return self.product(q, polar, M, None)[M - 1]
        ratio = self.apart / spread
        gain = max(8, ratio.numerator.bit_length() - ratio.denominator.bit_length())  # bits that each term adds
        extra = 1 + ctx.prec // gain
        order = M + extra
        ctx.cap = max(ctx.cap, order + 1)
        S = self.product(q, polar, order, None)
        points = arb_series([1], order)
        for offset, count in Counter(offsets).items():
            factor = arb_series([1, arb(rational(offset))], order)
            for _ in range(count):
                points /= factor
        total = sum((S[M - 1 + j] * points[j] for j in range(extra + 1)), arb(0))
        width = arb(rational(spread))
        hull = (-width / 2) + arb(0, (width / 2).upper())
        last = self.product(q, polar, order + 1, hull)[order]
        rest = abs(last).upper() * comb(order, M - 1) * width ** (extra + 1)
        return total + arb(0, rest.upper())

    def product(self, q: Fraction, polar: dict[Shape, Fraction], order: int, hull: arb | None) -> arb_series:
        """Return S as a power series: at z = w - q, or around the ball `hull` of values of w."""
        ctx.cap = max(ctx.cap, order)
        series = {shape: self.head(shape, q, polar, order, hull) for shape in self.shapes}
        centre = arb(0) if hull is None else hull
        total = self.kernel_series(q, order, hull)
        for (residual, heads), count in self.layers.items():
            places = sorted({polar[g, d] for _, g, d in heads if (g, d) in polar})
            factors = [arb_series([centre + arb(rational(place - q)), 1], order) for place in places]
            layer = _product(factors, order) * arb(rational(residual))
            for strength, g, delta in heads:
                others = [f for f, place in zip(factors, places, strict=True) if place != polar.get((g, delta))]
                layer += _product(others, order) * series[g, delta] * arb(rational(strength))
            for _ in range(count):
                total *= layer
        return total

    def head(self, shape: Shape, q: Fraction, polar: dict[Shape, Fraction], order: int, hull: arb | None) -> arb_series:
        """Return E[u^(z-1)], times w + epsilon if the head has a pole in the cluster."""
        g, delta = shape
        k = int(polar[shape] - g) if shape in polar else None
        if hull is None and delta.denominator != 1:
            # from q - 1 to q: E(z-1) = E(z) (z-1+g+delta) / (z-1+g)
            label = shape, q % 1, k is not None
            before = self.known.get(label)
            if before is not None and before[0] == q - 1 and before[1] >= order:
                y = arb(rational(g - q))
                value = before[2] * arb_series([y + arb(rational(delta)), 1], before[1]) / arb_series([y, 1], before[1])
                self.known[label] = q, before[1], value
                return value
            value = self._head(shape, arb(rational(g - q)), k, order)
            self.known[label] = q, order, value
            return value
        return self._head(shape, arb(rational(g - q)) + (arb(0) if hull is None else hull), k, order)

    def _head(self, shape: Shape, y: arb, k: int | None, order: int) -> arb_series:
        delta = shape[1]
        value = arb_series([self.fronts[shape]], order)
        if delta.denominator == 1:
            for i in range(int(delta)):
                if i != k:
                    value /= arb_series([y + i, 1], order)
            return value
        if k is None:
            value *= arb_series([y, 1], order).gamma()
        else:
            value *= arb_series([y + k + 1, 1], order).gamma()
            for i in range(k):
                value /= arb_series([y + i, 1], order)
        return value * arb_series([y + arb(rational(delta)), 1], order).rgamma()

    def kernel_series(self, q: Fraction, order: int, hull: arb | None) -> arb_series:
        """Return the kernel's series, from that at q - 1 where it is known."""
        kernel = self.kernel
        if hull is not None:
            return kernel.series(arb(rational(q)) - hull, order)
        x = rational(q)
        before = self.kernels.get(q % 1)
        if kernel.slope or before is None or before[0] != q - 1 or before[1] < order:
            value = kernel.series(x, order)
            self.kernels[q % 1] = q, order, value
            return value
        order = before[1]
        value = before[2] * arb_series([arb(kernel.a + x - 1), -1], order)
        value /= arb_series([arb(kernel.b + x - 1), -1], order)
        if not kernel.tokens:
            value *= arb_series([arb(x), -1], order)
            value /= arb_series([arb(x + 1), -1], order)
        self.kernels[q % 1] = q, order, value
        return value

    def remainder(self, X: fmpq) -> arb:
        """Return a bound on the residues left of -X, for X above every g + delta and a span of at least 2."""
        kernel = self.kernel
        bound = arb(1)
        sizes = {}
        for g, delta in self.shapes:
            x, d = rational(g) - X, rational(delta)
            ratio = (arb(1 - x - d).lgamma() - arb(1 - x).lgamma()).exp()
            sizes[g, delta] = abs(self.fronts[g, delta]) * ratio / abs(arb(x).sin_pi())
        for (residual, heads), count in self.layers.items():
            layer = arb(rational(abs(residual)))
            layer += sum((arb(rational(abs(s))) * sizes[g, d] for s, g, d in heads), arb(0))
            bound *= layer**count
        p = arb(kernel.a + X)
        # |Gamma(p - iy) / Gamma(p + span - iy)| <= (p)_k Gamma(p) / Gamma(p + span) / prod |p + j - iy|
        value = gamma_quotient(kernel, X)
        if kernel.slope:  # |psi(N) - psi(N+1-z)| <= |1-z| (1/N + 1/N^2), which takes the factor 1/|1-z| away
            N = arb(kernel.b - 1)
            integral = p * (p + 1) / (p * (p + 1)).sqrt() * (1 / N + 1 / N**2)
        elif kernel.tokens:
            integral = p * (p + 1) / (p * (p + 1)).sqrt()
        else:
            integral = p / (p * arb(1 + X)).sqrt()
        return bound * value * integral / 2


def gamma_quotient(kernel: Kernel, X: fmpq) -> arb:
    """Return Gamma(a + X) Gamma(b - 1) / (Gamma(start) Gamma(b + X))."""
    a = X if kernel.tokens else X + 1
    return gamma_ratio(kernel.start, a, 1)[0] / gamma_ratio(kernel.b - 1, X + 1, 1)[0]


def _product(factors: list[arb_series], order: int) -> arb_series:
    total = arb_series([1], order)
    for factor in factors:
        total *= factor
    return total
