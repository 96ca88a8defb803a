"""Inputs at extremes, looking for a traceback, a wrong value or a warning: seeded, and as long as wanted.

    python -m studies fuzz --seconds 60 --seed 1

Each input is made from the seed, its kind and its number alone, so that `--kinds models --only 123` repeats it.  A
refusal is an error that the package raises itself, with a reason; what a library underneath raises is a fault, as is a
warning or a value that another computation contradicts.  The exit code is 1 if there is a fault.
"""

import itertools
import time
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

import relaymodel
from studies import fuzz_curves, fuzz_inputs, fuzz_models

MAKES = "what was tried and what broke (printed)"
PACKAGE = str(Path(relaymodel.__file__).parent)
KINDS = fuzz_models.KINDS | fuzz_curves.KINDS | fuzz_inputs.KINDS
REFUSALS = (ValueError, TypeError, OverflowError)


def taste(folder):
    return ["--seconds", "1", "--seed", "1", "--kinds", "models", "bounds", "threads"]


def add_options(parser):
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, shared by the kinds")
    parser.add_argument("--inputs", type=int, help="of each kind, instead of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--only", type=int, help="the number of one input to repeat")


def main(options):
    print(f"seed {options.seed}")
    faults = 0
    for kind in options.kinds:
        numbers = itertools.count() if options.inputs is None else range(options.inputs)
        if options.only is not None:
            numbers = [options.only]
        begin, found = time.monotonic(), Counter()
        for number in numbers:
            if options.inputs is None and time.monotonic() - begin > options.seconds / len(options.kinds):
                break
            outcome, text = attempt(kind, options.seed, number)
            found[outcome] += 1
            if outcome == "fault":
                print(f"FAULT, --kinds {kind} --seed {options.seed} --only {number}\n{text}", flush=True)
        spent = time.monotonic() - begin
        total = sum(found.values())
        print(
            f"{kind:10s} {total} inputs in {spent:.0f} s, {found['refused']} refused, {found['fault']} faults",
            flush=True,
        )
        faults += found["fault"]
    return 1 if faults else 0


def attempt(kind, seed, number):
    """Try one input; return "held", "refused" or "fault", and what was said."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), number])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KINDS[kind](rng)
    except fuzz_inputs.RefusedError as error:
        return "refused", str(error)
    except REFUSALS as error:
        if isinstance(error, fuzz_inputs.RefusedError):
            return "refused", str(error)
        raised = traceback.extract_tb(error.__traceback__)[-1].filename
        if raised.startswith(PACKAGE) and str(error) and not isinstance(error, np.linalg.LinAlgError):
            return "refused", str(error)
        return "fault", traceback.format_exc()
    except Exception:
        return "fault", traceback.format_exc()
    return "held", ""
