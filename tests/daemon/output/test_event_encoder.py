"""Kept events as MDF records: compared with a slow oracle, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.daemon.output.event_encoder import Decided, EncodedEvents, EventEncoder
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import line_words
from hltnode.processing.framework.output_lists import WORDS, ListContent, no_words
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.selection.reports.lumi_schema import lumi_schema
from hltnode.protocol._native import find_events
from hltnode.protocol.errors import ReportError
from hltnode.protocol.fragment_frame import inspect_frame
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.packing import EventBlock, EventPacker
from hltnode.protocol.raw_data.bank_types import NO_BANK, TYPES_OF_NODE, BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mfp import Mfp, encode_mfp, events_of_mfps
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE, RawBank
from hltnode.protocol.raw_data.reports import MAX_LINES, decode_dec_reports, decode_routing_bits
from hltnode.protocol.raw_data.selection_reports import ClassId, HltSelReports, ReportedObject, decode_sel_reports
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from tests.daemon.output.reports_oracle import SelectedEvent, trigger_banks
from tests.protocol.raw_data.report_encoders import encode_sel_reports
from tests.protocol.strategies import f32, odins, u8, u32

TCK = 0xABCD1234
COLLECTIONS = ("velo_tracks", "pvs")
FLAGS = CHAIN.flag_table
LUMI, PHYSICS = (1 << 1, 0, 0), (1 << 14, 0, 0)
TRIGGER_BANKS = {
    BankType.HLT_DEC_REPORTS,
    BankType.HLT_ROUTING_BITS,
    BankType.HLT_SEL_REPORTS,
    BankType.HLT_LUMI_SUMMARY,
}


@pytest.fixture(scope="session")
def run3_reports(shared: Path) -> list[RawBank]:
    """The banks of the trigger in the first of two records of 2025."""
    record = next(iter_records((shared / "data/lhcb-run3-records/test.mdf").read_bytes()))
    return [bank for bank in record.banks() if bank.type in TRIGGER_BANKS]


Places = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass
class Event:
    """One event of a MEP: its banks by source, and its results."""

    banks: dict[int, RawBank | None]
    odin: Odin | None
    fired: tuple[int, ...] = ()
    flags: int = 0
    counts: tuple[int, int] = (0, 0)
    selected: SelectedEvent = field(default_factory=SelectedEvent)


def event(**fields: object) -> Event:
    """An event with a readable ODIN bank and one of data."""
    odin = Odin(run=7, event_id=1, orbit=8, bunch_id=9, gps_time_us=10**15, crossing_type=3)
    banks = {0: encode_odin(odin), 4096: RawBank(LhcbBankType.VP, 4, 4096, memoryview(b"vp-data"))}
    return replace(Event(banks, odin), **fields)  # type: ignore[arg-type]


def words(events: Sequence[SelectedEvent]) -> ListContent:
    """The objects and candidates of some events as the kernel of the lines writes them."""
    rows = []
    for of_event in events:
        row = [len(of_event.candidates) | len(of_event.objects) << 16, 0]
        for o in of_event.objects:
            row += [o.class_id | len(o.info) << 16, len(o.ids) | len(o.parts) << 16]
            row += np.array(o.info, dtype=np.float32).view(np.uint32).tolist()
            row += [*o.ids, *o.parts]
        rows.append((row, [line | index << 16 for line, index in reversed(of_event.candidates)]))
    sizes = [len(row) + len(candidates) for row, candidates in rows]
    content = [word for row, candidates in rows for word in (*row, *candidates)]
    return ListContent(np.cumsum([0, *sizes]).astype(np.uint32), {WORDS: np.array(content, dtype=np.uint32)})


def decided(events: Sequence[Event], n_lines: int, *, with_candidates: bool = True) -> Decided:
    fired = np.zeros((len(events), 32 * line_words(n_lines)), dtype=np.uint8)
    for row, of_event in zip(fired, events, strict=True):
        row[list(of_event.fired)] = 1
    return Decided(
        np.packbits(fired, axis=1, bitorder="little").view(np.uint32),
        np.array([of_event.flags for of_event in events], dtype=np.uint32),
        np.array([of_event.counts for of_event in events], dtype=np.uint32).reshape(-1, 2),
        words([of_event.selected for of_event in events]) if with_candidates else no_words(len(events)),
    )


def mep_of(events: Sequence[Event]) -> tuple[memoryview, Places]:
    """The MFPs of the sources, laid out in a buffer in no order; an event without a bank has an absent one."""
    sources = sorted({source for of_event in events for source in of_event.banks}, reverse=True)
    pieces, fragments, offset = [b"slot"], [], 4
    for source in sources:
        banks = [of_event.banks.get(source) for of_event in events]
        versions = {bank.version for bank in banks if bank is not None}
        mfp = encode_mfp(
            source_id=source,
            event_id=0,
            version=versions.pop() if versions else 0,
            types=[NO_BANK if bank is None else bank.type for bank in banks],
            fragments=[b"" if bank is None else bank.payload for bank in banks],
        )
        pieces.append(mfp)
        fragments.append((source, offset, len(mfp)))
        offset += len(mfp)
    return memoryview(b"".join(pieces)), np.array(fragments, dtype=np.int64)


def routing_array(routing: Sequence[tuple[int, int, int]]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    return np.array(routing, dtype=np.uint32).reshape(-1, 3)


def encode(
    events: Sequence[Event],
    routing: Sequence[tuple[int, int, int]],
    kept: Sequence[int] | None = None,
    *,
    with_candidates: bool = True,
) -> EncodedEvents:
    encoder = EventEncoder(TCK, routing_array(routing), COLLECTIONS, FLAGS)
    wanted = np.array(range(len(events)) if kept is None else kept, dtype=np.int64)
    results = decided(events, len(routing), with_candidates=with_candidates)
    buffer, places = mep_of(events)
    return encoder.encode_batch(buffer, [(len(events), places)], wanted, 7, results)


def one(of_event: Event, routing: Sequence[tuple[int, int, int]] = (PHYSICS,) * 3) -> list[RawBank]:
    """The banks of a kept event."""
    (record,) = iter_records(encode([of_event], routing).data)
    return record.banks()


def bank_of(banks: Sequence[RawBank], bank_type: int) -> RawBank:
    (found,) = [bank for bank in banks if bank.type == bank_type]
    return found


def check(events: Sequence[Event], routing: Sequence[tuple[int, int, int]], kept: Sequence[int]) -> None:
    """The records of kept events equal those of the oracle, for each form of their banks."""
    encoded = encode(events, routing, kept)
    records = list(iter_records(encoded.data))
    assert [len(record) for record in encoded.records()] == [record.header.record_size for record in records]
    left_out = 0
    for index, record in zip(kept, records, strict=True):
        of_event = events[index]
        expected, routing_words, n_left_out = trigger_banks(
            of_event.selected,
            of_event.fired,
            routing,
            tck=TCK,
            ran=not of_event.flags & (EventFlag.BACKEND_ERROR | EventFlag.NOT_PROCESSED),
            unreadable=bool(of_event.flags & (EventFlag.BANK_ERROR | EventFlag.ODIN_ERROR)),
            passed_cut=not of_event.flags & GLOBAL_EVENT_CUT.mask,
            odin=of_event.odin,
            counts={"VeloTracks": min(of_event.counts[0], 0xFFFF), "Pvs": min(of_event.counts[1], 0xFFFF)},
            schema=lumi_schema(COLLECTIONS),
        )
        left_out += n_left_out
        raw = [bank for _, bank in sorted(of_event.banks.items()) if bank is not None]
        assert record.banks() == [*(bank for bank in raw if bank.type not in TRIGGER_BANKS), *expected]
        header = record.header
        assert (header.routing_bits, header.run) == ((*routing_words, 0xFFFFFFFF), 7)
        odin = of_event.odin
        assert (header.orbit, header.bunch_id) == ((0, 0) if odin is None else (odin.orbit, odin.bunch_id))
    assert encoded.candidates_left_out == left_out
    banks = [[bank for _, bank in sorted(events[i].banks.items()) if bank is not None] for i in kept]
    encoder = EventEncoder(TCK, routing_array(routing), COLLECTIONS, FLAGS)
    again = encoder.encode_banks(banks, np.array(kept, dtype=np.int64), decided(events, len(routing)))
    assert [r.banks() for r in iter_records(again.data)] == [r.banks() for r in records]
    assert again.ends.tolist() == encoded.ends.tolist()


@st.composite
def selected_events(draw: st.DrawFn, n_lines: int) -> SelectedEvent:
    """Tracks, vertices of tracks or vertices, and candidates of any line."""
    n = draw(st.integers(0, 8))
    objects = []
    for i in range(n):
        info = tuple(draw(st.lists(f32, max_size=9)))
        if i and draw(st.booleans()):
            parts = tuple(draw(st.lists(st.integers(0, i - 1), max_size=4)))
            objects.append(ReportedObject(ClassId.VERTEX, info, parts=parts))
        else:
            objects.append(ReportedObject(ClassId.TRACK, info, ids=tuple(draw(st.lists(u32, max_size=20)))))
    candidate = st.tuples(st.integers(0, n_lines - 1), st.integers(0, max(n - 1, 0)))
    return SelectedEvent(tuple(objects), tuple(sorted(draw(st.lists(candidate, max_size=20)))) if n else ())


@st.composite
def meps(draw: st.DrawFn) -> tuple[list[Event], list[tuple[int, int, int]], list[int]]:
    """Events of one MEP, the routing words of the lines, and the events that are kept."""
    n_lines = draw(st.sampled_from([1, 3, 31, 32, 33, 65, 200]))
    words = st.tuples(*[st.sampled_from([0, 1 << 1, 1 << 14, 1 << 31])] * 3)
    routing = draw(st.lists(words, min_size=n_lines, max_size=n_lines))
    odin_version = draw(st.sampled_from([6, 7]))
    events = []
    for _ in range(draw(st.integers(1, 5))):
        odin = draw(odins)
        if odin_version == 6:
            odin = Odin(run=odin.run, event_id=1, orbit=odin.orbit, bunch_id=odin.bunch_id, crossing_type=2)
        lost = draw(st.integers(0, 3)) == 0
        banks: dict[int, RawBank | None] = {0: None if lost else encode_odin(odin, odin_version)}
        for source in (4096, 6144, 0xF900):
            kind = {4096: LhcbBankType.VP, 6144: BankType.HLT_DEC_REPORTS, 0xF900: BankType.HLT_SEL_REPORTS}[source]
            payload = draw(st.none() | st.binary(max_size=40))
            banks[source] = None if payload is None else RawBank(kind, 4, source, memoryview(payload))
        fired = tuple(sorted(draw(st.sets(st.integers(0, n_lines - 1), max_size=10))))
        flags = draw(st.sampled_from([0, *FLAGS.masks.values()]))
        counts = draw(st.tuples(u32, st.integers(0, 20)))
        selected = draw(selected_events(n_lines))
        events.append(Event(banks, None if lost else odin, fired, int(flags), counts, selected))
    kept = [i for i in range(len(events)) if draw(st.booleans())]
    return events, routing, kept


@given(meps())
def test_kept_events_are_those_of_the_oracle(
    drawn: tuple[list[Event], list[tuple[int, int, int]], list[int]],
) -> None:
    check(*drawn)


def test_the_banks_of_the_trigger_that_came_with_the_event_are_replaced() -> None:
    banks = {**event().banks, 0xF900: RawBank(BankType.HLT_DEC_REPORTS, 3, 0xF900, memoryview(b"old."))}
    kept = one(event(banks=banks, fired=(1,)))
    assert [bank.type for bank in kept] == [BankType.ODIN, LhcbBankType.VP, *sorted(TRIGGER_BANKS)[:3]]
    assert [line.decision for line in decode_dec_reports(bank_of(kept, BankType.HLT_DEC_REPORTS)).lines] == [
        False,
        True,
        False,
    ]


def test_an_event_that_no_line_selects_has_empty_reports() -> None:
    kept = one(event(flags=EventFlag.OVERFLOW))
    assert not any(line.decision for line in decode_dec_reports(bank_of(kept, BankType.HLT_DEC_REPORTS)).lines)
    assert decode_sel_reports(bank_of(kept, BankType.HLT_SEL_REPORTS)).objects == ()
    assert decode_routing_bits(bank_of(kept, BankType.HLT_ROUTING_BITS)) == (0, 0, 0)


def test_lines_that_were_not_run_have_no_stage() -> None:
    for flags, stage in ((0, 1), (EventFlag.BACKEND_ERROR, 0), (EventFlag.NOT_PROCESSED, 0)):
        report = decode_dec_reports(bank_of(one(event(flags=int(flags))), BankType.HLT_DEC_REPORTS))
        assert {line.stage for line in report.lines} == {stage}


def test_reports_look_like_those_of_2025(run3_reports: Sequence[RawBank]) -> None:
    """27 lines; 18 (luminosity) and 21 select the whole event; only key, TCK and counters differ."""
    routing = [LUMI if line == 17 else (0, 0, 0) for line in range(27)]
    kept = one(event(fired=(17, 20)), routing)
    mine = [bank for bank in kept if bank.type in TRIGGER_BANKS]
    assert [b[:3] for b in mine] == [b[:3] for b in run3_reports]
    dec, routing_bits, selected, _ = mine
    assert bytes(dec.payload[8:]) == bytes(run3_reports[0].payload[8:])
    assert (routing_bits, selected) == (run3_reports[1], run3_reports[2])


def test_the_report_of_the_largest_menu_fits_in_its_bank() -> None:
    routing = [PHYSICS] * MAX_LINES
    report = decode_dec_reports(bank_of(one(event(fired=(MAX_LINES - 1,)), routing), BankType.HLT_DEC_REPORTS))
    assert [line.decision_id for line in report.lines if line.decision] == [MAX_LINES]
    with pytest.raises(ValueError, match="is invalid"):
        EventEncoder(TCK, routing_array([*routing, PHYSICS]), COLLECTIONS, FLAGS)


def test_selections_that_do_not_fit_are_left_out_and_counted() -> None:
    encoded = encode([event(fired=tuple(range(9000)))], [PHYSICS] * 9000)
    (record,) = iter_records(encoded.data)
    selected = decode_sel_reports(bank_of(record.banks(), BankType.HLT_SEL_REPORTS)).selections
    n = 9000 - encoded.candidates_left_out
    assert list(selected) == list(range(1, n + 1))
    as_many = [ReportedObject(ClassId.SELECTION, (1.0,))] * n
    encode_sel_reports(HltSelReports(tuple(as_many)))
    with pytest.raises(ReportError):
        encode_sel_reports(HltSelReports((*as_many, as_many[0])))


@pytest.mark.parametrize("n_ids", [10, 200, 255])
def test_candidates_that_do_not_fit_are_left_out_and_counted(n_ids: int) -> None:
    """Smaller ones that come later still are written."""
    n = 120
    tracks = [ReportedObject(ClassId.TRACK, (1.0,) * n_ids, tuple(range(n_ids))) for _ in range(n)]
    vertices = [ReportedObject(ClassId.VERTEX, (2.0,) * 4, parts=(i, i + 1)) for i in range(n - 1)]
    small = ReportedObject(ClassId.TRACK, (), (5,))
    objects = (*tracks, *vertices, small)
    candidates = (*((0, n + i) for i in range(n - 1)), (2, 3), (2, len(objects) - 1))
    of_event = event(fired=(0, 2), selected=SelectedEvent(objects, candidates))
    check([of_event], [PHYSICS] * 3, [0])
    assert (encode([of_event], [PHYSICS] * 3).candidates_left_out > 0) == (n_ids > 10)


def test_a_line_counts_at_most_15_candidates() -> None:
    tracks = tuple(ReportedObject(ClassId.TRACK, ids=(i,)) for i in range(20))
    kept = one(event(fired=(0, 1), selected=SelectedEvent(tracks, tuple((1, i) for i in range(20)))))
    lines = decode_dec_reports(bank_of(kept, BankType.HLT_DEC_REPORTS)).lines
    assert [line.candidates for line in lines] == [1, 15, 0]
    assert len(decode_sel_reports(bank_of(kept, BankType.HLT_SEL_REPORTS)).selections[2]) == 20


def test_an_object_that_two_lines_select_is_written_once() -> None:
    tracks = tuple(ReportedObject(ClassId.TRACK, (1.0,) * 8, (i, i + 1)) for i in (10, 20))
    vertex = ReportedObject(ClassId.VERTEX, (0.0,) * 4, parts=(0, 1))
    selected = SelectedEvent((*tracks, vertex), ((0, 0), (1, 2), (2, 2)))
    report = decode_sel_reports(bank_of(one(event(fired=(0, 1, 2), selected=selected)), BankType.HLT_SEL_REPORTS))
    assert [o.class_id for o in report.objects[3:]] == [ClassId.VERTEX, ClassId.TRACK, ClassId.TRACK]
    assert report.selections == {1: (4,), 2: (3,), 3: (3,)}
    assert report.objects[3].parts == (4, 5)


def test_without_candidates_lines_select_whole_events() -> None:
    (record,) = iter_records(encode([event(fired=(0, 2))], [PHYSICS] * 3, with_candidates=False).data)
    assert decode_sel_reports(bank_of(record.banks(), BankType.HLT_SEL_REPORTS)).selections == {1: (), 3: ()}


def test_the_rows_of_a_batch_serve_each_of_its_meps() -> None:
    track = ReportedObject(ClassId.TRACK, ids=(1, 2))
    events = [event(fired=(0,), selected=SelectedEvent((track,) * (i + 1), ((0, i),))) for i in range(4)]
    encoder = EventEncoder(TCK, routing_array([PHYSICS]), COLLECTIONS, FLAGS)
    whole = encode(events, [PHYSICS])
    of_batch = decided(events, 1)
    second = Decided(of_batch.lines[2:], of_batch.flags[2:], of_batch.counts[2:], of_batch.selected.part(2, 4))
    buffer, places = mep_of(events[2:])
    part = encoder.encode_batch(buffer, [(2, places)], np.array([0, 1]), 7, second)
    assert [bytes(r) for r in part.records()] == [bytes(r) for r in whole.records()[2:]]


@pytest.mark.parametrize("size", [MAX_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE + 1])
def test_a_fragment_too_large_for_a_bank_is_left_out_and_counted(size: int) -> None:
    large = RawBank(LhcbBankType.VP, 4, 4096, memoryview(bytes(size)))
    encoded = encode([event(banks={**event().banks, 4096: large})], [PHYSICS])
    (record,) = iter_records(encoded.data)
    fits = size <= MAX_PAYLOAD_SIZE
    assert encoded.banks_left_out == (0 if fits else 1)
    assert sum(len(bank.payload) for bank in record.banks() if bank.type == LhcbBankType.VP) == (size if fits else 0)


def test_a_tae_header_is_left_out_so_that_the_file_can_be_read() -> None:
    encoded = encode([event(banks={0: RawBank(BankType.TAE_HEADER, 1, 0, memoryview(bytes(12)))}), event()], [PHYSICS])
    first, second = iter_records(encoded.data)
    assert encoded.banks_left_out == 1
    assert {bank.type for bank in first.banks()} <= TRIGGER_BANKS
    assert BankType.ODIN in {bank.type for bank in second.banks()}


@st.composite
def mfps_at_the_limits(draw: st.DrawFn) -> list[bytes]:
    """The MFPs of a MEP; types and sizes lie within and beyond what can be written."""
    n = draw(st.integers(1, 5))
    # One event in three or so has a bank that may be refused; the fragments of the others are ordinary.
    types = st.sampled_from([16, 63, 64, 92, 254, NO_BANK]) | st.sampled_from(sorted(TYPES_OF_NODE)) | u8
    sizes = st.integers(0, 40) | st.sampled_from([MAX_PAYLOAD_SIZE - 1, MAX_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE + 1, 0xFFFF])
    mfps = []
    for source in sorted(draw(st.sets(st.integers(0, 0xFFFF), min_size=1, max_size=4))):
        of_events = [draw(types) for _ in range(n)]
        fragments = [
            b"" if bank_type == NO_BANK else bytes((bank_type ^ i,)) * draw(sizes)
            for i, bank_type in enumerate(of_events)
        ]
        mfps.append(encode_mfp(source_id=source, event_id=7, version=draw(u8), types=of_events, fragments=fragments))
    return mfps


@settings(max_examples=150)
@given(mfps_at_the_limits())
def test_every_bank_that_the_intake_accepts_can_be_read_and_sent_again_bit_for_bit(mfps: list[bytes]) -> None:
    parsed = [Mfp.parse(mfp) for mfp in mfps]
    accepted = [
        mfp for mfp in parsed if not inspect_frame(encode_frame(mfp.view, run=7, mep_id=3, source_id=mfp.source_id))[1]
    ]
    if not accepted:
        return
    n = accepted[0].n_fragments
    buffer = b"".join(bytes(mfp.view) for mfp in accepted)
    places, at = [], 0
    for mfp in accepted:
        places.append((mfp.source_id, at, mfp.packet_size))
        at += mfp.packet_size
    encoder = EventEncoder(TCK, routing_array([PHYSICS]), COLLECTIONS, FLAGS)
    encoded = encoder.encode_batch(
        memoryview(buffer), [(n, np.array(places, np.int64))], np.arange(n), 7, decided([event()] * n, 1)
    )
    assert encoded.banks_left_out == 0
    # Readers of `inspect` and `process`.
    read = [
        [bank for bank in record.banks() if bank.type not in TRIGGER_BANKS] for record in iter_records(encoded.data)
    ]
    assert read == events_of_mfps(accepted)
    # The reader and the packing of `replay`.
    begins, ends, cut_off = find_events(memoryview(encoded.data), 0, n + 1, True)
    assert (len(begins), cut_off) == (n, True)
    block = EventBlock(memoryview(encoded.data), np.array(begins, np.uint64), np.array(ends, np.uint64))
    versions = {mfp.source_id: mfp.version for mfp in accepted}
    packer = EventPacker(versions, lambda bank: None if bank.type in TYPES_OF_NODE else bank.source_id)
    sent = [Mfp.parse(frame[HEADER_SIZE:]) for frame in packer.pack(block, 7).frames().values()]
    assert events_of_mfps(sent) == events_of_mfps(accepted)


@pytest.mark.parametrize(
    ("word", "value", "what"),
    [
        (0, 2 << 16 | 11, "more selected candidates than words"),
        (0, 2 << 16 | 3, "extend beyond their words"),
        (0, 3 << 16 | 2, "extend beyond their words"),
        (2, 1 | 1 << 16, "invalid class"),
        (6, 10030 | 7 << 16, "extend beyond their words"),
        (7, 9, "extend beyond their words"),
        (7, 9 << 16, "extend beyond their words"),
        (9, 100, "does not belong to its event"),
        (10, 1 | 3 << 16, "does not belong to its event"),
        (10, 9 | 1 << 16, "ascend by line"),
        (11, 2, "ascend by line"),
    ],
)
def test_words_that_contradict_themselves_are_refused(word: int, value: int, what: str) -> None:
    track = ReportedObject(ClassId.TRACK, (1.0,), (7,))
    vertex = ReportedObject(ClassId.VERTEX, (1.0,), parts=(0,))
    of_event = event(fired=(0, 1), selected=SelectedEvent((track, vertex), ((0, 0), (1, 1))))
    results = decided([of_event], 3)
    assert results.selected.counts.tolist() == [12]
    results.selected.values[WORDS][word] = value
    encoder = EventEncoder(TCK, routing_array([PHYSICS] * 3), COLLECTIONS, FLAGS)
    buffer, places = mep_of([of_event])
    with pytest.raises(ValueError, match=what):
        encoder.encode_batch(buffer, [(1, places)], np.array([0]), 7, results)


def test_candidates_that_the_kernel_has_left_out_are_counted() -> None:
    results = decided([event(fired=(0,)), event()], 1)
    assert results.selected.counts.tolist() == [2, 2]
    results.selected.values[WORDS][1::2] = (5, 7)
    encoder = EventEncoder(TCK, routing_array([PHYSICS]), COLLECTIONS, FLAGS)
    buffer, places = mep_of([event(), event()])
    encoded = encoder.encode_batch(buffer, [(2, places)], np.array([0, 1]), 7, results)
    assert encoded.candidates_left_out == 5, "what is written of an event that no line accepts means nothing"


@pytest.mark.parametrize(
    ("offsets", "what"),
    [
        ([0, 12, 11], "do not ascend"),
        ([0, 12, 25], "end before their offsets"),
        ([0, 12], "different numbers of events"),
    ],
)
def test_rows_of_words_outside_of_the_words_are_refused(offsets: list[int], what: str) -> None:
    track = ReportedObject(ClassId.TRACK, (1.0,), (7,))
    vertex = ReportedObject(ClassId.VERTEX, (1.0,), parts=(0,))
    of_event = event(fired=(0, 1), selected=SelectedEvent((track, vertex), ((0, 0), (1, 1))))
    results = decided([of_event, of_event], 3)
    assert results.selected.offsets.tolist() == [0, 12, 24]
    wrong = ListContent(np.array(offsets, np.uint32), results.selected.values)
    encoder = EventEncoder(TCK, routing_array([PHYSICS] * 3), COLLECTIONS, FLAGS)
    buffer, places = mep_of([of_event, of_event])
    with pytest.raises(ValueError, match=what):
        encoder.encode_batch(buffer, [(2, places)], np.array([0, 1]), 7, replace(results, selected=wrong))


@settings(max_examples=300)
@given(st.data())
def test_wrong_words_never_read_out_of_bounds(data: st.DataObject) -> None:
    """One word is overwritten by any number: the encoder refuses, or writes a readable report and all other banks as
    they are without it."""
    of_event = event(fired=(0, 1, 2), selected=data.draw(selected_events(3)))
    results = decided([of_event], 3)
    row = results.selected.values[WORDS]
    row[data.draw(st.integers(0, len(row) - 1))] = data.draw(u32 | st.integers(0, 9))
    encoder = EventEncoder(TCK, routing_array([PHYSICS] * 3), COLLECTIONS, FLAGS)
    buffer, places = mep_of([of_event])
    try:
        encoded = encoder.encode_batch(buffer, [(1, places)], np.array([0]), 7, results)
    except ValueError:
        return
    (record,) = iter_records(encoded.data)
    decode_sel_reports(bank_of(record.banks(), BankType.HLT_SEL_REPORTS))
    of_selected = {BankType.HLT_SEL_REPORTS, BankType.HLT_DEC_REPORTS}  # which counts the candidates of each line
    written, expected = ([b for b in banks if b.type not in of_selected] for banks in (record.banks(), one(of_event)))
    assert written == expected


@pytest.mark.parametrize("kept", [[1, 0], [0, 0], [2], [-1]])
def test_unsorted_or_missing_events_are_refused(kept: list[int]) -> None:
    with pytest.raises(ValueError, match="kept events"):
        encode([event(), event()], [PHYSICS], kept)


def test_fragments_outside_the_buffer_or_of_other_events_are_refused() -> None:
    events = [event(), event()]
    buffer, places = mep_of(events)
    encoder = EventEncoder(TCK, routing_array([PHYSICS]), COLLECTIONS, FLAGS)
    source, offset, size = places[0]
    for wrong in ((source, len(buffer), size), (source, offset, size - 1), (source, offset + 4, size), (source, -1, 1)):
        with pytest.raises(ValueError, match="MFP"):
            encoder.encode_batch(buffer, [(2, np.array([wrong]))], np.array([0]), 7, decided(events, 1))
    with pytest.raises(ValueError, match="MFP"):
        encoder.encode_batch(buffer, [(1, places)], np.array([0]), 7, decided(events[:1], 1))
    with pytest.raises(ValueError, match="of the batch differ"):
        encoder.encode_batch(buffer, [(1, places)], np.array([0]), 7, decided(events, 1))


def test_a_fragment_whose_announced_size_reaches_beyond_its_mfp_is_refused() -> None:
    buffer, places = mep_of([event()])
    damaged = bytearray(buffer)
    for _, offset, _ in places:
        damaged[offset + 24 : offset + 26] = b"\xff\xff"  # the size of the only fragment
    with pytest.raises(ValueError, match="is damaged"):
        encoder_of(1).encode_batch(memoryview(damaged), [(1, places)], np.array([0]), 7, decided([event()], 1))


def test_the_events_of_several_meps_are_those_of_each_mep_alone() -> None:
    meps = [[event(fired=(i % 3,), counts=(i, n)) for i in range(n)] for n in (3, 1, 4)]
    kept = [[1, 2], [], [0, 3]]
    alone = [bytes(encode(events, [PHYSICS] * 3, some).data) for events, some in zip(meps, kept, strict=True)]
    buffer, places, numbers, first = b"", [], [], 0
    for events, some in zip(meps, kept, strict=True):
        of_mep, at = mep_of(events)
        places.append((len(events), at + np.array([0, len(buffer), 0])))
        numbers += [first + i for i in some]
        buffer += bytes(of_mep)
        first += len(events)
    batch = decided([of_event for events in meps for of_event in events], 3)
    together = encoder_of(3).encode_batch(memoryview(buffer), places, np.array(numbers), 7, batch)
    assert together.data == b"".join(alone)


@pytest.mark.parametrize("n_kept", [5, 40, 120])
def test_few_or_all_of_many_events_are_those_of_the_oracle(n_kept: int) -> None:
    random = np.random.default_rng(n_kept)
    sizes = [0, 1, 3, 4, 7, 8, 15, 16, 31, 32, 33, 64, 511, 512, 513]
    events = []
    for _ in range(120):
        banks = dict(event().banks)
        for source in range(5000, 5020):
            size = random.choice(sizes) if random.random() < 0.5 else random.integers(0, 60)
            payload = memoryview(random.bytes(int(size)))
            banks[source] = RawBank(LhcbBankType.VP, 4, source, payload) if random.random() < 0.9 else None
        events.append(event(banks=banks, fired=(0,)))
    check(events, [PHYSICS], sorted(random.permutation(120)[:n_kept].tolist()))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 40])
def test_records_have_the_checksum_of_the_format_where_it_is_asked_for(n: int) -> None:
    bank = RawBank(LhcbBankType.VP, 4, 4096, memoryview(b"data" * 50))
    events = [event(banks={**event().banks, 4096: replace_payload(bank, i)}) for i in range(n)]
    buffer, places = mep_of(events)
    encoder = EventEncoder(TCK, routing_array([PHYSICS]), COLLECTIONS, FLAGS, checksums=True)
    encoded = encoder.encode_batch(buffer, [(n, places)], np.arange(n), 7, decided(events, 1))
    records = list(iter_records(encoded.data))
    assert len(records) == n
    assert all(record.header.checksum for record in records)


def replace_payload(bank: RawBank, size: int) -> RawBank:
    """The same bank with the first bytes of its payload."""
    return RawBank(bank.type, bank.version, bank.source_id, bank.payload[: 4 * size + size % 3])


def encoder_of(n_lines: int) -> EventEncoder:
    """An encoder of a menu with this number of physics lines."""
    return EventEncoder(TCK, routing_array([PHYSICS] * n_lines), COLLECTIONS, FLAGS)
