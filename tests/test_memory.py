"""Memory: what is free, and what is refused for want of it."""

import pytest

from relaymodel import memory


def test_free_memory_is_what_the_system_can_give():
    free = memory.free_memory()
    assert free is None or 2**20 < free < 2**50


@pytest.mark.parametrize(("need", "fits"), [(900.0, True), (901.0, False), (1e30, False)])
def test_what_needs_more_than_is_free_is_refused_with_its_size(monkeypatch, need, fits):
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    if fits:
        memory.demand_memory("width", need, "a network")
    else:
        with pytest.raises(ValueError, match=r"width must be smaller: a network takes \d.* GB of memory"):
            memory.demand_memory("width", need, "a network")


def test_nothing_is_refused_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    memory.demand_memory("width", 1e30, "a network")
