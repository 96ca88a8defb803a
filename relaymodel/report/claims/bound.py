"""Claims about the two-sided bound (THEORY section 4)."""

import math
from fractions import Fraction

from flint import arb

from relaymodel import plotting
from relaymodel.bounds import bracket, bracket_ball, rate, tightness_bound
from relaymodel.derivation import derive
from relaymodel.exact import influence_ball, influence_fraction
from relaymodel.exact.precision import working
from relaymodel.exact.spectrum import rational
from relaymodel.model import RelayModel
from relaymodel.report.claim import Verdict, Workspace, claim
from relaymodel.report.claims.solution import DEPTHS, heterogeneous

EVERY = 150
DIGITS = (1, 2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000)


@claim("Exact values lie inside the two-sided bracket, whose relative width shrinks to 0", section="4")
def bracket_holds(workspace: Workspace) -> Verdict:
    """Check rational inequalities at every t up to 150, and certified ones on to t = 10^100000."""
    held = total = 0
    for depth in DEPTHS:
        for prompt in (1, 7):
            model = heterogeneous(depth, prompt)
            for t in range(1, EVERY + 1):
                lower, upper = bracket(model, Fraction(t))
                held += lower <= influence_fraction(model, t) <= upper
                total += 1
    rows, shrinking, inside, widths = [], True, True, list[float]()
    for depth in DEPTHS:
        model = RelayModel.uniform(prompt=10, depth=depth, relay=1)
        before, last = None, 0.0
        for digits in DIGITS:
            t = 10**digits
            sides, value = bracket_ball(model, t, 40), influence_ball(model, t, 40)
            # balls cannot order equal numbers: with one or two layers both sides are equalities, to be met
            inside &= bool(sides.lower < value < sides.upper) if depth > 2 else sides.lower.overlaps(value)
            width = sides.tightness - 1
            if depth > 2:
                inside &= bool(sides.tightness < tightness_bound(model, t))
                if t > 100:  # in the first tokens D is all E_0, and both sides are close to it
                    shrinking &= before is None or bool(width < before)
                    before = width
            shown = (x.str(12, radius=False) for x in (sides.lower, value, sides.upper))
            last = float(width.mid()) if depth > 2 else 0.0
            rows.append((depth, f"1e{digits}", *shown, last))
        widths.append(last)
    workspace.table(
        "bracket",
        "Both sides of the bound and the value between them, certified to 40 digits; P = 10, λ = ρ = 1.",
        ("depth", "t", "lower", "exact", "upper", "relative width"),
        rows,
    )
    grid = plotting.grid(1, 1e300, 300)
    deep = {f"$L = {depth}$": RelayModel.uniform(prompt=10, depth=depth, relay=1) for depth in DEPTHS if depth > 2}
    figure = plotting.panels(
        lambda ax: plotting.plot_bracket(RelayModel.uniform(prompt=10, depth=6, relay=1), grid, ax=ax),
        lambda ax: plotting.plot_tightness(deep, grid, ax=ax),
    )
    workspace.image("bracket", "Left: both sides over the exact value, depth 6. Right: the relative width.", figure)
    return Verdict(
        held == total and inside and shrinking,
        f"{held} of {total} exact inequalities hold; the relative width falls to {max(widths):.1e} at t = 1e100000",
        (
            "For $\\lambda, \\rho \\geq 0$ and uniform attention, $D = (P/N) \\sum_k E_k h_k$ with "
            "$p_1^k/k! \\leq h_k \\leq \\prod_{i<k}(p_1 + i/(P+1))/k!$. The inequalities are checked between exact "
            f"fractions at every t from 1 to {EVERY}, for unequal strengths, and between certified balls on to "
            "$t = 10^{100000}$.",
        ),
    )


@claim("With more power sums kept the bracket closes in, and it holds at every $t > 0$", section="4")
def bracket_closes_in(workspace: Workspace) -> Verdict:
    """Check rational inequalities for K = 1..6 kept sums at whole t, and against certified balls at fractions."""
    times = [
        Fraction(1, 100),
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(9, 10),
        Fraction(1),
        Fraction(7, 3),
        Fraction(100),
    ]
    rows, held, total, closing = [], 0, 0, True
    for prompt in (1, 10):
        for model in (RelayModel.uniform(prompt, 6, 1), heterogeneous(6, prompt), RelayModel.uniform(prompt, 12, 3)):
            for t in times:
                value = influence_ball(model, t, 60)
                widths = []
                for sums in range(1, model.depth + 1):
                    lower, upper = bracket(model, t, sums=sums)
                    widths.append(upper / lower - 1)
                    with working(bits=400):  # at K = L - 1 both sides are the value, which a ball leaves open
                        held += not value < arb(rational(lower)) and not value > arb(rational(upper))
                    total += 1
                closing &= widths == sorted(widths, reverse=True) and widths[model.depth - 2] < Fraction(1, 10**40)
                if model.depth == 6 and model.layers[0] == model.layers[-1]:
                    rows.append((prompt, str(t), *(float(width) for width in widths[:5])))
    workspace.table(
        "bracket_sums",
        "Relative width upper/lower - 1 for K power sums kept; 6 layers, λ = ρ = 1.",
        ("P", "t", *(f"K = {sums}" for sums in range(1, 6))),
        rows,
    )
    return Verdict(
        held == total and closing,
        f"{held} of {total} inequalities hold, at t from 1/100 to 100, and every further sum narrows the bracket, down "
        "to nothing at K = L - 1",
        (
            "$h_k$ is a polynomial with positive coefficients in the power sums $p_i$. Those beyond K are from 0 to "
            "$p_K (P+1)^{K-i}$ for $t \\geq 1$, and below $p_K\\, i\\zeta(i+1, P+1)/(K\\zeta(K+1, P+1))$ for every "
            "$t > 0$, because $p_i/p_K$ falls with t.",
        ),
    )


@claim(r"$D$ over $A P (\log t)^{L-1}/t$ tends to 1: the rate of the bound is attained", section="3 and 4")
def rate_is_attained(workspace: Workspace) -> Verdict:
    """Compare D with its leading term far out, and the difference with the derived next term."""
    rows, right = [], True
    for depth in DEPTHS:
        model = RelayModel.uniform(prompt=10, depth=depth, relay=1)
        leading = rate(model)
        next_term = 0.0
        if depth > 1:
            symbolic = derive(model)
            next_term = float(symbolic.asymptotic_series(2).coefficients[1].subs(symbolic.P, model.prompt))
        for digits in (10, 100, 1000, 10_000, 100_000):
            t = 10**digits
            ratio = influence_ball(model, t, 40) / leading.ball(t, 40)
            scaled = float((ratio - 1).mid()) * digits * math.log(10)
            rows.append((depth, f"1e{digits}", float(ratio.mid()), scaled, next_term))
        right &= abs(rows[-1][2] - 1) < 1e-3 and abs(scaled - next_term) <= 1e-3 * abs(next_term) + 1e-9
    workspace.table(
        "rate",
        "The ratio of D to its leading term, and (ratio − 1) log t, which tends to the derived coefficient c₁; P = 10.",
        ("depth", "t", "ratio", "(ratio − 1) log t", "c₁"),
        rows,
    )
    models = {f"$L = {depth}$": RelayModel.uniform(prompt=10, depth=depth, relay=1) for depth in DEPTHS}
    figure = plotting.plot_rate(models, plotting.grid(1e3, 1e300, 300))
    workspace.image("rate", "D over its leading term; the approach is as slow as 1/log t.", figure)
    return Verdict(
        right,
        f"at t = 1e100000 the ratio is 1 within {max(abs(r[2] - 1) for r in rows if r[1] == '1e100000'):.1e}, "
        "and its distance from 1 is the derived c₁/log t",
        (
            "The upper side of the bracket is $O(P (\\log t)^{L-1}/t)$, the rate of the theorem. Here D itself attains "
            "it with the constant $A = \\prod_l \\lambda_l/(L-1)!$, so no bound of smaller order can hold.",
        ),
    )
