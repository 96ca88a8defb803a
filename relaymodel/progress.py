"""A progress bar, and a clock for work of unknown length, which show on a terminal only."""

import sys
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from relaymodel.checks import show

Report = Callable[[int, int], object]
"""Called with (steps done, steps in total)."""

BAR_WIDTH = 32  # characters
PAUSE = 0.1  # seconds between two drawings
PATIENT = 2.0  # seconds that nothing is shown


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
        Clock.stop()  # the bar says more
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


class Clock:
    """Draws `12 s  what is being done`, each second, on a terminal's stderr, from the third second on.

    There is one at a time: `start` it, say with `stage` what is being done, and `stop` it before anything is printed.
    """

    running: ClassVar["Clock | None"] = None

    def __init__(self, words: str) -> None:
        self.words, self.begun, self.width = words, time.monotonic(), 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._draw, daemon=True)

    @classmethod
    def start(cls, words: str) -> None:
        """Start a clock, if stderr is a terminal."""
        cls.stop()
        if sys.stderr is not None and sys.stderr.isatty():
            cls.running = cls(words)
            cls.running.thread.start()

    @classmethod
    def stage(cls, words: str) -> None:
        """Say what is being done."""
        if cls.running is not None:
            cls.running.words = words

    @classmethod
    def stop(cls) -> None:
        """Stop the clock and wipe its line."""
        if cls.running is not None:
            clock, cls.running = cls.running, None
            clock.over.set()
            clock.thread.join()

    def _draw(self) -> None:
        pause = PATIENT
        while not self.over.wait(pause):
            line = f"{time.monotonic() - self.begun:.0f} s  {self.words}"
            sys.stderr.write(f"\r{line:<{self.width}}")
            sys.stderr.flush()
            self.width, pause = max(self.width, len(line)), 1.0
        if self.width:
            sys.stderr.write(f"\r{'':<{self.width}}\r")
            sys.stderr.flush()


def _ignore(done: int, total: int) -> None:
    """Report nothing."""
