"""Python's garbage collector runs without a MEP, and at the latest after a minute."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from hltnode.daemon.common.vocabulary import CollectionMoment
from hltnode.daemon.machine.quiet_collector import IDLE_NS, LONGEST_NS, QuietCollector

IDLE, DUE = CollectionMoment.IDLE, CollectionMoment.DUE


class Ring:
    """An object that only the garbage collector frees."""

    def __init__(self) -> None:
        self.other = self


def ring() -> "weakref.ref[Ring]":
    return weakref.ref(Ring())


@pytest.fixture
def collector() -> Iterator[QuietCollector]:
    collector = QuietCollector(0, dict.fromkeys(CollectionMoment, 0))
    collector.start()
    yield collector
    collector.stop()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_cycles_are_freed_while_the_node_is_idle_or_after_a_minute(collector: QuietCollector) -> None:
    assert not gc.isenabled()
    assert gc.get_freeze_count() > 0
    cycle = ring()
    # No number of objects starts a collection.
    kept = [[] for _ in range(5000)]  # type: ignore[var-annotated]
    for now_ns, is_idle, is_freed in (
        (LONGEST_NS - 1, False, False),
        (LONGEST_NS, False, True),
    ):
        collector.tick(now_ns, is_idle=is_idle)
        assert (cycle() is None) is is_freed
    cycle = ring()
    collector.tick(LONGEST_NS + IDLE_NS - 1, is_idle=True)
    assert cycle() is not None
    collector.tick(LONGEST_NS + IDLE_NS, is_idle=True)
    assert cycle() is None
    assert len(kept) == 5000
    assert collector._counts == {IDLE: 1, DUE: 1}
