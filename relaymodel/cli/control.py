"""The command that stops the decay: prompt bias, reminders, and the fewest reminders for a level."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from relaymodel.checks import Number
from relaymodel.cli.numbers import number, text, whole
from relaymodel.cli.options import CONTROL, GridOptions, ModelOptions, option, options
from relaymodel.cli.output import Output, print_table, say
from relaymodel.model import RelayModel, describe_layers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from relaymodel.control import BiasLimit, ReminderPlan
    from relaymodel.simulation import ConstantShare, EvenReminders, PromptBias, ReminderBlocks, Reminders


@options
class BiasOptions:
    """A bias on the prompt's keys."""

    bias: Annotated[
        Number | None,
        option("--bias", "B", "Strength of the bias B log(1+t/P) on the prompt's keys.  [default: 1]", number, CONTROL),
    ] = None
    share: Annotated[
        Number | None, option("--share", "C", "Hold the prompt's share of the attention at C instead.", number, CONTROL)
    ] = None

    def chosen(self, default: Number | None = None) -> "PromptBias | ConstantShare | None":
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


@options
class ReminderOptions:
    """The prompt's text, returned."""

    every: Annotated[
        int | None, option("--every", "M", "Return the prompt's text every M tokens.", whole(), CONTROL)
    ] = None
    length: Annotated[
        int | None,
        option("--length", "R", "Tokens of each such reminder, with --every or --hold.", whole(), CONTROL),
    ] = None
    hold: Annotated[
        Number | None,
        option("--hold", "D", "Plan the fewest reminders that hold D(t) at this level or above.", number, CONTROL),
    ] = None
    horizon: Annotated[
        int | None, option("--horizon", "T", "Hold it for T tokens only.  [default: for ever]", whole(), CONTROL)
    ] = None


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
    from relaymodel.simulation import PromptBias, Reminders

    output.check()
    relay, times = model.build(), _whole(grid.times())
    if output.plot is not None and len(set(times)) < 2:
        raise ValueError("--plot must have at least two different t to draw")
    if reminders.horizon is not None and reminders.hold is None:
        raise ValueError(
            f"--horizon must be given with --hold, got {reminders.horizon} alone; --t-max is the last t of the table"
        )
    if reminders.hold is not None:
        for name, value in (("--bias", bias.bias), ("--share", bias.share), ("--every", reminders.every)):
            if value is not None:
                raise ValueError(f"--hold plans reminders by itself, without {name}, got {name} {value}")
        _plan(output, relay, times, reminders.hold, reminders.horizon, reminders.length)
        return
    chosen = bias.chosen()
    if (reminders.every is None) != (reminders.length is None):
        raise ValueError("--every and --length must be given together: R tokens in every M are reminders")
    schedule = None
    if reminders.every is not None and reminders.length is not None:
        schedule = Reminders(reminders.every, reminders.length)
    if schedule is None or chosen is not None:
        _bias(output, relay, times, chosen or PromptBias(1), schedule)
    else:
        _remind(output, relay, times, schedule)


def _bias(
    output: Output,
    model: RelayModel,
    times: list[int],
    chosen: "PromptBias | ConstantShare",
    schedule: "Reminders | None",
) -> None:
    """Show what a bias does, alone or together with reminders."""
    from relaymodel.control import bias_limit, biased_influence
    from relaymodel.simulation import PromptBias, Simulation

    facts: dict[str, Any] = {}
    lines = [f"bias: {_name(chosen)}"]
    if schedule is None:
        if isinstance(chosen, PromptBias) and chosen.strength < 0:
            lines.append("no limit in closed form below strength 0")
        else:
            facts, more = _limit(bias_limit(model, chosen))
            lines += more
        values = biased_influence(model, chosen, _floats(times)).tolist()
    else:
        lines.append(f"reminders: {schedule.length} in every {schedule.every} tokens; both together are simulated")
        simulation = Simulation(model, bias=chosen, reminders=schedule)
        reached, D = simulation.advance(max(times), samples=sorted(set(times)), progress=True)
        found = dict(zip(reached.tolist(), D.tolist(), strict=True))
        values = [found[at] for at in times]

    def draw() -> "Figure":
        from relaymodel import plotting
        from relaymodel.control import phase_diagram

        if schedule is not None:
            raise ValueError(
                "--plot must be used with a bias or with reminders, not with both; --csv writes the numbers"
            )
        figure = plotting.panels(2)
        grid = plotting.grid(float(min(times)), float(max(times)))
        plotting.plot_bias(model, {"no bias": PromptBias(0), _name(chosen): chosen}, grid, ax=figure.axes[0])
        top = max(2.0, 1.25 * float(getattr(chosen, "strength", 1)))
        strengths = [top * k / 48 for k in range(49)]
        diagram = phase_diagram(model, strengths, horizon=max(*times, 2))
        plotting.plot_phase_diagram(diagram, ax=figure.axes[1])
        return figure

    _finish(output, model, times, values, facts, lines, draw, {"source": "prompt bias", "bias": _name(chosen)})


def _remind(output: Output, model: RelayModel, times: list[int], schedule: "Reminders") -> None:
    """Show what reminders do."""
    from relaymodel.control import reminder_influence, reminder_limit

    limit = reminder_limit(model, schedule)
    facts = {
        "plateau": float(limit.between),
        "on_reminder": float(limit.on_reminder),
        "every": schedule.every,
        "length": schedule.length,
        "first": schedule.first,
    }
    lines = [
        f"reminders: {schedule.length} in every {schedule.every} tokens, the first at t = {schedule.first}",
        f"plateau (f(1) - prod rho) R/M: {text(limit.between, 9)}, on reminders {text(limit.on_reminder, 9)}",
    ]
    values = reminder_influence(model, schedule, _floats(times)).tolist()
    provenance = {
        "source": "reminders, exact superposition",
        "every": str(schedule.every),
        "length": str(schedule.length),
    }
    _finish(output, model, times, values, facts, lines, lambda: _drawing(model, times, schedule, None), provenance)


def _plan(
    output: Output, model: RelayModel, times: list[int], level: Number, horizon: int | None, length: int | None
) -> None:
    """Show the fewest reminders that hold a level."""
    from relaymodel.control import plan_reminders, reminder_influence
    from relaymodel.exact import influence
    from relaymodel.simulation import EvenReminders, Reminders

    plan = plan_reminders(model, level, horizon, length=length)
    times = [at for at in times if horizon is None or at <= horizon] or [1]
    facts: dict[str, Any] = {
        "level": float(plan.level),
        "tokens": plan.tokens,
        "at_least": plan.at_least,
        "optimal": plan.optimal,
        "floor": plan.floor,
        "reasons": plan.reasons,
    }
    if isinstance(plan.reminders, Reminders):
        facts |= {"every": plan.reminders.every, "length": plan.reminders.length, "first": plan.reminders.first}
    elif isinstance(plan.reminders, EvenReminders):
        facts |= {"density": float(plan.reminders.density), "block": plan.reminders.block}
    elif plan.reminders is not None:
        facts["blocks"] = [list(block) for block in plan.reminders.blocks]
    for_ever = "for ever" if horizon is None else f"up to t = {text(horizon)}"
    lines = [f"to hold D(t) >= {text(plan.level)} {for_ever}: {_describe_plan(plan)}", plan.reasons]
    alone = influence(model, _floats(times)).tolist()
    values = alone if plan.reminders is None else reminder_influence(model, plan.reminders, _floats(times)).tolist()
    provenance = {"source": "reminders, exact superposition", "plan": _describe_plan(plan)}

    def draw() -> "Figure":
        if plan.reminders is None:
            raise ValueError(f"--plot must have reminders to draw, but the prompt alone holds {text(plan.level)}")
        return _drawing(model, times, plan.reminders, float(plan.level))

    _finish(output, model, times, values, facts, lines, draw, provenance)


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


def _drawing(
    model: RelayModel, times: list[int], reminders: "Reminders | EvenReminders | ReminderBlocks", level: float | None
) -> "Figure":
    from relaymodel import plotting

    figure = plotting.panels()
    grid = plotting.grid(float(min(times)), float(max(times)))
    plotting.plot_reminders(model, reminders, grid, level=level, ax=figure.axes[0])
    return figure


def _finish(
    output: Output,
    model: RelayModel,
    times: list[int],
    values: list[float],
    facts: Mapping[str, Any],
    lines: Sequence[str],
    draw: Any,
    provenance: Mapping[str, str],
) -> None:
    """Write the files, print the table or the JSON object."""
    from relaymodel.exact import influence

    alone = influence(model, _floats(times)).tolist()
    described = {"prompt": str(model.prompt), "layers": describe_layers(model.layers)}
    columns = {"t": times, "influence": values, "uncontrolled": alone}
    output.write_table(columns, {**provenance, **described})
    output.write_figure(draw)

    def show() -> None:
        say(f"prompt of {text(model.prompt)} tokens, {describe_layers(model.layers)}")
        for line in (*lines, ""):
            say(line)
        print_table(columns)

    output.show({**facts, **columns}, show)


def _name(bias: "PromptBias | ConstantShare") -> str:
    from relaymodel.simulation import ConstantShare

    return (
        f"share {float(bias.share):.6g}" if isinstance(bias, ConstantShare) else f"strength {float(bias.strength):.6g}"
    )


def _whole(times: Sequence[Number]) -> list[int]:
    """Return continuation tokens that are whole numbers up to 1e300."""
    for at in times:
        if not isinstance(at, int) or at > 10**300:
            raise ValueError(f"--t must be whole numbers up to 1e300 where the decay is controlled, got {text(at)}")
    return [int(at) for at in times]


def _floats(times: Sequence[int]) -> Any:
    import numpy as np

    return np.array([float(at) for at in times])
