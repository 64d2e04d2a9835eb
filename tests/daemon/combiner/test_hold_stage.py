"""Batches of no slice in the holding thread, and a combiner that refuses the node."""

from __future__ import annotations

import gc
import queue
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest
import zmq

from hltnode.daemon.combiner.combiner_link import JOIN_NS
from hltnode.daemon.combiner.hold_stage import FULL_QUEUE_NS, LOOK_NS, RESEND_NS, HoldStage
from hltnode.daemon.combiner.window_rows import WindowRows
from hltnode.daemon.common.vocabulary import HeldEnd, SeedFault, WindowFault
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import BatchResults
from hltnode.daemon.configuration.output_sections import CombinerSection
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.monitoring.counters import HeldCounters
from hltnode.daemon.output.requests import Confirmed, Request
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import joined_lists
from hltnode.protocol.transport.seed_messages import (
    Join,
    Joined,
    NotJoined,
    SliceSeeds,
    SliceWindows,
    decode_to_combiner,
    encode_from_combiner,
)
from tests.daemon.combiner.test_window_rows import BEFORE, BEHIND, RUN, WINDOWS, N, content_of, streaming

REQUEST = Confirmed(RUN, 5)
FOREVER_MS = 600_000


@dataclass
class Bench:
    """A holding thread without a combiner, and what it hands on."""

    timeout_ms: int = FOREVER_MS
    max_bytes: int = 1 << 30
    max_slices: int = 8
    clock_ns: int = 0
    handed_on: queue.SimpleQueue[ComputedBatch | Request] = field(default_factory=queue.SimpleQueue)
    freed: list[Batch] = field(default_factory=list)
    crashes: list[BaseException] = field(default_factory=list)
    counters: HeldCounters = field(default_factory=HeldCounters)

    def __post_init__(self) -> None:
        rows = WindowRows(streaming(), WINDOWS)
        self.stage = HoldStage(
            CombinerSection(endpoint="tcp://127.0.0.1:9", timeout_ms=self.timeout_ms).model_copy(
                update={"max_bytes": self.max_bytes}
            ),
            None,
            rows,
            TimeWindows(streaming(), WINDOWS),
            FlagTable(),
            [memoryview(bytearray(64))],
            self.counters,
            self.freed.append,
            self.handed_on.put,
            self.crashes.append,
            node="node",
            session="session",
            chain="stream",
            max_slices=self.max_slices,
            clock_ns=lambda: self.clock_ns,
        )

    def batch(self, *lengths: int) -> ComputedBatch:
        """A batch with MEPs of these numbers of events."""
        meps = [
            MepRecord(mep=number, slot=0, first_event=0, n_events=n, opened_ns=0, n_sources=1)
            for number, n in enumerate(lengths)
        ]
        batch = Batch(0, RUN, tuple(meps))
        results = BatchResults(meps, 1, (), EventFlag.NOT_PROCESSED, {WINDOWS.name: WINDOWS}).gathered()
        return ComputedBatch(batch, results, (), None, ())

    def slice(self, number: int, windows: list[tuple[int, int, int]] | None = None) -> ComputedBatch:
        """A batch of one slice with these windows, all of them kept."""
        mep = MepRecord(mep=number, slot=0, first_event=0, n_events=N, opened_ns=0, n_sources=1)
        results = BatchResults([mep], 1, (), EventFlag(0), {WINDOWS.name: WINDOWS}).gathered()
        results.accepted[:] = 1
        lists = {WINDOWS.name: content_of(windows or [])}
        return ComputedBatch(Batch(0, RUN, (mep,)), replace(results, lists=lists), (), None, ())

    def submit(self, *lengths: int) -> Batch:
        """Submit such a batch."""
        computed = self.batch(*lengths)
        self.stage.submit(computed)
        return computed.batch

    def take(self) -> ComputedBatch | Request:
        return self.handed_on.get(timeout=60.0)


@contextmanager
def started(bench: Bench) -> Iterator[Bench]:
    bench.stage.start()
    try:
        yield bench
    finally:
        assert bench.stage.stop(60.0)
    assert not bench.crashes


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
@pytest.mark.parametrize("lengths", [(), (BEFORE + BEHIND,), (1, 2)], ids=["no MEP", "margins", "less than margins"])
def test_a_batch_of_no_slice_leaves_at_once(lengths: tuple[int, ...]) -> None:
    with started(Bench()) as bench:
        batch = bench.submit(*lengths)
        bench.stage.submit(REQUEST)
        left = bench.take()
        assert isinstance(left, ComputedBatch)
        assert left.batch is batch
        assert left.windows_decided
        assert left.results.lists[WINDOWS.name].counts.tolist() == [0] * sum(lengths)
        assert bench.take() is REQUEST
        assert bench.freed == [batch]
    assert bench.counters.slices == dict.fromkeys(HeldEnd, 0)


@pytest.mark.loopback
@pytest.mark.usefixtures("nothing_is_left_behind")
def test_a_node_that_stops_forgets_batches_of_no_slice_behind_a_held_one() -> None:
    with started(Bench()) as bench:
        bench.submit(N)
        bench.submit(BEFORE + BEHIND)
        bench.stage.submit(REQUEST)
    assert bench.take() is REQUEST
    assert bench.handed_on.empty()


def test_a_slice_of_another_length_does_not_wait_for_an_answer_that_cannot_come() -> None:
    bench = Bench()
    held = bench.stage._with_seeds(bench.batch(N, N + 1, N))
    assert list(held.messages) == [(RUN, 0), (RUN, 2)]
    assert bench.stage.stop(1.0)


def test_windows_that_are_no_seeds_are_counted_as_without_a_combiner() -> None:
    bench = Bench()
    computed = bench.batch(N, N + 1)
    computed.results.accepted[:] = 1
    of_first, of_second = [(0, 0, 10), (4, 7, 7), (5, 0, 10)], [(3, 0, 10), (4, 0, 10)]
    windows = joined_lists([content_of(of_first), content_of(of_second), WINDOWS.empty(1)])
    flags = np.zeros(2 * N + 1, np.uint32)
    flags[N + 3] = EventFlag.BANK_ERROR
    results = replace(computed.results, flags=flags, lists={WINDOWS.name: windows})
    bench.stage._take(replace(computed, results=results))
    leaving = bench.stage._held.evict()
    assert leaving is not None
    held = cast(Any, leaving.item)
    assert {of: held.rows(of)["sub_slice"].tolist() for of in held.messages} == {(RUN, 0): [5]}
    bench.stage._leave(leaving)
    left = cast(Any, bench.take())
    assert left.held is not None
    # One in a margin, one of a slice of another length; that of an error is kept in the error stream.
    assert left.window_faults == {WindowFault.OUT_OF_SLICE: 2, WindowFault.EMPTY: 1}
    assert bench.stage.stop(1.0)


def core_ns(bench: Bench) -> int:
    [raw] = bench.stage._with_seeds(bench.slice(0)).messages.values()
    message = decode_to_combiner(raw)
    assert isinstance(message, SliceSeeds)
    return message.core_ns


def test_a_slice_whose_time_fits_no_message_has_no_seeds_and_waits_for_no_answer() -> None:
    bench = Bench()
    held = bench.stage._with_seeds(bench.slice((1 << 62) // core_ns(bench), [(4, 0, 5)]))
    assert held.messages == {}
    assert bench.stage.stop(1.0)


def test_a_node_says_the_start_of_the_earliest_slice_that_it_holds() -> None:
    bench = Bench()
    bench.stage._link.socket = cast(Any, QueueOfSocket(9))
    for number in (5, 3, 7):
        bench.stage._take(bench.slice(number))
    assert bench.stage._join().held_from_ns == 3 * core_ns(bench)
    assert bench.stage.stop(1.0)


class QueueOfSocket:
    """A socket whose queue takes a number of messages."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[bytes] = []

    def send(self, message: bytes, _flags: int) -> None:
        if len(self.sent) >= self.room:
            raise zmq.Again
        self.sent.append(message)

    def slices(self) -> list[int]:
        """The numbers of the slices whose seeds were sent; the queue is empty then."""
        found = [message for message in map(decode_to_combiner, self.sent) if isinstance(message, SliceSeeds)]
        self.sent.clear()
        return [message.slice for message in found]


def test_the_oldest_batches_leave_only_as_far_as_memory_is_needed() -> None:
    bench = Bench()
    [nbytes] = [size for size in [bench_bytes_of(bench)] if size]
    with started(Bench(max_bytes=4 * nbytes + nbytes // 2)) as small:
        for number in range(6):
            small.stage.submit(small.slice(number))
        for number in range(2):
            left = cast(Any, small.take())
            assert left.batch.meps[0].mep == number
            assert left.held_bytes == nbytes
            small.stage.gathered(nbytes)
        small.stage.submit(REQUEST)
        small.stage.submit(small.slice(6))
        assert cast(Any, small.take()).batch.meps[0].mep == 2
    assert small.counters.slices[HeldEnd.NO_ROOM] == 3
    assert bench.stage.stop(1.0)


def bench_bytes_of(bench: Bench) -> int:
    """What a held slice without windows takes."""
    bench.stage._take(bench.slice(0))
    return bench.stage._held.nbytes


def test_the_bytes_that_are_counted_are_those_that_batches_seeds_and_answers_take() -> None:
    bench = Bench(max_slices=1000)
    bench.counters.combiner = "session"
    bench.stage._link.socket = cast(Any, QueueOfSocket(0))
    windows = [(4 + i % 2, i % 7, i % 7 + 3) for i in range(200)]
    rows = np.zeros(700, bench.stage._rows.no_rows.dtype)
    rows["end_ns"] = 1
    answer = rows.tobytes()
    bench.stage._take(bench.slice(1000, windows))
    before_bytes = bench.stage._held.nbytes
    gc.collect()
    tracemalloc.start()
    try:
        begin, _ = tracemalloc.get_traced_memory()
        for number in range(50):
            bench.stage._take(bench.slice(number, windows))
        held, _ = tracemalloc.get_traced_memory()
        held_bytes = bench.stage._held.nbytes - before_bytes
        for number in range(50):
            # Each message of the socket has memory of its own.
            own = bytes(bytearray(answer))
            bench.stage._answered(SliceWindows(RUN, number, True, bench.stage._rows.description, own))
        del own
        answered, _ = tracemalloc.get_traced_memory()
        answered_bytes = bench.stage._held.nbytes - before_bytes - held_bytes
    finally:
        tracemalloc.stop()
    assert bench.counters.windows_received == 50 * len(rows)
    assert 0.5 * held_bytes < held - begin <= held_bytes
    assert answered_bytes == 50 * len(answer)
    assert 0.9 * answered_bytes < answered - held < 1.1 * answered_bytes
    assert bench.stage.stop(1.0)


def test_answers_count_and_let_the_oldest_batches_leave() -> None:
    nbytes = bench_bytes_of(first := Bench())
    assert first.stage.stop(1.0)
    bench = Bench(max_bytes=4 * nbytes)
    bench.stage._link.socket = cast(Any, QueueOfSocket(9))
    for number in range(3):
        bench.stage._take(bench.slice(number))
    # Above the part that is kept free for batches that are gathered, and below the limit.
    rows = np.zeros(int(0.8 * nbytes) // 30, bench.stage._rows.no_rows.dtype)
    rows["end_ns"] = 1
    bench.stage._answered(SliceWindows(RUN, 2, True, bench.stage._rows.description, rows.tobytes()))
    assert bench.counters.slices[HeldEnd.NO_ROOM] == 1
    assert cast(Any, bench.take()).batch.meps[0].mep == 0
    assert bench.handed_on.empty()
    assert bench.stage._held.nbytes == 2 * nbytes + rows.nbytes
    assert bench.stage.stop(1.0)


def test_a_batch_takes_the_windows_along_for_which_it_must_leave() -> None:
    nbytes = bench_bytes_of(first := Bench())
    assert first.stage.stop(1.0)
    bench = Bench(max_bytes=4 * nbytes)
    bench.stage._link.socket = cast(Any, QueueOfSocket(9))
    for number in range(3):
        bench.stage._take(bench.slice(number))
    rows = np.zeros(int(0.8 * nbytes) // 30, bench.stage._rows.no_rows.dtype)
    rows["end_ns"], rows["sub_slice"] = 1, BEFORE
    bench.stage._answered(SliceWindows(RUN, 0, True, bench.stage._rows.description, rows.tobytes()))
    assert {end: n for end, n in bench.counters.slices.items() if n} == {HeldEnd.JOINED: 1}
    left = cast(Any, bench.take())
    assert left.batch.meps[0].mep == 0
    assert left.results.lists[WINDOWS.name].counts.sum() == len(rows)
    assert left.held_bytes == nbytes
    assert bench.stage._held.nbytes == 2 * nbytes
    assert bench.stage.stop(1.0)


def test_a_full_queue_ends_the_check_of_held_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(max_slices=100)
    bench.stage._link.socket = cast(Any, QueueOfSocket(2))
    bench.counters.combiner = "session"
    for number in range(50):
        bench.stage._take(bench.slice(number))
    unanswered = bench.stage._held.unanswered
    seen = []

    def noting(now_ns: int, after_ns: int) -> Iterator[Any]:
        for each in unanswered(now_ns, after_ns):
            seen.append(each.slices)
            yield each

    monkeypatch.setattr(bench.stage._held, "unanswered", noting)
    bench.stage._send_again(0)
    assert seen == [((RUN, 2),)]
    assert bench.stage.stop(1.0)


def test_seeds_that_the_queue_does_not_take_follow_before_their_time() -> None:
    bench = Bench(max_slices=100)
    queue_of_socket = QueueOfSocket(3)
    bench.stage._link.socket = cast(Any, queue_of_socket)
    bench.counters.combiner = "session"
    for number in range(7):
        bench.stage._take(bench.slice(number))
    assert queue_of_socket.slices() == [0, 1, 2]
    assert bench.counters.faults[SeedFault.UNSENT] == 4
    bench.stage._send_again(0)
    assert queue_of_socket.slices() == [3, 4, 5]
    bench.stage._send_again(FULL_QUEUE_NS)
    assert queue_of_socket.slices() == [6]
    bench.stage._send_again(RESEND_NS - 1)
    assert queue_of_socket.slices() == []
    assert bench.stage.stop(1.0)


def test_another_session_of_the_combiner_gets_the_recent_seeds_also_through_a_small_queue() -> None:
    bench = Bench(max_slices=2)
    queue_of_socket = QueueOfSocket(9)
    bench.stage._link.socket = cast(Any, queue_of_socket)
    bench.counters.combiner = "session"
    for number in range(6):
        bench.stage._take(bench.slice(number))
    assert queue_of_socket.slices() == list(range(6))
    queue_of_socket.room = 3
    bench.stage._link.is_new_combiner = True
    found = []
    for turn in range(2):
        bench.stage._send_again(turn * FULL_QUEUE_NS)
        found += queue_of_socket.slices()
    # The four that left, and the two that are held.
    assert found == list(range(6))
    assert bench.stage.stop(1.0)


class RefusingCombiner:
    """A socket and a poller: the answer to each message is there at once."""

    def __init__(self) -> None:
        self.joins = 0
        self.answers: list[bytes] = []
        self.answer: NotJoined | Joined = NotJoined("256 nodes have joined already")

    def send(self, message: bytes, _flags: int) -> None:
        assert isinstance(decode_to_combiner(message), Join)
        self.joins += 1
        self.answers.append(encode_from_combiner(self.answer))

    def recv(self, _flags: int) -> bytes:
        if not self.answers:
            raise zmq.Again
        return self.answers.pop()

    def poll(self, _wait_ms: int) -> list[tuple[object, int]]:
        return [(self, zmq.POLLIN)]


def test_held_batches_are_not_all_looked_at_in_each_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, combiner = Bench(), cast(Any, RefusingCombiner())
    looks: list[int] = []

    def unanswered(now_ns: int, _after_ns: int) -> list[object]:
        looks.append(now_ns)
        return []

    monkeypatch.setattr(bench.stage._held, "unanswered", unanswered)
    bench.stage._link.socket = combiner
    for _ in range(3):
        bench.stage._turn(combiner)
    assert looks == [0]
    bench.clock_ns = LOOK_NS - 1
    bench.stage._turn(combiner)
    bench.clock_ns = LOOK_NS
    bench.stage._turn(combiner)
    assert looks == [0, LOOK_NS]
    bench.stage._link.is_new_combiner = True
    bench.stage._turn(combiner)
    assert looks == [0, LOOK_NS, LOOK_NS]
    assert bench.stage.stop(1.0)


@pytest.mark.parametrize("knows_another", [False, True])
def test_a_refused_node_asks_again_but_not_at_once(knows_another: bool) -> None:
    bench, combiner = Bench(), RefusingCombiner()
    bench.counters.combiner = "another" if knows_another else ""
    bench.stage._link.socket = cast(Any, combiner)

    def turns(n: int) -> int:
        before = combiner.joins
        for _ in range(n):
            bench.stage._turn(cast(Any, combiner))
        return combiner.joins - before

    assert turns(20) == 1
    bench.clock_ns += JOIN_NS // 20
    assert turns(20) == 1
    assert bench.counters.faults[SeedFault.REFUSED] == 2
    combiner.answer = Joined("new")
    bench.clock_ns += JOIN_NS // 20
    assert turns(20) == 1
    assert bench.counters.combiner == "new"
    bench.clock_ns += JOIN_NS - 1
    assert turns(20) == 0
    bench.clock_ns += 1
    assert turns(20) == 1
    assert bench.stage.stop(1.0)
