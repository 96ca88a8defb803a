"""Work that does not fit into memory is refused before it begins."""

from __future__ import annotations

import os
from pathlib import Path

SPARE = 0.9
"""Share of the free memory that a task may take."""


def free_memory() -> int | None:
    """Return how many bytes can still be taken without swapping; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        pass
    try:  # all there is, where what is free is not told
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def demand_memory(argument: str, need: float, what: str) -> None:
    """Raise `ValueError`, with the size, if `what` needs more bytes than are free.

    >>> demand_memory("steps", 8e18, "a curve of this many tokens")
    Traceback (most recent call last):
    ValueError: steps must be smaller: a curve of this many tokens takes 8e+09 GB of memory, more than is free here
    """
    free = free_memory()
    if free is not None and need > SPARE * free:
        raise ValueError(
            f"{argument} must be smaller: {what} takes {need / 1e9:.3g} GB of memory, more than is free here"
        )
