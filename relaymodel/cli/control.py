"""The command that stops the decay: prompt bias, reminders, and the fewest reminders for a level."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import relaymodel as rm
from relaymodel import plotting
from relaymodel.checks import Number
from relaymodel.cli.interventions import reminders as given
from relaymodel.cli.models import demand_time, described, drawn, heading
from relaymodel.cli.numbers import number, text, whole
from relaymodel.cli.options import CONTROL, GridOptions, ModelOptions, option, options
from relaymodel.cli.output import Draw, Listing, Output
from relaymodel.model import RelayModel

if TYPE_CHECKING:
    from relaymodel.control import BiasLimit, ReminderPlan
    from relaymodel.simulation import ConstantShare, PromptBias, Reminders

    Bias = PromptBias | ConstantShare


@options(CONTROL)
class BiasOptions:
    """A bias on the prompt's keys."""

    bias: Annotated[
        Number | None,
        option("B", "Strength of the bias B log(1+t/P) on the prompt's keys.  [default: 1]", number),
    ] = None
    share: Annotated[Number | None, option("C", "Hold the prompt's share of the attention at C instead.", number)] = (
        None
    )

    def chosen(self, default: Number | None = None) -> "Bias | None":
        """Return it, or one of strength `default`, or None."""
        from relaymodel.simulation import ConstantShare, PromptBias

        if self.bias is not None and self.share is not None:
            raise ValueError(
                f"--bias must not be given together with --share, got {self.bias} and {self.share}; choose one"
            )
        if self.share is not None:
            return ConstantShare(self.share)
        strength = default if self.bias is None else self.bias
        return None if strength is None else PromptBias(strength)


@options(CONTROL)
class ReminderOptions:
    """The prompt's text, returned."""

    every: Annotated[int | None, option("M", "Return the prompt's text every M tokens.", whole())] = None
    length: Annotated[
        int | None,
        option("R", "Tokens of each such reminder, with --every or --hold.", whole()),
    ] = None
    hold: Annotated[
        Number | None,
        option("D", "Plan the fewest reminders that hold D(t) at this level or above.", number),
    ] = None
    horizon: Annotated[int | None, option("T", "Hold it for T tokens only.  [default: for ever]", whole())] = None

    @property
    def schedule(self) -> "Reminders | None":
        """The reminders, if they are given."""
        return given(self.every, self.length)


@dataclass(frozen=True)
class Found:
    """What one way to stop the decay does: D(t), what else is known, in words and for JSON, and how it is drawn."""

    influence: Sequence[float]
    facts: Mapping[str, Any]
    lines: Sequence[str]
    source: Mapping[str, str]
    draw: Sequence[Draw] = field(default=())


def control(
    *,
    model: ModelOptions = ModelOptions(),
    bias: BiasOptions = BiasOptions(),
    reminders: ReminderOptions = ReminderOptions(),
    grid: GridOptions = GridOptions(),
    output: Output = Output(),
) -> None:
    """Stop the decay: by a bias on the prompt's keys, or by reminders.

    --bias and --share give the limit in closed form (decay, plateau or reversal) and when D turns; --every and
    --length the plateau that reminders hold; --hold the fewest reminders that hold a level. The table compares D(t)
    with the influence left alone. A bias and reminders together are simulated.
    """
    output.check()
    relay, times = model.build(), _whole(grid.times(drawn=output.plot is not None))
    if reminders.horizon is not None and reminders.hold is None:
        raise ValueError(
            f"--horizon must be given with --hold, got {reminders.horizon} alone; --t-max is the last t of the table"
        )
    if reminders.hold is not None:
        for name, value in (("--bias", bias.bias), ("--share", bias.share), ("--every", reminders.every)):
            if value is not None:
                raise ValueError(f"--hold plans reminders by itself, without {name}, got {name} {value}")
        times = [at for at in times if reminders.horizon is None or at <= reminders.horizon] or [1]
        found = _planned(relay, times, reminders.hold, reminders.horizon, reminders.length)
    elif (schedule := reminders.schedule) is None:
        found = _biased(relay, times, bias.chosen(1) or rm.PromptBias(1))
    elif (chosen := bias.chosen()) is None:
        found = _reminded(relay, times, schedule)
    else:
        found = _simulated(relay, times, chosen, schedule)
    if output.plot is not None and not found.draw:
        raise ValueError(f"--plot must be left out where there is no control to draw: {found.lines[0]}")
    alone = rm.influence(relay, _floats(times)).tolist()
    columns = {"t": times, "influence": found.influence, "uncontrolled": alone}
    output.give(
        columns,
        {**found.source, **described(relay)},
        body=[*heading(relay)[:-1], *found.lines, "", Listing(columns)],
        result={**found.facts, **columns},
        draw=found.draw,
    )


def _biased(model: RelayModel, times: list[int], bias: "Bias") -> Found:
    """Return what a bias does."""
    from relaymodel.control import bias_limit, biased_influence, phase_diagram

    name, strength = _name(bias), getattr(bias, "strength", 1)
    facts: dict[str, Any] = {}
    lines = ["no limit in closed form below strength 0"]
    if strength >= 0:
        facts, lines = _limit(bias_limit(model, bias))
    at = drawn(times)

    def phases(ax: Any) -> None:
        strengths = [max(2.0, 1.25 * float(strength)) * k / 48 for k in range(49)]
        plotting.plot_phase_diagram(phase_diagram(model, strengths, horizon=max(*times, 2)), ax=ax)

    return Found(
        biased_influence(model, bias, _floats(times)).tolist(),
        facts,
        [f"bias: {name}", *lines],
        {"source": "prompt bias", "bias": name},
        [lambda ax: plotting.plot_bias(model, {"no bias": rm.PromptBias(0), name: bias}, at(), ax=ax), phases],
    )


def _simulated(model: RelayModel, times: list[int], bias: "Bias", schedule: "Reminders") -> Found:
    """Return what a bias and reminders do together."""
    from relaymodel.simulation import Simulation

    demand_time(model, max(times))
    simulation = Simulation(model, bias=bias, reminders=schedule)
    reached, D = simulation.advance(max(times), samples=sorted(set(times)), progress=True)
    at = dict(zip(reached.tolist(), D.tolist(), strict=True))
    curve = rm.Curve(reached.astype(np.float64), abs(D)) if len(reached) > 1 else None
    name = f"{_name(bias)}, {schedule.length} in every {schedule.every} tokens"

    def draw(ax: Any) -> None:
        plotting.plot_influence({"left alone": model}, curve.t, ax=ax)  # type: ignore[union-attr]
        plotting.plot_curve({name: curve}, ax=ax)  # type: ignore[dict-item]

    return Found(
        [at[t] for t in times],
        {},
        [
            f"bias: {_name(bias)}",
            f"reminders: {schedule.length} in every {schedule.every} tokens; both together are simulated",
        ],
        {"source": "prompt bias and reminders, simulated", "bias": _name(bias), **_places(schedule)},
        [draw] * (curve is not None),
    )


def _reminded(model: RelayModel, times: list[int], schedule: "Reminders") -> Found:
    """Return what reminders do."""
    from relaymodel.control import reminder_influence, reminder_limit

    limit = reminder_limit(model, schedule)
    every, length, first = schedule.every, schedule.length, schedule.first
    facts = {"plateau": float(limit.between), "on_reminder": float(limit.on_reminder)}
    at = drawn(times)
    return Found(
        reminder_influence(model, schedule, _floats(times)).tolist(),
        facts | {"every": every, "length": length, "first": first},
        [
            f"reminders: {length} in every {every} tokens, the first at t = {first}",
            f"plateau (f(1) - prod rho) R/M: {text(limit.between, 9)}, on reminders {text(limit.on_reminder, 9)}",
        ],
        {"source": "reminders, exact superposition", **_places(schedule)},
        [lambda ax: plotting.plot_reminders(model, schedule, at(), ax=ax)],
    )


def _planned(model: RelayModel, times: list[int], level: Number, horizon: int | None, length: int | None) -> Found:
    """Return the fewest reminders that hold a level."""
    from relaymodel.control import plan_reminders, reminder_influence
    from relaymodel.simulation import EvenReminders, Reminders

    plan = plan_reminders(model, level, horizon, length=length)
    reminders = plan.reminders
    facts: dict[str, Any] = {"level": float(plan.level)}
    facts |= {name: getattr(plan, name) for name in ("tokens", "at_least", "optimal", "floor", "reasons")}
    if isinstance(reminders, Reminders):
        facts |= {"every": reminders.every, "length": reminders.length, "first": reminders.first}
    elif isinstance(reminders, EvenReminders):
        facts |= {"density": float(reminders.density), "block": reminders.block}
    elif reminders is not None:
        facts["blocks"] = [list(block) for block in reminders.blocks]
    for_ever = "for ever" if horizon is None else f"up to t = {text(horizon)}"
    words, at = _describe_plan(plan), drawn(times)

    def draw(ax: Any) -> None:
        plotting.plot_reminders(model, reminders, at(), level=float(plan.level), ax=ax)  # type: ignore[arg-type]

    at_times = _floats(times)
    held = rm.influence(model, at_times) if reminders is None else reminder_influence(model, reminders, at_times)
    return Found(
        held.tolist(),
        facts,
        [f"to hold D(t) >= {text(plan.level)} {for_ever}: {words}", plan.reasons],
        {"source": "reminders, exact superposition", "plan": words},
        [draw] * (reminders is not None),
    )


def _describe_plan(plan: "ReminderPlan") -> str:
    """Return where the reminders of a plan are, and how good it is, in one line."""
    from relaymodel.simulation import EvenReminders

    reminders = plan.reminders
    if reminders is None:
        return "no reminders needed"
    if plan.horizon is not None:
        return f"{text(plan.tokens)} reminder tokens at t = 1 to {text(plan.tokens)}; no plan has fewer"
    if isinstance(reminders, EvenReminders):
        first = f"the first {text(reminders.block)} tokens, then " if reminders.block else ""
        return f"{first}{text(reminders.density)} of all tokens, one by one, as even as can be; no plan has fewer"
    best = "no plan has fewer" if plan.optimal else f"no plan has less than {text(plan.at_least)} of all tokens"
    return f"{reminders.length} in every {reminders.every} tokens, the first at t = {reminders.first}; {best}"  # type: ignore[union-attr]


def _limit(limit: "BiasLimit") -> tuple[dict[str, Any], list[str]]:
    """Return a limit and the turning point, if there is one, as JSON entries and as lines."""
    from relaymodel.control import turning_point
    from relaymodel.control.limits import REVERSAL, describe_term

    facts: dict[str, Any] = {
        "phase": limit.phase,
        "limit": float(limit.limit),
        "exponent": float(limit.exponent),
        "amplitude": _amplitude(limit),
        "rate": float(limit.rate),
        "log_power": limit.log_power,
    }
    lines = [
        f"{limit.phase}: D tends to {text(limit.limit, 9)}, its local exponent to {text(limit.exponent)}",
        f"distance from that, for large t: {describe_term(limit)}",
    ]
    if limit.phase == REVERSAL:
        turn = turning_point(limit.model, limit.bias)
        facts["turn"] = {"t": turn.t, "error": turn.error, "influence": turn.influence, "method": turn.method}
        at = int(turn.t) if turn.t.is_integer() else turn.t
        lines.append(f"D turns at t = {text(at)}, where it is {text(turn.influence)} ({turn.method})")
    return facts, lines


def _amplitude(limit: "BiasLimit") -> float | Decimal | None:
    """Return the amplitude, as a decimal number if it lies beyond the range of float64, None if it is not derived."""
    if limit.factor is None:
        return None
    try:
        return limit.amplitude
    except OverflowError:
        size = (
            math.log(abs(limit.factor.numerator)) - math.log(limit.factor.denominator) + limit.log_scale
        ) / math.log(10)
        power = math.floor(size)
        return Decimal(f"{(10 ** (size - power) if limit.factor > 0 else -(10 ** (size - power))):.12g}e{power}")


def _places(schedule: "Reminders") -> dict[str, str]:
    return {"every": str(schedule.every), "length": str(schedule.length)}


def _name(bias: "Bias") -> str:
    kind, value = ("share", bias.share) if hasattr(bias, "share") else ("strength", bias.strength)
    return f"{kind} {float(value):.6g}"


def _whole(times: Sequence[Number]) -> list[int]:
    """Return continuation tokens that are whole numbers up to 1e300."""
    for at in times:
        if not isinstance(at, int) or at > 10**300:
            raise ValueError(f"--t must be whole numbers up to 1e300 where the decay is controlled, got {text(at)}")
    return [int(at) for at in times]


def _floats(times: Sequence[int]) -> Any:
    return np.array([float(at) for at in times])
