"""Running a relay model over a continuation of any length: as a curve, as a stream, or in stages."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relaymodel.checks import positive_integer, show
from relaymodel.curve import Curve
from relaymodel.model import RelayModel, describe_layers
from relaymodel.progress import Report, reporter
from relaymodel.simulation.heads import HeadRecursion
from relaymodel.simulation.inputs import (
    PER_DECADE,
    Floats,
    Integers,
    LogBias,
    ReminderSchedule,
    bias_function,
    convolves,
    interval_table,
    sample_points,
)
from relaymodel.simulation.recursion import Layout, Recursion
from relaymodel.simulation.share import ShareRule
from relaymodel.simulation.state import SimulationState

Samples = int | Sequence[int] | NDArray[np.integer] | NDArray[np.floating]
Bias = LogBias | Callable[[Floats], Floats]
Reminders = ReminderSchedule | Sequence[tuple[int, int]] | NDArray[np.integer]
Progress = bool | Report

NO_INTERVALS: Integers = np.empty((0, 2), dtype=np.int64)  # no reminders


class Simulation:
    r"""The recursion of a relay model, run in stages (THEORY sections 1 and 7).

    Every layer is applied at every position, in float64, chunk by chunk; memory does not depend on the number
    of steps.  The prompt itself costs nothing: its positions hold $\prod (\rho+\lambda)$ in every layer.

    Parameters
    ----------
    model
        The model, with any heads and sinks; position exponents at most 64, 12 where a head has a recency or there is a
        bias.
    bias
        Logit bias b_t of the prompt keys for the query at continuation token t: a function that maps an array
        of t, shape (T,), to an array of that shape, or an object with `log_bias(t, prompt)`.  With
        $v_t = e^{b_t}$ a layer becomes
        $x'_t = \rho x_t + \lambda [ s_t X + (1-s_t) \frac1t \sum_{u \le t} x_u ]$,
        $s_t = P v_t/(P v_t + t)$, X its input on the prompt; for other heads than uniform ones
        $s_t = v_t S_t / (v_t S_t + 1 - S_t)$ with the prompt's share $S_t$ without a bias, and the mean is the head's
        over the continuation (THEORY section 10).  b = 0 changes nothing.  A `ShareRule` (`SplitSoftmax`,
        `ClampedShare`) gives $s_t$ as a function of $S_t$.
    reminders
        Where the prompt's text returns: inclusive intervals (start, stop) of t, sorted and disjoint, or an
        object with `intervals(steps)`.  The source is 1 there.  Reminders are ordinary keys: a bias does not
        apply to them.
    state
        Where to go on; None starts at t = 0.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments, and for a state that belongs to another simulation.

    Examples
    --------
    >>> simulation = Simulation(RelayModel.uniform(prompt=2, depth=2, relay=1))
    >>> t, D = simulation.advance(2, samples=[1, 2])
    >>> D * 180  # 20/9 and 43/24
    array([400. , 322.5])
    >>> simulation.advance(3, samples=[3])[0], simulation.state.t
    (array([3]), 3)
    """

    def __init__(
        self,
        model: RelayModel,
        *,
        bias: Bias | None = None,
        reminders: Reminders | None = None,
        state: SimulationState | None = None,
        layout: Layout | None = None,
    ) -> None:
        if not isinstance(model, RelayModel):
            raise TypeError(f"model must be a RelayModel, got {show(model)} of type {type(model).__name__}")
        if state is not None and not isinstance(state, SimulationState):
            raise TypeError(f"state must be a SimulationState, got {show(state)} of type {type(state).__name__}")
        self.model, self._reminders = model, reminders
        if state is not None and layout is not None:
            raise ValueError("layout must be left out when going on from a state, which has its own")
        self._recursion = HeadRecursion if convolves(model, bias is not None) else Recursion
        # heads that are not uniform have shares of their own
        own = isinstance(bias, ShareRule) and self._recursion is HeadRecursion
        self._bias = cast("Any", bias if own or bias is None else bias_function(bias, model.prompt))
        usual = Layout(columns=256) if self._recursion is HeadRecursion else Layout()
        self._layout = (layout or usual) if state is None else state.layout
        fresh = self._standing(0, self._recursion(model, self._layout, self._bias, NO_INTERVALS, steps=1).initial)
        self._state = fresh if state is None else state
        again = self._standing(self._state.t, self._state.carries)
        if again != self._state or fresh.carries.shape != self._state.carries.shape:
            raise ValueError(
                "state must come from the same model, with a bias and reminders if and only if they are given now; "
                f"got a state of {_described(self._state)}, not of {_described(fresh)}"
            )

    def _standing(self, t: int, carries: Floats) -> SimulationState:
        biased, reminded = self._bias is not None, self._reminders is not None
        return SimulationState(self.model, t, carries, self._layout, biased, reminded)

    @property
    def state(self) -> SimulationState:
        """Where the simulation stands; never halfway, even if `advance` was interrupted."""
        return self._state

    def advance(
        self, steps: int, *, samples: Samples = PER_DECADE, progress: Progress = False
    ) -> tuple[Integers, Floats]:
        """Go on to continuation token `steps`, counted from the end of the prompt; return t and D, shape (K,) each.

        `samples` and `progress` as in `simulate`; sampled are the points beyond the state's t.  D keeps its sign.
        Stage after stage, in one process or several, the values are bit for bit those of one run; only under a bias on
        other heads than uniform ones may last digits differ, in the chunk that a stage ends in, whose FFT has not seen
        the bias of later tokens.

        Raises `ValueError` if `steps` is not beyond the state's t, or where `simulate` does.
        """
        points, pieces = self._begin(steps, samples, progress)
        return points, np.concatenate([D for _, D in pieces])

    def _begin(
        self, steps: int, samples: object, progress: object
    ) -> tuple[Integers, Iterator[tuple[Integers, Floats]]]:
        """Check the arguments; return all t to be sampled, and an iterator over (t, D) of one chunk after another."""
        steps, reached = positive_integer("steps", steps), self._state.t
        if steps <= reached:
            raise ValueError(f"steps must be beyond the {reached} continuation tokens simulated so far, got {steps}")
        table = NO_INTERVALS if self._reminders is None else interval_table(self._reminders, steps)
        recursion = self._recursion(self.model, self._layout, self._bias, table, steps)
        points = sample_points(samples, steps)
        if np.ndim(samples) and points[0] <= reached:  # type: ignore[arg-type]
            raise ValueError(f"samples must lie beyond the state's t = {reached}, got {points[0]}")
        points = points[points > reached]
        return points, self._run(recursion, points, reporter(progress))

    def _run(
        self, recursion: Recursion | HeadRecursion, points: Integers, report: Report
    ) -> Iterator[tuple[Integers, Floats]]:
        steps = recursion.steps
        start, columns = self._layout.chunk(self._state.t)
        carries = self._state.carries
        while start < steps:
            stop = start + self._layout.rows * columns
            wanted, points = np.split(points, [np.searchsorted(points, stop, side="right")])
            behind, D = recursion.run(start, columns, carries, wanted)
            if stop <= steps:  # otherwise going on means to repeat this chunk
                carries = behind
            if wanted.size:  # whoever collects the pieces must not collect an empty one for every chunk
                yield wanted, D
            report(min(stop, steps), steps)
            start, columns = self._layout.chunk(stop)
        self._state = self._standing(steps, carries)


def stream(
    model: RelayModel,
    steps: int,
    *,
    samples: Samples = PER_DECADE,
    bias: Bias | None = None,
    reminders: Reminders | None = None,
    progress: Progress = False,
) -> Iterator[tuple[int, float]]:
    """Return an iterator over (t, D(t)) at the sampled t, as they are reached; D keeps its sign and may be 0.

    Arguments and errors as for `simulate`.

    >>> model = RelayModel.uniform(prompt=1, depth=1, relay=-1)
    >>> [(t, round(D, 3)) for t, D in stream(model, 100, samples=[1, 9, 99])]
    [(1, -0.5), (9, -0.1), (99, -0.01)]
    """
    _, pieces = Simulation(model, bias=bias, reminders=reminders)._begin(steps, samples, progress)
    return ((int(t), float(x)) for points, D in pieces for t, x in zip(points, D, strict=True))


def simulate(
    model: RelayModel,
    steps: int,
    *,
    samples: Samples = PER_DECADE,
    bias: Bias | None = None,
    reminders: Reminders | None = None,
    progress: Progress = False,
) -> Curve:
    """Run the recursion over the continuation tokens t = 1..steps and return |D(t)| (THEORY sections 1 and 7).

    Parameters
    ----------
    model, bias, reminders
        As for `Simulation`.
    steps
        Number of continuation tokens; prompt + steps at most 2^52.
    samples
        Where to read D: an integer is a number of points per factor of ten (the distinct integers nearest to
        10^(k/samples), and `steps`), anything else the t themselves, at least two, strictly increasing.
    progress
        True shows a bar on stderr if that is a terminal; a function is called with (steps done, steps in
        total) after each chunk.

    Notes
    -----
    With relay and residual not negative, all terms are positive and D is right to about 1e-14 relative,
    however long the run: sums are carried from chunk to chunk in twice the precision.  With negative ones the
    error is that small relative to the sum of the terms' sizes, not to D where they cancel.  Reminders take
    16 bytes per interval.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments; if D is exactly 0 at a sample, as it is everywhere when no layer relays; if the
        values leave the range of float64.

    Examples
    --------
    >>> simulate(RelayModel.uniform(prompt=64, depth=1, relay=0.5), 10**5)  # 0.5 * 64/(64 + t)
    Curve(255 points, t = 1..100000, distance = 0.492308..0.000319795, source: simulation, prompt: 64, layers: 1 x ...
    """
    points, pieces = Simulation(model, bias=bias, reminders=reminders)._begin(steps, samples, progress)
    if points.size < 2:
        raise ValueError(
            f"samples must be at least 2 points for a Curve, got {points.size}; use stream for a single one"
        )
    dead = any(not (layer.relays or layer.residual or layer.sink) for layer in model.layers)
    if dead or (reminders is None and not any(layer.relays or layer.sink for layer in model.layers)):
        raise ValueError(
            "relay must not be 0 in all layers, nor relay and residual both in one: the influence is 0 at every t, "
            f"and a Curve holds positive distances; got {describe_layers(model.layers)}"
        )
    values: list[Floats] = []
    for t, D in pieces:
        if not np.all(D):
            raise ValueError(
                f"the influence is exactly 0 at the sample t = {t[np.argmin(D != 0)]}, and a Curve holds positive "
                "distances; choose other samples, or use stream, which gives signed values"
            )
        values.append(D)
    D = np.concatenate(values)
    provenance = {"source": "simulation", "prompt": str(model.prompt), "layers": describe_layers(model.layers)}
    if bias is not None:
        provenance["bias"] = getattr(bias, "__name__", show(bias))
    if reminders is not None:
        provenance["reminders"] = show(reminders)
    if np.any(D < 0):
        provenance["negative"] = f"{np.count_nonzero(D < 0)} of {D.size} samples; the distance is |D|"
    return Curve(points.astype(np.float64), np.abs(D), provenance=provenance)


def expected_seconds(model: RelayModel, steps: int, *, bias: Bias | None = None) -> float:
    """Return about how long `simulate` takes on this machine, from the time of one chunk, in a few milliseconds.

    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=0.5)
    >>> expected_seconds(model, 10**12) > 100 * expected_seconds(model, 10**9) > 0
    True
    """
    count = positive_integer("steps", steps)
    simulation = Simulation(model, bias=bias)
    layout = simulation._layout
    start, size = layout.rows * (layout.columns - 1), layout.rows * layout.columns
    recursion = simulation._recursion(model, layout, simulation._bias, NO_INTERVALS, start + 2 * size)
    times = []
    for _ in range(3):  # the first has tables to fill
        began = time.perf_counter()
        recursion.run(start, layout.columns, simulation.state.carries, np.array([start + 1]))
        times.append(time.perf_counter() - began)
    return min(times) * count / size


def _described(state: SimulationState) -> str:
    """Return what a simulation is about in one line."""
    extras = " with a bias" * state.biased + " with reminders" * state.reminded
    return f"{describe_layers(state.model.layers)} behind {state.model.prompt} prompt tokens{extras}"
