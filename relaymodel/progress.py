"""A progress bar that shows on a terminal only."""

import sys
import time
from collections.abc import Callable

from relaymodel.checks import show

Report = Callable[[int, int], object]
"""Called with (steps done, steps in total)."""

BAR_WIDTH = 32
PAUSE = 0.1  # seconds between two drawings


def reporter(progress: object) -> Report:
    """Return what is to be called after each chunk: `progress` itself, a bar on stderr, or nothing.

    >>> reporter("yes")
    Traceback (most recent call last):
    TypeError: progress must be True, False or a function of (done, total), got 'yes'
    """
    if progress is True and sys.stderr.isatty():
        return Bar()
    if isinstance(progress, bool):
        return _ignore
    if not callable(progress):
        raise TypeError(f"progress must be True, False or a function of (done, total), got {show(progress)}")
    return progress


class Bar:
    """Draws `[####----]  47 %  12 s left` on stderr, at most ten times a second."""

    def __init__(self) -> None:
        self.begun = self.drawn = time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int, total: int) -> None:
        """Draw, if it is time."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.begun = done, now
        if now - self.drawn < PAUSE and done < total:
            return
        self.drawn = now
        filled = BAR_WIDTH * done // total
        left = (now - self.begun) * (total - done) / max(done - self.first, 1)
        bar = f"\r[{'#' * filled}{'-' * (BAR_WIDTH - filled)}] {100 * done // total:3d} % {left:6.0f} s left"
        sys.stderr.write(bar + ("\n" if done >= total else ""))
        sys.stderr.flush()


def _ignore(done: int, total: int) -> None:
    """Report nothing."""
