"""What python-flint leaves to its users: its one global state, held by one thread at a time, and pickles of balls."""

import copyreg
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flint import arb, ctx

_lock = threading.RLock()


@contextmanager
def working(*, bits: int | None = None, order: int | None = None) -> Iterator[None]:
    """Set the precision of balls in bits and the longest power series for the length of a block.

    Without the second, python-flint silently truncates every series at its default of ten terms.  Both belong to
    the whole process, so that the block is held by one thread at a time; blocks may be nested.  Every operation of
    the package on balls or power series stands in such a block.  A caller's own balls, in other threads, are
    computed meanwhile with the block's precision: put them in a block of `working()`.

    >>> before = ctx.prec
    >>> with working(bits=200):
    ...     ctx.prec
    200
    >>> ctx.prec == before
    True
    """
    with _lock:
        before = ctx.prec, ctx.cap
        ctx.prec = before[0] if bits is None else bits
        ctx.cap = before[1] if order is None else order
        try:
            yield
        finally:
            ctx.prec, ctx.cap = before


def _unlock() -> None:
    """Give a forked process a lock of its own: the thread that held the other one is not in it."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def ball(*parts: tuple[int, int]) -> arb:
    """Return the ball of a midpoint and a radius, both as (m, e) for m 2^e; NaN without them."""
    return arb(*parts) if parts else arb("nan")


def _reduce(value: arb) -> tuple[Callable[..., arb], tuple[Any, ...]]:
    parts = (value.mid(), value.rad()) if value.is_finite() else ()
    return ball, tuple(tuple(map(int, part.man_exp())) for part in parts)


copyreg.pickle(arb, _reduce)  # python-flint has no pickles of balls; the radius may grow in its last bit
