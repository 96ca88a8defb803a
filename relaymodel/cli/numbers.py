"""Numbers as they are typed on a command line, taken exactly."""

import math
import re
import sys
from collections.abc import Callable, Iterable, Sized
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from relaymodel.checks import PLAIN_NUMBER, Number, show

LARGEST_EXPONENT = 4000
"""Largest power of ten: Python prints integers of up to 4300 digits."""

PRINTED = Context(prec=17)  # digits that tell all float64 numbers apart


def number(option: str, text: str) -> Number:
    """Return the number written in `text`, exactly: an integer, or a float or fraction where it is none.

    >>> number("--relay", "1e3"), number("--relay", "0.5"), number("--relay", "0.1")
    (1000, 0.5, Fraction(1, 10))
    >>> number("--relay", "1_000")
    Traceback (most recent call last):
    ValueError: --relay must be a number such as 64, 0.5, 1/2 or 1e6, got '1_000'
    """
    written = text.strip()
    if len(written) > LARGEST_EXPONENT:
        raise ValueError(f"{option} must be a number of at most {LARGEST_EXPONENT} digits, got {len(written)}")
    if not (PLAIN_NUMBER.fullmatch(written) or re.fullmatch("[+-]?[0-9]+/0*[1-9][0-9]*", written)):
        raise ValueError(f"{option} must be a number such as 64, 0.5, 1/2 or 1e6, got {show(text)}")
    exponent = written.lower().partition("e")[2].lstrip("+-").lstrip("0")
    if len(exponent) > 4 or int(exponent or 0) > LARGEST_EXPONENT:
        raise ValueError(f"{option} must have a power of ten of at most {LARGEST_EXPONENT}, got {show(text)}")
    value = Fraction(written)
    if value.denominator == 1:
        return value.numerator
    # a float where it says the same, because it is printed more plainly
    return float(value) if abs(value) < 1e300 and Fraction(float(value)) == value else value


def parts(text: str) -> list[str]:
    """Return the parts of a comma-separated list."""
    return [part.strip() for part in text.split(",")]


def numbers(option: str, text: str) -> list[Number]:
    """Return the numbers of a comma-separated list.

    >>> numbers("--position", "0,1/2")
    [0, 0.5]
    """
    return [number(option, part) for part in parts(text)]


def whole(most: int | None = None, *, least: int = 1) -> Callable[[str, str], int]:
    """Return what reads a whole number from `least` to `most`.

    >>> whole()("--prompt", "1e9")
    1000000000
    >>> whole()("--prompt", "2.5")
    Traceback (most recent call last):
    ValueError: --prompt must be a whole number such as 64 or 1e6, got '2.5'
    """

    def read(option: str, text: str) -> int:
        value = number(option, text)
        if not isinstance(value, int):
            raise ValueError(f"{option} must be a whole number such as 64 or 1e6, got {show(text)}")
        if value < least:
            raise ValueError(f"{option} must be at least {least}, got {show(text)}")
        if most is not None and value > most:
            raise ValueError(f"{option} must be at most {most}, got {show(text)}")
        return value

    return read


def time(option: str, text: str) -> float:
    """Return a positive number of tokens within the range of float64.

    >>> time("--t-min", "16")
    16.0
    """
    value = number(option, text)
    if not 0 < value <= 10**300:
        raise ValueError(f"{option} must be positive and at most 1e300, got {show(text)}")
    return float(value)


def log_grid(last: int, points: int) -> list[int]:
    """Return the distinct whole numbers nearest to `points` equal steps in log t from 1 to `last`, of any size.

    >>> log_grid(100, 5)
    [1, 3, 10, 32, 100]
    >>> log_grid(10**400, 3) == [1, 10**200, 10**400]
    True
    """
    decades = math.log10(last)
    found = {1, last}
    for k in range(1, points - 1):
        power, rest = divmod(k * decades / (points - 1), 1)
        # in integers, because a float ends at 1e308
        found.add((round(10.0 ** (15 + rest)) * 10 ** int(power) + 5 * 10**14) // 10**15)
    return sorted(t for t in found if t <= last)


def nearest(ball: Any) -> float | Decimal:
    """Return a ball's value as a float, or, beyond the range of float64, as a decimal number of 17 digits."""
    value = float(ball.mid())
    if ball == 0 or (math.isfinite(value) and abs(value) >= sys.float_info.min):
        return value
    return PRINTED.create_decimal(ball.str(25, radius=False))


def outward(ball: Any, *, up: bool) -> float | Decimal:
    """Return a bound of what a ball of at least 25 digits holds, from above or below, as `nearest` would."""
    value = nearest(ball)
    if isinstance(value, Decimal):
        return value.next_plus(PRINTED) if up else value.next_minus(PRINTED)
    return math.nextafter(value, math.inf if up else -math.inf)


def text(value: Any, digits: int = 6) -> str:
    """Return a number for a table; a text as it is, None as a dash.

    >>> text(1234567), text(10**400), text(Fraction(1, 3)), text(Decimal("1.5e-390"))
    ('1234567', '1e+400', '0.333333', '1.50000e-390')
    """
    if value is None or isinstance(value, str):
        return value or "-"
    if isinstance(value, int) and abs(value) < 10**9:
        return str(value)
    if isinstance(value, (int, Decimal)):
        mantissa, e, power = f"{Decimal(value):.{digits - 1}e}".partition("e")
        return (mantissa.rstrip("0").rstrip(".") if isinstance(value, int) else mantissa) + e + power
    return f"{float(value):#.{digits}g}" if value else "0"


def columns_of(options: Iterable[tuple[str, Sized]], depth: int | None, default: int) -> int:
    """Return the depth that lists with a value for each layer, and `--depth`, agree on.

    >>> columns_of([("--relay", [1, 2]), ("--residual", [1])], None, default=6)
    2
    """
    for option, values in options:
        if len(values) > 1 and depth not in (None, len(values)):
            raise ValueError(
                f"{option} must have one value, or one for each of the {depth} layers, got {len(values)}; "
                "leave out --depth to take it from the list, or compute a model for each with relaymodel sweep"
            )
        if len(values) > 1:
            depth = len(values)
    return default if depth is None else depth
