"""What the results of this package have in common: how a notebook shows them."""

import html
import math
from collections.abc import Iterable


def figure(value: float, error: float) -> str:
    """Return `value +- error` to two digits of the error.

    >>> figure(0.53124, 0.0123)
    '0.531 ± 0.012'
    >>> figure(0.5, 3e-9)
    '0.5 ± 3e-09'
    """
    if error < 1e-6:
        return f"{value:.9g} ± {error:.1g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return an HTML table of names and values, everything escaped."""
    body = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"
