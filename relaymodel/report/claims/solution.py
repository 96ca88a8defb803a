"""Claims about the exact solution (THEORY sections 1 and 2)."""

from fractions import Fraction

import numpy as np

from relaymodel import plotting
from relaymodel.derivation import derive
from relaymodel.derivation.notation import latex
from relaymodel.exact import influence_ball
from relaymodel.model import Layer, RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.simulation import simulate

DEPTHS = range(1, 7)
PROMPTS = (1, 3, 8)
TOKENS = (1, 2, 5, 12, 24)


def heterogeneous(depth: int, prompt: int) -> RelayModel:
    """Return a model whose strengths all differ: relay (l+1)/(l+3), residual l/(l+1), reproducible by hand."""
    layers = [Layer(Fraction(l + 1, l + 3), Fraction(l, l + 1)) for l in range(1, depth + 1)]
    return RelayModel(prompt, layers)


@claim("The derived closed form equals the recursion, exactly", section="2")
def closed_form_equals_recursion(workspace: Workspace) -> Verdict:
    """Compare symbolic derivation and recursion as rationals, for depth 1..6, several prompts, unequal strengths."""
    rows, right, total = [], 0, 0
    for depth in DEPTHS:
        symbolic = derive(depth, relay="different", residual="different")
        layers = heterogeneous(depth, 1).layers
        strengths = dict(zip(symbolic.relay, (l.relay for l in layers), strict=True))
        strengths |= dict(zip(symbolic.residual, (l.residual for l in layers), strict=True))
        closed_form, agree = symbolic.closed_form.subs(strengths), 0
        for prompt in PROMPTS:
            recursion = heterogeneous(depth, prompt).differences(prompt + max(TOKENS))
            for t in TOKENS:
                value = closed_form.subs({symbolic.P: prompt, symbolic.t: t})
                agree += Fraction(int(value.p), int(value.q)) == recursion[prompt + t - 1]
        count = len(PROMPTS) * len(TOKENS)
        example = heterogeneous(depth, 3).differences(8)[-1]
        rows.append((depth, count, agree, str(example)))
        right, total = right + agree, total + count
    workspace.table(
        "closed_form_equals_recursion",
        "Rational values of the symbolic closed form that equal the recursion's. Last column: D(5) for P = 3.",
        ("depth", "points", "equal", "example"),
        rows,
    )
    steps = derive(2).steps
    story = [
        f"**{step.title}.** {step.text}" + "".join(f"\n$$ {latex(equation)}" for equation in step.equations)
        for step in steps
    ]
    return Verdict(
        right == total,
        f"{right} of {total} values for depth 1 to 6 are equal as rational numbers",
        (
            "SymPy derives D(t) from one layer's recursion, with a symbol for every strength. Rational strengths, all "
            "different, are put into the closed form, and the result is compared with the recursion run in fractions. "
            "This is the derivation for two equal layers:",
            *story,
        ),
    )


@claim("The simulation to $t = 10^7$ agrees with the exact values to $10^{-11}$", section="1 and 2")
def simulation_agrees(workspace: Workspace) -> Verdict:
    """Stream the recursion over 1e7 tokens in float64 and compare with certified values."""
    rows, points, worst = [], [], 0.0
    for depth in DEPTHS:
        model = RelayModel.uniform(prompt=64, depth=depth, relay=1)
        curve = simulate(model, 10**7, samples=20)
        exact = [float(influence_ball(model, int(t), 20).mid()) for t in curve.t]
        error = np.abs(curve.distance / exact - 1)
        points += [(depth, int(t), d, e) for t, d, e in zip(curve.t, curve.distance.tolist(), exact, strict=True)]
        rows.append((depth, len(curve), float(curve.distance[-1]), float(error.max())))
        worst = max(worst, float(error.max()))
    workspace.table("simulation", "Simulated and exact influence.", ("depth", "t", "simulated", "exact"), points)
    workspace.table(
        "simulation_error",
        "Largest relative difference between simulation and certified values, P = 64, λ = ρ = 1.",
        ("depth", "samples", "D(1e7)", "largest difference"),
        rows,
    )
    caption = f"Relative difference of the simulation from `influence` in float64, depth {depth}, P = 64."
    workspace.image("simulation_error", caption, plotting.plot_difference(curve, model))
    return Verdict(
        worst < 1e-11,
        f"largest relative difference {worst:.1e} over depth 1 to 6",
        (
            "The recursion of section 1 is run in double precision over ten million tokens, its sums carried in twice "
            "the precision. The exact values come from ball arithmetic, whose error bars are rigorous.",
        ),
    )
