"""What `import relaymodel` costs beside `import numpy`: fresh interpreters, in turn.

python -m pytest benchmarks/test_import_speed.py -s
"""

import os
import subprocess
import sys

import pytest

from benchmarks.timing import require, table

ROUNDS = 25
LATER = (
    "relaymodel.exact",
    "relaymodel.derivation",
    "relaymodel.simulation",
    "relaymodel.inference",
    "relaymodel.plotting",
)


@pytest.fixture
def fresh(tmp_path):
    """Return a function: the seconds that importing a module takes in a new interpreter, without and with its start."""
    # compiled modules are kept, as they are once a package is installed
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def measure(module):
        code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        return float(run.stdout)

    return measure


def test_import_against_numpy(fresh, benchmark):
    least = {module: fresh(module) for module in ("numpy", "relaymodel", *LATER)}

    def measure(module):
        least[module] = min(least[module], fresh(module))

    benchmark.pedantic(lambda: measure("relaymodel"), setup=lambda: measure("numpy"), rounds=ROUNDS)
    for module in LATER * 3:
        measure(module)
    benchmark.extra_info.update(least)
    rows = [(f"import {module}", value * 1e3, value / least["numpy"]) for module, value in least.items()]
    table(f"import, least of {ROUNDS} fresh interpreters (3 from the third on)", ("", "milliseconds", "/ numpy"), rows)
    require([("import relaymodel / import numpy", least["relaymodel"] / least["numpy"], "<=", 1.2)])
