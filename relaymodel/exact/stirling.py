"""Differences of log-gamma and digamma at huge arguments, as power series of balls.

Near x the functions differ by little although each is large, so a direct difference costs as many extra
bits as x has.  Stirling's series of the difference costs none; its remainder is bounded.
"""

from flint import arb, arb_series, ctx, fmpq

HUGE = 1 << 128  # from here on each term of the series gains 256 bits


def log_gamma_ratio(x: fmpq, a: fmpq | arb, order: int) -> arb_series:
    r"""Return $\log\Gamma(x+a-w) - \log\Gamma(x)$, a > 0, as a power series in w, for x >= 2^128.

    $(x-\tfrac12)\log(1+\tfrac{a-w}{x}) + (a-w)\bigl(\log(x+a-w) - 1\bigr) + S(x+a-w) - S(x)$ with
    $S(x) = \sum_k B_{2k}/(2k(2k-1)x^{2k-1})$.  For $|w| \le 1$ the remainder after K terms is at most twice the
    next one (DLMF 5.11.10-11), which by Cauchy's estimate bounds each coefficient's error.
    """
    shift = arb_series([arb(a), -1], order)
    end = arb_series([arb(x + a), -1], order)
    value = _log_quotient(x, a, order) * arb(x - fmpq(1, 2)) + shift * (end.log() - 1)
    return value + _tail(x, end, order, lambda k: fmpq.bernoulli(2 * k) / (2 * k * (2 * k - 1)), 1)


def digamma_difference(x: fmpq, a: fmpq | arb, order: int) -> arb_series:
    r"""Return $\psi(x+a-w) - \psi(x)$, a > 0, as a power series in w, for x >= 2^128.

    $\log(1+\tfrac{a-w}{x}) + \tfrac{1}{2x} - \tfrac{1}{2(x+a-w)} + \sum_k \frac{B_{2k}}{2k} [x^{-2k} - (x+a-w)^{-2k}]$,
    the remainder as above.
    """
    end = arb_series([arb(x + a), -1], order)
    value = _log_quotient(x, a, order) + (1 / arb(x) - 1 / end) / 2
    return value - _tail(x, end, order, lambda k: fmpq.bernoulli(2 * k) / (2 * k), 0)


def _log_quotient(x: fmpq, a: fmpq | arb, order: int) -> arb_series:
    """Return log((x + a - w) / x), every coefficient to full relative accuracy."""
    quotient = arb_series([arb(1), -1 / arb(x + a)], order).log()
    return quotient + arb_series([(arb(a) / arb(x)).log1p()], order)


def _tail(x: fmpq, end: arb_series, order: int, coefficient: object, odd: int) -> arb_series:
    """Return sum_k c_k [end^(odd - 2k) - x^(odd - 2k)] with its remainder in the radius of each coefficient."""
    terms = ctx.prec // 256 + 2
    start, inverse = 1 / arb(x), 1 / end
    total = arb_series([0], order)
    for k in range(1, terms + 1):
        c = arb(coefficient(k))  # type: ignore[operator]
        total += c * (inverse ** (2 * k - odd) - start ** (2 * k - odd))
    bound = 2 * abs(arb(coefficient(terms + 1))) / arb(x - 1) ** (2 * terms + 2 - odd)  # type: ignore[operator]
    error = arb(0, bound.upper())
    return total + arb_series([error] * order, order)
