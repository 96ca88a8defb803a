"""Recompute the reference values by contour integration with mpmath, independently of the package."""

import json
import sys
from pathlib import Path

from mpmath import mp, mpf

FILE = Path(__file__).with_name("influence.json")
DIGITS = 30


def integrate(function, poles, offset=0):
    """Return offset + (1/2 pi i) times the integral of `function` around `poles` and around 1.

    Trapezoidal rule on a circle through 3/2, which converges geometrically; the number of nodes doubles
    until the value is stable.
    """
    low, edge = min(poles) - 1, mpf(3) / 2
    centre, radius = (low + edge) / 2, (edge - low) / 2
    nodes, before = 64, None
    while True:
        total = mpf(0)
        for k in range(nodes):
            unit = mp.expjpi(mpf(2 * k + 1) / nodes)
            total += (function(centre + radius * unit) * radius * unit).real
        value = offset + total / nodes
        if before is not None and abs(value - before) <= abs(value) * mpf(10) ** -(DIGITS + 4):
            return value
        nodes, before = 2 * nodes, value


def values(case):
    """Return (influence, local exponent, token influence or None) of one case."""
    P, t = case["prompt"], int(case["t"])
    mp.dps = 60 + 3 * len(case["t"]) + 2 * len(case["layers"])
    layers = [tuple(mpf(x) for x in layer) for layer in case["layers"]]
    N = mpf(P + t)
    poles = [-g for relay, _, g in layers]

    def f(z):
        return mp.fprod(residual + relay * (1 + g) / (z + g) for relay, residual, g in layers)

    def phi(z):
        return mp.exp(mp.loggamma(P + 1 - z) + mp.loggamma(N) - mp.loggamma(P) - mp.loggamma(N + 1 - z)) / (1 - z)

    # The contour takes in the pole of Phi(-z) at 1, with residue -1: poles of f may lie close to it.
    D = integrate(lambda z: f(z) * phi(z), poles, f(mpf(1)))
    slope = integrate(lambda z: f(z) * phi(z) * (mp.digamma(N) - mp.digamma(N + 1 - z)), poles)
    token = None
    if "source" in case:
        s = mpf(case["source"])

        def weight(z):
            return f(z) * mp.exp(mp.loggamma(s - z) + mp.loggamma(N) - mp.loggamma(s) - mp.loggamma(N + 1 - z))

        token = integrate(weight, poles, f(s) if s == 1 else 0)
    return D, -t * slope / D, token


def main():
    cases = json.loads(FILE.read_text())
    worst = 0
    for i, case in enumerate(cases):
        D, alpha, token = values(case)
        for name, value in (("influence", D), ("local_exponent", alpha), ("token_influence", token)):
            if value is None:
                continue
            text = mp.nstr(value, DIGITS, strip_zeros=False)
            if "--write" in sys.argv:
                case[name] = text
            difference = abs(value - mpf(case[name])) / (1 if name == "local_exponent" else abs(value))
            worst = max(worst, difference)
        print(f"{i + 1}/{len(cases)} {case['kind']}: worst difference so far {mp.nstr(worst, 3)}", flush=True)
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(cases, indent=0) + "\n")
    return int(worst > mpf(10) ** (2 - DIGITS))


if __name__ == "__main__":
    sys.exit(main())
