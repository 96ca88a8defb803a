"""Whether the tests would notice: small faults planted in the code, one at a time, each against the module's own tests.

    python -m studies mutation --each 40 --jobs 2 --csv docs/mutation.csv

A fault is killed if a test fails or does not come to an end.  Faults are drawn from all there are in a package, with a
seed; what is said in error messages is left as it is.  The tests that pass through the line come first, then the others
that pass through the file.  With `--seconds`, those of the module's own file come first, and no more are run than take
so long together.  The CSV file keeps the column `equivalent`, in which a person says why no test can tell a fault from
the code.
"""

import contextlib
import csv
import fnmatch
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from studies import tables
from studies.mutants import Mutant, mutants

MAKES = "docs/mutation.csv"
ROOT = Path(__file__).parent.parent
SLOW = ["-m", "not exhaustive"]  # with the tests of seconds each
AROUND = ["tests/test_agreement.py", "tests/test_limits.py"]
PACKAGES = {
    "exact": ["tests/exact", *AROUND],
    "bounds": ["tests/test_bounds.py", "tests/bounds", *AROUND],
    "simulation": ["tests/simulation", "tests/control/test_reminders.py", *AROUND],
    "control": ["tests/control"],
    "inference": ["tests/inference"],
    "certificate": ["tests/certificate"],
}
MEMORY = 6 << 30
LEAST = 20.0  # seconds that the tests of a fault have at least
QUICK = 1.0  # seconds of tests that are tried first


def taste(folder):
    few = ["--packages", "bounds", "--tests", "tests/test_limits.py", "--each", "2"]
    return [*few, "--csv", str(folder / "mutation.csv")]


def add_options(parser):
    parser.add_argument("--packages", nargs="+", choices=list(PACKAGES), default=list(PACKAGES))
    parser.add_argument("--tests", nargs="+", help="instead of the package's own")
    parser.add_argument("--files", default="*", help="only files whose name matches this pattern")
    parser.add_argument("--each", type=int, default=40, help="faults for each package")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="that the tests of a fault take at most")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--csv", type=Path)


def main(options):
    known = read(options.csv) if options.csv is not None and options.csv.exists() else {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folders = [copy(Path(name) / str(job)) for job in range(options.jobs)]
        for package in options.packages:
            tests = clean_run(folders[0], package, options.tests)
            chosen = draw(package, options)
            print(f"{package}: {len(chosen)} of {chosen.total} faults, {len(tests)} tests", flush=True)
            free = list(folders)

            def try_one(mutant, tests=tests, free=free):
                folder = free.pop()
                try:
                    return judge(folder, mutant, tests, options.seconds)
                finally:
                    free.append(folder)

            with ThreadPoolExecutor(options.jobs) as pool:
                for mutant, (verdict, seconds) in zip(chosen, pool.map(try_one, chosen), strict=True):
                    row = row_of(package, mutant, verdict, seconds)
                    row["equivalent"] = known.get(key(row), "")
                    rows.append(row)
                    if verdict != "killed":
                        print(f"  {verdict} {row['file']}:{row['line']} {row['before']} -> {row['after']}", flush=True)
    for package in [*options.packages, "all"]:
        part = [row for row in rows if package in ("all", row["package"])]
        killed = sum(row["verdict"] == "killed" for row in part)
        equal = sum(row["verdict"] != "killed" and bool(row["equivalent"]) for row in part)
        share = killed / max(1, len(part) - equal)
        spent = sum(row["seconds"] for row in part)
        print(f"{package:12s} {killed:4d} of {len(part)} killed, {equal} equivalent: {share:.1%} in {spent:.0f} s")
    if options.csv is not None:
        tables.write(options.csv, rows)


class Drawn(list):
    """Faults that were drawn, and how many there were."""

    total = 0


def draw(package, options):
    """Return the faults of a package that are tried, in the order of the code."""
    place = ROOT / "relaymodel" / package
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    found = []
    for path in files:
        if fnmatch.fnmatch(path.name, options.files):
            found += mutants(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    indices = random.Random(options.seed).sample(range(len(found)), min(options.each, len(found)))
    drawn = Drawn(found[i] for i in sorted(indices))
    drawn.total = len(found)
    return drawn


def copy(folder):
    """Return a copy of what the tests need."""
    for name in ("relaymodel", "tests", "studies", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def clean_run(folder, package, tests=None):
    """Run a package's tests, or others; return {test: (seconds, {file: lines it passes through})}; all must pass."""
    import json

    place = f"relaymodel/{package}"
    targets = tests
    if tests is None:
        targets = [name for name in PACKAGES[package] if (folder / name).exists()]
        targets.append(place if (folder / place).is_dir() else f"{place}.py")
    record = folder / "record.json"
    begin = time.perf_counter()
    code = fork(folder, targets, timeout=3600, record=record)
    if code != 0:
        raise RuntimeError(f"the tests of {package} must pass before faults are planted: {log(folder)}")
    print(f"{package}: clean run in {time.perf_counter() - begin:.0f} s", flush=True)
    return {test: (seconds, lines) for test, (seconds, lines) in json.loads(record.read_text()).items()}


def judge(folder, mutant, tests, most):
    """Return "killed", "survived" or "not covered" and the seconds it took."""
    inside = range(mutant.start[0], mutant.end[0] + 1)
    near, far = [], []
    places = {test: (seconds, set(lines.get(mutant.path, ()))) for test, (seconds, lines) in tests.items()}
    imported = set.intersection(*(here for _, here in places.values()))
    for test, (seconds, here) in places.items():
        if not here.isdisjoint(inside):
            near.append((seconds, test))
        elif here - imported:
            far.append((seconds, test))
    own = f"test_{Path(mutant.path).stem}.py"
    order = sorted(near, key=lambda item: (own not in item[1], item)) + sorted(far)
    spent = itertools.accumulate(seconds for seconds, _ in order)
    order = [item for item, until in zip(order, spent, strict=True) if until <= most] or order[:1]
    if not order:
        return "not covered", 0.0
    path = folder / mutant.path
    before = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(before), encoding="utf-8")
    begin = time.perf_counter()
    # most faults fall to the first few tests, and collecting all of them takes longer than running those
    quick = next((i for i in range(1, len(order)) if sum(s for s, _ in order[:i]) > QUICK or i == 12), len(order))
    try:
        for part in (order[:quick], order[quick:]):
            timeout = LEAST + 4 * sum(seconds for seconds, _ in part)
            if part and fork(folder, [test for _, test in part], timeout=timeout) != 0:
                return "killed", time.perf_counter() - begin
    finally:
        path.write_text(before, encoding="utf-8")
    return "survived", time.perf_counter() - begin


def fork(folder, targets, *, timeout, record=None):
    """Run tests in a child process with the libraries loaded already; return its exit code, -1 after the timeout."""
    preload()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            code = run_tests(folder, targets, record)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests may have left
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def preload():
    """Load what takes long, and is not the package."""
    import matplotlib.figure  # noqa: F401
    import scipy.integrate
    import scipy.optimize
    import scipy.special
    import scipy.stats  # noqa: F401
    import sympy  # noqa: F401


def run_tests(folder, targets, record):
    """Run tests of the copy in a folder; in the child."""
    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    for name in [name for name in sys.modules if name.split(".")[0] in ("relaymodel", "tests", "studies")]:
        del sys.modules[name]
    shutil.rmtree(folder / ".hypothesis", ignore_errors=True)  # what one fault failed on is not known to the next
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "--hypothesis-seed=0", *SLOW, *targets]
    if record is None:
        return int(pytest.main(options))
    recorder = Recorder(folder)
    code = int(pytest.main(options, plugins=[recorder]))
    recorder.write(record)
    return code


class Recorder:
    """A plugin that notes which lines each test passes through, and how long it takes."""

    def __init__(self, folder):
        import coverage

        self.folder, self.seconds = folder, {}
        self.coverage = coverage.Coverage(data_file=None, include=[f"{folder}/relaymodel/*"])
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid, location):
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        if report.passed:
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def write(self, path):
        import json

        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {test: {} for test in self.seconds}
        for file in data.measured_files():
            name = str(Path(file).relative_to(self.folder))
            for line, contexts in data.contexts_by_lineno(file).items():
                # what runs at the import, such as a constant, concerns every test
                for test in contexts if any(contexts) else lines:
                    if test in lines:
                        lines[test].setdefault(name, []).append(line)
        path.write_text(json.dumps({test: (self.seconds[test], lines[test]) for test in lines}))


def log(folder):
    """Return the end of what the tests said."""
    return (folder / "output.txt").read_text(errors="replace")[-1500:]


def row_of(package, mutant: Mutant, verdict, seconds):
    """Return a row of the table."""
    return {
        "package": package,
        "file": mutant.path,
        "function": mutant.function,
        "line": mutant.start[0],
        "before": mutant.before,
        "after": mutant.after,
        "verdict": verdict,
        "seconds": round(seconds, 1),
    }


def key(row):
    """Return what a fault is known by; lines move."""
    return tuple(row[name] for name in ("file", "function", "before", "after"))


def read(path):
    """Return what was said of faults that no test can notice."""
    with path.open(newline="", encoding="utf-8") as stream:
        return {key(row): row["equivalent"] for row in csv.DictReader(stream)}
