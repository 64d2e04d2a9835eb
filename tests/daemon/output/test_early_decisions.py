"""Decisions that leave before files and journal: which batches, what is sent, and the mark of late ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from typing import Any, cast

import numpy as np
import pytest
from msgspec.structs import replace

from hltnode.daemon.common.vocabulary import CloseReason, EventStream, HeadRoomRule
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.output.decision_deadline import DecisionDeadline
from hltnode.daemon.output.early_decisions import EarlyDecisions, would_repeat
from hltnode.daemon.output.event_encoder import EncodedEvents, EventEncoder
from hltnode.daemon.output.gathering import DecidedBatch, EventGatherer
from hltnode.processing.framework.backends.interface import Timings
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import no_words
from hltnode.protocol._native import DecisionWriter
from hltnode.protocol.transport.decisions import (
    DECISION_VERSION,
    DecisionGroup,
    MepDecision,
    decode_decision,
    encode_decision,
)

EVENTS = 4
ERROR = int(EventFlag.BANK_ERROR)


class Encoder:
    """Makes a record of a byte of each event."""

    def encode_batch(self, _buffer: object, _meps: object, numbers: Sequence[int], *_others: object) -> EncodedEvents:
        return EncodedEvents(b"x" * len(numbers), np.arange(1, len(numbers) + 1, dtype=np.uint64), 0, 0)


def gatherer(
    gathered: Sequence[EventStream] = tuple(EventStream),
    stored: Sequence[EventStream] = tuple(EventStream),
    meps_per_message: int = 1,
) -> EventGatherer:
    return EventGatherer(
        [memoryview(b"")],
        lambda _tck: cast(EventEncoder, Encoder()),
        FlagTable(),
        node="n",
        chain="c",
        n_lines=1,
        gathered=gathered,
        stored=stored,
        meps_per_message=meps_per_message,
    )


def record(mep: int, first_ns: int = 0) -> MepRecord:
    found = MepRecord(mep=mep, slot=0, first_event=EVENTS * mep, n_events=EVENTS, opened_ns=0, n_sources=1)
    found.close_reason = CloseReason.COMPLETE
    found.first_ns = first_ns
    return found


def computed(*meps: MepRecord) -> ComputedBatch:
    """Event 1 of each MEP is accepted, event 2 goes to the error stream."""
    n = EVENTS * len(meps)
    accepted = np.tile(np.array([0, 1, 0, 0], np.uint8), len(meps))
    flags = np.tile(np.array([0, 0, ERROR, 0], np.uint32), len(meps))
    results = Results(
        accepted, accepted[:, None].astype(np.uint32), flags, no_words(n), np.zeros((n, 0), np.uint32), ()
    )
    return ComputedBatch(Batch(0, 7, meps), results, (Timings(0.0, 0.0, 0.0),), None, (), 5)


class Subscriber:
    """Takes a number of decisions."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken: list[MepDecision | DecisionGroup] = []

    def send(self, decisions: Sequence[MepDecision | DecisionGroup]) -> int:
        taken = decisions[: self.room - len(self.taken)]
        self.taken += taken
        return len(taken)


def split(decision: MepDecision | DecisionGroup) -> list[MepDecision]:
    return decision.split() if isinstance(decision, DecisionGroup) else [decision]


def with_missing_source(of: ComputedBatch) -> ComputedBatch:
    of.batch.meps[1].missing = (9,)
    return of


def with_mep_for_the_error_stream(of: ComputedBatch) -> ComputedBatch:
    of.batch.meps[1].error_stream = True
    return of


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda of: of, True),
        (with_missing_source, False),
        (with_mep_for_the_error_stream, False),
        (lambda of: changed(of, error="the device fell off"), False),
        (lambda of: changed(of, not_processed=(of.batch.meps[0],)), False),
        (lambda of: changed(of, was_interrupted=True), False),
    ],
)
def test_only_decisions_that_another_session_would_repeat_leave_first(
    change: Callable[[ComputedBatch], ComputedBatch], expected: bool
) -> None:
    of = change(computed(record(3), record(4)))
    subscriber = Subscriber(room=9)
    left = EarlyDecisions(gatherer(), subscriber.send, DecisionDeadline()).leave(of)
    assert would_repeat(of) is isinstance(left, DecidedBatch) is bool(subscriber.taken) is expected
    assert expected or left is of


def test_early_decisions_are_those_of_the_usual_order_and_the_rest_leaves_later() -> None:
    usual = gatherer().gather(computed(*map(record, range(3))))
    assert (usual.unsent, usual.to_send) == (None, usual.decisions)
    for room in (3, 2, 0):
        subscriber, clock = Subscriber(room), iter((10, 20))
        early = EarlyDecisions(gatherer(), subscriber.send, DecisionDeadline(), clock_ns=clock.__next__)
        left = early.leave(computed(*map(record, range(3))))
        found = gatherer().gather(left)
        assert subscriber.taken == usual.decisions[:room]
        assert (found.decisions, found.to_send) == (usual.decisions, usual.decisions[room:])
        assert [len(block) for blocks in found.events.values() for block in blocks] == [3, 3]
        assert found.nbytes == usual.nbytes
        times = found.computed.batch.times
        assert (times.gathered_ns, times.published_ns) == (10, 20)
        without = found.without({2})
        assert (found.n_sent, without.n_sent) == (room, room)
        assert [part.mep for each in without.to_send for part in split(each)] == [
            mep for mep in range(room, 3) if mep != 2
        ]


def test_only_decisions_above_the_deadline_are_marked_and_only_sent_ones_are_counted() -> None:
    meps = [record(0, first_ns=0), record(1, first_ns=1), record(2, first_ns=0)]
    for room, n_late in ((3, 2), (2, 1), (0, 0)):
        subscriber = Subscriber(room)
        early = EarlyDecisions(gatherer(), subscriber.send, DecisionDeadline(99), clock_ns=lambda: 100)
        found = gatherer().gather(early.leave(computed(*meps)))
        assert [each.late for each in found.decisions] == [True, False, True]
        assert found.n_late == n_late
        # The usual order marks those that are left, once.
        rest, more = DecisionDeadline(99).mark(found.to_send, meps, 100)
        assert (n_late + more, [each.late for each in rest]) == (2, [each.late for each in found.decisions][room:])
    decisions = found.decisions
    plain = [replace(each, late=False) for each in decisions]
    assert DecisionDeadline(0).mark(plain, meps, 10**18) == (plain, 0)


def test_only_groups_with_a_late_decision_are_sent_mep_by_mep() -> None:
    meps = [record(mep, first_ns=1 - (mep == 4)) for mep in range(6)]
    subscriber = Subscriber(room=9)
    of = gatherer(meps_per_message=2)
    found = of.gather(
        EarlyDecisions(of, subscriber.send, DecisionDeadline(99), clock_ns=lambda: 100).leave(computed(*meps))
    )
    assert [len(split(each)) for each in subscriber.taken] == [2, 2, 1, 1]
    assert [each.late for each in subscriber.taken] == [False, False, True, False]
    assert [part.mep for each in subscriber.taken for part in split(each)] == list(range(6))
    assert (found.n_late, found.to_send) == (1, [])
    # Some of the groups are taken, none is late: nothing is counted.
    few = Subscriber(room=1)
    found = of.gather(EarlyDecisions(of, few.send, DecisionDeadline()).leave(computed(*meps)))
    assert (found.n_late, len(found.to_send)) == (0, 2)


def test_the_mark_is_on_the_wire_only_if_it_is_set() -> None:
    [plain] = gatherer().gather(computed(record(0))).decisions
    assert b"late" not in encode_decision(plain)
    late = replace(plain, late=True)
    assert b"late" in encode_decision(late)
    assert decode_decision(encode_decision(late)) == late != decode_decision(encode_decision(plain))


def test_series_without_files_are_counted_and_copied_only_for_sockets() -> None:
    accepted, error = EventStream.ACCEPTED, EventStream.ERROR
    for gathered, stored in (((error,), (error,)), ((accepted,), ()), ((), ()), ((accepted, error), (accepted,))):
        found = gatherer(gathered, stored).gather(computed(record(0), record(1)))
        assert set(found.events) == set(gathered)
        assert found.not_stored == dict.fromkeys({accepted, error} - set(stored), 2)


class Wire:
    """Takes messages, or none."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.messages: list[bytes] = []

    def send(self, write: Callable[[int], bytes]) -> bool:
        if self.takes:
            self.messages.append(write(4))
        return self.takes


def leave_at_once(
    wire: Wire, of: ComputedBatch, *, deadline_ns: int = 0, begun_below: int | None = None, writes: bool = True
) -> tuple[bool, EarlyDecisions, Subscriber]:
    subscriber = Subscriber(room=9)
    early = EarlyDecisions(
        gatherer(),
        subscriber.send,
        DecisionDeadline(deadline_ns),
        begun_below=None if begun_below is None else lambda _run: begun_below,
        writer=DecisionWriter("n", "c", 1, DECISION_VERSION) if writes else None,
        send_written=wire.send,
        clock_ns=lambda: 100,
    )
    results = of.results
    has_left = early.leave_at_once(of.batch, of.tck, (results.accepted, results.lines, results.flags))
    return has_left, early, subscriber


def test_the_decision_of_one_mep_leaves_at_once_and_is_that_of_the_usual_order() -> None:
    of, wire = computed(record(3)), Wire()
    has_left, early, subscriber = leave_at_once(wire, of, deadline_ns=100, begun_below=4)
    assert has_left
    assert (of.batch.times.gathered_ns, of.batch.times.published_ns) == (100, 100)
    found = gatherer().gather(early.leave(of))
    [usual] = gatherer().gather(computed(record(3))).decisions
    assert [decode_decision(each) for each in wire.messages] == [replace(usual, seq=4)]
    assert (found.to_send, found.n_sent, found.n_late, subscriber.taken) == ([], 1, 0, [])
    # The next batch has not left yet.
    following = computed(record(2))
    early.leave(following)
    assert subscriber.taken == gatherer().gather(following).decisions


@pytest.mark.parametrize(
    ("wire", "of", "settings"),
    [
        (Wire(takes=False), computed(record(3)), {}),
        (Wire(), computed(record(3)), {"writes": False}),
        (Wire(), computed(record(3)), {"deadline_ns": 99}),
        (Wire(), computed(record(3)), {"begun_below": 3}),
        (Wire(), computed(record(3), record(4)), {}),
    ],
)
def test_other_decisions_are_left_to_the_next_step(wire: Wire, of: ComputedBatch, settings: dict[str, Any]) -> None:
    has_left, _, _ = leave_at_once(wire, of, **settings)
    assert not has_left
    assert wire.messages == []
    assert of.batch.times.published_ns == 0


def test_decisions_that_another_session_may_not_repeat_do_not_leave_at_once() -> None:
    for field, value in (("missing", (9,)), ("error_stream", True), ("dropped_by", HeadRoomRule.THIN)):
        mep = record(3)
        setattr(mep, field, value)
        has_left, early, _ = leave_at_once(Wire(), computed(mep))
        assert not has_left
        assert isinstance(early.leave(computed(mep)), ComputedBatch)
