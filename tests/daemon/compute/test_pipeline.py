"""The compute thread with fake workspaces."""

import queue
import time
from collections.abc import Iterator

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.compute.pipeline import ComputedBatch, Pipeline, flags_of
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord, SlotAdvanced
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import FakeEngine

LIMITS = BatchLimits(events=64, meps=8, input_bytes=4096, rows=64)


class Bench:
    """A pipeline with three fake workspaces, started."""

    def __init__(self) -> None:
        self.engine = FakeEngine(LIMITS)
        self.progress: list[SlotAdvanced] = []
        self.done: queue.Queue[ComputedBatch] = queue.Queue()
        self.crashes: list[BaseException] = []
        self.pipeline = Pipeline(
            [self.engine.create_workspace() for _ in range(3)],
            self.progress.append,
            self.done.put,
            self.crashes.append,
        )
        self.pipeline.warm_up()
        self.pipeline.start()

    def submit(self, slot: int) -> None:
        mep = MepRecord(mep=slot, slot=slot, first_event=0, n_events=4, opened_ns=0)
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


def test_a_batch_is_reported_when_the_back_end_has_it_and_when_it_is_done(bench: Bench) -> None:
    bench.submit(1)
    bench.take()
    assert bench.progress == [SlotAdvanced(1, SlotState.RUN), SlotAdvanced(1, SlotState.DONE)]


def test_a_batch_that_fails_is_reported_as_done(bench: Bench) -> None:
    bench.engine.behaviour.fail_next = 1
    bench.submit(2)
    assert bench.take().error is not None
    assert bench.progress[-1] == SlotAdvanced(2, SlotState.DONE)


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
    mep = MepRecord(mep=0, slot=0, first_event=0, n_events=4, opened_ns=0)
    assert flags_of(mep) == EventFlag(0)
    mep.missing = (5,)
    assert flags_of(mep) is EventFlag.INCOMPLETE
