"""Tables of events and their MFPs equal those of banks that are read and grouped one by one, also damaged ones."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.processing.framework.batch import MFP_ALIGNMENT
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.event_files import DamageLog, EventFileError, read_events
from hltnode.processing.framework.offline_runner import MAX_HELD_BYTES, encode_mep, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.protocol.errors import BankError, MdfError, MfpError, ProtocolError
from hltnode.protocol.event_table import EventTable, grouped
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.readout import NOT_READ_WITH, velo_encoding
from hltnode.protocol.mfp_packing import MfpPacker
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import check_record_size, encode_record, parse_record
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks, iter_banks
from hltnode.protocol.raw_data.source_id import subdetector_of
from tests.protocol.grouped_banks import group_into_mfps

TYPES = [
    LhcbBankType.VP, LhcbBankType.VP_RETINA_CLUSTER, LhcbBankType.UT, LhcbBankType.FT_CLUSTER, LhcbBankType.MUON,
    BankType.ODIN, BankType.HLT_DEC_REPORTS, LhcbBankType.DAQ_ERROR_FRAGMENT_MALFORMED, LhcbBankType.MC_TRACKS,
    231, 255,
]  # fmt: skip
VELO_CHAIN = CHAIN.with_sequence("velo")
Banks = Sequence[RawBank]


def grouped_one_by_one(chain: Chain, events: Sequence[Banks], first: int, encoding: str) -> dict[int, bytes]:
    """The MFPs that a chain reads, by the rules of the readout in Python."""

    def is_read(bank: RawBank) -> bool:
        source = LHCB_READOUT.source_of(bank)
        return source is not None and subdetector_of(source) in chain.subdetectors

    kept = []
    for banks in events:
        read = [bank for bank in banks if is_read(bank)]
        chosen = velo_encoding(bank.type for bank in read) if encoding == "auto" else encoding
        kept.append([bank for bank in read if bank.type != NOT_READ_WITH[chosen]])  # type: ignore[index]
    return group_into_mfps(kept, first, LHCB_READOUT.source_of, LHCB_READOUT.error_type, LHCB_READOUT.error_types)


def outcome(pack: object) -> object:
    try:
        return pack()  # type: ignore[operator]
    except MfpError as error:
        return error.reason, str(error)


@st.composite
def event_lists(draw: st.DrawFn) -> list[list[RawBank]]:
    """Events with few types, versions and sources: doubled banks, mixed versions and encodings are frequent."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    versions = 1 if draw(st.booleans()) else 4
    types = TYPES[: -1 if draw(st.booleans()) else None]
    wide = draw(st.booleans())
    return [
        [
            RawBank(
                int(rng.choice(types)),
                int(rng.integers(versions)),
                int(rng.integers(0x10000) if wide else rng.integers(12)),
                memoryview(rng.bytes(int(rng.integers(20)))),
            )
            for _ in range(rng.integers(12))
        ]
        for _ in range(draw(st.integers(1, 9)))
    ]


@given(event_lists(), st.sampled_from(["auto", "retina", "superpixel"]), st.sampled_from([CHAIN, VELO_CHAIN]))
def test_meps_of_tables_are_those_of_banks_grouped_one_by_one(
    events: list[list[RawBank]], encoding: str, chain: Chain
) -> None:
    def encoded() -> dict[int, bytes]:
        table = EventTable.of_events(events)
        assert list(table) == events
        mep = encode_mep(chain, table, 7, encoding)
        assert all(place % MFP_ALIGNMENT == 0 for _, place, _ in mep.fragments)
        data = mep.data.tobytes()
        ends = [0, *(place + size for _, place, size in mep.fragments)]
        places = [*(place for _, place, _ in mep.fragments), len(data)]
        # Between MFPs there is only padding.
        assert not any(b"".join(data[end:place] for end, place in zip(ends, places, strict=True)))
        return {source: data[place : place + size] for source, place, size in mep.fragments}

    expected = outcome(lambda: grouped_one_by_one(chain, events, 7, encoding))
    assert outcome(encoded) == expected
    without_source = {bank.type for banks in events for bank in banks if LHCB_READOUT.source_of(bank) is None}
    if isinstance(expected, dict):
        known = LHCB_READOUT.truth_types | LHCB_READOUT.types_not_read_out
        assert encode_mep(chain, events, 7, encoding).unknown_types == without_source - known


def test_a_packer_keeps_no_state_of_earlier_meps() -> None:
    packer = MfpPacker(LHCB_READOUT)
    ut, muon = (RawBank(kind, 2, 3, memoryview(b"abcdefghijk")) for kind in (LhcbBankType.UT, LhcbBankType.MUON))
    for events in ([[ut], [muon, ut]], [[ut, ut], [muon]], [[muon]], [[ut], [muon, ut]]):
        measured = packer.measure(EventTable.of_events(events), 5)
        data = packer.pack(measured, 5).tobytes()
        mfps = {
            source: data[place : place + size]
            for source, place, size in zip(measured.sources, measured.places, measured.sizes, strict=True)
        }
        assert mfps == grouped_one_by_one(CHAIN, events, 5, "auto")


def test_a_payload_above_the_limit_of_a_fragment_is_refused() -> None:
    bank = RawBank(LhcbBankType.UT, 2, 3, memoryview(bytes(0xFFFF)))
    (mfp,) = grouped_one_by_one(CHAIN, [[bank]], 0, "auto").values()
    mep = encode_mep(CHAIN, [[bank]])
    assert mep.data.tobytes()[: len(mfp)] == mfp
    with pytest.raises(MfpError, match="payload of 65536 bytes"):
        encode_mep(CHAIN, [[bank._replace(payload=memoryview(bytes(0x10000)))]])


def records_one_by_one(content: memoryview, path: object, damage: DamageLog) -> list[Banks]:
    """The events of MDF records, each parsed in Python."""
    events: list[Banks] = []
    at = number = 0
    while at < len(content):
        where = f"MDF record at byte {at}"
        try:
            size = check_record_size(content[at:], where)
        except MdfError as error:
            damage(EventFileError(f"{path}: {error} (after {number} events; the rest of the file cannot be read)"))
            break
        try:
            events.append(list(iter_banks(parse_record(content[at : at + size], where).body)))
        except BankError as error:
            damage(EventFileError(f"{path}: {where}: {error} (event {number} of the file)"))
        except MdfError as error:
            damage(EventFileError(f"{path}: {error} (event {number} of the file)"))
        at += size
        number += 1
    return events


def test_damaged_files_give_the_events_and_faults_of_records_read_one_by_one(tmp_path_factory: object) -> None:
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("damaged") / "a.mdf"  # type: ignore[attr-defined]
    kinds = set()
    for trial in range(300):
        content = bytearray()
        for event in range(int(rng.integers(1, 70 if trial % 50 == 0 else 6))):
            banks = [
                RawBank(int(rng.integers(256)), 1, i, memoryview(rng.bytes(int(rng.integers(30)))))
                for i in range(int(rng.integers(5)))
            ]
            packed = int(rng.integers(3) == 0)
            content += encode_record(encode_banks(banks), run=1, checksum=bool(event % 2), compression=packed)
        for _ in range(int(rng.integers(4))):
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
        if trial % 3 == 0:
            del content[int(rng.integers(21, len(content) + 1)) :]
        path.write_bytes(content)
        expected, found = DamageLog(), DamageLog()
        whole = records_one_by_one(memoryview(bytes(content)), path, expected)
        if content[18] != 1:
            continue  # not recognised as MDF
        assert list(read_events(path, damaged=found)) == whole
        assert found == expected
        kinds |= {text.split(": ")[2].split()[0] for text in found.first}
    assert len(kinds) > 8


@given(event_lists(), st.integers(1, 7), st.integers(1, 2000), st.lists(st.integers(0, 8), max_size=4))
def test_groups_of_tables_hold_all_events_in_bounded_memory(
    events: list[list[RawBank]], n: int, most: int, cuts: list[int]
) -> None:
    table = EventTable.of_events(events)
    places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    # A part is of the same memory, or of its own, or repeated by places that are not consecutive.
    parts = [
        table[begin:end] if i % 2 else table.select(np.arange(begin, end)).repeated(1)
        for i, (begin, end) in enumerate(itertools.pairwise(places))
    ]
    groups = list(grouped(parts, n, most))
    assert [banks for group in groups for banks in group] == events
    sizes = table.nbytes()
    at = 0
    for group in groups:
        # A group ends with the event that fills it.
        upto = np.cumsum(sizes[at : at + len(group)])
        assert (upto[:-1] < most).all()
        at += len(group)
        assert at == len(events) or len(group) == n or upto[-1] >= most
        assert len(group) <= n
        assert group.held_bytes == upto[-1]


def test_tables_of_mfps_and_of_several_buffers_have_the_same_events() -> None:
    events = [
        [RawBank(LhcbBankType.UT, 3, source, memoryview(bytes([i, source]) * source)) for source in (5, 9)][i % 3 :]
        for i in range(6)
    ]
    mfps = group_into_mfps(events, 0, lambda bank: bank.source_id)
    table = EventTable.of_mfps([Mfp.parse(mfp) for mfp in mfps.values()])
    assert list(table) == events
    joined = EventTable.joined([table[1:3], EventTable.of_events(events[:2]), table.select(np.array([5, 0]))])
    assert list(joined) == [events[i] for i in (1, 2, 0, 1, 5, 0)]
    assert joined[-1] == events[0]
    by_type = table.of_types([LhcbBankType.MUON])
    assert list(by_type) == [[]] * 6
    (mep,) = encode_meps(CHAIN, [joined[:2], joined[2:]], 6)
    assert list(mep.events) == list(joined)
    assert mep.held_bytes == mep.data.nbytes + joined.held_bytes < MAX_HELD_BYTES


def test_damaged_banks_and_places_outside_the_data_are_refused() -> None:
    good = encode_banks([RawBank(LhcbBankType.UT, 1, 5, memoryview(b"abcd"))])
    data = memoryview(good + good[:-1])
    with pytest.raises(ProtocolError, match="raw bank at byte 0"):
        EventTable.of_bytes(data, [0, len(good)], [len(good), len(data)])
    with pytest.raises(ValueError, match="outside the data"):
        EventTable.of_bytes(memoryview(good), [0], [99])
    table = EventTable.of_bytes(data, [0], [len(good)])
    rows = table.rows.copy()
    rows["size"] += 100
    broken = EventTable(table.buffers, rows, table.begins, table.ends)
    with pytest.raises(ValueError, match="an MFP lies outside the buffer"):
        MfpPacker(LHCB_READOUT).pack(MfpPacker(LHCB_READOUT).measure(table, 0), 0)
    packer = MfpPacker(LHCB_READOUT)
    with pytest.raises(ValueError, match="a bank lies outside its buffer"):
        packer.pack(packer.measure(broken, 0), 0)
