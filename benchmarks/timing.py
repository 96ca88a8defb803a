"""Contestants timed in turn within one run, and tables that say on which machine."""

import math
import os
import platform
import time
import timeit
from importlib.metadata import version
from pathlib import Path


def machine():
    """Name what the figures depend on: processor, cores, load, and versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor() or platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "sympy", "python-flint"))
    return (
        f"{processor}, {os.cpu_count()} cores{load}; "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {libraries}"
    )


def lap(call, repeats=1, clock=time.process_time):
    """Return the seconds of one call, out of `repeats` in a row, garbage collection off.

    The processor's time is counted, over all threads, so that what else the machine does is not: at least the
    wall time of an idle machine.
    """
    return timeit.Timer(call, timer=clock).timeit(repeats) / repeats


def repeats_for(call, seconds=0.002):
    """Return how often to repeat a call so that a lap outlasts the clock's resolution by far."""
    lap(call)  # fill the caches
    return max(1, math.ceil(seconds / max(lap(call), 1e-7)))


def table(title, header, rows):
    """Print a table below the name of the machine; the first column is text, the others are text or numbers."""
    cells = [[str(head) for head in header]]
    cells += [[entry if isinstance(entry, str) else f"{entry:.4g}" for entry in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n\n{title}\n[{machine()}]")
    for row in cells:
        print("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]))


def require(measured):
    """Print what was required of ratios within this run, (name, value, relation, bound) each, and assert it."""
    verdicts = [value <= bound if relation == "<=" else value >= bound for _, value, relation, bound in measured]
    for (name, value, relation, bound), met in zip(measured, verdicts, strict=True):
        print(f"  {'met   ' if met else 'MISSED'}  {name}: {value:.3g} (required {relation} {bound:g})")
    assert all(verdicts), [name for (name, *_), met in zip(measured, verdicts, strict=True) if not met]
