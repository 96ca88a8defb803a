"""The relay model fitted to curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from relaymodel.checks import floating, positive_integer, series, show
from relaymodel.curve import Curve
from relaymodel.display import table
from relaymodel.inference.cells import Array
from relaymodel.inference.estimate import Estimate
from relaymodel.inference.gls import LEVEL, misfit
from relaymodel.inference.noise import Noise
from relaymodel.inference.parameters import BOUNDS, Coordinates, bounded, outward, slope
from relaymodel.inference.pool import deviations, pool
from relaymodel.inference.problem import prompt_of, relay_problem, starting_points
from relaymodel.inference.regression import Problem, Solution, fixed, profile, shifts, solve
from relaymodel.inference.shape import Shape
from relaymodel.inference.spline import smooth
from relaymodel.inference.threads import one_thread
from relaymodel.inference.window import window
from relaymodel.model import RelayModel
from relaymodel.simulation.headgrid import LARGEST_GRID

LATEST_FITTED = 1e14
"""Last t of a fit: beyond it float64 does not count tokens well enough."""

HUBER = 1.345
"""Residuals beyond this many standard deviations are drawn in: 95 % as efficient as least squares on normal noise."""

LARGEST = 230.0
"""Logarithm of the largest ratio to its value that an end of a factor's interval has, 10^100."""


@dataclass(frozen=True, eq=False)
class RelayFit:
    """A relay model fitted to curves; see `fit`.

    Attributes
    ----------
    relay, depth, position, bias, recency, sink
        `Estimate` of the relay strength, position and recency exponent and sink of each layer, of the effective number
        of layers, and of the prompt-key bias beta.  For layers fitted at once, `depth` is held at that of the deepest.
    amplitude
        `Estimate` of the distance per unit of D for each curve.
    covariance, names
        Shape (p, p): covariance of the parameters `names` that were fitted, the factors left out.
    scatter
        Standard deviation of one point's log D about the fit (of the first curve), and
    correlation_length
        how many tokens are worth one independent point.
    p_value, adequate
        Probability that curves of the model would deviate from it as smoothly and as far as this one, and whether it is
        at least 0.05.
    log_likelihood
        Largest over parameters and the candidates for the noise.
    prompt, layers, window, points
        Prompt length P, depth of each curve (None: the fitted one), first and last t, points of each curve.
    pairs
        Number of pairs that the errors were taken from; 0 if from the scatter along the curve.
    method, provenance
        How the values were found, and what the first curve says of itself.
    """

    relay: Estimate
    depth: Estimate
    position: Estimate
    bias: Estimate
    recency: Estimate
    sink: Estimate
    amplitude: tuple[Estimate, ...]
    names: tuple[str, ...]
    covariance: Array
    scatter: float
    correlation_length: float
    p_value: float
    adequate: bool
    log_likelihood: float
    prompt: int
    layers: tuple[int | None, ...]
    window: tuple[float, float]
    points: int
    pairs: int
    model: RelayModel
    method: str = "generalised least squares of log D, averaged over correlations of the noise; profile likelihood"
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} = {getattr(self, name)}" for name in self.names)
        verdict = "adequate" if self.adequate else "not adequate"
        return f"RelayFit({shown}, t = {self.window[0]:.6g}..{self.window[1]:.6g}, {verdict})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [(name, getattr(self, name)) for name in BOUNDS]
        rows += [
            ("identifiability", self.identifiability),
            ("scatter of log D", f"{self.scatter:.2g}, correlated over {self.correlation_length:.3g} tokens"),
            ("window", f"t = {self.window[0]:.6g} to {self.window[1]:.6g}, {self.points} points"),
            ("the relay model is adequate", f"{'yes' if self.adequate else 'no'} (p = {self.p_value:.2g})"),
            ("method", self.method),
        ]
        return table("Relay model", [*rows, *self.provenance.items()])

    @property
    def correlations(self) -> dict[tuple[str, str], float]:
        """Correlation of each two fitted parameters."""
        error = np.sqrt(np.diag(self.covariance))
        return {
            (a, b): float(self.covariance[i, j] / max(error[i] * error[j], np.finfo(float).tiny))
            for j, b in enumerate(self.names)
            for i, a in enumerate(self.names[:j])
        }

    @property
    def identifiability(self) -> str:
        """What the curve can and cannot tell, in a sentence or two."""
        loose = [name for name in self.names if not getattr(self, name).identified]
        parts = []
        if "sink" in loose and self.sink.upper < BOUNDS["sink"][1]:
            loose.remove("sink")
            parts.append(f"sink is at most {self.sink.upper:.2g}")
        if loose:
            verb = "is" if len(loose) == 1 else "are"
            parts.insert(0, f"{' and '.join(loose)} {verb} not determined by this window")
        for (a, b), correlation in self.correlations.items():
            if abs(correlation) > 0.9:
                more = ", or fit more layers" if (a, b) == ("relay", "depth") else ""
                parts.append(f"{a} and {b} trade off (correlation {correlation:.3f}); hold one of them{more}")
        return "; ".join(parts) or "all fitted parameters are determined"

    def predict(self, t: ArrayLike, *, curve: int = 0, bias: float | None = None) -> Array:
        """Return the fitted distance at t (T,), of the curve with this index; with `bias`, under that prompt-key bias.

        What a bias does follows from the other parameters: fitted to a curve at one, the model predicts others.
        """
        log = self._log(t, curve, bias)  # which checks the arguments
        return self.amplitude[curve].value * np.exp(log)

    def local_exponent(self, t: ArrayLike, *, curve: int = 0, bias: float | None = None) -> Array:
        """Return -dlog D/dlog t of the fitted model at t (T,), as `predict` does."""
        at, step = series("t", t), 1e-3
        return (self._log(at * np.exp(-step), curve, bias) - self._log(at * np.exp(step), curve, bias)) / (2 * step)

    def _log(self, t: ArrayLike, curve: int, bias: float | None) -> Array:
        at = series("t", t)
        if positive_integer("curve", curve, least=0) >= len(self.layers):
            raise ValueError(
                f"curve must be at most {len(self.layers) - 1}, the last of those fitted, got {show(curve)}"
            )
        order = np.argsort(at)
        values = {name: float(getattr(self, name).value) for name in BOUNDS}
        if self.layers[curve] is not None:
            values["depth"] = float(self.layers[curve] or 0)
        if bias is not None:
            values["bias"] = bounded("bias", bias)
        log = np.empty(at.size)
        log[order] = Shape(self.prompt, at[order]).log_influence(**values)[:, 0]
        return log


@one_thread
def fit(
    curves: Curve | Sequence[Curve] | Mapping[int, Curve],
    *,
    prompt: int | None = None,
    relay: float | None = None,
    depth: float | None = None,
    position: float | None = 0,
    bias: float | None = 0,
    recency: float | None = 0,
    sink: float | None = 0,
    amplitude: float | None = None,
    t_min: float | None = None,
    t_max: float | None = None,
    robust: bool = False,
) -> RelayFit:
    r"""Fit the relay model to a measured curve, to the curves of several pairs, or to those of all layers at once.

    $$ \log \text{distance} = \log A + \log D(t; P, L, \lambda, g, \beta, \gamma, \sigma) + \text{noise} $$

    D is that of L equal layers with residual 1 (THEORY section 1), of one head with a position and a recency exponent
    and a sink (section 10), whose prompt keys weigh $(1 + t/P)^\beta$ times more (section 7).  Parameters that are None
    are fitted, others held.  Starting points come from a grid.

    Strength and depth trade off: over a few decades many layers that relay little look much as few that relay much.
    Depth is therefore an *effective* one, a real number (D between two depths is interpolated), its interval and
    that of the strength come from the profile likelihood, and `identifiability` says what the window leaves open.
    A recency does the same again: attention by distance is a weaker relay, of strength $(1-\gamma)\lambda$ at large t.
    What tells it from few uniform layers is how D comes down from the first tokens, and best of all a bias: `predict`
    says what the model fitted does under others.  A sink is a plateau, seen only where D comes near it.

    The noise is correlated along t in a way that is not known: all estimates are averages over a few dozen kinds,
    weighted by their restricted likelihood, and intervals are those of the mixture of Student's t.

    Parameters
    ----------
    curves
        A `Curve`.  A list: curves of independent pairs of prompts, on the same t; their geometric mean is fitted,
        and errors come from the differences between pairs, with n - 1 degrees of freedom.  A dictionary
        {layer: Curve}: all are fitted at once, on the t that they share, layer l with depth l, the same
        strength, position and bias, and a factor of its own.
    prompt
        Prompt length P; by default the provenance entry `prompt` of the curve.
    relay, depth, position, bias, recency, sink
        Values to hold; None fits.  Ranges: 0.001 to 16, 1 to 64, -0.98 to 4, -1 to 3, -4 to 0.99, 0 to 4.
    amplitude
        None fits a factor for each curve; 1 is for distances in the prompts' own unit, such as `simulate` gives.
    t_min, t_max
        Window, by default as in `fit_power_law`, from t = 16 on, so that the two can be compared.
    robust
        Draw residuals beyond 1.345 standard deviations in (Huber), so that outliers count for little.

    Raises
    ------
    UnderdeterminedError
        For fewer than 6 points, or fewer than 3 more than parameters; `partial` is the slope.
    TypeError, ValueError
        For curves that are neither of the three, a prompt length that is not known, values outside their range, and t
        beyond 1e14, with a recency 2^40.

    Examples
    --------
    >>> from relaymodel import RelayModel, influence
    >>> t = np.arange(1.0, 2049.0)
    >>> curve = Curve(t, 7 * influence(RelayModel.uniform(prompt=64, depth=6, relay=0.5), t))
    >>> found = fit(curve, prompt=64)
    >>> round(found.depth.value, 3), round(found.relay.value, 3), round(found.amplitude[0].value, 2)
    (6.0, 0.5, 7.0)
    """
    if isinstance(curves, Mapping):
        used, layers = _layers(curves, t_min, t_max, depth)
        depth, differing = float(max(curves)), np.empty((0, len(used[0])))
    else:
        used, layers = [window(pool(curves), t_min, t_max)], (None,)
        differing = deviations(used[0])
    P = prompt_of(used[0], prompt)
    latest = LATEST_FITTED if recency == 0 else float(LARGEST_GRID)
    if used[0].t[-1] > latest:
        by = " with a recency" if recency != 0 else ""
        raise ValueError(f"t must be at most {latest:g} in a fit{by}, got {used[0].t[-1]:g}; choose t_max")
    coordinates = Coordinates.of(relay=relay, depth=depth, position=position, bias=bias, recency=recency, sink=sink)
    factor = None if amplitude is None else floating("amplitude", amplitude)
    if factor is not None and factor <= 0:
        raise ValueError(f"amplitude must be positive, got {show(amplitude)}")
    if factor is not None and not coordinates.moving:
        raise ValueError(f"one of {', '.join(BOUNDS)}, amplitude must be None, to be fitted, got values for all")
    problem = relay_problem(used, P, coordinates, layers, factor)
    noise = Noise.of(problem.cells)
    solution = solve(problem, noise, starting_points(problem, coordinates))
    if robust:
        problem, solution = _robust(problem, noise, solution, used, P, coordinates, layers, factor)
    if len(differing):
        cells = problem.cells
        solution = shifts(problem, noise, solution, np.stack([cells.mean(row) for row in differing]))
    estimates = _estimates(problem, noise, solution, coordinates)
    natural = np.array([slope(name, estimates[name].value) for name in coordinates.moving])
    p = problem.size
    covariance = solution.covariance[:p, :p]
    p_value = _lack_of_fit(problem, solution)
    return RelayFit(
        relay=estimates["relay"],
        depth=estimates["depth"],
        position=estimates["position"],
        bias=estimates["bias"],
        recency=estimates["recency"],
        sink=estimates["sink"],
        amplitude=_amplitudes(problem, solution, factor),
        names=tuple(coordinates.moving),
        covariance=covariance * np.outer(natural, natural),
        scatter=float(solution.scatter[0]),
        correlation_length=float(solution.weights @ noise.lengths),
        p_value=p_value,
        adequate=p_value >= LEVEL,
        log_likelihood=solution.likelihood,
        prompt=P,
        layers=layers,
        window=(float(used[0].t[0]), float(used[0].t[-1])),
        points=len(used[0]),
        pairs=len(differing),
        model=_model(problem, noise, solution, coordinates, P),
        provenance=used[0].provenance,
    )


def _layers(
    curves: Mapping[int, Curve], t_min: float | None, t_max: float | None, depth: float | None
) -> tuple[list[Curve], tuple[int | None, ...]]:
    """Return the curves of several layers on the t that they share, and their depths."""
    if depth is not None:
        raise ValueError(f"depth must be None for layers fitted at once, whose depths are their keys, got {depth!r}")
    if not curves:
        raise ValueError("curves must hold at least one layer, got none")
    layers: list[int | None] = [positive_integer("layer", key) for key in curves]
    for key, curve in curves.items():
        if not isinstance(curve, Curve):
            raise TypeError(f"curves must be Curve objects, got {show(curve)} for layer {key}")
    common = next(iter(curves.values())).t
    for curve in curves.values():
        common = np.intersect1d(common, curve.t, assume_unique=True)
    if common.size < 2:
        raise ValueError(f"the layers must share at least 2 values of t, got {common.size}")
    used = []
    for curve in curves.values():
        here = np.searchsorted(curve.t, common)
        stderr = None if curve.stderr is None else curve.stderr[here]
        used.append(window(Curve(common, curve.distance[here], stderr, curve.provenance), t_min, t_max))
    return used, tuple(layers)


def _robust(
    problem: Problem,
    noise: Noise,
    solution: Solution,
    curves: Sequence[Curve],
    prompt: int,
    coordinates: Coordinates,
    layers: Sequence[int | None],
    amplitude: float | None,
) -> tuple[Problem, Solution]:
    """Return the fit to pseudo-values, whose residuals are drawn in where they are far out (Huber)."""
    t = curves[0].t
    shape = Shape(prompt, t)
    for _ in range(8):
        values = {name: float(v[0]) for name, v in coordinates.values(solution.theta[:, None]).items()}
        y = np.empty_like(problem.y)
        for b, (curve, layer) in enumerate(zip(curves, layers, strict=True)):
            depth = values["depth"] if layer is None else float(layer)
            line = shape.log_influence(**{**values, "depth": depth})[:, 0]
            line += solution.factors[b] + (0.0 if amplitude is None else np.log(amplitude))
            residual = np.log(curve.distance) - line
            if problem.free:  # outliers may have moved the factor
                line, residual = line + np.median(residual), residual - np.median(residual)
            scale = max(1.4826 * float(np.median(np.abs(residual))), 1e-12) * HUBER
            inside = np.mean(np.abs(residual) <= scale)  # half of the points at the least
            y[:, b] = problem.cells.mean(line + np.clip(residual, -scale, scale) / inside)
        problem = Problem(problem.cells, y, problem.means, problem.low, problem.high, problem.free)
        solution = solve(problem, noise, [solution.theta])
    return problem, solution


def _lack_of_fit(problem: Problem, solution: Solution) -> float:
    """Return the p-value of the curves' deviations from the model: of several, the smallest times their number."""
    found = []
    for b, y in enumerate(problem.y.T):
        spline = smooth(problem.cells, y, np.empty(0))
        covariance = spline.noise + spline.shared
        found.append(
            misfit(solution.jacobian[:, b], solution.residual[:, b], problem.cells.unit, covariance, spline.freedom)
        )
    return min(1.0, min(found) * len(found))


def _estimates(problem: Problem, noise: Noise, solution: Solution, coordinates: Coordinates) -> dict[str, Estimate]:
    """Return all parameters."""
    estimates = {name: Estimate(v, 0.0, v, v, fitted=False) for name, v in coordinates.held.items()}
    for i, name in enumerate(coordinates.moving):
        low, high = profile(problem, noise, solution, i)
        tight = 1e-6 * (problem.high[i] - problem.low[i])
        value = float(outward(name, solution.theta[i]))
        inside = low > problem.low[i] + tight, high < problem.high[i] - tight
        ends = [float(outward(name, np.array(end))) for end in (low, high)]
        lower, upper = (end if within else bound for end, within, bound in zip(ends, inside, BOUNDS[name], strict=True))
        stderr = float(np.sqrt(solution.covariance[i, i])) * slope(name, value)
        estimates[name] = Estimate(value, stderr, lower, upper, identified=all(inside))
    return estimates


def _amplitudes(problem: Problem, solution: Solution, amplitude: float | None) -> tuple[Estimate, ...]:
    if amplitude is not None:
        return tuple(Estimate(amplitude, 0.0, amplitude, amplitude, fitted=False) for _ in range(problem.y.shape[1]))
    p = problem.size
    found = []
    for b, log in enumerate(solution.factors):
        value, error = float(np.exp(log)), float(np.sqrt(solution.covariance[p + b, p + b]))
        reach = np.array([solution.lower[p + b], solution.upper[p + b]]) - log
        low, high = np.exp(np.clip(log + np.clip(reach, -LARGEST, LARGEST), -700, 700)).tolist()
        spread = value * error if error < LARGEST else high
        found.append(Estimate(value, spread, low, high, identified=bool(np.all(np.abs(reach) < LARGEST))))
    return tuple(found)


def _model(problem: Problem, noise: Noise, solution: Solution, coordinates: Coordinates, prompt: int) -> RelayModel:
    """Return the model of whole layers nearest in depth, its other parameters fitted again."""
    theta = solution.theta.copy()
    if "depth" in coordinates.moving:
        i = coordinates.moving.index("depth")
        theta[i] = np.log(max(1.0, np.rint(np.exp(theta[i]))))
        theta = fixed(problem, noise, solution, theta, i)
    values = {name: float(v[0]) for name, v in coordinates.values(theta[:, None]).items()}
    depth, bare = max(1, round(values["depth"])), ("relay", "position", "recency", "sink")
    return RelayModel.uniform(prompt, depth, residual=1, **{name: values[name] for name in bare})
