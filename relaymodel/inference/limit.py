"""The limit of the exponent at t to infinity, extrapolated in powers of 1/log t."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from relaymodel.checks import floating, positive_integer
from relaymodel.curve import Curve
from relaymodel.display import figure, table
from relaymodel.inference.cells import Array, Cells
from relaymodel.inference.estimate import Estimate
from relaymodel.inference.laws import TOLD_APART
from relaymodel.inference.pool import pool
from relaymodel.inference.power_law import drift_of, fit_power_law
from relaymodel.inference.series import BETTER, HIGHEST, fit_series, growing_aicc, truncation
from relaymodel.inference.settling import ODDS, Settled, settling
from relaymodel.inference.spline import Smooth, smooth
from relaymodel.inference.threads import one_thread
from relaymodel.inference.waves import said
from relaymodel.inference.window import LEAST, UnderdeterminedError, stated_prompt, window
from relaymodel.model import RelayModel

EARLIEST = 2.0
"""The first t used: powers of 1/log t are of no use near t = 1."""

DEGREE = 4
"""Highest power of 1/log t, unless told otherwise."""

WIDEST = 1.0
"""A limit with a larger error than this is refused: exponents of 0 and 2 are not the same decay."""

MISFIT = 0.01
"""Below this p-value a curve is not taken for one whose exponent drifts in a few powers of 1/log t."""

GROWN = 0.5
"""Log odds from which an exponent that has risen counts as one that grows on.  Under 5 % noise 33 in 40 of exp(-t^0.1)
to 10^6 do; of relay models, biased ones among them, 10 in 224 to 4096, and to 10^6 only those of 12 layers of strength
1 (2 in 40) and 2 (18 in 40), whose exponents rise alike."""

RISEN = 2.0
"""Errors by which an exponent must have risen to be said to grow: of power laws, one in forty has."""

FALLING, FLAT = (0.0, 0.2, 0.4), 0.1
"""Where in a window, in parts of its log t, a curve is looked at for the exponent it had; and the share of that which
counts as none at its end.  Of 30 curves t^-.5 + .02 to t = 10^6 with 5 % noise 28 are said to be flat, of 420 power
laws, sums of two and relay models none."""

UNKNOWN_PROMPTS = (1.0, 4.0, 16.0)
"""Prompt lengths that are tried if it is not known, in units of the first t."""

FOLLOWED, QUIET = 0.7, 1e-9
"""A curve has next to no noise if a spline with more parameters than this share of the cells follows it, or if its
scatter in log D is less than this."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Limit(Estimate):
    """The exponent's limit; see `extrapolate_exponent`.

    Attributes
    ----------
    value, stderr
        The limit, and its standard error: the next two combined, and the length of the interval over 2 * 1.96.
    lower, upper
        95 % interval; noise and drift can make it lopsided.
    noise_stderr
        The part of the error that noise explains.
    truncation
        The part of it that comes from cutting the series: how far the value moves with degree, window and prior.
    degree
        Highest power of 1/log t.
    window, points
        First and last t of the part of the curve the value rests on, and its number of points.
    prompt
        Prompt length P that log(P + t) was taken with; 0 for log t.
    method, provenance
        How the value was found, and what the curve says of itself.
    """

    noise_stderr: float
    truncation: float
    degree: int
    window: tuple[float, float]
    points: int
    prompt: int
    method: str
    provenance: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        return (
            f"Limit({figure(self.value, self.stderr)}, degree {self.degree}, "
            f"t = {self.window[0]:.6g}..{self.window[1]:.6g})"
        )

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        rows = [
            ("limit of α", figure(self.value, self.stderr)),
            ("95 % interval", f"{self.lower:.4g} to {self.upper:.4g}"),
            ("error from noise", f"{self.noise_stderr:.2g}"),
            ("error from cutting the series", f"{self.truncation:.2g}"),
            ("degree in 1/log", self.degree),
            ("window", f"t = {self.window[0]:.6g} to {self.window[1]:.6g}, {self.points} points"),
            *(("note", caveat) for caveat in self.caveats),
            ("method", self.method),
        ]
        return table("Limit of the exponent", [*rows, *self.provenance.items()])


@one_thread
def extrapolate_exponent(
    curve: Curve | RelayModel | Sequence[Curve],
    *,
    t_min: float | None = None,
    t_max: float | None = None,
    degree: int | None = None,
    prompt: int | None = None,
) -> Limit:
    r"""Extrapolate the exponent to t at infinity, in powers of 1/log t (THEORY section 3).

    $$ \alpha(t) = \alpha_\infty + c_1/\log t + \dots + c_d/(\log t)^d, \qquad
       \log D = a - \alpha_\infty \log t - c_1 \log\log t + c_2/\log t + \dots $$

    The second form, linear in its coefficients, is fitted to a curve; the first to the exact local exponents of a
    model.  log t is taken as log(P + t) where the prompt length P is known: the limit is the same, and corrections in
    P/t, which powers of 1/log t cannot follow, fall away.

    *A noisy curve* does not tell the coefficients, and many fit alike.  They get normal priors: the first is how far
    the exponent drifts from the start of the window on, of a size up to 2 or, less likely, more; the others are half
    of it.  Size, shift, log t or log(P + t), and the kind of noise are averaged over by their restricted likelihood.
    The interval widens with whatever fits as well.  Where an exponent that has risen might as well grow on for ever,
    as that of a stretched exponential, a caveat says so and `identified` is False; where that is likelier by 7 to 1,
    there is no limit.

    *A curve with next to no noise*, and one that the above does not describe (p < 0.01): series of each degree up to 8
    over four windows, by generalised least squares with the noise that `estimate_exponent` finds.  The error's
    `truncation` part is the sum of the last two changes with degree (twice the change from degree 0 to 1 at degree 1),
    or twice the change when the first fifth of the window is left out, if that is more.  Degree and window are those
    of the smallest total error.  Where an exponent that grows on is likelier by 20 to 1 (AICc), there is no limit.

    It remains an estimate from a finite window.  What appears only beyond it cannot be seen: a slightly smaller
    position exponent, or the whole decay where the curve is still flat within its noise.

    Parameters
    ----------
    curve
        A curve, a list of curves of independent pairs on the same t, or a model.  Of pairs, the geometric mean is used,
        with a stderr that says how they differ.  Of a model, `local_exponent` is taken at 11 points, not the limit that
        is known.
    t_min, t_max
        The window.  For a curve, as in `fit_power_law`; t below 2 is not used.  For a model, by default from
        2^20, times P/2^10 for prompts longer than 2^10, to the 1.5th power of that: 2^20 to 2^30.
    degree
        Highest power of 1/log t, 1 to 8; by default 4, and the data's choice for a curve with next to no noise.
    prompt
        For a curve, the prompt length P.  By default the curve's provenance entry `prompt` if that is an integer;
        otherwise 0, for log t.  A model knows its own.

    Raises
    ------
    UnderdeterminedError
        For a curve with fewer than degree + 6 points or less than one decade of P + t in the window, one whose
        exponent does not settle within it or grows on as a stretched exponential's does, and one too noisy to know the
        limit to 1.  `partial` is the `PowerLaw` of the window, or the slope if there are fewer than 6 points.
    TypeError, ValueError
        For what is neither, a `prompt` beside a model, a degree that is not 1 to 8, a prompt below 0.

    Examples
    --------
    >>> t = np.geomspace(1e2, 1e7, 80)
    >>> limit = extrapolate_exponent(Curve(t, np.log(t) ** 5 / t))
    >>> abs(limit.value - 1) < limit.stderr < 0.01
    True
    >>> extrapolate_exponent(Curve([20, 30, 40, 50, 60, 70, 80], [7, 6, 5, 4.5, 4, 3.8, 3.6]))
    Traceback (most recent call last):
    relaymodel.inference.window.UnderdeterminedError: the window must cover a decade of t, got 20 to 80, ...
    """
    if degree is not None:
        degree = positive_integer("degree", degree)
        if degree > HIGHEST:
            raise ValueError(f"degree must be at most {HIGHEST}, got {degree}; beyond it rounding errors take over")
    if isinstance(curve, RelayModel):
        if prompt is not None:
            raise ValueError(f"prompt must be left out for a model, which has its own, got {prompt!r}")
        return _of_model(curve, t_min, t_max, DEGREE if degree is None else degree)
    if not isinstance(curve, (Curve, list, tuple)):
        raise TypeError(
            f"curve must be a Curve or a RelayModel, or a list of Curves, got one of type {type(curve).__name__}"
        )
    curve = pool(curve)
    return _of_curve(curve, t_min, t_max, degree, _prompt(curve, prompt))


def _prompt(curve: Curve, prompt: int | None) -> int:
    if prompt is not None:
        floating("prompt", positive_integer("prompt", prompt, least=0))
        return prompt
    return stated_prompt(curve) or 0


def _of_model(model: RelayModel, t_min: float | None, t_max: float | None, degree: int) -> Limit:
    from relaymodel.exact import local_exponent

    low = max(2.0**20, 2.0**10 * model.prompt) if t_min is None else floating("t_min", t_min)
    high = low**1.5 if t_max is None else floating("t_max", t_max)
    if not 0 < low < high:
        raise ValueError(f"t_min must be positive and below t_max, got {low:.6g} and {high:.6g}")
    points = max(11, degree + 3)
    t = np.geomspace(low, high, points)
    position = model.prompt + t
    # -dlog D/dlog(P + t) has the same limit, without corrections in P/t
    alpha = np.asarray(local_exponent(model, t)) * position / t
    inverse = 1 / np.log(position)
    powers = np.vander(inverse / inverse.max(), degree + 1, increasing=True)
    rows = [np.linalg.pinv(powers[:, : d + 1])[0] for d in range(degree + 1)]
    values = [float(row @ alpha) for row in rows]
    rounding = 1e-12 * float(np.linalg.norm(rows[-1]))
    cut = truncation(values)
    error = float(np.hypot(rounding, cut))
    return Limit(
        value=values[-1],
        stderr=error,
        lower=values[-1] - 1.96 * error,
        upper=values[-1] + 1.96 * error,
        noise_stderr=rounding,
        truncation=cut,
        degree=degree,
        window=(low, high),
        points=points,
        prompt=model.prompt,
        method="exact local exponents, least squares in powers of 1/log(P + t)",
        provenance={"model": repr(model)},
    )


def _of_curve(curve: Curve, t_min: float | None, t_max: float | None, degree: int | None, prompt: int) -> Limit:
    used = window(curve, t_min, t_max)
    late = np.count_nonzero(used.t >= EARLIEST)
    if LEAST <= late < len(used):
        used = used.window(EARLIEST)
    cells = Cells.of(used)
    name = f"{prompt} + t" if prompt else "t"
    needed = (1 if degree is None else degree) + LEAST
    low, high = used.t[0] + prompt, used.t[-1] + prompt
    if used.t[0] < EARLIEST or high < 10 * low or cells.x.size < needed:
        lacking = (
            f"hold at least {needed} points apart in log t from t = {EARLIEST:g} on, got {min(late, cells.x.size)}"
            if used.t[0] < EARLIEST or cells.x.size < needed
            else f"cover a decade of {name}, got {low:.6g} to {high:.6g}"
        )
        raise _refused(
            used,
            f"the window must {lacking}, for a limit to be extrapolated; take a longer curve, or fit_power_law "
            "for the exponent of the window",
        )
    y = cells.log(used)
    fit = smooth(cells, y, np.empty(0))
    noisy = fit.effective < FOLLOWED * cells.x.size and fit.scatter > QUIET
    terms = DEGREE if degree is None else degree
    if noisy and cells.x.size >= terms + LEAST:
        # of a prompt of unknown length, several are tried
        last = used.t[-1] / 100
        prompts = (
            [prompt] if prompt else [used.t[0] * factor for factor in UNKNOWN_PROMPTS if used.t[0] * factor < last]
        )
        logarithms = [np.log(used.t / used.t[0]), *(np.log((p + used.t) / (p + used.t[0])) for p in prompts)]
        drift = settling(cells, y, logarithms, 2 if prompt else 1, fit, terms)
        if drift.growth > GROWN and _rises(cells, y, fit):
            raise _refused(
                used,
                f"the exponent must settle, and it still grows where the window ends, at t = {used.t[-1]:.6g}: one "
                f"that grows on, as a stretched exponential's, describes the curve {_times(drift.growth)} as well as "
                "one with a limit; take a longer curve, or estimate_exponent for what it is so far",
            )
        if drift.p_value >= MISFIT:
            return _of_drift(drift, cells, y, fit, used, prompt, name, terms)
    found = fit_series(cells, y, np.log(used.t + prompt), fit, degree)
    if not found:
        raise _refused(
            used,
            "the limit must not change more and more as powers of 1/log t are added, and it does at every degree "
            f"tried; the window ends at t = {used.t[-1]:.6g}, before the exponent settles towards a limit: take a "
            "longer curve, or state the prompt length",
        )
    if growing_aicc(cells, y) < min(candidate.aicc for candidate in found) - TOLD_APART:
        raise _refused(
            used,
            f"the exponent must settle, and it still grows where the window ends, at t = {used.t[-1]:.6g}: one that "
            "grows on, as a stretched exponential's, describes the curve better than any with a limit, by 20 to 1 or "
            "more; take a longer curve, or estimate_exponent for what it is so far",
        )
    best = min(found, key=lambda c: (c.residual > BETTER * min(other.residual for other in found), c.total))
    cut, forms = best.truncation, [best.form]
    for other in found:
        if other is not best and other.residual < BETTER * best.residual and other.total < WIDEST:
            cut = max(cut, abs(other.value - best.value))
            forms.append(other.form)
    total = float(np.hypot(best.noise, cut))
    _demand_known(used, best.value, total)
    start = int(cells.starts[best.first])
    return Limit(
        value=best.value,
        stderr=total,
        lower=best.value - 1.96 * total,
        upper=best.value + 1.96 * total,
        caveats=said(cells.length, fit.waves) + _plateau(cells, y),
        noise_stderr=best.noise,
        truncation=cut,
        degree=best.degree,
        window=(float(used.t[start]), float(used.t[-1])),
        points=len(used) - start,
        prompt=prompt,
        method=f"generalised least squares in powers of {' or '.join(forms)}, of {name}",
        provenance=curve.provenance,
    )


def _plateau(cells: Cells, y: Array) -> tuple[str, ...]:
    """Return what is to be said of a curve that has fallen, and does not any more where its window ends."""
    found = smooth(cells, y, cells.x[0] + cells.length * np.array([*FALLING, 1.0]))
    error = np.sqrt(found.variance + found.lasting)
    first = int(np.argmax(found.alpha[:-1]))
    early, late, reach = found.alpha[first], found.alpha[-1], 1.96 * error[-1]
    if early < 3 * error[first] or abs(late) > max(reach, FLAT * early) or late + reach > early / 2:
        return ()
    return (
        f"the curve is flat at its end, as far as one can see: its exponent was {early:.2g}, and at t = "
        f"{cells.t[-1]:.2g} it is {figure(float(late), float(error[-1]))}, as on a plateau",
    )


def _of_drift(
    drift: Settled, cells: Cells, y: Array, fit: Smooth, used: Curve, prompt: int, name: str, degree: int
) -> Limit:
    _demand_known(used, drift.value, drift.stderr)
    noise = min(drift.noise, drift.stderr)
    caveats = said(cells.length, fit.waves) + _plateau(cells, y)
    growing = drift.growth > -ODDS and _rises(cells, y, fit)
    if growing:
        caveats += (
            "the exponent still grows at the end of the window: this is its limit if it has one, and an exponent that "
            f"grows on without end describes the curve {_times(drift.growth)} as well",
        )
    powers = " or ".join({"log t": f"1/log({name})", "t": f"1/({name})"}[form] for form in drift.forms)
    return Limit(
        value=drift.value,
        stderr=drift.stderr,
        lower=drift.lower,
        upper=drift.upper,
        noise_stderr=noise,
        truncation=float(np.sqrt(drift.stderr**2 - noise**2)),
        degree=degree,
        window=(float(used.t[0]), float(used.t[-1])),
        points=len(used),
        prompt=prompt,
        identified=not growing,
        caveats=caveats,
        method=f"powers of {powers} with a normal prior, averaged by restricted likelihood",
        provenance=used.provenance,
    )


def _times(growth: float) -> str:
    """Return by how many times likelier, from its logarithm."""
    return f"{np.exp(min(growth, np.log(1e6))):.2g} times"


def _rises(cells: Cells, y: Array, fit: Smooth) -> bool:
    """Return whether the exponent is larger at the end of the window than at its start, by more than noise explains."""
    change = drift_of(cells)
    return float(change @ y) > RISEN * float(np.sqrt(change @ (fit.noise + fit.shared) @ change))


def _demand_known(used: Curve, value: float, error: float) -> None:
    if error > WIDEST:
        raise _refused(
            used,
            f"the limit must be known to {WIDEST:g} or better, got {figure(value, error)}: noise hides how the "
            "exponent drifts, or it does not settle; take a longer curve or average more pairs",
        )


def _refused(used: Curve, message: str) -> UnderdeterminedError:
    return UnderdeterminedError(message, partial=fit_power_law(used, t_min=float(used.t[0])))
