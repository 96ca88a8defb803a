"""Working precision of python-flint: its one piece of global state, always restored."""

from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx


@contextmanager
def working(*, bits: int | None = None, order: int | None = None) -> Iterator[None]:
    """Set the precision of balls in bits and the longest power series for the length of a block.

    Without the second, python-flint silently truncates every series at its default of ten terms.
    """
    before = ctx.prec, ctx.cap
    ctx.prec = before[0] if bits is None else bits
    ctx.cap = before[1] if order is None else order
    try:
        yield
    finally:
        ctx.prec, ctx.cap = before
