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

from relaymodel.exact.kernel import GammaKernel, head_front, log_gamma_rise
from relaymodel.exact.spectrum import Symbol, rational

MOST_POLES = 3000  # summed; more are refused, and a contour serves
CLUSTER_BITS = 64  # bits: poles closer than 2^-64 are one cluster
WINDOW = 16  # bits without any gap above that


class SlowSeriesError(ArithmeticError):
    """The residues fall too slowly to be summed."""


def residue_sum(found: Symbol, kernel: GammaKernel, bits: int) -> arb:
    """Return the sum of all residues as a ball, what is left out below 2^-bits of what is summed."""
    ladder = PoleLadder(found, kernel)
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
        gain = kernel.fall(X)
        X = ladder.line(X + max(1, min(500, floor(missing / gain))))


def terms_needed(found: Symbol, kernel: GammaKernel, bits: int) -> float:
    """Return about how many poles of each ladder count to 2^-bits; infinity if too many do."""
    if found.rational:
        return float(max(delta for _, delta in found.shapes))
    if kernel.b > 10**15:
        return bits * log(2) / kernel.fall() + 1
    a, b = float(kernel.a), float(kernel.b)

    def height(x: float) -> float:
        return lgamma(a + x) - lgamma(b + x)

    x, top = 4.0, height(0.0) - bits * log(2)
    while height(x) > top:
        x *= 1.5
        if x > MOST_POLES:
            return float("inf")
    return x


class PoleLadder:
    """The poles of one symbol, and their residues against one kernel at the current precision."""

    def __init__(self, found: Symbol, kernel: GammaKernel) -> None:
        self.kernel = kernel
        self.shapes = sorted(found.shapes)
        self.fronts = [head_front(*shape) for shape in self.shapes]
        self.positions = [rational(g) for g, _ in self.shapes]
        self.deltas = [arb(rational(delta)) for _, delta in self.shapes]
        numbers = {shape: i for i, shape in enumerate(self.shapes)}
        self.layers = [
            (arb(rational(residual)), [(arb(rational(s)), numbers[g, d]) for s, g, d in heads], count)
            for (residual, heads), count in Counter(found.layers).items()
        ]
        self.classes: dict[Fraction, int] = {}  # of poles that differ by whole numbers
        self.heads: dict[tuple[int, int, bool], tuple[Fraction, int, arb_series]] = {}
        self.kernels: dict[int, tuple[Fraction, int, arb_series]] = {}
        places = sorted({g % 1 for g, _ in self.shapes})
        self.gaps = [(b - a, a) for a, b in zip(places, [*places[1:], places[0] + 1], strict=True)]
        power = CLUSTER_BITS
        while any(1 <= gap * 2**power < 2**WINDOW for gap, _ in self.gaps):
            power += WINDOW
        self.tau = Fraction(1, 2**power)  # poles closer than that are one cluster; no gap is up to 2^16 times that
        self.apart = min((gap for gap, _ in self.gaps if gap >= self.tau), default=Fraction(1))

    def line(self, X: fmpq | int) -> fmpq:
        """Return a place of at least X whose fraction is farthest from all poles."""
        gap, start = max(self.gaps)
        return rational((start + gap / 2) % 1) + int(fmpq(X).ceil())

    def clusters(self, low: fmpq, high: fmpq) -> list[list[tuple[Fraction, int]]]:
        """Return the poles -q with low < q < high, as q and the number of the shape, in clusters."""
        first, last = Fraction(int(low.p), int(low.q)), Fraction(int(high.p), int(high.q))
        poles = []
        for i, (g, delta) in enumerate(self.shapes):
            k = max(0, floor(first - g) + 1)
            while g + k < last and not (delta.denominator == 1 and k >= delta):
                poles.append((g + k, i))
                k += 1
        poles.sort()
        groups: list[list[tuple[Fraction, int]]] = []
        for pole in poles:
            if groups and pole[0] - groups[-1][-1][0] < self.tau:
                groups[-1].append(pole)
            else:
                groups.append([pole])
        return groups

    def cluster(self, poles: list[tuple[Fraction, int]]) -> arb:
        """Return the sum of the residues of a cluster."""
        q = poles[0][0]
        offsets = {i: place - q for place, i in poles}
        points: Counter[Fraction] = Counter()
        for _, heads, count in self.layers:
            for offset in {offsets[i] for _, i in heads if i in offsets}:
                points[offset] += count
        M, spread = sum(points.values()), max(points)
        if spread == 0:
            return self.product(q, offsets, M, None)[M - 1]
        ratio = self.apart / spread
        gain = max(8, ratio.numerator.bit_length() - ratio.denominator.bit_length())  # bits that each term adds
        extra = 1 + ctx.prec // gain
        order = M + extra
        ctx.cap = max(ctx.cap, order + 1)
        S = self.product(q, offsets, order, None)
        symmetric = arb_series([1], order)
        for offset, count in points.items():
            factor = arb_series([1, arb(rational(offset))], order)
            for _ in range(count):
                symmetric /= factor
        total = sum((S[M - 1 + j] * symmetric[j] for j in range(extra + 1)), arb(0))
        width = arb(rational(spread))
        hull = (-width / 2) + arb(0, (width / 2).upper())
        last = self.product(q, offsets, order + 1, hull)[order]
        rest = abs(last).upper() * comb(order, M - 1) * width ** (extra + 1)
        return total + arb(0, rest.upper())

    def product(self, q: Fraction, offsets: dict[int, Fraction], order: int, hull: arb | None) -> arb_series:
        """Return S as a power series: at z = w - q, or around the ball `hull` of values of w."""
        ctx.cap = max(ctx.cap, order)
        kind = self.classes.setdefault(q % 1, len(self.classes))
        centre = arb(0) if hull is None else hull
        series = [self.head(i, q, kind, offsets.get(i), order, hull) for i in range(len(self.shapes))]
        factors = {x: arb_series([centre + arb(rational(x)), 1], order) for x in set(offsets.values())}
        total = self.kernel_series(q, kind, order, hull)
        for residual, heads, count in self.layers:
            places = {offsets[i] for _, i in heads if i in offsets}
            layer = _product([factors[x] for x in places], order) * residual
            for strength, i in heads:
                others = places - {offsets[i]} if i in offsets else places
                term = series[i] * strength
                layer += _product([factors[x] for x in others], order) * term if others else term
            for _ in range(count):
                total *= layer
        return total

    def head(self, i: int, q: Fraction, kind: int, offset: Fraction | None, order: int, hull: arb | None) -> arb_series:
        """Return E[u^(z-1)], times w + offset if the head has a pole in the cluster."""
        k = None if offset is None else int(q + offset - self.shapes[i][0])
        y = arb(self.positions[i] - rational(q))
        if hull is not None:
            return self._head(i, y + hull, k, order)
        if self.shapes[i][1].denominator == 1:
            return self._head(i, y, k, order)
        # from q - 1 to q: E(z-1) = E(z) (z-1+g+delta) / (z-1+g)
        label = i, kind, k is not None
        before = self.heads.get(label)
        if before is not None and before[1] >= order and before[0] == q - 1:
            order = before[1]
            value = before[2] * arb_series([y + self.deltas[i], 1], order) / arb_series([y, 1], order)
        else:
            value = self._head(i, y, k, order)
        self.heads[label] = q, order, value
        return value

    def _head(self, i: int, y: arb, k: int | None, order: int) -> arb_series:
        delta = self.shapes[i][1]
        value = arb_series([self.fronts[i]], order)
        if delta.denominator == 1:
            for j in range(int(delta)):
                if j != k:
                    value /= arb_series([y + j, 1], order)
            return value
        if k is None:
            value *= arb_series([y, 1], order).gamma()
        else:
            value *= arb_series([y + k + 1, 1], order).gamma()
            for j in range(k):
                value /= arb_series([y + j, 1], order)
        return value * arb_series([y + self.deltas[i], 1], order).rgamma()

    def kernel_series(self, q: Fraction, kind: int, order: int, hull: arb | None) -> arb_series:
        """Return the kernel's series, from that at q - 1 where it is known."""
        kernel, x = self.kernel, rational(q)
        if hull is not None:
            return kernel.series(arb(x) - hull, order)
        before = self.kernels.get(kind)
        if kernel.slope or before is None or before[0] != q - 1 or before[1] < order:
            value = kernel.series(x, order)
        else:
            order = before[1]
            value = before[2] * arb_series([arb(kernel.a + x - 1), -1], order)
            value /= arb_series([arb(kernel.b + x - 1), -1], order)
            if not kernel.tokens:
                value *= arb_series([arb(x), -1], order)
                value /= arb_series([arb(x + 1), -1], order)
        self.kernels[kind] = q, order, value
        return value

    def remainder(self, X: fmpq) -> arb:
        """Return a bound on the residues left of -X, for X above every g + delta and a span of at least 2."""
        kernel = self.kernel
        sizes = []
        for front, g, delta in zip(self.fronts, self.positions, self.deltas, strict=True):
            x = g - X
            ratio = ((1 - x - delta).lgamma() - arb(1 - x).lgamma()).exp()
            sizes.append(abs(front) * ratio / abs(arb(x).sin_pi()))
        bound = arb(1)
        for residual, heads, count in self.layers:
            bound *= (abs(residual) + sum((abs(s) * sizes[i] for s, i in heads), arb(0))) ** count
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


def gamma_quotient(kernel: GammaKernel, X: fmpq) -> arb:
    """Return Gamma(a + X) Gamma(b - 1) / (Gamma(start) Gamma(b + X))."""
    a = X if kernel.tokens else X + 1
    return (log_gamma_rise(kernel.start, a, 1) - log_gamma_rise(kernel.b - 1, X + 1, 1)).exp()[0]


def _product(factors: list[arb_series], order: int) -> arb_series:
    total = arb_series([1], order)
    for factor in factors:
        total *= factor
    return total
