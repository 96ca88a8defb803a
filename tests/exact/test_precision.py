"""python-flint's precision is one for the whole process: what several threads compute, and what is left behind."""

import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from flint import ctx

from relaymodel import Layer, RelayModel, influence, influence_ball, influence_fraction, local_exponent, token_influence
from relaymodel.bounds import bracket_ball
from relaymodel.exact.precision import working


def work(seed):
    """Values of new models, which no cache knows: series, balls, fractions, bounds."""
    relay = [Fraction(3 + seed, 7 + 2 * i) for i in range(12)]
    plain = RelayModel(5 + seed % 3, [Layer(x) for x in relay])
    mixed = RelayModel(4, [Layer((-1) ** i * x, position=Fraction(i, 1000)) for i, x in enumerate(relay[:6])])
    return (
        influence(plain, [1.0, 1e3, 1e200]).tolist(),
        influence(mixed, 1e3 + seed),
        local_exponent(mixed, 1e3 + seed),
        influence_ball(plain, 10**20, 60).str(50, radius=False),
        influence_fraction(mixed, 7 + seed % 5),
        token_influence(mixed, 3, 4000 + seed),
        float(bracket_ball(plain, 10**6 + seed, 40).tightness.mid()),
    )


@pytest.fixture
def impatient():
    """Let threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_eight_threads_compute_what_one_does():
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(work, range(1000, 1096)))
    # other models than before by the prompt alone would be served by the caches: these are computed twice
    for cache in _caches():
        cache.cache_clear()
    assert together == [work(seed) for seed in range(1000, 1096)]


def _caches():
    """Every lru_cache of `relaymodel.exact`."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("relaymodel.exact"):
            found |= {id(value): value for value in vars(module).values() if hasattr(value, "cache_clear")}
    assert len(found) >= 5
    return found.values()


@pytest.mark.usefixtures("impatient")
def test_the_users_precision_is_restored():
    ctx.prec, ctx.cap = 77, 11
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(24)))
        assert (ctx.prec, ctx.cap) == (77, 11)
        with pytest.raises(RuntimeError), working(bits=300, order=3):
            raise RuntimeError
        assert (ctx.prec, ctx.cap) == (77, 11)
    finally:
        ctx.prec, ctx.cap = 53, 10
