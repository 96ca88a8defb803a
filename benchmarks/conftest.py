"""`race`: pytest-benchmark with contestants that take turns."""

import pytest

from benchmarks.timing import lap, repeats_for


def pytest_configure(config):
    # the tables here say per point or step what pytest-benchmark would list by test; --benchmark-json keeps both
    config.option.benchmark_quiet = True


@pytest.fixture
def race(benchmark):
    """Time contestants {name: call} in turn; return the least seconds of a call of each.

    Noise that lasts longer than a round meets all of them.  pytest-benchmark times the last one's laps and keeps
    all minima with them.
    """

    def run(contestants, rounds=15):
        repeats = {name: repeats_for(call) for name, call in contestants.items()}
        least = dict.fromkeys(contestants, float("inf"))

        def go(name):
            least[name] = min(least[name], lap(contestants[name], repeats[name]))

        *others, last = contestants

        def take_turns():
            for name in others:
                go(name)

        benchmark.pedantic(lambda: go(last), setup=take_turns, rounds=rounds)
        benchmark.extra_info.update({str(name): seconds for name, seconds in least.items()})
        return least

    return run
