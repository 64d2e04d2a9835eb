"""The compute thread with fake workspaces."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.compute.histogram_tally import HistogramTally
from hltnode.daemon.compute.interruptions import RESERVED_MEPS
from hltnode.daemon.compute.pipeline import ComputedBatch, DecisionRows, Pipeline
from hltnode.daemon.compute.results import flags_of
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord, SlotAdvanced
from hltnode.daemon.output.early_decisions import would_repeat
from hltnode.processing.framework.backends.interface import Timings
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import TRACKS_PER_EVENT, FakeEngine, FakeWorkspace

LIMITS = BatchLimits(events=64, meps=8, input_bytes=4096, rows=64)


class Notes:
    """The notes in order, and the interruptions left by earlier sessions."""

    def __init__(self, interrupted: Mapping[int, int]) -> None:
        self.noted: list[tuple[str, list[int]]] = []
        self._interrupted = interrupted
        self._below = 0
        self.refuses = False

    def begin_batch(self, _run: int, meps: Sequence[tuple[int, int]]) -> None:
        self.noted.append(("begin", ids(meps)))

    def end_batch(self, _run: int, meps: Sequence[tuple[int, int]]) -> None:
        self.noted.append(("end", ids(meps)))

    def interrupted(self, run: int) -> Mapping[int, int]:
        return self._interrupted if run == 1 else {}

    def reserve(self, _run: int, below: int) -> None:
        self.noted.append(("refused" if self.refuses else "reserve", [below]))
        self._below = 0 if self.refuses else below
        self.refuses = False

    def begun_below(self, _run: int) -> int:
        return self._below


def ids(ranges: Sequence[tuple[int, int]]) -> list[int]:
    return [mep for first, last in ranges for mep in range(first, last + 1)]


class Bench:
    """A pipeline with three fake workspaces, started. MEPs have four events."""

    def __init__(
        self, interrupted: Mapping[int, int] | None = None, *, serial: bool = False, comes_once: bool = False
    ) -> None:
        self.engine = FakeEngine(LIMITS)
        self.notes = Notes(interrupted or {})
        self.progress: list[SlotAdvanced] = []
        self.done: queue.Queue[ComputedBatch] = queue.Queue()
        self.losses: queue.Queue[str] = queue.Queue()
        self.crashes: list[BaseException] = []
        self.threads: list[str] = []
        self.decided: list[list[SlotState]] = []
        """What was reported when each batch was decided."""
        self.decided_at_once: list[tuple[tuple[int, ...], int, list[int]]] = []
        """MEPs, key, and accepted events of one MEP of each batch that could be decided at once."""
        self.computed_ns: list[int] = []
        """When the back end had computed them."""
        self._may_decide = threading.Event()
        self._may_decide.set()
        self.runs: list[tuple[int, int]] = []
        """Runs that the back end has begun, with the number of batches that were done before."""
        self.pipeline = Pipeline(
            [self.engine.create_workspace() for _ in range(3)],
            len(self.engine.lines),
            self.engine.collections,
            HistogramTally((), (), time.monotonic_ns),
            self.notes,
            self.progress.append,
            self.done.put,
            self.losses.put,
            self.crashes.append,
            begin_run=self._begin_run,
            serial=serial,
            begin=lambda: self.threads.append(threading.current_thread().name),
            comes_once=lambda _run: comes_once,
            decide=self._decide,
            decide_at_once=self._decide_at_once,
        )
        self.pipeline.warm_up()
        self.pipeline.start()

    def _decide(self, _computed: ComputedBatch) -> None:
        assert self._may_decide.wait(10.0)
        self.decided.append([each.state for each in self.progress])

    def _decide_at_once(self, batch: Batch, tck: int, rows: DecisionRows) -> None:
        self.decided_at_once.append((tuple(mep.mep for mep in batch.meps), tck, rows[0][:4].tolist()))
        self.computed_ns.append(batch.times.computed_ns)

    def hold_decisions(self) -> threading.Event:
        """Keep batches from being decided until the event is set."""
        self._may_decide.clear()
        return self._may_decide

    def _begin_run(self, run: int) -> int:
        self.runs.append((run, sum(each.state is SlotState.DONE for each in self.progress)))
        return 100 + run

    def submit(self, slot: int, *meps: int, run: int = 1) -> None:
        records = [
            MepRecord(mep=mep, slot=slot, first_event=4 * mep, n_events=4, opened_ns=0, n_sources=1)
            for mep in meps or (slot,)
        ]
        self.pipeline.submit(Batch(slot, run, tuple(records)))

    def take(self) -> ComputedBatch:
        return self.done.get(timeout=5)

    def wait_for(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 10.0
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.001)

    def wait_for_polls(self, slot: int, n: int = 3) -> None:
        """Until the pipeline has asked the back end this often whether the batch of a slot has ended."""
        wanted = self.engine.workspaces[slot].polls + n
        self.wait_for(lambda: self.engine.workspaces[slot].polls >= wanted)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(getattr(request, "param", None))
    yield bench
    bench.engine.behaviour.hang.clear()
    bench.engine.behaviour.hanging_slots.clear()
    assert bench.pipeline.stop(5.0)


@pytest.mark.alone
def test_batches_of_several_slots_are_in_flight_together(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 1.0
    begin = time.monotonic()
    for slot in range(3):
        bench.submit(slot)
    assert sorted(bench.take().batch.slot for _ in range(3)) == [0, 1, 2]
    assert time.monotonic() - begin < 2.9  # one after the other they take 3 s


@pytest.mark.parametrize("serial", [True, False])
def test_a_serial_pipeline_starts_a_batch_after_the_one_before_was_handed_on(serial: bool) -> None:
    bench = Bench(serial=serial)
    bench.engine.behaviour.hanging_slots.add(0)
    begun = bench.engine.workspaces[1].batches
    before = len(begun)  # the empty batch of the warm-up
    bench.submit(0)
    bench.submit(1)
    bench.wait_for_polls(0)
    assert (len(begun) > before) is not serial
    bench.engine.behaviour.hanging_slots.clear()
    assert [bench.take().batch.slot for _ in range(2)] == ([0, 1] if serial else [1, 0])
    assert bench.threads == ["hltnode-pipeline"]
    assert bench.pipeline.stop(5.0)


@pytest.fixture
def serial() -> Iterator[Bench]:
    """A serial pipeline whose back end can compute in its thread."""
    bench = Bench(serial=True)
    bench.engine.behaviour.direct = True
    yield bench
    bench.engine.behaviour.hang.clear()
    assert bench.pipeline.stop(5.0)
    assert not bench.crashes


def test_a_serial_pipeline_computes_in_its_own_thread(serial: Bench) -> None:
    warm_up = len(serial.engine.workspaces[1].batches)
    serial.submit(1, 5, 6)
    computed = serial.take()
    workspace = serial.engine.workspaces[1]
    assert (workspace.directly, len(workspace.batches)) == ([2], warm_up)
    assert computed.error is None
    assert computed.results.accepted.tolist() == [0, 1, 0, 1] * 2
    assert len(computed.timings) == 1
    assert serial.notes.noted == [("begin", [5, 6]), ("end", [5, 6])]
    # A report of its beginning would wake the event loop before the kernels.
    assert serial.progress == [SlotAdvanced(1, SlotState.DONE)]


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_only_after_short_kernels_a_caller_waits_for_the_decision(
    serial: Bench, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.HAND_OVER_SECONDS", 60.0)
    timings = Timings(0.0, seconds, 0.0)
    monkeypatch.setattr(FakeWorkspace, "timings", timings)
    serial.submit(0)
    serial.take()
    may_decide = serial.hold_decisions()
    threading.Timer(0.2, may_decide.set).start()
    serial.submit(1)
    assert may_decide.is_set() is (seconds == 0.0)
    may_decide.set()
    serial.take()


@pytest.mark.parametrize(
    ("interrupted", "fail", "meps", "expected"),
    [
        ({}, 0, (5,), [(5,)]),
        ({}, 0, (5, 6), [(5, 6)]),
        ({5: 1}, 0, (5,), []),
        ({5: 1}, 0, (5, 6), []),
        ({}, 1, (5,), []),
    ],
)
def test_a_batch_is_decided_at_once_only_if_it_was_computed_as_a_whole(
    interrupted: dict[int, int], fail: int, meps: tuple[int, ...], expected: list[tuple[int, ...]]
) -> None:
    bench = Bench(interrupted, serial=True)
    bench.engine.behaviour.direct = True
    bench.engine.behaviour.fail_next = fail
    bench.submit(0, *meps)
    computed = bench.take()
    assert bench.decided_at_once == [(mep, 101, [0, 1, 0, 1]) for mep in expected]
    assert computed.was_interrupted is bool(interrupted)
    assert would_repeat(computed) is bool(expected)
    # The time of the message does not count as computing.
    assert bench.computed_ns == [computed.batch.times.computed_ns] * len(expected)
    assert computed.batch.times.computed_ns > 0
    assert bench.pipeline.stop(5.0)


def test_meps_that_come_once_have_no_notes_but_their_ids_are_reserved_ahead() -> None:
    bench = Bench(serial=True, comes_once=True)
    bench.engine.behaviour.direct = True
    # The disk refuses the first record.
    bench.notes.refuses = True
    for slot, mep in enumerate((3, 4, 3 + RESERVED_MEPS)):
        bench.submit(slot, mep)
        bench.take()
    last = 4 + RESERVED_MEPS
    bench.submit(0, last)
    bench.take()
    bench.submit(1, last - 1 + RESERVED_MEPS)
    bench.take()
    bench.submit(2, last, run=2)
    bench.take()
    assert bench.notes.noted == [
        ("refused", [3 + RESERVED_MEPS]),
        ("reserve", [4 + RESERVED_MEPS]),
        ("reserve", [last + RESERVED_MEPS]),
        ("reserve", [last + RESERVED_MEPS]),
    ]
    assert bench.pipeline.stop(5.0)


def test_a_pipeline_of_overlapping_batches_leaves_computing_to_the_back_end(bench: Bench) -> None:
    bench.engine.behaviour.direct = True
    bench.submit(0)
    assert bench.take().error is None
    assert bench.engine.workspaces[0].directly == []


def test_a_batch_that_fails_in_the_thread_of_the_pipeline_comes_out_with_its_error(serial: Bench) -> None:
    serial.engine.behaviour.fail_next = 1
    serial.submit(0)
    failed = serial.take()
    assert failed.error == "the fake device has fallen off the bus"
    assert failed.results.flags.tolist() == [EventFlag.BACKEND_ERROR] * 4
    serial.submit(1)
    assert serial.take().error is None


def test_only_progress_keeps_the_watchdog_clock_running_while_the_pipeline_computes_itself(serial: Bench) -> None:
    behaviour, pipeline = serial.engine.behaviour, serial.pipeline
    behaviour.crawl = True
    behaviour.hang.set()
    serial.submit(0)
    serial.wait_for(lambda: serial.engine.workspaces[0].directly)
    ticks = pipeline.tick_ns, pipeline.advanced_ns
    serial.wait_for(lambda: pipeline.tick_ns > ticks[0] and pipeline.advanced_ns > ticks[1])
    behaviour.crawl = False
    time.sleep(0.05)
    ticks = pipeline.tick_ns, pipeline.advanced_ns
    time.sleep(0.05)
    assert (pipeline.tick_ns, pipeline.advanced_ns) == ticks
    assert not pipeline.stop(0.05)


def test_a_caller_waits_until_an_idle_serial_pipeline_has_begun_with_its_batch(
    serial: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.HAND_OVER_SECONDS", 60.0)
    serial.engine.behaviour.hang.set()
    serial.submit(0, 5)
    assert serial.notes.noted == [("begin", [5])]
    # The thread is busy now, so the next batch is only queued.
    serial.submit(1, 6)
    serial.engine.behaviour.hang.clear()
    assert [serial.take().batch.slot for _ in range(2)] == [0, 1]
    # No kernel begins for a batch that fails before.
    serial.engine.behaviour.fail_next = 1
    serial.submit(2)
    assert serial.take().error is not None


def test_a_caller_does_not_wait_for_a_serial_pipeline_whose_back_end_has_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU nothing would begin."""
    bench = Bench(serial=True)
    bench.engine.behaviour.hang.set()
    bench.submit(0)
    bench.wait_for(lambda: bench.pipeline._in_flight)
    waited: list[float] = []
    monkeypatch.setattr(bench.pipeline._has_begun, "wait", waited.append)
    bench.submit(1)
    bench.engine.behaviour.hang.clear()
    assert [bench.take().batch.slot for _ in range(2)] == [0, 1]
    assert waited == []
    assert bench.pipeline.stop(5.0)


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens before the call of the back end, so the test detects a lost wake-up."""
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.LOOK_SECONDS", 3600.0)
    monkeypatch.setattr("hltnode.daemon.compute.pipeline.IDLE_SECONDS", 3600.0)


@pytest.mark.usefixtures("no_looks")
def test_a_batch_is_collected_when_the_back_end_reports_its_end_after_any_time(bench: Bench) -> None:
    for number in range(200):
        bench.engine.behaviour.seconds = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)[number % 5]
        for slot in range(3):
            bench.submit(slot)
        assert sorted(bench.take().batch.slot for _ in range(3)) == [0, 1, 2]


@pytest.mark.usefixtures("no_looks")
def test_batches_in_flight_finish_before_the_thread_ends_without_polling(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.05
    for slot in range(3):
        bench.submit(slot)
    assert bench.pipeline.stop(5.0)
    assert bench.done.qsize() == 3


@pytest.mark.usefixtures("no_looks")
def test_an_idle_thread_ends_at_once(bench: Bench) -> None:
    assert bench.pipeline.stop(5.0)


def test_the_times_of_a_batch_are_noted_when_the_back_end_gets_and_returns_it(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.02
    before_ns = time.monotonic_ns()
    bench.submit(0)
    times = bench.take().batch.times
    assert before_ns <= times.begun_ns <= times.computed_ns - 20_000_000 <= time.monotonic_ns()


def test_a_batch_is_reported_when_the_back_end_has_it_and_when_it_is_done(bench: Bench) -> None:
    bench.submit(1)
    bench.take()
    assert bench.progress == [SlotAdvanced(1, SlotState.RUN), SlotAdvanced(1, SlotState.DONE)]


def test_a_batch_is_decided_before_it_is_reported_as_done(bench: Bench) -> None:
    bench.submit(1)
    bench.take()
    assert bench.decided == [[SlotState.RUN]]


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
    assert failed.timings == ()
    assert failed.results.flags.tolist() == [EventFlag.BACKEND_ERROR] * 4
    assert failed.results.accepted.tolist() == [1] * 4
    bench.submit(1)
    assert bench.take().error is None


@pytest.mark.parametrize("call", ["submit", "poll"])
def test_a_lost_device_gives_no_results_and_the_journal_keeps_its_batches(bench: Bench, call: str) -> None:
    bench.engine.behaviour.lost_in = call
    bench.submit(0, 4, 5)
    assert bench.losses.get(timeout=5) == "the fake device computes nothing any more"
    bench.engine.behaviour.lost_in = ""
    bench.submit(1, 6)
    assert bench.pipeline.stop(5.0)
    assert bench.done.empty()
    assert bench.notes.noted == [("begin", [4, 5])]
    assert bench.crashes == []


def test_a_back_end_that_hangs_stops_the_clock_of_the_watchdog(bench: Bench) -> None:
    bench.engine.behaviour.hang.set()
    bench.submit(0)
    bench.wait_for_polls(0, n=2)
    tick = bench.pipeline.tick_ns
    bench.wait_for_polls(0)
    assert bench.pipeline.tick_ns == tick
    assert not bench.pipeline.stop(0.05)


def test_slow_progress_of_a_batch_keeps_the_watchdog_clock_running(bench: Bench) -> None:
    bench.engine.behaviour.crawl = True
    bench.engine.behaviour.hang.set()
    bench.submit(0)
    bench.wait_for_polls(0, n=2)
    tick = bench.pipeline.tick_ns
    bench.wait_for(lambda: bench.pipeline.tick_ns > tick)
    bench.engine.behaviour.crawl = False
    bench.wait_for_polls(0, n=2)
    tick = bench.pipeline.tick_ns
    bench.wait_for_polls(0)
    assert bench.pipeline.tick_ns == tick


def test_batches_that_overtake_a_hung_batch_do_not_hide_it(bench: Bench) -> None:
    bench.engine.behaviour.hanging_slots.add(0)
    bench.submit(0)
    bench.submit(1)
    assert bench.take().batch.slot == 1
    bench.wait_for_polls(0, n=2)
    tick = bench.pipeline.tick_ns
    for _ in range(3):
        bench.submit(1)
        bench.submit(2)
        assert {bench.take().batch.slot, bench.take().batch.slot} == {1, 2}
    assert bench.pipeline.tick_ns == tick


def test_a_batch_is_noted_before_the_back_end_gets_it_and_when_it_is_done(bench: Bench) -> None:
    bench.submit(0, 5, 6, 7, 9)
    bench.take()
    assert bench.notes.noted == [("begin", [5, 6, 7, 9]), ("end", [5, 6, 7, 9])]
    bench.engine.behaviour.hang.set()
    bench.submit(1, 10)
    bench.wait_for_polls(1, n=1)
    assert bench.notes.noted[2:] == [("begin", [10])]


def test_a_batch_that_failed_is_noted_as_done(bench: Bench) -> None:
    bench.engine.behaviour.fail_next = 1
    bench.submit(0, 5)
    bench.take()
    assert bench.notes.noted == [("begin", [5]), ("end", [5])]


@pytest.mark.parametrize("bench", [{6: 1, 8: 1}], indirect=True)
def test_meps_that_ended_a_session_are_computed_alone(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.02
    bench.submit(0, 1, 2)
    bench.submit(1, 5, 6, 7, 8)
    bench.submit(2, 9)
    for _ in range(3):
        assert bench.take().not_processed == ()
    alone = [("begin", [6]), ("end", [6]), ("begin", [8]), ("end", [8])]
    noted = bench.notes.noted
    assert noted[4:8] == alone
    assert sorted(noted[:4]) == [("begin", [1, 2]), ("begin", [5, 7]), ("end", [1, 2]), ("end", [5, 7])]
    assert noted[8:] == [("begin", [9]), ("end", [9])]
    assert bench.engine.workspaces[1].batches == [0, 2, 1, 1]  # the first is the warm-up


@pytest.mark.parametrize("bench", [{6: 1, 7: 2, 9: 3}], indirect=True)
def test_meps_on_which_two_sessions_ended_are_left_out_and_results_keep_their_events(
    bench: Bench,
) -> None:
    bench.submit(0, 5, 6, 7, 8, 9)
    computed = bench.take()
    assert [mep.mep for mep in computed.not_processed] == [7, 9]
    assert computed.error is None
    # The fake accepts every second event of a MEP.
    left_out = [0, 0, 0, 0]
    assert computed.results.accepted.tolist() == [*[0, 1, 0, 1] * 2, *left_out, 0, 1, 0, 1, *left_out]
    assert computed.results.lines[:, 0].tolist() == computed.results.accepted.tolist()
    fine, not_processed = [0] * 4, [EventFlag.NOT_PROCESSED] * 4
    assert computed.results.flags.tolist() == [*fine, *fine, *not_processed, *fine, *not_processed]
    assert computed.results.objects == {"tracks": 3 * 4 * TRACKS_PER_EVENT}
    assert not any({7, 9} & set(meps) for _, meps in bench.notes.noted)


@pytest.mark.parametrize("bench", [{6: 2}], indirect=True)
def test_a_batch_without_computed_events_is_still_delivered(bench: Bench) -> None:
    bench.submit(0, 6)
    computed = bench.take()
    assert computed.results.flags.tolist() == [EventFlag.NOT_PROCESSED] * 4
    assert computed.timings == ()
    assert bench.progress == [SlotAdvanced(0, SlotState.DONE)]


@pytest.mark.parametrize("bench", [{6: 1}], indirect=True)
def test_a_failed_part_of_a_batch_does_not_change_the_results_of_other_parts(bench: Bench) -> None:
    bench.engine.behaviour.fail_next = 1
    bench.submit(0, 5, 6, 7)
    computed = bench.take()
    assert computed.error == "the fake device has fallen off the bus"
    failed, fine = [EventFlag.BACKEND_ERROR] * 4, [0] * 4
    assert computed.results.flags.tolist() == [*failed, *fine, *failed]
    assert computed.results.accepted.tolist() == [1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("bench", [{6: 2}], indirect=True)
def test_meps_with_equal_ids_of_different_runs_are_distinct(bench: Bench) -> None:
    bench.submit(0, 6, run=2)
    assert bench.take().not_processed == ()
    bench.submit(1, 6, run=1)
    assert len(bench.take().not_processed) == 1


@pytest.mark.parametrize("bench", [{6: 1, 7: 1}], indirect=True)
def test_stopping_finishes_parts_that_wait_to_be_computed_alone(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.05
    bench.submit(0, 5, 6, 7)
    assert bench.pipeline.stop(5.0)
    assert bench.take().results.flags.tolist() == [0] * 12


def test_an_idle_pipeline_ticks(bench: Bench) -> None:
    tick = bench.pipeline.tick_ns
    bench.wait_for(lambda: bench.pipeline.tick_ns > tick)


def test_stopping_finishes_batches_in_flight(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.1
    bench.submit(0)
    assert bench.pipeline.stop(5.0)
    assert bench.take().batch.slot == 0


def test_events_of_a_mep_with_a_missing_source_are_flagged() -> None:
    mep = MepRecord(mep=0, slot=0, first_event=0, n_events=4, opened_ns=0, n_sources=1)
    assert flags_of(mep) == EventFlag(0)
    mep.missing = (5,)
    assert flags_of(mep) is EventFlag.INCOMPLETE


def test_a_run_begins_once_the_batches_of_the_run_before_are_done(bench: Bench) -> None:
    bench.engine.behaviour.seconds = 0.2
    bench.submit(0, run=7)
    bench.submit(1, run=7)
    bench.submit(2, run=8)
    done = [bench.take() for _ in range(3)]
    assert bench.runs == [(7, 0), (8, 2)]
    assert [(each.batch.run, each.tck) for each in done] == [(7, 107), (7, 107), (8, 108)]


@pytest.mark.parametrize("bench", [{0: 2}], indirect=True)
def test_a_batch_without_meps_to_compute_has_the_key_of_its_run(bench: Bench) -> None:
    bench.submit(1, 5, run=2)
    bench.submit(0, 0, run=1)
    first, second = bench.take(), bench.take()
    assert (first.batch.run, second.batch.run, second.tck) == (2, 1, 101)
    assert [mep.mep for mep in second.not_processed] == [0]
