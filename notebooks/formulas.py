"""The formulas of the cheat sheet beside their names in code; each is evaluated here and compared with the package."""

import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

from scipy.special import eval_genlaguerre

import relaymodel as rm
from relaymodel import bounds, control, derivation, plotting
from relaymodel.cli.app import app

P, T, L = 7, 40, 4
N = P + T
STRENGTHS = [Fraction(1, 2), Fraction(1), Fraction(1, 5), Fraction(2)]
MODEL = rm.RelayModel(P, [rm.Layer(strength) for strength in STRENGTHS])


@dataclass(frozen=True)
class Entry:
    """Formulas, the names of their code, and a comparison of the two: pairs of numbers that must agree."""

    title: str
    formulas: tuple[str, ...]
    code: tuple[str, ...]
    compare: Callable[[], list[tuple[Any, Any, float]]] | None = None
    note: str = ""


def _symmetric(first: int, last: int, count: int) -> list[Fraction]:
    """Return h_0, ..., h_{count-1} of 1/first, ..., 1/last from their generating function."""
    h = [Fraction(1)] + [Fraction(0)] * (count - 1)
    for n in range(first, last + 1):
        for k in range(1, count):
            h[k] += h[k - 1] / n
    return h


def _elementary(strengths: list[Fraction]) -> list[Fraction]:
    """Return e_0, ..., e_L for residual strength 1."""
    e = [Fraction(1)]
    for strength in strengths:
        e = [a + strength * b for a, b in zip([*e, Fraction(0)], [Fraction(0), *e], strict=True)]
    return e


def _parts() -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    e = _elementary(STRENGTHS)
    return e, [sum(e[k + 1 :], Fraction(0)) for k in range(L)], _symmetric(P + 1, N, L)


def _layer() -> list[tuple[Any, Any, float]]:
    g, x = 0.5, [1.0, -2.0, 0.5, 3.0]
    w = [math.gamma(s + g) / math.gamma(s) for s in range(1, 5)]
    mean = sum(a * b for a, b in zip(w, x, strict=True)) / sum(w)
    return [(float(list(rm.Layer(0.3, 0.9, g).apply(x))[-1]), 0.9 * x[-1] + 0.3 * mean, 1e-12)]


def _residue() -> list[tuple[Any, Any, float]]:
    g, lam = 0.5, 0.3
    Phi = math.gamma(P + 1 + g) * math.gamma(N) / (math.gamma(P) * math.gamma(N + 1 + g) * (1 + g))
    return [(rm.influence(rm.RelayModel(P, [rm.Layer(lam, 1, g)]), T), lam * (1 + g) * Phi, 1e-12)]


def _solution() -> list[tuple[Any, Any, float]]:
    _, E, h = _parts()
    return [(rm.influence_fraction(MODEL, T), Fraction(P, N) * sum(a * b for a, b in zip(E, h, strict=True)), 0)]


def _newton() -> list[tuple[Any, Any, float]]:
    h = _symmetric(P + 1, N, L)
    p = [sum(Fraction(1, n**i) for n in range(P + 1, N + 1)) for i in range(L)]
    return [(k * h[k], sum(p[i] * h[k - i] for i in range(1, k + 1)), 0) for k in range(1, L)]


def _two() -> list[tuple[Any, Any, float]]:
    lam = Fraction(1, 3)
    H = sum(Fraction(1, n) for n in range(P + 1, N + 1))
    value = rm.influence_fraction(rm.RelayModel.uniform(P, 2, lam), T)
    return [(value, Fraction(P, N) * (2 * lam + lam**2 * (1 + H)), 0)]


def _token() -> list[tuple[Any, Any, float]]:
    e, h = _elementary(STRENGTHS), _symmetric(3, N, L)
    value = sum(e[m] * h[m - 1] for m in range(1, L + 1)) / N
    return [(rm.token_influence(MODEL, 3, N), float(value), 1e-12)]


def _exponent() -> list[tuple[Any, Any, float]]:
    _, E, h = _parts()
    zeta = [sum(1.0 / n**i for n in range(N + 1, 10**6)) + 1e-6 ** (i - 1) / (i - 1) for i in range(2, L + 2)]
    dh = [sum(zeta[i - 1] * float(h[k - i]) for i in range(1, k + 1)) for k in range(L)]
    share = sum(float(a) * b for a, b in zip(E, dh, strict=True)) / float(sum(a * b for a, b in zip(E, h, strict=True)))
    return [(rm.local_exponent(MODEL, T), T / N - T * share, 1e-7)]


def _series() -> list[tuple[Any, Any, float]]:
    t = 1e300
    alpha = rm.local_exponent(MODEL, t)
    D = float(bounds.rate(MODEL).ball(t).mid())
    constant = float(math.prod(STRENGTHS)) / math.factorial(L - 1)
    far = 1 - (L - 1) / math.log(t)
    return [(alpha, far, 1e-3), (D * t, constant * P * math.log(t) ** (L - 1), 1e-12)]


def _bracket() -> list[tuple[Any, Any, float]]:
    _, E, h = _parts()
    p = sum(Fraction(1, n) for n in range(P + 1, N + 1))
    low = [p**k / math.factorial(k) for k in range(L)]
    high = [math.prod(p + Fraction(i, P + 1) for i in range(k)) / math.factorial(k) for k in range(L)]
    assert all(a <= b <= c for a, b, c in zip(low, h, high, strict=True))
    sides = rm.bracket(MODEL, Fraction(T))
    quotient = math.exp((L - 1) * (L - 2) / (2 * (P + 1) * float(p)))
    assert sides.tightness <= quotient
    return [
        (sides.lower, Fraction(P, N) * sum(a * b for a, b in zip(E, low, strict=True)), 0),
        (sides.upper, Fraction(P, N) * sum(a * b for a, b in zip(E, high, strict=True)), 0),
        (float(bounds.tightness_bound(MODEL, T).mid()), quotient, 1e-12),
    ]


def _rms() -> list[tuple[Any, Any, float]]:
    squares = _elementary([x**2 for x in STRENGTHS])
    total = sum(squares[m] * (_symmetric(s, N, L)[m - 1] / N) ** 2 for s in range(1, P + 1) for m in range(1, L + 1))
    return [(rm.rms_influence(MODEL, T), math.sqrt(total), 1e-12)]


def _continuum() -> list[tuple[Any, Any, float]]:
    lam, rho, r = 0.3, 0.7, 0.02
    density = rm.derive(rm.RelayModel.uniform(1, L, lam, rho)).continuum_density
    deep = derivation.infinite_depth_density(2)
    tau = math.log(1 / r)
    bessel = sum(2 ** (k + 1) * tau**k / (math.factorial(k) * math.factorial(k + 1)) for k in range(60))
    return [
        (
            float(density.density.subs(density.variable, r)),
            lam * rho ** (L - 1) * eval_genlaguerre(L - 1, 1, -lam * tau / rho),
            1e-9,
        ),
        (float(deep.density.subs(deep.variable, r).evalf()), bessel, 1e-9),
    ]


def _bias() -> list[tuple[Any, Any, float]]:
    model, half = rm.RelayModel.uniform(P, L, Fraction(1, 2)), Fraction(1, 2)
    v = math.exp(rm.PromptBias(0.5).log_bias([T], P)[0])
    return [
        (v, (1 + T / P) ** 0.5, 1e-12),
        (control.bias_limit(model, rm.PromptBias(half)).exponent, 1 - half, 0),
        (control.bias_limit(model, rm.PromptBias(1)).limit, Fraction(3, 2) ** L - Fraction(5, 4) ** L, 0),
        (control.bias_limit(model, rm.PromptBias(2)).limit, Fraction(3, 2) ** L - 1, 0),
        (control.turning_point(rm.RelayModel.uniform(P, 1, 1), rm.PromptBias(1.25)).t, P / 0.25, 0),
    ]


def _reminders() -> list[tuple[Any, Any, float]]:
    model = rm.RelayModel.uniform(P, 2, 1)
    return [(control.reminder_limit(model, rm.Reminders(64, 8)).between, Fraction(3, 8), 0)]


def _relative() -> list[tuple[Any, Any, float]]:
    gamma, sigma, n, far = 0.75, 0.125, 5, 1e300
    heads = [rm.Head(0.5, recency=gamma), rm.Head(0.25)]
    model = rm.RelayModel(P, [rm.Layer(heads=heads, residual=0.5)] * 2)
    mean = math.gamma(2 - gamma) * math.gamma(n) / math.gamma(n + 1 - gamma)
    sunk = rm.RelayModel(P, [rm.Layer(heads=heads, residual=0.5, sink=sigma)] * 2)
    log = [math.log(far), math.log(1e200)]
    scaled = [rm.influence(model, t) * t / P for t in (far, 1e200)]  # linear in log t
    return [
        (rm.token_influence(model, n, n), (0.5 + 0.5 * mean + 0.25 / n) ** 2, 1e-12),
        ((scaled[0] - scaled[1]) / (log[0] - log[1]), (0.5 * (1 - gamma) + 0.25) ** 2, 1e-9),
        (rm.influence(sunk, far), (0.5 + sigma + 0.75) ** 2 - 1.25**2, 1e-12),
    ]


def _values() -> tuple[str, ...]:
    """Return a table of local exponents."""
    times = (1e2, 1e4, 1e6, 1e30, 1e300)
    lines = ["L  t = " + "".join(f"{t:<9.0e}" for t in times)]
    for depth in (1, 2, 6, 12, 24):
        alpha = rm.local_exponent(rm.RelayModel.uniform(10, depth, 1), times)
        lines.append(f"{depth:<7d}" + "".join(f"{a:<9.3f}" for a in alpha))
    return tuple(lines)


def _commands() -> tuple[str, ...]:
    """Return what each command of the program is for."""
    found = []
    for name in app:
        if not name.startswith("-"):
            first = (app[name].help or "").partition("\n")[0]
            found.append(f"{name:10s}{textwrap.shorten(first, 43, placeholder='...')}")
    return tuple(found)


def _figures() -> tuple[str, ...]:
    """Return the functions that draw, wrapped into lines."""
    names = ", ".join(name.removeprefix("plot_") for name in plotting.__all__ if name.startswith("plot_"))
    return tuple(textwrap.wrap(names, 52))


SECTIONS: dict[str, list[Entry]] = {
    "1  The model": [
        Entry(
            "One layer",
            (
                r"x^{\prime}_n = \rho\,x_n + \lambda\,\dfrac{\sum_{s\leq n} w_s x_s}{\sum_{s\leq n} w_s}",
                r"w_s = \Gamma(s+g)\,/\,\Gamma(s) \approx s^g",
            ),
            ("rm.Layer(relay=λ, residual=ρ, position=g)",),
            _layer,
            "g = 0: uniform causal attention, a plain mean",
        ),
        Entry(
            "Influence of a prompt of P tokens",
            (
                r"x = 1\ \mathrm{on\ the\ prompt,}\ 0\ \mathrm{after\ it}",
                r"D(t) = x_{P+t}\ \mathrm{behind}\ L\ \mathrm{layers}",
            ),
            ("rm.RelayModel(prompt=P, layers=[...])", "rm.RelayModel.uniform(P, L, λ)", "rm.simulate(model, steps)"),
            lambda: [(rm.influence_fraction(MODEL, T), MODEL.differences(N)[-1], 0)],
            "dilution, one layer of strength 1: P / (P + t)",
        ),
    ],
    "2  The exact solution  (N = P + t)": [
        Entry(
            "A stack is one function",
            (r"f(z) = \prod_l \left( \rho_l + \lambda_l\,\dfrac{1+g_l}{z+g_l} \right)",),
            ("model.eigenvalue(n)", "model.saturation  # f(1)"),
            lambda: [(MODEL.eigenvalue(3), math.prod(1 + x / 3 for x in STRENGTHS), 0)],
            "the layers commute; f(n) is the eigenvalue at n",
        ),
        Entry(
            "Poles",
            (
                r"D(t) = \sum_g \mathrm{Res}_{z=-g}\ f(z)\,\Phi(-z)",
                r"\Phi(g) = \dfrac{\Gamma(P+1+g)\,\Gamma(N)}{\Gamma(P)\,\Gamma(N+1+g)\,(1+g)}",
            ),
            ("rm.influence(model, t)  # 12 digits", "rm.influence_ball, rm.influence_fraction"),
            _residue,
        ),
        Entry(
            "Uniform attention, g = 0",
            (
                r"D(t) = \dfrac{P}{N}\ \;\sum_{k=0}^{L-1} E_k\,h_k, \quad E_k = \sum_{m>k} e_m",
                r"\sum_m\;e_m x^m = \prod_l (\rho_l + \lambda_l x)",
                r"\sum_k\;h_k x^k = \prod_{n=P+1}^{N} \dfrac{1}{1 - x/n}",
            ),
            ("rm.influence", "rm.derive(L).compact_form"),
            _solution,
            "h_k: ways to stop at k continuation tokens",
        ),
        Entry(
            "Newton's identities",
            (r"k\,h_k = \sum_{i=1}^{k} p_i\,h_{k-i}, \quad p_i = \sum_{n=P+1}^{N} n^{-i}",),
            ("rm.derive(L).definitions",),
            _newton,
        ),
        Entry(
            "Two layers",
            (r"D = \dfrac{P}{N} \left[ 2\lambda + \lambda^2\,(1 + H_N - H_P) \right]",),
            ("rm.derive(2).harmonic_form",),
            _two,
        ),
        Entry(
            "Weight of token s on token n, g = 0",
            (r"\dfrac{1}{n}\ \;\sum_{m\geq 1} e_m\,h_{m-1}\!\left( \frac{1}{s}, \ldots, \frac{1}{n} \right)",),
            ("rm.token_influence(model, s, n)",),
            _token,
            "plus the residual product if s = n",
        ),
    ],
    "3  The local exponent": [
        Entry(
            "Definition; exact for g = 0",
            (
                r"\alpha(t) = -\,\dfrac{d\,\log D}{d\,\log t}"
                r" = \dfrac{t}{N} - t\,\dfrac{\sum_k\;E_k h^{\prime}_k}{\sum_k\;E_k h_k}",
                r"h^{\prime}_k = \sum_{i=1}^{k} \zeta(i+1, N+1)\,h_{k-i}",
            ),
            ("rm.local_exponent(model, t)",),
            _exponent,
        ),
        Entry(
            "Large t: m* layers at the smallest exponent g*",
            (
                r"\alpha(t) = 1 + g_* - \dfrac{m_*-1}{\log t} + \ldots",
                r"D \sim \dfrac{\prod_l \lambda_l}{(L-1)!}\ \dfrac{P\,(\log t)^{L-1}}{t} \quad (g = 0)",
            ),
            ("rm.derive(L).exponent_series(2)", "rm.derive(L).limit,  bounds.rate(model)"),
            _series,
            "no power law at any t",
        ),
        Entry("α(t) for P = 10, λ = 1", (), _values()),
        Entry(
            "From a curve",
            (),
            (
                "rm.estimate_exponent(curve)  # local",
                "rm.fit_power_law(curve)  # a window",
                "rm.extrapolate_exponent(curve)  # limit",
            ),
            None,
            "powers of 1/log t, not of 1/t; refusals are answers",
        ),
    ],
    "4  The bound is tight  (g = 0, λ, ρ ≥ 0)": [
        Entry(
            "Two sides, for every t",
            (
                r"\dfrac{p_1^k}{k!} \leq h_k \leq \dfrac{1}{k!}\ \;\prod_{i<k} \left( p_1 + \dfrac{i}{P+1} \right)",
                r"\dfrac{\mathrm{upper}}{\mathrm{lower}} \leq \exp\,\dfrac{(L-1)(L-2)}{2\,(P+1)\,p_1}",
            ),
            ("rm.bracket(model, t)  # .lower .upper .tightness", "bounds.tightness_bound(model, t)"),
            _bracket,
        ),
    ],
    "5  Random directions": [
        Entry(
            "Squares add (untrained networks)",
            (
                r"R(t)^2 = \sum_{s\leq P}\ \;\sum_m\;e_m(\lambda^2, \rho^2)"
                r" \left[ \dfrac{h_{m-1}(1/s, \ldots, 1/N)}{N} \right]^2",
            ),
            ("rm.rms_influence(model, t)", "networks.calibration.calibrate(network, pairs)"),
            _rms,
        ),
    ],
    "6  Continuum  (r = s/n, τ = log 1/r)": [
        Entry(
            "Density of the influence",
            (
                r"q(r) = \sum_{m\geq 1}\;e_m\,\dfrac{\tau^{m-1}}{(m-1)!}",
                r"\mathrm{equal\ layers:}\quad \lambda\,\rho^{L-1}\,L^{(1)}_{L-1}(-\lambda\tau/\rho)",
                r"L \to \infty,\ \lambda = c/L:\quad \sqrt{c/\tau}\ I_1(2\sqrt{c\,\tau})",
            ),
            ("rm.derive(L).continuum_density", "derivation.infinite_depth_density(c)"),
            _continuum,
            "first cell of 10⁶: weight 14 % high (L = 12, λ = ρ = 1/2)",
        ),
    ],
    "7  What stops the decay": [
        Entry(
            "Bias on the prompt's keys",
            (
                r"s_t = \dfrac{P v_t}{P v_t + t}, \quad v_t = (1 + t/P)^\beta",
                r"x^{\prime}_t = \rho\,x_t + \lambda \left[ s_t X"
                r" + (1 - s_t)\,\dfrac{1}{t}\ \;\sum_{u\leq t} x_u \right]",
                r"\beta < 1:\ D \sim A\,t^{\beta-1} \qquad \beta > 1:\ D \to f(1) - \prod \rho",
                r"\beta = 1:\ D \to f(1) - \prod \left( \rho + \lambda/2 \right)",
                r"\mathrm{turn\ at}\ t = P/(\beta-1)\ \mathrm{for\ one\ layer}",
            ),
            (
                "rm.PromptBias(β),  simulation.ConstantShare(c)",
                "control.biased_influence, control.bias_limit",
                "control.turning_point, control.phase_diagram",
            ),
            _bias,
        ),
        Entry(
            "R reminder tokens in every M",
            (r"D(t) \to \left( f(1) - \prod \rho \right) R/M",),
            ("rm.Reminders(every=M, length=R)", "control.plan_reminders(model, level=...)"),
            _reminders,
        ),
    ],
    "8, 9  Networks": [
        Entry(
            "The theorem: a relay model is the bound",
            (
                r"\delta^{\prime}_n \leq \rho\,\delta_n + \lambda\,\dfrac{1}{n}\ \;\sum_{s\leq n} \delta_s",
                r"\delta_t = O\!\left( P\,(\log t)^{L-1} / t \right)",
            ),
            ("rm.certify(network, pairs)",),
            None,
            "finite depth, bounded logits, a floor before norms",
        ),
        Entry(
            "Strengths of an untrained network",
            (r"\lambda = \rho\,a/\sigma, \quad \rho = \sqrt{1 + \mu^2}",),
            ("networks.calibration.calibrate(network, pairs)",),
            None,
            "a, μ: gains of W_V W_O and of the MLP; σ: size of the stream",
        ),
        Entry(
            "Measurement",
            (),
            ("rm.measure(network, pairs)  # .curve .alpha", "rm.fit(curve), rm.compare_laws(curve)"),
            None,
            "equal token counts; float32 or better; errors over pairs",
        ),
    ],
    "10  Relative position": [
        Entry(
            "Heads ~ (distance)$^{-\\gamma}$, sinks σ",
            (
                r"f(z) = \prod_l \left( \rho + \sum_h \lambda_h\,E_h[u^{z-1}] \right), \quad"
                r" E[u^{z-1}] = \dfrac{\Gamma(2-\gamma)\,\Gamma(z)}{\Gamma(z+1-\gamma)}",
                r"D \sim \prod_l \sum_h \lambda_h (1-\gamma_h) \;\dfrac{P\,(\log t)^{L-1}}{(L-1)!\,t}",
                r"\sigma:\ D \to \prod \left( \rho + \sigma + \sum_h \lambda_h \right) - f(1)",
            ),
            ("rm.Layer(heads=[rm.Head(λ, recency=γ)], sink=σ)", "rm.fit(curve, recency=None, sink=None)"),
            _relative,
        ),
    ],
    "Command line and figures": [
        Entry("relaymodel COMMAND --help", (), _commands()),
        Entry("relaymodel.plotting.plot_...", (), _figures()),
    ],
}


def exists(code: str) -> bool:
    """Return whether the names of the package in a line of code are there."""
    for module, name in re.findall(r"\b(rm|bounds|control|derivation|inference|simulation|networks\.\w+)\.(\w+)", code):
        if not hasattr(rm if module == "rm" else import_module(f"relaymodel.{module}"), name):
            return False
    return True


def verify() -> None:
    """Raise `ValueError` unless every formula agrees with the package, and every name exists."""
    for entries in SECTIONS.values():
        for entry in entries:
            for line in entry.code:
                if not exists(line):
                    raise ValueError(f"the code of {entry.title!r} must name what exists, got {line!r}")
            for value, expected, rel in entry.compare() if entry.compare else ():
                if abs(value - expected) > rel * abs(expected):
                    raise ValueError(
                        f"the formula of {entry.title!r} must give what the package does: {expected}, {value}"
                    )
