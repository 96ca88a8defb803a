"""Curves at extremes through every estimator: results are finite and in order, and right where the truth is known."""

import numpy as np

import relaymodel as rm

QUICK = (rm.fit_power_law, rm.estimate_exponent)
SLOW = (rm.extrapolate_exponent, rm.fit, rm.compare_laws)


def grid(rng):
    """Return t: dense, log-spaced, with gaps, few, and up to 1e300."""
    count = int(rng.choice([2, 3, 5, 12, 64, 300]))
    last = 10.0 ** rng.choice([1, 3, 6, 15, 18, 30, 100, 300])
    kinds = [
        np.arange(1.0, count + 1),
        np.geomspace(1, last, count),
        np.sort(rng.uniform(1, last, count)),
        np.geomspace(1e17, max(1e18, last), count),
        1.7e9 + np.arange(float(count)),
    ]
    return np.unique(kinds[rng.integers(len(kinds))])


def shape(rng, t):
    """Return log D without noise, and the power that it is, if it is one."""
    x = np.log(t)
    alpha = float(rng.choice([0.0, 0.5, 1.0, -0.3, 2.0, 1e-9]))
    kinds = [
        (-alpha * x, alpha),
        (np.log(np.exp(np.clip(-alpha * x, -600, 600)) + 0.02), None),
        (-alpha * x + 0.1 * np.sin(3 * x), None),
        (-np.minimum((t / t[-1]) ** 0.5 * 10, 600), None),
        (np.where(np.arange(t.size) < t.size // 2, 0.0, -3.0), None),
    ]
    return kinds[rng.integers(len(kinds))]


def curve(rng):
    """Return a curve, and the power it follows without noise (None: none, or noisy)."""
    t = grid(rng)
    log, power = shape(rng, t)
    noise = float(rng.choice([0.0, 1e-12, 0.05, 2.0]))
    log = log + noise * rng.standard_normal(t.size) + rng.choice([0.0, 300.0, -300.0])
    distance = np.exp(np.clip(log, -700, 700))
    kinds = [None, 0.05 * distance, np.zeros(t.size), distance * 10 ** rng.uniform(-12, 12, t.size)]
    stderr = kinds[rng.integers(len(kinds))]
    clipped = bool(np.any(np.abs(log) > 700))
    return rm.Curve(t, distance, stderr), power if noise == 0 and not clipped else None


def check(found, what):
    """Demand that the numbers of a result are finite and its intervals in order."""
    for name in ("value", "alpha", "stderr"):
        number = getattr(found, name, None)
        assert number is None or np.all(np.isfinite(number)), f"{name} is {number!r}: {what}"
    value, lower, upper = (getattr(found, name, None) for name in ("value", "lower", "upper"))
    if value is not None and lower is not None:
        assert np.all(lower <= value), f"lower {lower!r} above {value!r}: {what}"
        assert np.all(value <= upper), f"upper {upper!r} below {value!r}: {what}"
    stderr = getattr(found, "stderr", None)
    assert stderr is None or np.all(np.asarray(stderr) >= 0), f"stderr {stderr!r}: {what}"


def through(estimators):
    """Return what runs a random curve through estimators."""

    def run(rng):
        one, power = curve(rng)
        ask = estimators[rng.integers(len(estimators))]
        what = f"{ask.__name__} of {one!r}"
        found = ask(one)
        check(found, what)
        if power is not None and ask is rm.fit_power_law and one.stderr is None and np.ptp(np.log(one.t)) > 1:
            assert abs(found.alpha - power) <= 1e-6 + 3 * found.stderr, f"{found.alpha!r} for {power!r}: {what}"

    return run


KINDS = {"exponents": through(QUICK), "fits": through(SLOW)}
