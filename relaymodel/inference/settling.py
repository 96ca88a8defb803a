"""A limit under noise: ways in which an exponent may settle, averaged over what the curve does not tell."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.gls import IGNORED, Gls, gls, misfit, quantile, rounding
from relaymodel.inference.noise import Noise
from relaymodel.inference.spline import Smooth, wave_columns

SHIFTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""What is added to the logarithm: log t of one unit of time is as good as that of another."""

DELTAS = (0.25, 0.5, 1.0, 2.0)
"""Powers t^-delta of a correction that are tried; a factor of 2 between them is made good by the second term."""

BENDS = (-0.5, -0.25, 0.0, 0.2, 0.4, 0.6)
"""Where such a correction is half of what it was, in lengths of the window's log t from its start: later ones would let
a curve settle that has not begun to."""

RATES = (0.03, 0.1, 0.2, 0.4, 0.8)
"""Powers of t in a stretched exponential that are tried: with the first the exponent grows as log t, with the last as
good as exponentially."""

SIZES = np.append(0.0, np.geomspace(0.01, 30, 12))
"""Standard deviations of the coefficients that are tried, a factor of 2 apart: none, and from a drift that no curve
shows to more than any does."""

LIKELY = -np.log1p((SIZES / 2) ** 2)
"""Logarithms of their prior weights: even up to twice the drift from a flat start to the limit 1, and then falling."""

DAMPING = 0.5
"""Coefficients of higher powers, in units of the first."""

KINDS = 12
"""How many of the candidates for the noise are gone through, the likeliest."""

ODDS = float(np.log(200))
"""A form less likely than the other by this, in log odds, each at its best, is left out."""

Way = tuple[str, Array, Array]
"""Name of the form, what has flat priors (K, 2), and what has normal ones (K, d)."""


@dataclass(frozen=True)
class Settled:
    """The limit (median), its 95 % interval, the error that noise explains, and the p-value of such a lack of fit.

    `forms` names what the corrections may be powers of.  `growth` is by how much, in logarithms, an exponent that grows
    on makes the curve likelier than one that settles does.
    """

    value: float
    lower: float
    upper: float
    noise: float
    p_value: float
    forms: tuple[str, ...]
    growth: float

    @property
    def stderr(self) -> float:
        """Length of the interval over 2 * 1.96."""
        return (self.upper - self.lower) / 3.92


def settling(cells: Cells, y: Array, logarithms: Sequence[Array], known: int, fit: Smooth, degree: int) -> Settled:
    r"""Return the limit of the exponent of a curve with cell means y (K,) of log D.

    $$ \alpha = \alpha_\infty + \sum_{k=1}^d c_k u^k, \qquad
       u = \frac{b}{b + \log(\cdot)} \quad\text{or}\quad \frac{1}{1 + (\cdot/t_1)^\delta} $$

    with a flat prior on the limit and normal ones on the c_k, is fitted for each of the `logarithms` (T,), which are 0
    where they start, for each shift b or power delta and bend t_1, size of the coefficients and kind of noise.  Answers
    of one form are weighted by their restricted likelihood.  Where neither form is less likely than the other by 200 to
    1, they count alike, and the interval holds 95 % of either: how a curve settles beyond its window is not a matter of
    chance.  The second form is tried with the first `known` logarithms only, since its bend does what a prompt does.
    """
    variance = float(np.median(np.diag(fit.noise)))  # the sizes are those of exponents, not in units of the noise
    likeliest = [fit.candidates[i] for i in np.argsort(-fit.shares)[:KINDS]]
    noise = Noise.of(cells).only(likeliest).plus(fit.shared / variance)
    floor, beside = rounding(y[:, None]), wave_columns(cells, fit.waves)
    y = (y - y[0])[:, None]
    forms = [
        _Form.of(ways, noise, y, floor, variance)
        for ways in (
            _logarithmic(cells, logarithms, degree, beside),
            _algebraic(cells, logarithms[:known], degree, beside),
        )
    ]
    best = max(forms, key=lambda form: form.evidence)
    alike = [form for form in forms if form.evidence > best.evidence - ODDS]
    share = np.concatenate([form.share / len(alike) for form in alike])
    limit, error, random = (
        np.concatenate([getattr(form, name) for form in alike]) for name in ("limit", "error", "random")
    )
    freedom = y.size - 2 - beside.shape[1]
    tail = 0.025 / len(alike)  # 95 % of either form
    lower, value, upper = quantile(np.array([tail, 0.5, 1 - tail]), share, limit, error, freedom).tolist()
    grown = _Form.of(_growing(cells, logarithms[:known], beside), noise, y, floor, variance)
    covariance = fit.noise + fit.shared
    white = Noise.single(covariance).inverses[0]
    theta = np.linalg.lstsq(white @ best.design, white @ y[:, 0], rcond=1e-10)[0]
    return Settled(
        value=value,
        lower=lower,
        upper=upper,
        noise=float(np.sqrt(share @ random**2)),
        p_value=misfit(best.design, y[:, 0] - best.design @ theta, cells.unit, covariance, fit.freedom),
        forms=tuple(form.name for form in alike),
        growth=grown.evidence - best.evidence,
    )


@dataclass(frozen=True, eq=False)
class _Form:
    """Answers (A,) of one form, their shares, which add up to 1, the likeliest design, and its log evidence."""

    name: str
    share: Array
    limit: Array
    error: Array
    random: Array
    design: Array
    evidence: float

    @classmethod
    def of(cls, ways: Iterable[Way], noise: Noise, y: Array, floor: Array, variance: float) -> "_Form":
        prepared: dict[bytes, Gls] = {}
        found = []
        for name, line, terms in ways:
            if line.tobytes() not in prepared:
                prepared[line.tobytes()] = gls(line, noise)
            loaded = prepared[line.tobytes()].loaded(terms, SIZES**2 / variance)
            posterior = loaded.posterior(y, floor=floor)
            posterior = replace(posterior, evidence=posterior.evidence + LIKELY[:, None])
            found.append((name, posterior, line, terms))
        tops = [float(posterior.evidence.max()) for _, posterior, _, _ in found]
        answers = []
        for _, posterior, _, _ in found:
            chance = np.exp(posterior.evidence[..., 0] - max(tops))
            parts = np.stack([chance, *(part[..., 0] for part in posterior.coefficient(1))])
            answers.append(parts[:, chance > IGNORED / 100])
        shares, limit, error, random = np.concatenate(answers, axis=1)
        _, _, line, terms = found[int(np.argmax(tops))]
        return cls(
            name=found[0][0],
            share=shares / shares.sum(),
            limit=limit,
            error=error,
            random=random,
            design=np.concatenate([line, terms], axis=1),
            evidence=max(tops),
        )


def _line(cells: Cells, logarithm: Array, beside: Array) -> Array:
    return np.concatenate([np.ones((cells.x.size, 1)), -cells.mean(logarithm)[:, None], beside], axis=1)


def _logarithmic(cells: Cells, logarithms: Sequence[Array], degree: int, beside: Array) -> Iterator[Way]:
    """Yield powers of b/(b + log), integrated over log t, cell by cell."""
    for logarithm in logarithms:
        for shift in SHIFTS:
            x = shift + logarithm
            higher = (DAMPING * shift * (shift / x) ** (k - 1) / (1 - k) for k in range(2, degree + 1))
            terms = np.stack([-cells.mean(term) for term in (shift * np.log(x), *higher)], axis=1)
            yield "log t", _line(cells, logarithm, beside), terms


def _algebraic(cells: Cells, logarithms: Sequence[Array], degree: int, beside: Array) -> Iterator[Way]:
    """Yield powers of 1/(1 + s), s = (t/t_1)^delta, integrated over log t, cell by cell: two at the most."""
    for logarithm in logarithms:
        for delta in DELTAS:
            for bend in BENDS:
                s = delta * (logarithm - bend * logarithm[-1])
                integral, u = -np.logaddexp(0, -s), np.exp(-np.logaddexp(0, s))
                second = DAMPING * (integral + u)
                terms = np.stack([-cells.mean(term) / delta for term in (integral, second)[:degree]], axis=1)
                yield "t", _line(cells, logarithm, beside), terms


def _growing(cells: Cells, logarithms: Sequence[Array], beside: Array) -> Iterator[Way]:
    """Yield t^rate, whose exponent grows as a stretched exponential's does, in units of its growth at the end."""
    for logarithm in logarithms:
        for rate in RATES:
            terms = -cells.mean(np.exp(rate * (logarithm - logarithm[-1])))[:, None] / rate
            yield "growing", _line(cells, logarithm, beside), terms
