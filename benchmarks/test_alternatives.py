"""What a user could pick instead of `influence`: how long it takes, and how many digits it gives.

python -m pytest benchmarks/test_alternatives.py -s
"""

import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import sympy

from benchmarks.timing import table
from relaymodel import RelayModel, derive, influence, influence_ball, simulate

P, RELAY, RESIDUAL = 64, 0.5, 1
CHECKED = (1.0, 100.0, 10_000.0, 1_000_000.0)


def lambdified(depth):
    """The closed form in SciPy's digamma and polygamma functions."""
    d = derive(depth)
    D = sympy.lambdify(d.t, d.closed_form.subs({d.P: P, d.relay[0]: sympy.Float(RELAY)}), modules="scipy")
    return lambda t: np.asarray(D(np.asarray(t)))


def recursion(depth, steps):
    """The recursion itself, plainly: every D(t), t = 1..steps, in arrays of that length."""
    n = np.arange(1.0, P + steps + 1)
    x = np.where(n <= P, 1.0, 0.0)
    for _ in range(depth):
        x = RESIDUAL * x + RELAY * np.cumsum(x) / n
    return x[P:]


def in_scipy(depth, t):
    """The binomial smear of THEORY section 2 by adaptive quadrature in double precision."""

    def integrand(r):
        q = RELAY * RESIDUAL ** (depth - 1) * scipy.special.eval_genlaguerre(depth - 1, 1, RELAY * np.log(r) / RESIDUAL)
        return scipy.special.betainc(t, P, 1 - r) * q

    # without the break points the integrand's step, which lies about P/(P+t), is easily missed
    edges = np.clip(P / (P + t) * np.array([1e-3, 0.5, 1, 2, 4]), 0, 1)
    return scipy.integrate.quad(integrand, 0, 1, points=np.unique(edges), epsabs=0, epsrel=1e-13, limit=200)[0]


def in_mpmath(depth, t):
    """The same by mpmath's double-exponential quadrature, to 20 digits."""
    with mpmath.workdps(20):
        t, relay, residual = map(mpmath.mpf, (t, RELAY, RESIDUAL))

        def integrand(r):
            q = relay * residual ** (depth - 1) * mpmath.laguerre(depth - 1, 1, relay * mpmath.log(r) / residual)
            return mpmath.betainc(t, P, 0, 1 - r, regularized=True) * q

        middle = P / (P + t)
        edges = sorted({mpmath.mpf(0), *(min(1, middle * k) for k in (0.1, 0.5, 1, 1.5, 2, 4)), mpmath.mpf(1)})
        return float(mpmath.quad(integrand, edges))


def series_in_mpmath(depth, t):
    """The series of `influence` itself in mpmath, to 20 digits."""
    with mpmath.workdps(20):
        N = P + mpmath.mpf(t)
        p = [mpmath.digamma(N + 1) - mpmath.digamma(P + 1)]
        p += [mpmath.zeta(i, P + 1) - mpmath.zeta(i, N + 1) for i in range(2, depth)]
        h = [mpmath.mpf(1)]
        for k in range(1, depth):
            h.append(sum(p[i] * h[k - 1 - i] for i in range(k)) / k)
        e = [mpmath.binomial(depth, m) * mpmath.mpf(RELAY) ** m for m in range(depth + 1)]
        return float(P / N * sum(sum(e[k + 1 :]) * h[k] for k in range(depth)))


@pytest.mark.parametrize("depth", [2, 3, 4, 12])
def test_alternatives(race, depth):
    model = RelayModel.uniform(P, depth, RELAY, RESIDUAL)
    t, steps = np.geomspace(1, 1e6, 10**5), 10**6
    closed = lambdified(depth)
    curve = simulate(model, steps, samples=[int(t) for t in CHECKED])
    contestants = {
        "influence": (lambda: influence(model, t), t.size, influence(model, CHECKED)),
        "closed form of derive, in SciPy": (lambda: closed(t), t.size, closed(CHECKED)),
        "recursion by np.cumsum, every t to 1e6": (
            lambda: recursion(depth, steps),
            steps,
            recursion(depth, steps)[[int(t) - 1 for t in CHECKED]],
        ),
        "simulate, every t to 1e6": (lambda: simulate(model, steps), steps, curve.distance),
        "scipy.integrate.quad": (
            lambda: in_scipy(depth, 10_000.0),
            1,
            [in_scipy(depth, t) for t in CHECKED],
        ),
        "mpmath, the same series": (
            lambda: series_in_mpmath(depth, 10_000.0),
            1,
            [series_in_mpmath(depth, t) for t in CHECKED],
        ),
        "mpmath.quad": (lambda: in_mpmath(depth, 10_000.0), 1, [in_mpmath(depth, t) for t in CHECKED[:3]]),
        "influence, one t": (lambda: influence(model, 10_000.0), 1, [influence(model, t) for t in CHECKED]),
        "influence_ball, 50 digits": (
            lambda: influence_ball(model, 10_000.0),
            1,
            [float(influence_ball(model, t).mid()) for t in CHECKED],
        ),
    }
    seconds = race({name: call for name, (call, *_) in contestants.items()}, rounds=5)
    exact = [influence_ball(model, t, 30) for t in CHECKED]
    rows, worst = [], {}
    for name, (_, points, values) in contestants.items():
        worst[name] = max(float(abs((float(v) - e) / e)) for v, e in zip(values, exact, strict=False))
        each = seconds[name] / points
        rows.append((name, each * 1e6, each / (seconds["influence"] / t.size), f"{worst[name]:.0e}"))
    table(
        f"D(t), L = {depth}, P = {P}",
        ("", "microseconds per t", "/ influence of an array", "worst relative error"),
        rows,
    )
    assert worst["influence"] < 1e-12
