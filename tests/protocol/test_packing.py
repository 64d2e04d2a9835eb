"""Events packed in compiled code equal the same events grouped and encoded bank by bank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol._native import MAX_BANKS_OF_EVENT
from hltnode.protocol.errors import BankError, MfpError, RejectReason
from hltnode.protocol.packing import EventBlock, EventPacker, SecondBanks, bank_keys, frames_of_mfps
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.transport.frame_header import HEADER_SIZE, encode_frame
from tests.protocol.grouped_banks import group_into_mfps

RUN, MEP, FIRST_EVENT, TIME_NS = 3, 2**40, 2**33, 2**60
NOT_READ_OUT = 7


def source_of(bank: RawBank) -> int | None:
    return None if bank.type == NOT_READ_OUT else bank.source_id


def block_of(encoded: list[bytes]) -> EventBlock:
    ends = np.cumsum([len(event) for event in encoded], dtype=np.uint64)
    begins = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    return EventBlock(memoryview(b"".join(encoded)), begins, ends)


def packer_for(events: list[list[RawBank]]) -> EventPacker:
    versions = {bank.source_id: bank.version for banks in events for bank in banks if source_of(bank) is not None}
    return EventPacker(versions, source_of)


@st.composite
def event_lists(draw: st.DrawFn) -> list[list[RawBank]]:
    """Events whose banks come in any order; some sources are missing, some banks are not read out."""
    sources = draw(st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=6, unique=True))
    version_of = {source: draw(st.integers(0, 255)) for source in sources}
    bank_types = st.integers(0, 254)
    events = []
    for _ in range(draw(st.integers(1, 9))):
        present = draw(st.permutations(sources))[: draw(st.integers(0, len(sources)))]
        events.append(
            [
                RawBank(draw(bank_types), version_of[source], source, memoryview(draw(st.binary(max_size=40))))
                for source in present
            ]
        )
    return events


@given(event_lists())
def test_packed_frames_are_those_of_banks_encoded_one_by_one(events: list[list[RawBank]]) -> None:
    packer = packer_for(events)
    packed = packer.pack(block_of([encode_banks(banks) for banks in events]), FIRST_EVENT)
    packed.seal(run=RUN, mep=MEP, send_time_ns=TIME_NS)
    frames = packed.frames()
    expected = group_into_mfps(events, FIRST_EVENT, source_of)
    for source, mfp in expected.items():
        frame = encode_frame(mfp, run=RUN, mep_id=MEP, source_id=source, send_time_ns=TIME_NS)
        assert bytes(frames[source]) == frame
    assert tuple(frames) == packer.sources
    for source in set(frames) - set(expected):
        assert not Mfp.parse(frames[source][HEADER_SIZE:]).sizes.any()


@given(event_lists(), st.data())
def test_damaged_events_are_refused_or_packed_within_their_frames(
    events: list[list[RawBank]], data: st.DataObject
) -> None:
    packer = packer_for(events)
    encoded = [bytearray(encode_banks(banks)) for banks in events]
    changed = encoded[data.draw(st.integers(0, len(encoded) - 1))]
    for _ in range(data.draw(st.integers(1, 4))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    if changed and data.draw(st.booleans()):
        del changed[data.draw(st.integers(0, len(changed) - 1)) :]
    try:
        packed = packer.pack(block_of([bytes(event) for event in encoded]), 0)
    except (BankError, MfpError):
        return
    packed.seal(run=RUN, mep=MEP, send_time_ns=0)
    for source, frame in packed.frames().items():
        mfp = Mfp.parse(frame[HEADER_SIZE:])
        assert (mfp.source_id, mfp.n_fragments) == (source, len(events))


def test_two_banks_of_a_source_in_one_event_are_refused() -> None:
    bank = RawBank(1, 1, 5, memoryview(b"abcd"))
    events = [[bank], [bank, bank]]
    with pytest.raises(MfpError, match="source 5, event 1: second bank") as refused:
        packer_for(events).pack(block_of([encode_banks(banks) for banks in events]), 0)
    assert refused.value.reason is RejectReason.DUPLICATE


def test_two_banks_of_a_source_in_one_event_become_an_error_bank_where_the_readout_has_one() -> None:
    bank = RawBank(1, 1, 5, memoryview(b"abcd"))
    events = [[bank], [bank, bank._replace(version=2), bank], [bank]]
    packer = EventPacker({5: 1}, source_of, error_type=95)
    packed = packer.pack(block_of([encode_banks(banks) for banks in events]), 0)
    mfp = Mfp.parse(packed.frames()[5][HEADER_SIZE:])
    assert [(bank.type, bytes(bank.payload)) for bank in mfp.banks() if bank is not None] == [
        (1, b"abcd"), (95, b"abcd"), (1, b"abcd"),
    ]  # fmt: skip
    assert packer.second_banks == SecondBanks(2, 1, 5)
    packer.pack(block_of([encode_banks([bank])]), 0)
    assert packer.second_banks is None


def test_an_error_bank_has_any_version_and_gets_the_one_of_its_source() -> None:
    data, error = RawBank(1, 3, 5, memoryview(b"abcd")), RawBank(92, 0, 5, memoryview(b""))
    for events in ([[data], [error], [data]], [[error], [data]]):
        packer = EventPacker({5: 3}, source_of, error_types=(92,))
        packed = packer.pack(block_of([encode_banks(banks) for banks in events]), 0)
        mfp = Mfp.parse(packed.frames()[5][HEADER_SIZE:])
        assert mfp.version == 3
        assert [bank.type for bank in mfp.banks() if bank is not None] == [banks[0].type for banks in events]
        (grouped,) = group_into_mfps(events, 0, source_of, error_types=(92,)).values()
        assert grouped == bytes(mfp.view)


def test_error_banks_alone_keep_the_version_of_their_source() -> None:
    error = RawBank(92, 0, 5, memoryview(b""))
    packer = EventPacker({5: 3}, source_of, error_types=(92,))
    assert Mfp.parse(packer.pack(block_of([encode_banks([error])]), 0).frames()[5][HEADER_SIZE:]).version == 3
    (grouped,) = group_into_mfps([[error]], 0, source_of, error_types=(92,)).values()
    assert Mfp.parse(grouped).version == 0


def test_a_type_that_is_no_error_type_needs_one_version_beside_error_banks() -> None:
    banks = [RawBank(1, 3, 5, memoryview(b"")), RawBank(92, 0, 5, memoryview(b"")), RawBank(1, 2, 5, memoryview(b""))]
    events = [[bank] for bank in banks]
    for pack in (
        lambda: EventPacker({5: 3}, source_of, error_types=(92,)).pack(block_of([encode_banks(e) for e in events]), 0),
        lambda: group_into_mfps(events, 0, source_of, error_types=(92,)),
    ):
        with pytest.raises(MfpError, match="source 5, event 2: bank version 2"):
            pack()


def test_a_bank_of_the_type_that_marks_an_absent_one_is_refused() -> None:
    events = [[RawBank(255, 1, 5, memoryview(b"abcd"))]]
    for pack in (
        lambda: packer_for(events).pack(block_of([encode_banks(banks) for banks in events]), 0),
        lambda: group_into_mfps(events, 0, source_of),
    ):
        with pytest.raises(MfpError, match="source 5, event 0: type 255 marks an absent bank") as refused:
            pack()
        assert refused.value.reason is RejectReason.MALFORMED


def test_another_bank_version_of_a_source_is_refused() -> None:
    events = [[RawBank(1, version, 5, memoryview(b"abcd"))] for version in (1, 2)]
    with pytest.raises(MfpError, match="source 5, event 1: bank version 2") as refused:
        packer_for(events).pack(block_of([encode_banks(banks) for banks in events]), 0)
    assert refused.value.reason is RejectReason.MISMATCH


def test_a_damaged_event_is_refused_with_the_place_of_the_bank() -> None:
    good = encode_banks([RawBank(1, 1, 5, memoryview(b"abcd"))])
    with pytest.raises(BankError, match="raw bank at byte 12"):
        EventPacker({5: 1}, source_of).pack(block_of([good, good + b"rubbish of some bytes"]), 0)


def test_an_event_of_too_many_banks_is_refused() -> None:
    block = block_of([encode_banks([RawBank(NOT_READ_OUT, 1, 5, memoryview(b""))]) * (MAX_BANKS_OF_EVENT + 1)])
    for refuse in (lambda: EventPacker({5: 1}, source_of).pack(block, 0), lambda: bank_keys(block)):
        with pytest.raises(BankError, match=f"more than {MAX_BANKS_OF_EVENT} banks in one event"):
            refuse()


def test_sources_that_were_not_announced_are_left_out_and_named() -> None:
    events = [[RawBank(1, 1, source, memoryview(b"abcd")) for source in (5, 6)]]
    packer = EventPacker({5: 1}, source_of)
    packed = packer.pack(block_of([encode_banks(banks) for banks in events]), 0)
    assert (tuple(packed.frames()), packer.left_out) == ((5,), {6})


def test_the_keys_of_all_banks_are_found() -> None:
    events = [[RawBank(1, 2, 5, memoryview(b""))], [RawBank(NOT_READ_OUT, 9, 0xFFFF, memoryview(b"x"))]]
    assert bank_keys(block_of([encode_banks(banks) for banks in events])) == {(1, 2, 5), (NOT_READ_OUT, 9, 0xFFFF)}


def test_encoded_mfps_get_the_same_frames() -> None:
    mfps = group_into_mfps([[RawBank(1, 1, source, memoryview(b"abc")) for source in (5, 6)]], 9, source_of)
    packed = frames_of_mfps(mfps)
    packed.seal(run=RUN, mep=MEP, send_time_ns=TIME_NS)
    assert {source: bytes(frame) for source, frame in packed.frames().items()} == {
        source: encode_frame(mfp, run=RUN, mep_id=MEP, source_id=source, send_time_ns=TIME_NS)
        for source, mfp in mfps.items()
    }
