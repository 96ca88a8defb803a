"""How many reminder tokens hold a level, and where to put them (THEORY section 7)."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from relaymodel.checks import Number, positive_integer, real, show
from relaymodel.control.reminders import Schedule, carried
from relaymodel.control.response import check_positive, uniform
from relaymodel.display import table
from relaymodel.exact import influence, influence_ball
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import rational
from relaymodel.model import RelayModel
from relaymodel.simulation.reminders import EvenReminders, ReminderBlocks, Reminders

LONGEST_HORIZON = 10**12  # tokens that a plan reaches, or that lie between two reminders, at most
CLOSE = 1e-11
"""Values this close to the level, relatively, are compared with it in balls; `influence` is right to 1e-12."""


@dataclass(frozen=True)
class ReminderPlan:
    r"""Where to put reminders so that D(t) stays at a level; see `plan_reminders`.

    Attributes
    ----------
    level, horizon
        What is held: D(t) >= level for t = 1..horizon; horizon None is all t.
    reminders
        `ReminderBlocks` for a horizon, `EvenReminders` or `Reminders` for all t, None if the prompt alone holds the
        level.
    tokens
        Reminder tokens up to the horizon; for all t the part of the tokens that are reminders.
    at_least
        No plan has fewer tokens; for all t, none has a smaller upper density.  Proved.
    floor
        What D never falls below with this plan.  Proved.
    reasons
        Why.
    """

    model: RelayModel
    level: Number
    horizon: int | None
    reminders: Schedule | None
    tokens: int | Fraction
    at_least: int | Fraction
    floor: float
    reasons: str

    @property
    def optimal(self) -> bool:
        """Whether the lower bound is attained, so that no plan does better."""
        return self.tokens == self.at_least

    def __repr__(self) -> str:
        where = "none needed" if self.reminders is None else repr(self.reminders)
        least = "the least possible" if self.optimal else f"at least {float(self.at_least):.6g} needed"
        unit = "of all tokens" if self.horizon is None else "tokens"
        return f"ReminderPlan(D >= {float(self.level):.6g}: {where}, {float(self.tokens):.6g} {unit}, {least})"

    def _repr_html_(self) -> str:
        return table(
            "Reminder plan",
            [
                ("level", f"{float(self.level):.9g}"),
                ("held for", "all t" if self.horizon is None else f"t = 1 to {self.horizon}"),
                ("reminders", "none needed" if self.reminders is None else self.reminders),
                ("part of the tokens" if self.horizon is None else "tokens", f"{float(self.tokens):.9g}"),
                ("no plan has less than", f"{float(self.at_least):.9g}"),
                ("D stays above", f"{self.floor:.9g}"),
                ("reasons", self.reasons),
                ("prompt", self.model.prompt),
                ("depth", self.model.depth),
            ],
        )


def plan_reminders(
    model: RelayModel, level: Number, horizon: int | None = None, *, length: int | None = None
) -> ReminderPlan:
    r"""Return reminders that hold $D(t) \ge$ `level` with the least number of tokens (THEORY section 7).

    **For a horizon T** the best plan is one block right behind the prompt, and that is proved.  It makes the prompt one
    of P + k tokens, whose D falls: the least k with $K(P+T, P+k) \ge$ level is found by bisection.  Fewer will not
    do: let n be the last position in P+1..P+T that is no reminder.  With uniform attention early tokens weigh the most
    on it, so that at least k(n) reminders stand before it, the least k with $K(n, P+k) \ge$ level; all positions
    after it are reminders.  That is $k(n) + P + T - n$ at least, and $K(n+1, p+1) \ge K(n, p)$ says that it falls with
    n, down to k(P+T).

    **For all t** let d = level / ($f(1) - \prod\rho$), and S(s) sources stand at the first s positions.  Early tokens
    weigh the most, so that $S(s) \ge ds$ before, and $S(s) \ge ds + e$ from position $P'$ on, give by parts
    $D(n) \ge d(f(1) - f(n)) + e\,w(P', n)$, w(s, n) the weight of token s on n.  With $e \ge d$ that is at least
    $d(f(1) - \prod\rho)$ at every n, since $w(s, n) \ge f(n) - \prod\rho$: the level is held, proved.  The sparsest
    such S is $\lceil ds + d \rceil$, an `EvenReminders` behind the first $P' \ge d/(1-d)$ sources, of density d; and
    in the same way no schedule of smaller upper density holds the level.  With a `length` R, the plan is the sparsest R
    tokens in every M of at least that density; for $R/M > P/(P+1)$ it is to remind always.

    Parameters
    ----------
    model
        One head of position and recency 0 in every layer, strengths not negative, at least one layer relaying.
    level
        In the units of D; positive, at most f(1), for which its nearest float may stand.  From $f(1) - \prod\rho$
        on, all t need every token.
    horizon
        T, up to 10^12 tokens; None is for all t.
    length
        For all t: the number R of tokens in each reminder; None lets single tokens be spread evenly.

    Raises
    ------
    TypeError, ValueError
        For unusable arguments.

    Examples
    --------
    >>> model = RelayModel.uniform(prompt=64, depth=2, relay=1)
    >>> plan = plan_reminders(model, level=1, horizon=1000)
    >>> plan.reminders, plan.tokens, plan.optimal
    (ReminderBlocks(blocks=((1, 173),)), 173, True)
    >>> plan_reminders(model, level=1).reminders  # f(1) - 1 = 3
    EvenReminders(density=Fraction(1, 3), prompt=64, block=0)
    >>> plan_reminders(model, level=1, length=8).reminders
    Reminders(every=24, length=8, first=17)
    """
    check_positive(model, "for a plan")
    if not uniform(model) or not model.plain:
        raise ValueError(
            "model must have one uniform head in every layer and no sink for a plan, whose proof needs early tokens to "
            f"weigh the most and evenly, got {show(model)}"
        )
    height = real("level", level)
    if isinstance(height, float) and height == float(model.saturation):
        height = model.saturation
    if not 0 < height <= model.saturation:
        raise ValueError(
            f"level must be positive and at most f(1) = {float(model.saturation):.9g}, the influence on the prompt "
            f"itself, got {show(level)}"
        )
    if horizon is None:
        return _steady(model, height, length)
    if length is not None:
        raise ValueError(f"length must be left out with a horizon, where one block is best, got {show(length)}")
    last = positive_integer("horizon", horizon)
    if last > LONGEST_HORIZON:
        raise ValueError(
            f"horizon must be at most {LONGEST_HORIZON:.0e} tokens, got {show(horizon)}; None is for all t"
        )
    return _block(model, height, last)


def _block(model: RelayModel, level: Number, horizon: int) -> ReminderPlan:
    """Return the plan of one block behind the prompt."""
    P, exact = model.prompt, Fraction(level)

    def end(k: int) -> float:
        """Return D at the horizon with k reminder tokens."""
        return float(model.saturation if k == horizon else influence(model.with_prompt(P + k), horizon - k))

    def holds(k: int) -> bool:
        if k == horizon or abs(end(k) / float(exact) - 1) > CLOSE:
            return k == horizon or end(k) > exact
        # equal to 60 digits counts as held
        with working(bits=256):
            return not influence_ball(model.with_prompt(P + k), horizon - k, 60) < arb(rational(exact))

    count = _least(holds, horizon)
    reasons = "the prompt alone holds the level"
    if count:
        reasons = "proved: D falls behind the block, and no plan has fewer tokens"
    reminders = ReminderBlocks(((1, count),)) if count else None
    return ReminderPlan(model, level, horizon, reminders, count, count, end(count), reasons)


def _least(good: Callable[[int], bool], most: int) -> int:
    """Return the least k from 0 on that is good, at the latest `most`; all above a good one are good."""
    low, high = -1, most  # low is not good, high is taken to be
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _steady(model: RelayModel, level: Number, length: int | None) -> ReminderPlan:
    """Return the plan for all t: a Beatty sequence, or R tokens in every M."""
    P, f1, gain = model.prompt, model.saturation, model.saturation - carried(model)
    if level >= gain:
        reasons = "proved: at a token that is no reminder D is below f(1) - prod rho"
        return ReminderPlan(model, level, None, Reminders(1, 1), Fraction(1), Fraction(1), float(f1), reasons)
    density = Fraction(level) / gain
    if density * LONGEST_HORIZON < 1:
        raise ValueError(f"level must need more than a reminder every {LONGEST_HORIZON:.0e} tokens, got {show(level)}")
    reminders: Schedule
    if length is None:
        if density / (1 - density) > LONGEST_HORIZON:
            reasons = (
                f"to remind always; the least density is within 1e-12 of 1, and holds only behind "
                f"{LONGEST_HORIZON:.0e} tokens"
            )
            return ReminderPlan(model, level, None, Reminders(1, 1), Fraction(1), density, float(f1), reasons)
        reminders, part = EvenReminders(density, P), density
    else:
        R = positive_integer("length", length)
        M = int(R / density)
        part, first = Fraction(R, M), min(M - R + 1, P * (M - R) // R)
        if first < 1:
            reasons = "to remind always is sure to hold the level; a plan of such reminders between is not excluded"
            return ReminderPlan(model, level, None, Reminders(1, 1), Fraction(1), density, float(f1), reasons)
        reminders = Reminders(M, R, first=first)
    reasons = "proved: D never falls below the level, and no schedule of smaller upper density than the bound holds it"
    return ReminderPlan(model, level, None, reminders, part, density, float(part * gain), reasons)
