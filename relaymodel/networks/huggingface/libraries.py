"""The heavy libraries, imported on demand, with an error that says what to install, and how their runs end."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partialmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from relaymodel.checks import positive_integer, show

if TYPE_CHECKING:
    from collections.abc import Iterator


class Enough(Exception):  # noqa: N818 (no error)
    """Ends a run of which enough was seen."""


def heavy(name: str) -> Any:
    """Return the module torch, transformers, gguf or accelerate.

    Raises `ImportError` with what to install if it is missing.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name:
            raise
        raise ImportError(
            f"{name} is needed to run or train models of the transformers library: pip install "
            '".[networks]" in the checkout; untrained NumPy networks work without it',
            name=name,
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from writing advice and progress bars to stderr, within the block."""
    logging, bar = heavy("transformers").utils.logging, heavy("tqdm.auto").tqdm
    level, bars, start = logging.get_verbosity(), logging.is_progress_bar_enabled(), bar.__init__
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    bar.__init__ = partialmethod(start, disable=True)  # the GGUF reader asks tqdm itself, whose switch this is
    try:
        yield
    finally:
        bar.__init__ = start
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def torch_seed(seed: object) -> int:
    """Return a seed that torch takes: a whole number from 0 to 2^63 - 1."""
    number = positive_integer("seed", seed, least=0)
    if number >= 2**63:
        raise ValueError(f"seed must be below 2^63 = {2**63}, got {show(seed)}")
    return number


@contextmanager
def within_memory(argument: str) -> Iterator[None]:
    """Make a `ValueError` that names the argument of what torch raises when memory ends, within the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        told = str(error).lower()
        if isinstance(error, RuntimeError) and "allocate memory" not in told and "out of memory" not in told:
            raise
        raise ValueError(f"{argument} must be smaller: memory does not suffice ({first_line(error)})") from error


def first_line(error: Exception) -> str:
    """Return the beginning of an error's message, in one line."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
