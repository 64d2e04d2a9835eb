"""Records of windows of time: which hits they have, what their status says, and how long windows are cut."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.daemon._native import OpenMeps
from hltnode.daemon.common.vocabulary import WindowCount, WindowFault
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.compute.results import Results
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord
from hltnode.daemon.output.decision_lists import DecisionLists
from hltnode.daemon.output.event_encoder import Decided, EncodedWindows, EventEncoder
from hltnode.daemon.output.gathering import EventGatherer
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.processing.framework.collections import I32, U32, Collection, Placement
from hltnode.processing.framework.flags import EventFlag, FlagTable
from hltnode.processing.framework.output_lists import ListContent, ListValue, OutputList, no_words
from hltnode.processing.framework.streaming import HitLayout, Streaming
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.raw_data.bank_types import NO_BANK, BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import decode_dec_reports
from hltnode.protocol.raw_data.time_windows import TimeWindow, WindowStatus, decode_window, join_windows
from hltnode.protocol.transport.decisions import SliceDecision, decode_decision, encode_decision
from hltnode.protocol.value_lists import ListDescription

RUN, SLICE, LENGTH, N_EVENTS = 7, 1000, 100, 12
BEFORE, BEHIND = 1, 2
ORIGIN = (SLICE * (N_EVENTS - BEFORE - BEHIND) - BEFORE) * LENGTH
"""Start of the first sub-slice of the slice in ns since the start of the run."""
HITS, NO_DATA = 192, 193
HIT = np.dtype([("channel", "u1"), ("time", ">u2"), ("charge", "u1")])
UNIT = Fraction(5, 2)
STREAMING = Streaming(
    sub_slice_ns=LENGTH,
    margin_before=BEFORE,
    margin_behind=BEHIND,
    hit=HitLayout(size=4, time_offset=1, time_type=">u2", unit_ns=UNIT),
)
PLACES = Collection("places", capacity=lambda limits: limits.events, placement=Placement.fixed(1), max_per_event=1)
COLUMNS = {
    "start_ns": PLACES.column("start", I32),
    "end_ns": PLACES.column("end", I32),
    "lines": PLACES.column("l", U32),
}
WINDOWS = OutputList(
    name="windows",
    text="",
    count=PLACES.per_event("count", U32),
    values={name: ListValue(column=column, text="") for name, column in COLUMNS.items()},
)
TIMES = TimeWindows(STREAMING, WINDOWS, no_hits=(NO_DATA,))
I32_MAX = (1 << 31) - 1
Fragments = dict[int, list[bytes | None]]
"""Fragments of each source; None: no bank."""
Given = list[tuple[int, int, int, int]]
"""Sub-slice, start and end relative to it, lines of each window."""


def fragment(*hits: tuple[int, int, int]) -> bytes:
    return np.array(list(hits), HIT).tobytes()


def slice_of(fragments: Fragments, types: dict[int, list[int]]) -> tuple[memoryview, NDArray[np.int64]]:
    data, rows = b"", []
    for source, of_source in fragments.items():
        kinds = types.get(source) or [NO_BANK if each is None else HITS for each in of_source]
        mfp = encode_mfp(
            source_id=source, event_id=0, version=3, types=kinds, fragments=[each or b"" for each in of_source]
        )
        rows.append((source, len(data), len(mfp)))
        data += mfp
    return memoryview(data), np.array(rows, np.int64)


def content_of(windows: Given, n_events: int) -> ListContent:
    ordered = sorted(windows, key=lambda each: each[0])
    counts = np.bincount([each[0] for each in ordered], minlength=n_events)
    columns = np.array([each[1:] for each in ordered], np.int64).reshape(-1, 3)
    values = {"start_ns": columns[:, 0].astype("<i4"), "end_ns": columns[:, 1].astype("<i4")}
    return ListContent(np.r_[0, np.cumsum(counts)].astype(np.uint32), {**values, "lines": columns[:, 2].astype("<u4")})


def encode(
    fragments: Fragments,
    windows: Given,
    *,
    types: dict[int, list[int]] | None = None,
    missing: bool = False,
    number: int = SLICE,
    flags: dict[int, int] | None = None,
    times: TimeWindows = TIMES,
) -> tuple[list[TimeWindow], EncodedWindows]:
    """The records of one slice, read again."""
    n_events = len(next(iter(fragments.values())))
    buffer, rows = slice_of(fragments, types or {})
    encoder = EventEncoder(9, np.array([[1, 0, 0], [2, 0, 0]], np.uint32), ("things",), FlagTable(), checksums=True)
    of_events = np.zeros(n_events, np.uint32)
    for event, flag in (flags or {}).items():
        of_events[event] = flag
    lines = np.full((n_events, 1), 2, np.uint32)
    counts = np.zeros((n_events, 1), np.uint32)
    encoded = encoder.encode_windows(
        times.layout,
        buffer,
        [(n_events, rows)],
        np.array([number], np.uint64),
        np.array([missing], np.uint8),
        RUN,
        Decided(lines, of_events, counts, no_words(n_events)),
        content_of(windows, n_events),
        np.ones(n_events, np.uint8),
    )
    records = list(iter_records(encoded.data))
    assert [record.header.run for record in records] == [RUN] * len(records)
    assert encoded.slices.tolist() == [number] * len(records)
    assert all(record.header.checksum and record.header.routing_bits[0] == 2 for record in records)
    reports = [decode_dec_reports(b) for r in records for b in r.banks() if b.type == BankType.HLT_DEC_REPORTS]
    assert [[line.decision_id for line in each.lines if line.decision] for each in reports] == [[2]] * len(records)
    found = [decode_window(record.banks()) for record in records]
    assert all(window is not None for window in found)
    return [window for window in found if window is not None], encoded


def rows_of(window: TimeWindow) -> list[tuple[int, int, bytes]]:
    return list(zip(window.times.tolist(), window.sources.tolist(), map(bytes, window.hits), strict=True))


EMPTY: list[bytes | None] = [b""] * N_EVENTS


def test_records_have_the_hits_of_a_brute_force_search_in_the_order_of_sub_slices_and_sources() -> None:
    rng = np.random.default_rng(1)
    merged_in_all = 0
    for _ in range(20):
        fragments: Fragments = {}
        everything = []
        for source in (900, 5, 77):
            fragments[source] = []
            for event in range(N_EVENTS):
                hits = np.zeros(int(rng.integers(0, 9)), HIT)
                hits["channel"], hits["charge"] = rng.integers(0, 256, (2, len(hits)))
                hits["time"] = rng.integers(0, 40, len(hits))
                fragments[source].append(hits.tobytes())
                times = ORIGIN + event * LENGTH + hits["time"].astype(int) * 5 // 2
                everything += [
                    (event, source, i, int(t), h.tobytes()) for i, (t, h) in enumerate(zip(times, hits, strict=True))
                ]
        everything.sort()
        given = [
            (int(event), int(start), int(start + size), int(1 << rng.integers(0, 32)))
            for event, start, size in zip(
                rng.integers(1, 10, 6), rng.integers(-100, 100, 6), rng.integers(0, 101, 6), strict=True
            )
        ]
        expected: list[list[int]] = []
        for begin, end, lines in sorted(
            (ORIGIN + e * LENGTH + a, ORIGIN + e * LENGTH + b, of) for e, a, b, of in given
        ):
            if begin == end:
                continue
            if expected and begin < expected[-1][1]:
                merged_in_all += 1
                last = expected[-1]
                expected[-1] = [last[0], max(end, last[1]), last[2] | lines, last[3] + 1]
            else:
                expected.append([begin, end, lines, 1])
        found, encoded = encode(fragments, given)
        assert [[each.start_ns, each.end_ns, each.lines, each.n] for each in found] == expected
        assert [each.id for each in found] == [(RUN, SLICE, i) for i in range(len(found))]
        for window in found:
            inside = [(t, s, h) for _, s, _, t, h in everything if window.start_ns <= t < window.end_ns]
            assert rows_of(window) == inside
            assert window.status == 0
            core = (ORIGIN + BEFORE * LENGTH, ORIGIN + (N_EVENTS - BEHIND) * LENGTH)
            assert (window.slice_start, window.slice_end) == core
        assert encoded.hits == sum(len(each.hits) for each in found)
        assert encoded.windows == sum(each[3] for each in expected)
    assert merged_in_all > 10


def test_windows_that_touch_are_two_and_those_that_share_a_nanosecond_are_one() -> None:
    hits = EMPTY.copy()
    hits[4] = fragment((1, 8, 0))
    apart, _ = encode({5: hits}, [(4, 0, 20, 1), (4, 20, 40, 2)])
    assert [(len(each.hits), each.lines) for each in apart] == [(0, 1), (1, 2)]
    [together], _ = encode({5: hits}, [(4, 0, 21, 1), (4, 20, 40, 2)])
    assert (len(together.hits), together.lines, together.n) == (1, 3, 2)


def test_the_status_tells_what_a_window_may_lack() -> None:
    hits = EMPTY.copy()
    hits[2] = fragment((1, 39, 0))
    usual = [(4, -10, 10, 1)]
    cases: list[tuple[WindowStatus, dict[str, Any]]] = [
        (WindowStatus(0), {"fragments": {5: hits}}),
        (WindowStatus.CUT_OFF, {"fragments": {5: hits}, "windows": [(9, 0, 301, 1)]}),
        (WindowStatus(0), {"fragments": {5: hits}, "windows": [(9, 0, 300, 1)]}),
        (WindowStatus.CUT_OFF, {"fragments": {5: hits}, "windows": [(1, -101, 5, 1)]}),
        (WindowStatus(0), {"fragments": {5: hits}, "windows": [(1, -100, 5, 1)]}),
        (WindowStatus.SOURCE_MISSING, {"fragments": {5: hits}, "missing": True}),
        (WindowStatus.NO_FRAGMENT, {"fragments": {5: [*EMPTY[:3], None, *EMPTY[4:]]}}),
        (WindowStatus.NO_FRAGMENT, {"fragments": {5: EMPTY}, "types": {5: [*[HITS] * 4, NO_DATA, *[HITS] * 7]}}),
        (WindowStatus.DAMAGED, {"fragments": {5: [*EMPTY[:4], fragment((1, 40, 0), (2, 3, 0)), *EMPTY[5:]]}}),
        (WindowStatus.DAMAGED, {"fragments": {5: [*EMPTY[:4], fragment((2, 3, 0)) + b"12", *EMPTY[5:]]}}),
    ]
    for status, arguments in cases:
        [window], encoded = encode(**{"windows": usual, **arguments})
        assert window.status == status, arguments
        assert encoded.cut_off == (status == WindowStatus.CUT_OFF)
        if status == WindowStatus.DAMAGED:
            assert rows_of(window) == [(ORIGIN + 407, 5, fragment((2, 3, 0)))]
            assert (encoded.hits_outside, encoded.bytes_left) in {(1, 0), (0, 2)}
    # Before the run there is no time to lack.
    [window], _ = encode({5: hits}, [(1, -150, 5, 1)], number=0)
    assert (window.start_ns, window.end_ns, window.status) == (0, 5, 0)
    [window], _ = encode({5: hits}, usual, flags={2: 1 << 16, 3: 1 << 17, 4: 1 << 18, 5: 1 << 19})
    assert window.flags == 3 << 17


def test_a_window_with_too_many_sub_slices_or_banks_goes_on_in_further_records() -> None:
    n = 8300
    one: list[bytes | None] = [fragment((i % 251, 1, 0)) for i in range(n)]
    for sources, n_records in (((5,), 2), (tuple(range(16)), 3)):
        records, encoded = encode(dict.fromkeys(sources, one), [(1, 10, 100 * (n - 5), 1)])
        assert len(records) == n_records
        status = [int(record.status) for record in records]
        assert status == [WindowStatus.CONTINUES, *[6] * (n_records - 2), WindowStatus.CONTINUED]
        assert [record.number for record in records] == list(range(n_records))
        assert all(a.end_ns == b.start_ns for a, b in pairwise(records))
        [whole] = join_windows(reversed(records))
        assert (whole.status, whole.n, len(whole.hits)) == (0, 1, len(sources) * (n - 6))
        assert encoded.hits == len(whole.hits)
        assert len(set(rows_of(whole))) == len(whole.hits)
        assert whole.end_ns - whole.start_ns == 100 * (n - 5) - 10


def test_inconsistent_tables_are_refused_and_read_no_memory_outside() -> None:
    buffer, rows = slice_of({5: EMPTY}, {})
    encoder = EventEncoder(9, np.zeros((1, 3), np.uint32), (), FlagTable())
    usual: dict[str, Any] = {
        "layout": TIMES.layout,
        "buffer": buffer,
        "meps": [(N_EVENTS, rows)],
        "slices": np.array([SLICE], np.uint64),
        "missing": np.zeros(1, np.uint8),
        "run": RUN,
        "decided": Decided(
            np.zeros((N_EVENTS, 1), np.uint32), np.zeros(N_EVENTS, np.uint32), np.zeros((0, 0), np.uint32), no_words(0)
        ),
        "windows": content_of([(4, 0, 10, 1)], N_EVENTS),
        "kept": np.ones(N_EVENTS, np.uint8),
    }
    assert encoder.encode_windows(**usual).windows == 1
    values = dict(usual["windows"].values)
    no_counts = np.zeros((0, 0), np.uint32)
    descending = np.r_[[0, 5], np.ones(N_EVENTS - 1)].astype(np.uint32)
    small, _ = slice_of({5: EMPTY[:-1]}, {})
    for changed in (
        {"slices": np.zeros(2, np.uint64)},
        {"missing": np.zeros(0, np.uint8)},
        {"kept": np.ones(N_EVENTS - 1, np.uint8)},
        {"meps": [(3, rows)]},
        {"meps": [(N_EVENTS, rows + np.array([0, 1, 0]))]},
        {"meps": [(N_EVENTS, rows * np.array([1, 1, 2]))]},
        {"buffer": small, "meps": [(N_EVENTS, np.array([[5, 0, len(small)]]))]},
        {"windows": ListContent(usual["windows"].offsets, {**values, "lines": np.zeros(0, np.uint32)})},
        {"windows": ListContent(descending, values)},
        {"decided": Decided(np.zeros((N_EVENTS, 2), np.uint32), np.zeros(N_EVENTS, np.uint32), no_counts, no_words(0))},
    ):
        with pytest.raises(ValueError, match=r"slices?|windows|MFP"):
            encoder.encode_windows(**{**usual, **changed})


def computed_slice(
    number: int, rows: NDArray[np.int64], windows: Given, n: int = N_EVENTS, first: int = 0, **changed: NDArray[Any]
) -> tuple[MepRecord, Results]:
    """A slice of one source and its results, of which `changed` has some."""
    mep = MepRecord(mep=number, slot=0, first_event=first, n_events=n, opened_ns=0, n_sources=1)
    open_meps = OpenMeps(1, 1 << 20)
    open_meps.start_run(RUN, [5])
    open_meps.open(number, 0, 0, n, mep.arrived)
    source, offset, size = rows[0].tolist()
    open_meps.add(number, source, offset, size, 0)
    usual: dict[str, NDArray[Any]] = {"accepted": np.ones(n, np.uint8), "flags": np.zeros(n, np.uint32)}
    usual.update(changed)
    lists = {"windows": content_of(windows, n)}
    results = Results(
        usual["accepted"],
        np.zeros((n, 1), np.uint32),
        usual["flags"],
        no_words(n),
        np.zeros((n, 0), np.uint32),
        (),
        lists,
    )
    return mep, results


def gatherer_of(buffer: memoryview, lists: DecisionLists | None = None) -> EventGatherer:
    return EventGatherer(
        [buffer],
        lambda tck: EventEncoder(tck, np.zeros((1, 3), np.uint32), (), FlagTable()),
        FlagTable(),
        node="n",
        chain="c",
        n_lines=1,
        lists=lists,
        windows=TimeWindows(STREAMING, WINDOWS, no_hits=(NO_DATA,)),
        meps_per_message=4,
    )


def batch_of(mep: MepRecord, results: Results, run: int = RUN) -> ComputedBatch:
    return ComputedBatch(Batch(0, run, (mep,)), results, (), None, (), 5)


def test_a_gatherer_keeps_windows_of_accepted_sub_slices_outside_of_margins() -> None:
    n = N_EVENTS
    hits = EMPTY.copy()
    for event in range(n):
        hits[event] = fragment((event, 4, 0))
    windows = [(event, 0, 50, 1 << event) for event in range(n)]
    accepted = np.ones(n, np.uint8)
    accepted[5] = 0
    flags = np.zeros(n, np.uint32)
    flags[6] = EventFlag.BANK_ERROR
    buffer, rows = slice_of({5: hits}, {})
    # The second slice has no time of 62 bits.
    for number, kept in ((SLICE, [1, 2, 3, 4, 7, 8, 9]), ((1 << 62) // (9 * LENGTH), [])):
        gatherer = gatherer_of(buffer)
        computed = computed_slice(number, rows, windows, accepted=accepted.copy(), flags=flags.copy())
        decided = gatherer.decide(batch_of(*computed))
        [decision] = decided.decisions
        sent = decode_decision(encode_decision(decision))
        assert isinstance(sent, SliceDecision)
        found = sent.time_windows()
        assert found is not None
        assert found.values["lines"].tolist() == [1 << event for event in kept]
        assert np.flatnonzero(np.diff(found.offsets)).tolist() == kept
        assert found.values["start_ns"].tolist() == [ORIGIN + event * LENGTH for event in kept]
        assert found.values["end_ns"].tolist() == [ORIGIN + event * LENGTH + 50 for event in kept]
        gathered = gatherer.gather(decided)
        assert gathered.windows is not None
        assert gathered.windows.counts[WindowCount.WINDOWS] == len(kept)
        assert gathered.windows.faults[WindowFault.OUT_OF_SLICE] == n - 2 - len(kept)


def test_windows_that_end_before_they_begin_are_left_out_and_counted() -> None:
    buffer, rows = slice_of({5: EMPTY}, {})
    windows = [(3, 20, 10, 1), (4, 7, 7, 2), (4, 0, 50, 4), (6, I32_MAX, -I32_MAX, 8)]
    gatherer = gatherer_of(buffer)
    decided = gatherer.decide(batch_of(*computed_slice(SLICE, rows, windows)))
    sent = decode_decision(encode_decision(decided.decisions[0]))
    assert isinstance(sent, SliceDecision)
    found = sent.time_windows()
    assert found is not None
    assert (found.values["lines"].tolist(), np.flatnonzero(np.diff(found.offsets)).tolist()) == ([4], [4])
    gathered = gatherer.gather(decided)
    assert gathered.windows is not None
    counts, faults = gathered.windows.counts, gathered.windows.faults
    assert (counts[WindowCount.WINDOWS], counts[WindowCount.RECORDS], faults[WindowFault.EMPTY]) == (1, 1, 3)


def test_faults_of_windows_that_no_combiner_saw_are_counted_with_those_of_the_results() -> None:
    buffer, rows = slice_of({5: EMPTY}, {})
    computed = batch_of(*computed_slice(SLICE, rows, [(3, 20, 10, 1), (4, 0, 50, 4)]))
    lost = {WindowFault.OUT_OF_SLICE: 3, WindowFault.EMPTY: 5}
    gathered = gatherer_of(buffer).gather(replace(computed, windows_decided=True, window_faults=lost))
    assert gathered.windows is not None
    counts, faults = gathered.windows.counts, gathered.windows.faults
    assert (faults[WindowFault.OUT_OF_SLICE], faults[WindowFault.EMPTY]) == (3, 6)
    assert counts[WindowCount.WINDOWS] == counts[WindowCount.RECORDS] == 1


def test_a_slice_with_another_number_of_sub_slices_than_the_first_of_its_run_has_no_windows() -> None:
    kept = []
    buffer, rows = slice_of({5: EMPTY}, {})
    short, short_rows = slice_of({5: EMPTY[:-1]}, {})
    buffers = memoryview(bytes(buffer) + bytes(short))
    moved = short_rows + np.array([0, len(buffer), 0])
    gatherer = gatherer_of(buffers)
    for run, number, n, of in (
        (RUN, SLICE, N_EVENTS, rows),
        (RUN, SLICE + 1, N_EVENTS - 1, moved),
        (RUN, SLICE + 2, N_EVENTS, rows),
        (RUN + 1, 0, N_EVENTS - 1, moved),
    ):
        gathered = gatherer.gather(batch_of(*computed_slice(number, of, [(4, 0, 50, 1)], n), run))
        assert gathered.windows is not None
        assert len(gathered.decisions) == 1
        kept.append((gathered.windows.counts[WindowCount.WINDOWS], gathered.windows.faults[WindowFault.OUT_OF_SLICE]))
    assert kept == [(1, 0), (0, 1), (1, 0), (1, 0)]


def test_windows_and_lists_share_the_room_of_a_message() -> None:
    n_windows, n_values = 500_000, 2_000_000
    buffer, rows = slice_of({5: EMPTY}, {})
    mep, results = computed_slice(SLICE, rows, [(4, 0, 50, 1)] * n_windows)
    values = np.zeros(n_values, np.uint32)
    offsets = np.r_[np.zeros(N_EVENTS), n_values].astype(np.uint32)
    lists = DecisionLists([ListDescription("values", {"value": "u4"})], 16 << 20)
    for of_values, is_left_out in ((offsets // 2, False), (offsets, True)):
        content = ListContent(of_values, {"value": values[: of_values[-1]]})
        gatherer = gatherer_of(buffer, lists)
        decided = gatherer.decide(batch_of(mep, replace(results, lists={**results.lists, "values": content})))
        [decision] = decided.decisions
        assert isinstance(decision, SliceDecision)
        sent = decode_decision(encode_decision(decision))
        assert isinstance(sent, SliceDecision)
        assert (sent.time_windows() is None) == is_left_out
        assert sent.output_lists()["values"] is not None
        gathered = gatherer.gather(decided)
        assert gathered.windows is not None
        assert gathered.windows.faults[WindowFault.MESSAGE_TOO_LARGE] == is_left_out


@given(st.integers(0, 3), st.data())
def test_a_damaged_record_of_a_window_raises_only_its_error(bank: int, data: st.DataObject) -> None:
    hits = EMPTY.copy()
    hits[4] = fragment((1, 8, 0), (1, 9, 0))
    [window], encoded = encode({5: hits, 6: hits}, [(4, 0, 60, 1)])
    assert len(window.hits) == 4
    banks = next(iter_records(encoded.data)).banks()
    content = bytearray(banks[bank].payload)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.sampled_from([len(content), len(content) // 2]))]
    banks[bank] = RawBank(banks[bank].type, 1 if bank == 0 else 3, banks[bank].source_id, memoryview(bytes(content)))
    with suppress(ProtocolError):
        decode_window(banks)


def test_the_description_of_a_window_is_checked() -> None:
    hits = EMPTY.copy()
    hits[4] = fragment((1, 8, 0))
    _, encoded = encode({5: hits}, [(4, 0, 60, 1)])
    first, *others = next(iter_records(encoded.data)).banks()
    raw = bytes(first.payload)
    assert decode_window(others) is None

    def changed(offset: int, kind: str, value: int) -> bytes:
        return raw[:offset] + struct.pack(kind, value) + raw[offset + struct.calcsize(kind) :]

    def bank(content: bytes, version: int = 1) -> RawBank:
        return RawBank(first.type, version, first.source_id, memoryview(content))

    for banks, message in (
        ([first, first, *others], "2 banks describe"),
        ([bank(raw, 2), *others], "version 2, 1 expected"),
        ([bank(raw[:99]), *others], "99 bytes"),
        ([bank(raw + b"1234"), *others], "for 1 sub-slices"),
        ([bank(changed(24, "<q", ORIGIN)), *others], "to .* ns"),
        ([bank(changed(48, "<q", -(1 << 63))), *others], "to .* ns"),
        ([bank(changed(80, "<I", 3)), *others], "time at byte 3 of hits of 4"),
        ([bank(changed(84, "<I", 3)), *others], "time at byte 1"),
        ([bank(changed(84, "<I", 1 << 10 | 2)), *others], "time at byte 1"),
        ([bank(changed(92, "<I", 0)), *others], "time at byte 1"),
        ([bank(changed(100, "<I", 2)), *others], "1 banks are not"),
        ([bank(changed(76, "<I", 3)), *others], "1 banks are not"),
    ):
        with pytest.raises(ProtocolError, match=message):
            decode_window(banks)
