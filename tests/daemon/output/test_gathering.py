"""What becomes of each event of a computed batch: its decision, and the stream that keeps it."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
import pytest

from hltnode.daemon.common.vocabulary import CloseReason, EventStream
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.output import gathering
from hltnode.daemon.output.event_encoder import Decided, EncodedEvents, EventEncoder
from hltnode.daemon.output.gathering import EventGatherer, GatheredBatch
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import no_words
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision

EVENTS = 4
RUN = 7
N_LINES = 40
RECORD = b"record."


class FakeEncoder:
    """Makes a record of 7 bytes of each event, and notes what it was given."""

    def __init__(self) -> None:
        self.events: list[list[int]] = []
        self.decided: list[Decided] = []

    def encode_batch(
        self, _buffer: object, _meps: object, numbers: Sequence[int], run: int, decided: Decided
    ) -> EncodedEvents:
        assert run == RUN
        self.events.append(np.asarray(numbers).tolist())
        self.decided.append(decided)
        ends = np.arange(1, len(numbers) + 1, dtype=np.uint64) * np.uint64(len(RECORD))
        return EncodedEvents(RECORD * len(numbers), ends, banks_left_out=0, candidates_left_out=len(numbers))


def mep_record(number: int, *, error_stream: bool = False, missing: tuple[int, ...] = ()) -> MepRecord:
    mep = MepRecord(mep=number, slot=0, first_event=EVENTS * number, n_events=EVENTS, opened_ns=0, n_sources=1)
    mep.close_reason = CloseReason.TIMEOUT if missing else CloseReason.COMPLETE
    mep.error_stream = error_stream
    mep.missing = missing
    return mep


def gathered(
    meps: Sequence[MepRecord],
    accepted: Sequence[int],
    flags: Sequence[int],
    meps_per_message: int = 1,
    *,
    keeps_events: bool = True,
) -> tuple[GatheredBatch, FakeEncoder]:
    n = EVENTS * len(meps)
    lines = np.zeros((n, 2), np.uint32)
    lines[:, 1] = np.arange(1, n + 1)
    results = Results(
        np.array(accepted, np.uint8),
        lines,
        np.array(flags, np.uint32),
        no_words(n),
        np.zeros((n, 0), np.uint32),
        (),
    )
    encoder = FakeEncoder()
    gatherer = EventGatherer(
        [memoryview(b"")],
        lambda _tck: cast(EventEncoder, encoder),
        FlagTable(),
        node="n",
        chain="c",
        n_lines=N_LINES,
        meps_per_message=meps_per_message,
        keeps_events=keeps_events,
    )
    return gatherer.gather(ComputedBatch(Batch(0, RUN, tuple(meps)), results, (), None, (), 5)), encoder


def of_each_mep(found: GatheredBatch) -> list[MepDecision]:
    decisions = [each for each in found.decisions if isinstance(each, MepDecision)]
    assert len(decisions) == len(found.decisions)
    return decisions


def lines_of(decision: Any) -> list[list[int]]:
    words: list[list[int]] = np.frombuffer(decision.lines, "<u4").reshape(EVENTS, 2).tolist()
    return words


def kept(found: GatheredBatch) -> dict[EventStream, list[tuple[int, int]]]:
    """The MEP of each kept record and its size, by stream."""
    return {
        stream: [(int(mep), len(RECORD)) for block in blocks for mep in np.asarray(block.meps).tolist()]
        for stream, blocks in found.events.items()
    }


def test_accepted_events_are_kept_and_decisions_have_their_lines_and_flags() -> None:
    found, encoder = gathered([mep_record(3), mep_record(5)], [1, 0, 0, 1, 0, 1, 0, 0], [0, 4, 0, 0, 0, 0, 0, 4])
    assert kept(found) == {EventStream.ACCEPTED: [(3, 7), (3, 7), (5, 7)]}
    assert encoder.events == [[0, 3, 5]]
    first, second = of_each_mep(found)
    assert (first.mep, first.first_event, first.n_events, first.run, first.tck, first.n_lines) == (3, 12, 4, RUN, 5, 40)
    assert (first.node, first.chain, second.mep, second.first_event) == ("n", "c", 5, 20)
    assert (first.accepted, second.accepted) == (b"\x09", b"\x02")
    assert lines_of(first) == [[0, 1], [0, 2], [0, 3], [0, 4]]
    assert lines_of(second) == [[0, 5], [0, 6], [0, 7], [0, 8]]
    assert np.frombuffer(second.flags, "<u4").tolist() == [0, 0, 0, 4]
    assert found.candidates_left_out == 3
    assert found.nbytes == 3 * len(RECORD) + 2 * EVENTS * (2 * 4 + 4)


def test_of_a_mep_of_the_error_stream_no_event_is_accepted_and_no_line_is_set() -> None:
    missing = mep_record(3, error_stream=True, missing=(9,))
    incomplete = [int(EventFlag.INCOMPLETE)] * EVENTS
    found, encoder = gathered([missing, mep_record(4)], [1, 1, 0, 0, 1, 0, 0, 0], [*incomplete, 0, 0, 0, 0])
    assert kept(found) == {EventStream.ACCEPTED: [(4, 7)], EventStream.ERROR: [(3, 7)] * EVENTS}
    decision, other = of_each_mep(found)
    assert decision.accepted == b"\x00"
    assert lines_of(decision) == [[0, 0]] * EVENTS
    assert np.frombuffer(decision.flags, "<u4").tolist() == incomplete
    assert (decision.missing_sources, decision.close_reason) == ((9,), "timeout")
    assert (other.accepted, other.missing_sources, other.close_reason) == (b"\x01", (), "complete")
    assert lines_of(other)[0] == [0, 5]
    # The reports in the records agree with the decisions.
    assert all(not decided.lines[:EVENTS].any() for decided in encoder.decided)


def test_an_event_of_the_error_stream_is_kept_once_also_if_a_line_accepts_it() -> None:
    error = int(EventFlag.BANK_ERROR)
    found, _ = gathered([mep_record(3)], [1, 1, 0, 0], [error, 0, error, 0])
    assert kept(found) == {EventStream.ACCEPTED: [(3, 7)], EventStream.ERROR: [(3, 7)] * 2}
    assert found.decisions[0].accepted == b"\x03"


def test_missing_sources_alone_do_not_keep_an_event() -> None:
    found, _ = gathered([mep_record(3, missing=(9,))], [0] * EVENTS, [int(EventFlag.INCOMPLETE)] * EVENTS)
    assert found.events == {}
    assert found.nbytes == EVENTS * 12


def test_a_batch_without_some_meps_has_neither_their_decisions_nor_their_records() -> None:
    found, _ = gathered([mep_record(3), mep_record(4)], [1] * 8, [0] * 8)
    rest = found.without({3})
    assert [decision.mep for decision in of_each_mep(rest)] == [4]
    assert kept(rest) == {EventStream.ACCEPTED: [(4, 7)] * EVENTS}


def test_complete_meps_share_messages_that_say_the_same_as_one_for_each() -> None:
    meps = [mep_record(number) for number in range(9)]
    meps[5] = mep_record(5, missing=(3,))
    n = EVENTS * len(meps)
    accepted = [int(i % 3 == 0) for i in range(n)]
    flags = list(range(n))
    alone, _ = gathered(meps, accepted, flags)
    for most, sizes in ((2, [2, 2, 1, 1, 2, 1]), (4, [4, 1, 1, 3]), (100, [5, 1, 3])):
        found, _ = gathered(meps, accepted, flags, most)
        parts = [part.split() if isinstance(part, DecisionGroup) else [part] for part in found.decisions]
        assert [len(part) for part in parts] == sizes
        assert list(chain.from_iterable(parts)) == list(alone.decisions)
        assert kept(found) == kept(alone)


def test_a_group_ends_before_its_events_exceed_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "max_events_of_group", lambda _n_lines: 2 * EVENTS)
    n = EVENTS * 5
    found, _ = gathered([mep_record(number) for number in range(5)], [0] * n, [0] * n, 100)
    assert [type(part) for part in found.decisions] == [DecisionGroup, DecisionGroup, MepDecision]


def test_a_shadow_keeps_no_events_and_has_the_same_decisions() -> None:
    error = int(EventFlag.BANK_ERROR)
    found, encoder = gathered([mep_record(3)], [1, 1, 0, 0], [error, 0, error, 0], keeps_events=False)
    assert (kept(found), encoder.events, found.candidates_left_out) == ({}, [], 0)
    assert found.decisions == gathered([mep_record(3)], [1, 1, 0, 0], [error, 0, error, 0])[0].decisions
