"""How often 95 % intervals hold the truth, and how far off the values are: a table over many synthetic curves.

    OMP_NUM_THREADS=1 python -m studies coverage --sets 1000 --jobs 2 --csv docs/coverage.csv

Every data set is seeded by its number alone, so that a row can be repeated, and a longer run holds a shorter one.
Estimators are asked for what they promise: local exponents, the power of a power law, the limit, the parameters of the
relay model.  `--estimators alternatives` shows what other programs say of the same data; it needs lmfit and
statsmodels.
"""

import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from relaymodel import Curve, PromptBias, RelayModel, __version__, influence, local_exponent, tasks
from relaymodel.control import biased_influence
from relaymodel.inference import UnderdeterminedError, estimate_exponent, extrapolate_exponent, fit, fit_power_law
from studies import tables

PROMPT, RELAY, BIAS, RECENCY, SIGMA = 64, 0.5, 0.5, 0.3, 0.05
LAST = 4096
WAVE, DEPTH_OF_WAVE = 6.0, 0.1
"""Frequency in log t, and amplitude, of the log-periodic truth."""
DENSE = np.arange(1.0, LAST + 1)
AT = np.array([30.0, 100.0, 400.0, 1500.0])


def _points(count):
    return np.unique(np.rint(np.geomspace(4, LAST, count)))


GRIDS = {
    "64": _points(70),  # 64 distinct whole numbers
    "256": _points(420),
    "1024": np.arange(1.0, 1025),
    "4096": DENSE,
    "gaps": np.concatenate([np.arange(4.0, 40), np.arange(200.0, 400, 5), np.arange(1500.0, 4000, 50)]),
    "12": _points(12),
    "1e6": np.unique(np.rint(np.geomspace(1, 1e6, 100))),
}


class Truth:
    """log D and the local exponent at t (T,), with the limit and, of a relay model, its depth and bias.

    The limit of what does not settle is infinite.
    """

    def __init__(self, name, t=DENSE):
        self.depth = self.bias = None
        self.t, x = t, np.log(t)
        if name in LAWS:
            log, alpha, self.limit = LAWS[name]
            self.log, self.alpha = log(x), alpha(x)
            return
        self.limit = 1.0
        if name == "recency":
            model = RelayModel.uniform(PROMPT, 6, RELAY, recency=RECENCY)
        elif name == "biased":
            self.depth, self.bias, self.limit = 6, BIAS, 1 - BIAS
            model = RelayModel.uniform(PROMPT, self.depth, RELAY)
            # seven points are as smooth as float64 allows; the first three t have no such slope
            step = np.maximum(1, np.floor(t / 50))
            at = np.maximum(1, t + step * np.arange(-3, 4)[:, None])
            logs = np.log(biased_influence(model, PromptBias(BIAS), at.ravel()).reshape(at.shape))
            self.log, self.alpha = logs[3], t * (np.array([1, -9, 45, 0, -45, 9, -1]) @ logs) / (60 * step)
            return
        else:
            self.depth, self.bias = int(name.removeprefix("relay ")), 0.0
            model = RelayModel.uniform(PROMPT, self.depth, RELAY)
        self.log, self.alpha = np.log(influence(model, t)), local_exponent(model, t)

    def at(self, t):
        """Return log D and the exponent at some of its t."""
        where = np.searchsorted(self.t, t)
        return self.log[where], self.alpha[where]


def _sum(parts):
    """Return a sum of powers, of c t^-a for each (c, a), as log D and exponent of log t."""

    def log(x):
        return np.log(sum(c * np.exp(-a * x) for c, a in parts))

    return log, lambda x: sum(a * c * np.exp(-a * x) for c, a in parts) / np.exp(log(x))


def _waved(x):
    return np.log1p(DEPTH_OF_WAVE * np.cos(WAVE * x)) - 0.5 * x


def _waves(x):
    return 0.5 + WAVE * DEPTH_OF_WAVE * np.sin(WAVE * x) / (1 + DEPTH_OF_WAVE * np.cos(WAVE * x))


LAWS = {
    "power": (*_sum([(1, 0.5)]), 0.5),
    "constant": (*_sum([(1, 0.5), (0.02, 0.0)]), 0.0),
    "two powers": (*_sum([(1, 0.5), (3, 1.0)]), 0.5),
    "log-periodic": (_waved, _waves, 0.5),
    "stretched 0.1": (lambda x: -np.exp(0.1 * x), lambda x: 0.1 * np.exp(0.1 * x), np.inf),
    "stretched 0.3": (lambda x: -np.exp(0.3 * x) / 8, lambda x: 0.3 * np.exp(0.3 * x) / 8, np.inf),
}
TRUTHS = (*LAWS, "relay 2", "relay 6", "relay 12", "biased", "recency")


def walk(rng, x):
    """Noise of unit variance at x (T,), with correlations exp(-|x - x'|)."""
    r = np.exp(-np.diff(x, prepend=x[0]))
    drive, noise, value = rng.standard_normal(x.size) * np.sqrt(1 - r * r), np.empty(x.size), rng.standard_normal()
    for i in range(x.size):
        value = noise[i] = r[i] * value + drive[i]
    return noise


def mixed(rng, share, x):
    """Noise of unit variance of which `share` is correlated along x, and the rest white."""
    correlated = walk(rng, x)
    return np.sqrt(1 - share) * rng.standard_normal(x.size) + np.sqrt(share) * correlated


NOISES = {
    "white": lambda rng, t: rng.standard_normal(t.size),
    "AR(1) 0.9": lambda rng, t: mixed(rng, 1.0, -np.log(0.9) * t),
    "80% over 30": lambda rng, t: mixed(rng, 0.8, t / 30),
    "fading": lambda rng, t: mixed(rng, 0.7, np.log(t) / 0.25),
}


def data_set(truth, noise, grid, number):
    """Return a curve on a grid; the number alone seeds its noise, which grids within t = 1..LAST share."""
    rng = np.random.default_rng([number, zlib.crc32(noise.encode())])
    t = GRIDS[grid]
    along = DENSE if t[-1] <= LAST else t
    wiggle = NOISES[noise](rng, along)[np.searchsorted(along, t)]
    return Curve(t, np.exp(truth.at(t)[0] + SIGMA * wiggle), provenance={"prompt": str(PROMPT)})


def interval(value, error):
    """Return the 95 % interval that a standard error stands for."""
    return value, value - 1.96 * error, value + 1.96 * error


def local(curve, truth):
    """Local exponents at four t."""
    at = AT[(curve.t[0] <= AT) & (curve.t[-1] >= AT)]
    found = estimate_exponent(curve, at)
    for t, value, error in zip(at, found.alpha, found.stderr, strict=True):
        yield f"alpha({t:.0f})", truth.at(t)[1], interval(value, error)


def power(curve, truth):
    """The power of the window; of a curve that is none, that of its noise-free self, which its noise alone may miss.

    The full error of such a curve holds the drift of its exponent as well, and is far larger than that.
    """
    found = fit_power_law(curve)
    pure = np.ptp(truth.alpha) < 1e-9
    expected = truth.limit if pure else fit_power_law(Curve(curve.t, np.exp(truth.at(curve.t)[0]))).alpha
    name, error = ("power", found.stderr) if pure else ("power, noise alone", found.noise_stderr)
    yield name, expected, interval(found.alpha, error)


def limit(curve, truth):
    """The exponent's limit; of what does not settle, that it is refused or said to grow on; how often it is refused."""
    try:
        found = extrapolate_exponent(curve)
    except UnderdeterminedError:
        yield "limit refused", 1.0, (1.0, 1.0, 1.0)
        if np.isinf(truth.limit):
            yield "limit refused or said to grow", 1.0, (1.0, 1.0, 1.0)
        return
    yield "limit refused", 1.0, (0.0, 0.0, 0.0)
    if np.isinf(truth.limit):
        said = float(not found.identified)
        yield "limit refused or said to grow", 1.0, (said, said, said)
        return
    yield "limit", truth.limit, (found.value, found.lower, found.upper)


def _fitted(curve, truth, **held):
    found = fit(curve, **held)
    for key, expected in (("relay", RELAY), ("depth", truth.depth), ("bias", truth.bias)):
        part = getattr(found, key)
        if part.fitted:
            yield f"{key} ({', '.join(found.names)} fitted)", expected, (part.value, part.lower, part.upper)


def strength(curve, truth):
    """The relay strength, the depth known."""
    if truth.depth is not None:
        yield from _fitted(curve, truth, depth=truth.depth, bias=truth.bias)


def strength_and_depth(curve, truth):
    """The relay strength and the effective depth."""
    if truth.depth is not None:
        yield from _fitted(curve, truth, bias=truth.bias)


def strength_and_bias(curve, truth):
    """The relay strength and the prompt-key bias, the depth known."""
    if truth.depth is not None:
        yield from _fitted(curve, truth, depth=truth.depth, bias=None)


def alternatives(curve, truth):
    """What other programs say of a power law, held against the power of the window and against the limit.

    All fit the same points by their default settings; each error is the one that the program reports.
    """
    import lmfit
    import statsmodels.api as sm
    from scipy.optimize import curve_fit

    part = curve.window(t_min=16)
    x, y = np.log(part.t), np.log(part.distance)
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    found = {"np.polyfit": (-slope, np.sqrt(covariance[0, 0]))}
    start = (part.distance[0] * part.t[0] ** 0.5, 0.5)
    values, covariance = curve_fit(lambda t, A, a: A * t**-a, part.t, part.distance, p0=start, maxfev=5000)
    found["curve_fit"] = values[1], np.sqrt(covariance[1, 1])
    model = lmfit.models.PowerLawModel()
    fitted = model.fit(part.distance, x=part.t, amplitude=start[0], exponent=-0.5)
    error = fitted.params["exponent"].stderr
    found["lmfit"] = -fitted.params["exponent"].value, np.nan if error is None else error
    design = sm.add_constant(x)
    lags = int(4 * (x.size / 100) ** (2 / 9))  # Newey and West's rule
    robust = sm.OLS(y, design).fit(cov_type="HAC", cov_kwds={"maxlags": max(1, lags)}, use_t=True)
    found["statsmodels HAC"] = -robust.params[1], robust.bse[1]
    regressive = sm.GLSAR(y, design, rho=1).iterative_fit(8)
    found["statsmodels GLSAR"] = -regressive.params[1], regressive.bse[1]
    law = fit_power_law(curve)
    found["fit_power_law"] = law.alpha, law.stderr
    exact = Curve(part.t, np.exp(truth.at(part.t)[0]))
    straight = -np.polyfit(np.log(exact.t), np.log(exact.distance), 1)[0]
    own = {"fit_power_law": fit_power_law(exact).alpha}
    own |= dict.fromkeys(("np.polyfit", "statsmodels HAC", "statsmodels GLSAR"), straight)
    best = curve_fit(lambda t, A, a: A * t**-a, exact.t, exact.distance, p0=start, maxfev=5000)[0][1]
    for name, (value, error) in found.items():
        yield f"{name}, window", own.get(name, best), interval(value, error)
        yield f"{name}, limit", truth.limit, interval(value, error)
    yield from (("extrapolate_exponent, limit", *rest) for name, *rest in limit(curve, truth) if name == "limit")


ESTIMATORS = {"local": local, "power": power, "limit": limit, "strength": strength}
ESTIMATORS |= {"strength-depth": strength_and_depth, "strength-bias": strength_and_bias, "alternatives": alternatives}
DEFAULT = [name for name in ESTIMATORS if name != "alternatives"]  # these need what the others do not


def run(estimators, truths, noises, grids, sets, *, jobs=1, folder=None):
    """Yield rows: what was estimated, of which truth, with how many sets, coverage, bias, spread, width.

    A folder keeps the case of each row, so that a run that was stopped goes on.
    """
    cases = [
        (name, kind, noise, grid, sets) for kind in truths for noise in noises for grid in grids for name in estimators
    ]
    store = None
    if folder is not None:
        known = tasks.fingerprint(__version__, cases)
        store = tasks.Store(
            folder, known, writer="run", of="coverage (cases)", name="case", holds=["keys", "values", "seconds"]
        )
    with ProcessPoolExecutor(jobs) as executor:
        found = tasks.run(_case, cases, executor=executor, store=store)
        for (_, kind, noise, grid, _), case in zip(cases, found, strict=True):
            for key in dict.fromkeys(case["keys"].tolist()):
                yield _row(kind, noise, grid, key, case["values"][case["keys"] == key], float(case["seconds"]))


def _case(name, kind, noise, grid, sets):
    """Return what was estimated, (K,), with its truth, value and ends, (K, 4), and the seconds of a set."""
    along = DENSE if GRIDS[grid][-1] <= LAST else np.union1d(GRIDS[grid], AT)
    truth, keys, values = Truth(kind, along), [], []
    begin = time.perf_counter()
    for number in range(sets):
        for key, expected, ends in ESTIMATORS[name](data_set(truth, noise, grid, number), truth):
            keys.append(key)
            values.append((expected, *ends))
    spent = np.array((time.perf_counter() - begin) / sets)
    return {"keys": np.array(keys, dtype=str), "values": np.array(values).reshape(-1, 4), "seconds": spent}


def _row(truth, noise, grid, key, values, spent):
    expected, value, low, high = values.T
    inside = (low <= expected * (1 + 1e-12)) & (expected * (1 - 1e-12) <= high)
    return {
        "truth": truth,
        "noise": noise,
        "points": grid,
        "estimate": key,
        "sets": len(values),
        "coverage": float(np.mean(inside)),
        "below": float(np.mean(high < expected)),
        "above": float(np.mean(low > expected)),
        "bias": float(np.median(value - expected)),
        "spread": float(np.std(value - expected)),
        "width": float(np.median(high - low)),
        "seconds": spent,
    }


def _line(row):
    return (
        f"{row['truth']:<13} {row['noise']:<12} {row['points']:>5} {row['estimate']:<29} {row['sets']:>5} "
        f"{100 * row['coverage']:6.1f} {100 * row['below']:5.1f} {100 * row['above']:5.1f} {row['bias']:+10.4g} "
        f"{row['spread']:9.3g} {row['width']:9.3g} {row['seconds']:6.3f}"
    )


MAKES = "docs/coverage.csv, docs/coverage_now.csv, docs/alternatives.csv"


def taste(folder):
    few = ["--sets", "2", "--estimators", "power", "--truths", "power", "--noises", "white", "--grids", "12"]
    return [*few, "--csv", str(folder / "coverage.csv")]


def add_options(parser):
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="processes; set OMP_NUM_THREADS=1 beside it")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--resume", type=Path, help="a folder that keeps finished cases")
    parser.add_argument("--estimators", nargs="+", choices=list(ESTIMATORS), default=DEFAULT)
    for name, all_of in (("truths", TRUTHS), ("noises", NOISES), ("grids", GRIDS)):
        parser.add_argument(f"--{name}", nargs="+", choices=list(all_of), default=list(all_of))


def main(options):
    titles = f"{'truth':<13} {'noise':<12} {'points':>5} {'estimate':<29} {'sets':>5}"
    print(f"{titles} cover% below above       bias    spread     width  s/set")
    rows = []
    cases = options.estimators, options.truths, options.noises, options.grids
    for row in run(*cases, options.sets, jobs=options.jobs, folder=options.resume):
        print(_line(row), flush=True)
        rows.append(row)
        if options.csv is not None:  # as far as it goes: a table takes long
            tables.write(options.csv, rows)
