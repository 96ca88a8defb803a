"""Claims about what stops the decay (THEORY section 7)."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from relaymodel import plotting
from relaymodel.control import (
    bias_limit,
    biased_influence,
    phase_diagram,
    plan_reminders,
    reminder_influence,
    reminder_limit,
    turning_point,
)
from relaymodel.control.reminders import Schedule
from relaymodel.exact import influence, token_influence
from relaymodel.model import Layer, RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.simulation import (
    ConstantShare,
    EvenReminders,
    PromptBias,
    ReminderBlocks,
    Reminders,
    Simulation,
    simulate,
)

LONG_RUN = 2 * 10**5


def models() -> dict[str, RelayModel]:
    """Return the models that the claims are checked with: equal layers, and layers that all differ."""
    unequal = [Layer(Fraction(l + 1, l + 3), Fraction(l, l + 1)) for l in range(1, 5)]
    return {
        "1 layer": RelayModel.uniform(prompt=64, depth=1, relay=1),
        "6 layers": RelayModel.uniform(prompt=64, depth=6, relay=Fraction(1, 2)),
        "4 unequal layers": RelayModel(16, unequal),
        "6 layers, no residual": RelayModel.uniform(prompt=64, depth=6, relay=1, residual=0),
    }


@claim(
    r"A compensating prompt bias stops the decay: $D$ reaches the plateau $X - \prod_l(\rho_l + \lambda_l(1-c))$",
    section="7",
)
def plateau(workspace: Workspace) -> Verdict:
    """Compare simulations with the plateau: constant shares at every t, strength 1 in the limit."""
    rows, exact_error, limit_error = [], 0.0, 0.0
    shares = (Fraction(1, 100), Fraction(1, 2), Fraction(9, 10))
    for name, model in models().items():
        for share in shares:
            curve = simulate(model, LONG_RUN, bias=ConstantShare(share), samples=8)
            height = float(bias_limit(model, ConstantShare(share)).limit)
            error = float(np.abs(curve.distance / height - 1).max())
            rows.append((name, f"share {share}", height, float(curve.distance[-1]), error))
            exact_error = max(exact_error, error)
        for offset in (0, -2):
            bias = PromptBias(1, offset)
            limit = bias_limit(model, bias)
            last = float(simulate(model, LONG_RUN, bias=bias, samples=1).distance[-1])
            far = float(biased_influence(model, bias, 1e60))
            error = abs(far / float(limit.limit) - 1)
            rows.append((name, f"strength 1, offset {offset}", float(limit.limit), last, error))
            limit_error = max(limit_error, error)
    workspace.table(
        "plateau",
        f"Plateaus in closed form and the simulation at t = {LONG_RUN}. Last column: largest relative difference, for "
        "shares over all t, for strength 1 at t = 1e60.",
        ("model", "bias", "plateau", "simulated", "difference"),
        rows,
    )
    model = models()["6 layers"]
    biases: dict[str, PromptBias | ConstantShare] = {
        "no bias": PromptBias(0),
        r"strength $\beta = 1$": PromptBias(1),
        "share $c = 1/4$": ConstantShare(0.25),
    }
    workspace.image(
        "plateau",
        "Influence without a bias, with the compensating one, and with a constant share; P = 64, 6 layers, λ = 1/2.",
        plotting.plot_bias(model, biases, plotting.grid(1, 1e8)),
    )
    return Verdict(
        exact_error < 1e-11 and limit_error < 1e-8,
        f"constant shares stand at the plateau from t = 1 to {LONG_RUN} within {exact_error:.1e}; strength 1 is there "
        f"within {limit_error:.1e} at t = 1e60",
        (
            "With a share c of the attention held by the prompt, the gap $X - x$ obeys "
            "$x' \\to \\rho + \\lambda(1-c)$ times itself in each layer, from the first token on. Hence the plateau "
            "$X_L - \\prod_l(\\rho_l + \\lambda_l(1-c))$. A bias $b_t = \\log(1+t/P)$ lets the share tend to 1/2, "
            "one with an offset to another c.",
        ),
    )


@claim(r"A weaker bias takes its strength off the exponent: $D \sim A\,t^{\beta-1}$, without a logarithm", section="7")
def exponent(workspace: Workspace) -> Verdict:
    """Compare D with its leading term far out, and the local exponent with 1 - strength."""
    rows, worst, agree = [], 0.0, 0.0
    for name, model in models().items():
        for strength in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            bias = PromptBias(strength)
            limit = bias_limit(model, bias)
            times = (LONG_RUN, 1e20, 1e60, 1e61)
            values = biased_influence(model, bias, times).tolist()
            ratios = [D / limit.leading(t) for D, t in zip(values[:3], times, strict=False)]
            local = -math.log10(values[3] / values[2])
            simulated = float(simulate(model, LONG_RUN, bias=bias, samples=1).distance[-1])
            agree = max(agree, abs(values[0] / simulated - 1))
            rows.append((name, float(strength), limit.amplitude, *ratios, local))
            worst = max(worst, abs(ratios[-1] - 1), abs(local - 1 + float(strength)))
    workspace.table(
        "exponent",
        "D over its leading term $A\\,t^{\\beta-1}$, and the local exponent at t = 1e60.",
        ("model", "strength β", "A", f"ratio at {LONG_RUN:.0e}", "at 1e20", "at 1e60", "local exponent"),
        rows,
    )
    model = models()["6 layers"]
    biases = {rf"$\beta = {strength:g}$": PromptBias(strength) for strength in (0, 0.25, 0.5, 0.75, 1)}
    workspace.image(
        "exponent",
        "Influence under biases of five strengths; P = 64, 6 layers, λ = 1/2.",
        plotting.plot_bias(model, biases, plotting.grid(1, 1e10)),
    )
    return Verdict(
        worst < 1e-8 and agree < 1e-9,
        f"at t = 1e60 D is its leading term, and the exponent 1 - strength, within {worst:.1e}; the values at t = "
        f"{LONG_RUN} are those of the simulation within {agree:.1e}",
        (
            "The prompt's share falls as $t^{\\beta-1}$, slower than what is relayed without a bias, and each layer "
            "multiplies what it receives by $\\rho + \\lambda/\\beta$: "
            "$A_l = (\\rho_l + \\lambda_l/\\beta) A_{l-1} + P^{1-\\beta} \\lambda_l X_{l-1}$. The logarithms of the "
            "plain decay are gone.",
        ),
    )


@claim(
    "A stronger bias reverses the decay: $D$ turns and returns to all but what the token's own residual carries",
    section="7",
)
def reversal(workspace: Workspace) -> Verdict:
    """Compare the turning time with the least value of a simulation, and the return with its limit."""
    rows, right, worst = [], True, 0.0
    for name, model in models().items():
        for strength in (1.25, 1.5, 2.0):
            bias = PromptBias(strength)
            turn, limit = turning_point(model, bias), bias_limit(model, bias)
            steps = int(8 * turn.t)
            t, D = Simulation(model, bias=bias).advance(steps, samples=np.arange(1, steps + 1))
            least = int(t[np.argmin(D)])
            # a real t lies between tokens, and D is flat there
            right &= abs(least - turn.t) <= turn.error + 0.5 and least >= turn.earliest - 1
            far = float(biased_influence(model, bias, 1e60))
            worst = max(worst, abs(far / float(limit.limit) - 1))
            rows.append((name, strength, turn.t, least, turn.earliest, float(D.min()), float(limit.limit), far))
    workspace.table(
        "reversal",
        "Time of the least influence, by the formula or solver and in a simulation, and the influence it returns to.",
        ("model", "strength β", "turn", "least simulated at", "P/(β-1)", "least D", "limit", "D(1e60)"),
        rows,
    )
    model = models()["6 layers"]
    biases = {rf"$\beta = {strength:g}$": PromptBias(strength) for strength in (1.1, 1.2, 1.3, 1.5)}
    deep = RelayModel.uniform(prompt=256, depth=24, relay=Fraction(1, 2))
    diagram = phase_diagram(deep, np.linspace(0, 2, 41), horizon=2048)
    figure = plotting.panels(
        lambda ax: plotting.plot_bias(model, biases, plotting.grid(1, 1e8), ax=ax),
        lambda ax: plotting.plot_phase_diagram(diagram, ax=ax),
    )
    workspace.image(
        "reversal",
        "Left: the decay turns at the dots, P = 64, 6 layers, λ = 1/2. Right: phases over strength and depth at "
        "t = 2048 for P = 256, λ = 1/2; plateau means a local exponent below 0.01.",
        figure,
    )
    return Verdict(
        right and worst < 1e-8,
        f"all {len(rows)} turning times are those of the simulation; at t = 1e60 D is back at its limit within "
        f"{worst:.1e}",
        (
            "For $\\beta > 1$ the prompt's share falls until $t = P/(\\beta-1)$ and then rises to 1. With one relaying "
            "layer D turns just there; with more it turns later, and never before. It returns to "
            "$X_L - \\prod_l \\rho_l$, which is $X_L$ without residual connections: they carry the token's own "
            "difference, which is 0. In the limit the strength alone decides between decay, plateau and reversal; the "
            "depth decides when it shows.",
        ),
    )


@claim("Reminders hold a plateau in proportion to their density, and no plan needs fewer than planned", section="7")
def reminders(workspace: Workspace) -> Verdict:
    """Compare superposition and simulation, plateaus far out, and plans with what they promise."""
    rows, worst, held = [], 0.0, True
    schedules = (Reminders(64, 8), Reminders(1000, 250), ReminderBlocks(((1, 64), (1000, 1063))))
    for name, model in models().items():
        for schedule in schedules:
            curve = simulate(model, 10**5, reminders=schedule, samples=8)
            exact = reminder_influence(model, schedule, curve.t)
            error = float(np.abs(curve.distance / exact - 1).max())
            worst = max(worst, error)
            height = float(reminder_limit(model, schedule).between)
            far = np.array([_ordinary(schedule, 10**power) for power in (3, 4, 5, 6)])
            D = Simulation(model, reminders=schedule).advance(int(far[-1]), samples=far)[1]
            allowed = _distance(model, schedule, far)
            held &= bool(np.all(np.abs(D - height) <= allowed)) and bool(allowed[-1] < allowed[0] / 4)
            rows.append((name, _named(schedule), error, height, *D[[0, 3]].tolist(), float(allowed[-1])))
    workspace.table(
        "reminders",
        "Largest relative difference between superposition and simulation up to t = 1e5; the plateau, D at ordinary "
        "tokens near t = 1000 and 1e6, and how far from the plateau it may be there.",
        ("model", "reminders", "difference", "plateau", "D near 1e3", "D near 1e6", "allowed"),
        rows,
    )
    plans = []
    for name, model in models().items():
        level = Fraction(3, 4) * (model.saturation - math.prod(residual for _, residual, _ in model.rational))
        always, until = plan_reminders(model, level), plan_reminders(model, level, horizon=10**4)
        steps = 10**4
        for plan in (always, until):
            D = Simulation(model, reminders=plan.reminders).advance(steps, samples=np.arange(1, steps + 1))[1]
            held &= float(D.min()) >= float(level) * (1 - 1e-12) and plan.optimal
            plans.append(
                (name, float(level), plan.horizon or "for ever", float(plan.tokens), _named(plan.reminders), D.min())
            )
        fewer = until.tokens - 1
        held &= float(influence(model.with_prompt(model.prompt + int(fewer)), steps - int(fewer))) < float(level)
    workspace.table(
        "reminder_plans",
        "Plans that hold three quarters of what reminders can hold: tokens (or their part of all), and the least D in "
        "a simulation of 1e4 tokens.",
        ("model", "level", "horizon", "tokens", "reminders", "least D"),
        plans,
    )
    model = models()["6 layers"]
    shown: dict[str, Reminders | ReminderBlocks] = {
        "8 in every 64": Reminders(64, 8),
        "64 in every 1024": Reminders(1024, 64),
        "once, 64 tokens": ReminderBlocks(((1000, 1063),)),
    }
    workspace.image(
        "reminders",
        "Influence at ordinary tokens with three schedules of reminders; P = 64, 6 layers, λ = 1/2.",
        plotting.plot_reminders(model, shown, plotting.grid(1, 2e5, 300)),
    )
    return Verdict(
        worst < 1e-11 and held,
        f"superposition and simulation agree within {worst:.1e}; D closes in on every plateau as it must, and all "
        f"{len(plans)} plans hold their level with the proven least number of tokens",
        (
            "The equations are linear: every block of reminders adds $K(n, e) - K(n, s-1)$. The weights of all tokens "
            "sum to f(1), a token's weight on itself tends to $\\prod\\rho$, so R reminders in every M hold "
            "$(f(1) - \\prod\\rho) R/M$. Summation by parts bounds the distance from it by "
            "$|(1-d) K(n, P) - d (f(n) - \\prod\\rho)| + \\max(R(1-d), d(F-1))\\, w(P+1, n)$ at ordinary tokens, with "
            "d = R/M, F the first reminder and w a token's weight, which falls to 0.",
            "For a horizon one block right behind the prompt is best, since with uniform attention early tokens weigh "
            "the most; for ever, the density level$/(f(1) - \\prod\\rho)$ is needed, and enough.",
        ),
    )


TABLE = {0.0: (0.27, 0.06, -0.01, -0.01), 0.7: (0.53, 0.11, -0.07, -0.08), 0.9: (0.69, 0.15, -0.20, -0.23)}
"""Exponents by recency, for strengths 0 to 3, of THEORY section 7; L = 12, relay 0.2, P = 64, t = 16 to 1024."""


@claim("One bias stops the decay of uniform attention and reverses that of attention by distance", section="7 and 10")
def one_bias(workspace: Workspace) -> Verdict:
    """Compare exponents with those of the theory, and the recursion with softmax attention, key by key."""
    last, rows, right, worst = 1024, [], True, 0.0
    grid = np.unique(np.rint(np.geomspace(16, last, 64))).astype(np.int64)
    for recency, expected in TABLE.items():
        model = RelayModel.uniform(64, 12, 0.2, 1, 0, recency)
        found = []
        for strength in range(4):
            bias = PromptBias(strength)
            _, D = Simulation(model, bias=bias).advance(last, samples=np.arange(1, last + 1))
            worst = max(worst, float(np.abs(D / key_by_key(model, bias, last) - 1).max()))
            found.append(-float(np.polyfit(np.log(grid), np.log(D[grid - 1]), 1)[0]))
        right &= all(abs(a - b) < 0.008 for a, b in zip(found, expected, strict=True))
        rows.append((recency, *found))
    workspace.table(
        "one_bias",
        "Exponent of D from t = 16 to 1024, evenly in log t, under a bias β log(1 + t/P); P = 64, 12 layers, λ = 0.2.",
        ("recency γ", *(f"β = {strength}" for strength in range(4))),
        rows,
    )
    diagram = phase_diagram(
        RelayModel.uniform(64, 12, 0.2), np.linspace(0, 3, 13), recencies=np.linspace(0, 0.9, 7), horizon=1024
    )
    workspace.image(
        "one_bias",
        "Phases over strength and recency at t = 1024; P = 64, 12 layers, λ = 0.2.",
        plotting.plot_phase_diagram(diagram),
    )
    return Verdict(
        right and worst < 1e-10,
        f"strength 2 leaves uniform attention at {rows[0][3]:.2f} and turns recency 0.9 to {rows[2][3]:.2f}; the "
        f"recursion is softmax attention, key by key, within {worst:.1e}",
        (
            "A head that falls with distance as $d^{-\\gamma}$ gives the prompt a small share at first, "
            "$p(0) = 1-\\gamma$ times that of uniform attention. The same bias raises it through the window, so that D "
            "grows; uniform attention has its prompt share near 1 at once, and D stands still.",
        ),
    )


def key_by_key(model: RelayModel, bias: PromptBias, steps: int) -> NDArray[np.float64]:
    """Return D at t = 1..steps by softmax attention with an explicit matrix, for layers of one head of position 0."""
    P, n = model.prompt, model.prompt + steps
    d = np.arange(1.0, n)
    t = np.arange(1.0, steps + 1)
    x: NDArray[np.float64] = np.ones(n)
    x[P:] = 0.0
    means = {}
    for layer in dict.fromkeys(model.layers):
        near = np.cumsum(np.log1p(-float(layer.recency) / d))  # log Gamma(d+1-gamma)/Gamma(d+1), but for a constant
        distance = np.subtract.outer(np.arange(n), np.arange(n))
        logits = np.where(distance > 0, np.append(near, 0.0)[distance - 1], 0.0)
        logits[P:, :P] += bias.log_bias(t, P)[:, None]
        weights = np.where(distance >= 0, np.exp(logits - logits.max(axis=1, keepdims=True)), 0.0)
        means[layer] = weights / weights.sum(axis=1, keepdims=True)
    for layer in model.layers:
        x = float(layer.residual) * x + float(layer.relay) * (means[layer] @ x)
    return x[P:]


def _distance(model: RelayModel, schedule: Reminders | ReminderBlocks, t: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how far from the plateau D may be at ordinary tokens t, shape (T,), by summation by parts."""
    if isinstance(schedule, Reminders):
        d, first = float(schedule.density), int(schedule.first or 1)
        most = max(schedule.length * (1 - d), d * (first - 1))
    else:
        d, most = 0.0, float(schedule.count)
    n = model.prompt + t
    own = np.array([float(model.eigenvalue(int(x)) - model.eigenvalue(10**40)) for x in n])
    prompt: NDArray[np.float64] = influence(model, t.astype(np.float64))
    weight: NDArray[np.float64] = token_influence(model, model.prompt + 1, n)
    return np.abs((1 - d) * prompt - d * own) + most * weight + 1e-12


def _ordinary(schedule: Reminders | ReminderBlocks, t: int) -> int:
    """Return the last token up to t that is no reminder, but is followed by one if the schedule goes on."""
    blocks = schedule.intervals(t)
    if isinstance(schedule, Reminders):
        return int(blocks[-1][0]) - 1
    return t if t > blocks[-1][1] else int(blocks[-1][0]) - 1


def _named(schedule: Schedule | None) -> str:
    if isinstance(schedule, Reminders):
        return f"{schedule.length} in every {schedule.every}"
    if isinstance(schedule, EvenReminders):
        return f"{float(schedule.density):.4g} of all, evenly"
    return "none" if schedule is None else ", ".join(f"{start} to {stop}" for start, stop in schedule.blocks)
