"""The compute thread with fake workspaces."""

import queue
import time
from collections.abc import Iterator

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.compute.pipeline import Batch, ComputedBatch, Pipeline, flags_of
from hltnode.daemon.event_building.slots import SlotLimits, SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import MepRecord
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import FakeEngine

LIMITS = BatchLimits(events=64, meps=8, input_bytes=4096, rows=64)


class Bench:
    """A pipeline with three fake workspaces, started."""

    def __init__(self) -> None:
        self.engine = FakeEngine(LIMITS)
        self.pool = SlotPool(3, SlotLimits(input_bytes=4096, events=64, meps=8, fragments=64, mep_bytes=512))
        self.done: queue.Queue[ComputedBatch] = queue.Queue()
        self.crashes: list[BaseException] = []
        self.pipeline = Pipeline(
            [self.engine.create_workspace() for _ in range(3)], self.pool.slots, self.done.put, self.crashes.append
        )
        self.pipeline.warm_up()
        self.pipeline.start()

    def submit(self, slot: int) -> None:
        self.pool.slots[slot].state = SlotState.SEALED
        mep = MepRecord(mep=slot, slot=slot, first_event=0, n_events=4, opened_ns=0, deadline_ns=0)
        self.pipeline.submit(Batch(slot, 1, (mep,)))

    def take(self) -> ComputedBatch:
        return self.done.get(timeout=5)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.engine.behaviour.hang.clear()
    assert bench.pipeline.stop(5.0)


def test_batches_of_several_slots_are_in_flight_together(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.2
    begin = time.monotonic()
    for slot in range(3):
        bench.submit(slot)
    assert sorted(bench.take().batch.slot for _ in range(3)) == [0, 1, 2]
    assert time.monotonic() - begin < 0.5
    assert all(slot.state is SlotState.DONE for slot in bench.pool.slots)


def test_a_failed_batch_comes_out_with_its_error_and_the_next_one_is_fine(bench: Bench) -> None:
    bench.engine.behaviour.fail_next = 1
    bench.submit(0)
    failed = bench.take()
    assert failed.error == "the fake device has fallen off the bus"
    assert failed.timings is None
    bench.submit(1)
    assert bench.take().error is None


def test_a_back_end_that_hangs_stops_the_clock_of_the_watchdog(bench: Bench) -> None:
    bench.engine.behaviour.hang.set()
    bench.submit(0)
    time.sleep(0.05)
    tick = bench.pipeline.tick_ns
    time.sleep(0.7)
    assert bench.pipeline.tick_ns == tick
    assert not bench.pipeline.stop(0.05)


def test_an_idle_pipeline_ticks(bench: Bench) -> None:
    tick = bench.pipeline.tick_ns
    time.sleep(0.7)
    assert bench.pipeline.tick_ns > tick


def test_stopping_finishes_what_is_in_flight(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.1
    bench.submit(0)
    assert bench.pipeline.stop(5.0)
    assert bench.take().batch.slot == 0


def test_events_of_a_mep_with_a_missing_source_are_flagged() -> None:
    mep = MepRecord(mep=0, slot=0, first_event=0, n_events=4, opened_ns=0, deadline_ns=0)
    assert flags_of(mep) == EventFlag(0)
    mep.missing = (5,)
    assert flags_of(mep) is EventFlag.INCOMPLETE
