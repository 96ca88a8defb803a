"""Laws that a window of a curve may follow, compared; and what it would take to tell apart those that it cannot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relaymodel.curve import Curve
from relaymodel.display import table
from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.noise import Noise
from relaymodel.inference.parameters import Coordinates
from relaymodel.inference.pool import pool
from relaymodel.inference.problem import prompt_of, starting_points
from relaymodel.inference.regression import Problem, Solution, least_difference, solve
from relaymodel.inference.shape import Shape
from relaymodel.inference.threads import one_thread
from relaymodel.inference.window import UnderdeterminedError, window

TOLD_APART = 2 * float(np.log(20))
"""Difference of AICc at which odds are 20 to 1."""

POWER = 0.84
"""Quantile of the normal distribution for four chances in five to reach them."""

FARTHEST = 1e12
"""Last t that a longer curve is thought of."""


@dataclass(frozen=True)
class Law:
    """A law in coordinates of order 1: `log` takes t (T,) and returns what turns coordinates (p, M) into (T, M)."""

    name: str
    formula: str
    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    log: Callable[[Array], Callable[[Array], Array]]
    values: Callable[[Array], Sequence[float]]
    starts: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class LawFit:
    """One law fitted to the window.

    Attributes
    ----------
    name, formula
        What it is.
    parameters
        Best values by name.
    log_likelihood, aicc
        The likelihood is the largest over parameters and kinds of noise; AICc is -2 times its logarithm, plus the price
        of the parameters.
    weight
        Akaike weight among the laws compared; they add up to 1.
    """

    name: str
    formula: str
    parameters: Mapping[str, float] = field(hash=False)
    log_likelihood: float
    aicc: float
    weight: float

    @property
    def listed(self) -> str:
        """The parameters in one line."""
        return ", ".join(f"{name} = {value:.4g}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class Needed:
    """What would tell the best law from a rival, in four cases out of five.

    Attributes
    ----------
    rival
        Name of the law.
    t_max
        Last t of a curve long enough, with the same noise and points per length of log t; None if none up to 1e12 is.
    pairs
        By which factor the number of pairs would have to grow, if noise differs between pairs; None beyond 10^6.
    """

    rival: str
    t_max: float | None
    pairs: float | None

    def __str__(self) -> str:
        ways = []
        if self.t_max is not None:
            ways.append(f"a curve to t = {self.t_max:.2g}")
        if self.pairs is not None:
            times = f"{self.pairs:.1f}" if self.pairs < 10 else f"{self.pairs:.2g}"
            ways.append(f"{times} times as many pairs" if self.pairs >= 1.05 else "as many pairs, once more")
        return f"{self.rival}: {' or '.join(ways) or 'no data would do, since it comes as close as one likes'}"


@dataclass(frozen=True)
class Comparison:
    """Laws compared on one window; see `compare_laws`.

    Attributes
    ----------
    fits
        `LawFit` of each law, best first.
    told_apart
        Whether every other law is less likely by 20 to 1 or more.
    undecided
        Names of the rivals that are not.
    needed
        `Needed` for each of them.
    left_out
        Laws that could not be tried, and why.
    window, points, method, provenance
        First and last t, number of points, how the values were found, what the curve says of itself.
    """

    fits: tuple[LawFit, ...]
    told_apart: bool
    undecided: tuple[str, ...]
    needed: tuple[Needed, ...]
    left_out: Mapping[str, str] = field(hash=False)
    window: tuple[float, float] = (0.0, 0.0)
    points: int = 0
    method: str = "AICc of generalised least squares of log D, the kind of noise chosen by each law"
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def best(self) -> LawFit:
        """The law with the smallest AICc."""
        return self.fits[0]

    def __getitem__(self, name: str) -> LawFit:
        """Return the fit of the law with this name."""
        for law in self.fits:
            if law.name == name:
                return law
        raise KeyError(f"name must be one of {', '.join(law.name for law in self.fits)}, got {name!r}")

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        text = f"{self.best.name} ({self.best.formula}) describes the window best"
        if self.told_apart:
            return f"{text}; every other law is less likely by more than 20 to 1"
        return (
            f"{text}, but the window cannot tell it from {' and '.join(self.undecided)}; "
            f"it would take, for {'; for '.join(map(str, self.needed))}"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{law.name}: +{law.aicc - self.best.aicc:.3g}" for law in self.fits)
        return f"Comparison({shown}; {'told apart' if self.told_apart else 'not told apart'})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            (law.formula, f"AICc +{law.aicc - self.best.aicc:.3g}, weight {law.weight:.2g}, {law.listed}")
            for law in self.fits
        ]
        rows += [("verdict", self.verdict), *((f"{name} left out", why) for name, why in self.left_out.items())]
        return table("Laws compared", [*rows, ("method", self.method), *self.provenance.items()])


@one_thread
def compare_laws(
    curves: Curve | Sequence[Curve],
    *,
    prompt: int | None = None,
    t_min: float | None = None,
    t_max: float | None = None,
) -> Comparison:
    r"""Compare $A t^{-a}$, $A t^{-a} + c$, $A (\log t)^k/t$ and the relay model on a window (THEORY sections 1 and 3).

    A good fit of a power law says little: over a few decades its rivals look alike.  Each law is fitted by
    generalised least squares with the kind of correlated noise that suits it best, and judged by AICc.  Laws whose odds
    against the best are better than 1 to 20 are not told apart, and `needed` says what would do it: the best law is
    continued to later t, the rival fitted to it, and the difference held against the noise.

    Parameters
    ----------
    curves
        A `Curve`, or a list of curves of independent pairs on the same t, whose geometric mean is used.
    prompt
        Prompt length P; by default the provenance entry `prompt`.  Without it the relay model is left out.
    t_min, t_max
        The window, by default as in `fit_power_law`.

    Raises
    ------
    UnderdeterminedError
        For fewer than 9 points; `partial` is the slope.
    TypeError, ValueError
        For what is not a curve, and for a window of fewer than 2 points.

    Examples
    --------
    >>> from relaymodel import RelayModel, influence
    >>> t = np.geomspace(16, 4096, 60).round()
    >>> noise = np.exp(0.02 * np.random.default_rng(1).standard_normal(t.size))
    >>> found = compare_laws(Curve(t, influence(RelayModel.uniform(64, 6, 0.5), t) * noise), prompt=64)
    >>> found.best.name, found["power law"].aicc - found.best.aicc > 20
    ('relay model', True)
    """
    used = window(pool(curves), t_min, t_max)
    cells = Cells.of(used)
    y = cells.log(used)
    if cells.x.size < 9:
        raise UnderdeterminedError(
            f"the window must hold at least 9 points for laws to be compared, got {cells.x.size}; widen it",
            partial=float((y[0] - y[-1]) / cells.length),
        )
    left_out = {}
    laws = [power_law(), power_law_and_constant(float(np.log(used.t[0])))]
    if used.t[0] > 1:
        laws.append(log_power())
    else:
        left_out["power of log t"] = f"log t must be positive, and the window starts at t = {used.t[0]:.6g}"
    try:
        laws.append(relay_law(prompt_of(used, prompt)))
    except ValueError as error:
        if prompt is not None:
            raise
        left_out["relay model"] = str(error)
    noise = Noise.of(cells)
    found = [(law, *_fitted(law, cells, y, noise)) for law in laws]
    order = sorted(found, key=lambda item: item[1].aicc)
    relative = np.exp(-0.5 * np.array([fit.aicc - order[0][1].aicc for _, fit, _ in order]))
    shares = relative / relative.sum()
    best_law, best, solution = order[0]
    rivals = [(law, fit, other) for law, fit, other in order[1:] if fit.aicc - best.aicc < TOLD_APART]
    return Comparison(
        fits=tuple(
            LawFit(f.name, f.formula, f.parameters, f.log_likelihood, f.aicc, float(w))
            for (_, f, _), w in zip(order, shares, strict=True)
        ),
        told_apart=not rivals,
        undecided=tuple(law.name for law, _, _ in rivals),
        needed=tuple(_needed(cells, noise, best_law, solution, law, other) for law, _, other in rivals),
        left_out=left_out,
        window=(float(used.t[0]), float(used.t[-1])),
        points=len(used),
        provenance=used.provenance,
    )


def power_law() -> Law:
    """Return A t^-a."""

    def log(t: Array) -> Callable[[Array], Array]:
        return lambda theta: -np.log(t)[:, None] * theta[0]

    return Law("power law", "A t^-a", ("a",), (-4.0,), (8.0,), log, lambda theta: theta.tolist(), ((0.5,),))


def power_law_and_constant(start: float) -> Law:
    """Return A t^-a + c with c >= 0, `start` the log t at which the constant is counted."""

    def log(t: Array) -> Callable[[Array], Array]:
        x = (np.log(t) - start)[:, None]
        return lambda theta: np.logaddexp(-theta[0] * x, theta[1])

    def values(theta: Array) -> Sequence[float]:
        return [float(theta[0]), float(np.exp(theta[1] - theta[0] * start))]

    starts = ((0.5, -6.0), (1.0, -2.0), (1.5, 0.0))
    formula = "A t^-a + c"
    return Law("power law and constant", formula, ("a", "c/A"), (0.01, -40.0), (8.0, 5.0), log, values, starts)


def log_power() -> Law:
    """Return A (log t)^k / t."""

    def log(t: Array) -> Callable[[Array], Array]:
        x = np.log(t)[:, None]
        return lambda theta: 4 * np.log(x) * theta[0] - x

    def values(theta: Array) -> Sequence[float]:
        return [4 * float(theta[0])]

    return Law("power of log t", "A (log t)^k / t", ("k",), (-4.0,), (32.0,), log, values, ((1.0,),))


def relay_law(prompt: int) -> Law:
    """Return the relay model of equal layers with residual 1."""
    coordinates = Coordinates.of(relay=None, depth=None)
    low, high = coordinates.bounds

    def log(t: Array) -> Callable[[Array], Array]:
        order = np.argsort(t)
        shape, back = Shape(prompt, t[order]), np.argsort(order)

        def values(theta: Array) -> Array:
            found: Array = shape.log_influence(**coordinates.values(theta))[back]
            return found

        return values

    def values(theta: Array) -> Sequence[float]:
        return [float(value) for value in np.exp(theta)]

    names = ("relay", "depth")
    formula = "relay model, P known"
    return Law("relay model", formula, names, tuple(low.tolist()), tuple(high.tolist()), log, values)


def _problem(law: Law, cells: Cells, y: Array) -> Problem:
    log = law.log(cells.times)

    def means(theta: Array) -> Array:
        return cells.over(log(theta)[:, None])

    return Problem(cells, y[:, None], means, np.array(law.low), np.array(law.high))


def _fitted(law: Law, cells: Cells, y: Array, noise: Noise) -> tuple[LawFit, Solution]:
    problem = _problem(law, cells, y)
    starts = [np.array(start) for start in law.starts] or starting_points(
        problem, Coordinates.of(relay=None, depth=None)
    )
    solution = solve(problem, noise, starts, restricted=False)
    n, k = cells.x.size, len(law.names) + 4  # the factor, the noise's scale, kind and length
    aicc = -2 * solution.likelihood + 2 * k * n / max(1, n - k - 1)
    parameters = dict(zip(law.names, law.values(solution.theta), strict=True))
    return LawFit(law.name, law.formula, parameters, solution.likelihood, aicc, 0.0), solution


def _needed(cells: Cells, noise: Noise, best: Law, truth: Solution, rival: Law, other: Solution) -> Needed:
    """Return what would tell a rival from the best law."""
    n = cells.x.size
    extra = 2 * (len(rival.names) - len(best.names))
    target = (POWER + np.sqrt(max(0.0, POWER**2 + TOLD_APART - extra))) ** 2
    line = truth.theta[:, None]
    white = noise.inverses[0]

    def difference(grid: Cells, inverse: Array) -> float:
        zero = np.zeros_like(grid.x)
        curve = _problem(best, grid, zero).means(line)[..., 0]
        return least_difference(_problem(rival, grid, zero), curve, inverse, other.theta) / float(truth.scatter[0]) ** 2

    now = difference(cells, noise.inverses[truth.best])
    plain = difference(cells, white)
    price = now / plain if plain > 0 else 1.0
    width = cells.length
    start, end = float(cells.t[0]), float(cells.t[-1])

    def enough(t: float) -> bool:
        points = np.geomspace(start, t, 96)
        grid = Cells.of(Curve(points, np.ones_like(points)))
        density = n / width * np.log(t / start) / points.size
        return bool(difference(grid, np.eye(points.size)) * density * price >= target)

    low, last = end, 8 * end
    while not enough(last) and last <= FARTHEST:
        low, last = last, 8 * last
    for _ in range(3 if last <= FARTHEST else 0):  # the last factor of 8, to one of 1.3
        middle = float(np.sqrt(low) * np.sqrt(last))  # the product may leave float64
        low, last = (low, middle) if enough(middle) else (middle, last)
    factor = float(target / now) if now > 1e-6 * target else None
    return Needed(rival.name, last if last <= FARTHEST else None, None if factor is None else max(1.0, factor))
