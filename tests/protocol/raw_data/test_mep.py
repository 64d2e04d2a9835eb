"""Run-3 multi-event packets."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import (
    Mep,
    Mfp,
    ProtocolError,
    RawBank,
    RejectReason,
    encode_mep,
    encode_mfp,
    events_of_mfps,
    iter_meps,
    source_id,
)
from hltnode.protocol.raw_data.mep import mep_places
from tests.protocol.fuzz import FORMLESS, damaged, truncations, wrong_sizes
from tests.protocol.packed_events import mfps_of_events
from tests.protocol.strategies import mep_inputs

ODIN = source_id(0, 0)
VELO = source_id(2, 1)
UT = source_id(5, 1)


def mfp_of(source: int, *, size: int = 40, event_id: int = 1, n: int = 2) -> bytes:
    fragments = [bytes(size)] + [b""] * (n - 1)
    return encode_mfp(source_id=source, event_id=event_id, version=1, types=[63] * n, fragments=fragments, align=2)


def test_three_mfps_have_the_offsets_of_the_test_vector_of_the_format() -> None:
    # docs/formats/mep.md: 3 MFPs give offsets 7, 35, 67 and a size of 99, all in 32-bit words.
    mfps = [mfp_of(ODIN, size=84), mfp_of(VELO, size=100), mfp_of(UT, size=97)]
    assert [len(mfp) for mfp in mfps] == [28 * 4, 32 * 4, 32 * 4]
    mep = encode_mep(mfps, align=2)
    assert struct.unpack_from("<HHI", mep) == (0xCEFA, 3, 99)
    assert struct.unpack_from("<3H", mep, 8) == (ODIN, VELO, UT)
    assert struct.unpack_from("<3I", mep, 16) == (7, 35, 67)
    assert Mep.parse(mep).offsets == (28, 140, 268)


@given(packets=mep_inputs(), align=st.integers(2, 8), data=st.data())
def test_the_mfps_of_a_mep_are_recovered_by_source(packets: list[bytes], align: int, data: st.DataObject) -> None:
    encoded = encode_mep(data.draw(st.permutations(packets)), align=align)
    mep = Mep.parse(encoded)
    assert [bytes(mfp.view) for mfp in mep.mfps] == packets
    assert all(offset % (1 << align) == 0 for offset in mep.offsets)
    assert mep.events() == events_of_mfps([Mfp.parse(packet) for packet in packets])
    assert [m.source_ids for m in iter_meps(encoded * 3)] == [mep.source_ids] * 3


def test_an_mfp_is_a_view_into_the_mep() -> None:
    buffer = bytearray(encode_mep([mfp_of(ODIN)]))
    mep = Mep.parse(buffer)
    buffer[mep.offsets[0] + int(mep.mfps[0].offsets[0])] = 9
    assert mep.mfps[0].fragment(0)[0] == 9


def test_a_mep_without_odin() -> None:
    mep = Mep.parse(encode_mep([mfp_of(UT), mfp_of(VELO)]))
    assert mep.source_ids == (VELO, UT)
    assert mep.n_events == len(mep.events())


@pytest.mark.parametrize(
    ("mfps", "reason"),
    [
        ([], RejectReason.BAD_SIZE),
        ([mfp_of(ODIN), mfp_of(ODIN + 1)], RejectReason.DUPLICATE),
        ([mfp_of(ODIN), mfp_of(VELO), mfp_of(VELO)], RejectReason.DUPLICATE),
        ([mfp_of(ODIN), mfp_of(VELO, event_id=2)], RejectReason.MISMATCH),
        ([mfp_of(ODIN), mfp_of(VELO, n=3)], RejectReason.MISMATCH),
        ([mfp_of(ODIN), b"junk"], RejectReason.TRUNCATED),
    ],
)
def test_mfps_that_break_the_rules_make_no_mep(mfps: list[bytes], reason: RejectReason) -> None:
    with pytest.raises(ProtocolError) as error:
        encode_mep(mfps)
    assert error.value.reason is reason


GOOD = encode_mep([mfp_of(ODIN), mfp_of(VELO)])


def changed(at: int, layout: str, value: int) -> bytes:
    damaged = bytearray(GOOD)
    struct.pack_into(layout, damaged, at, value)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (GOOD[:7], RejectReason.TRUNCATED),
        (GOOD[:-4], RejectReason.TRUNCATED),
        (GOOD + bytes(4), RejectReason.BAD_SIZE),
        (changed(0, "<H", 0xCEFB), RejectReason.BAD_MAGIC),
        (changed(2, "<H", 0), RejectReason.BAD_SIZE),
        (changed(2, "<H", 0xFFFF), RejectReason.BAD_SIZE),
        (changed(4, "<I", 1), RejectReason.BAD_SIZE),
        (changed(4, "<I", 0xFFFFFFFF), RejectReason.TRUNCATED),
        (changed(8, "<H", 5), RejectReason.MISMATCH),
        (changed(12, "<I", 0), RejectReason.BAD_SIZE),
        (changed(12, "<I", 0xFFFFFFFF), RejectReason.BAD_SIZE),
        (changed(16, "<I", 5), RejectReason.BAD_SIZE),
    ],
)
def test_a_damaged_mep_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    for read in (Mep.parse, mep_places):
        with pytest.raises(ProtocolError) as error:
            read(data)
        assert error.value.reason is reason


def reason_of(read: Callable[[bytes], object], data: bytes) -> str:
    try:
        read(data)
    except ProtocolError as error:
        return str(error.reason)
    return ""


def with_source(mep: bytes, mfp: int, source: int) -> bytes:
    changed = bytearray(mep)
    struct.pack_into("<H", changed, 8 + 2 * mfp, source)
    struct.pack_into("<H", changed, Mep.parse(mep).offsets[mfp] + 16, source)
    return bytes(changed)


def test_the_compiled_reader_agrees_with_the_parser_on_any_damage(superpixel_events: list[list[RawBank]]) -> None:
    three = encode_mep([mfp_of(ODIN, size=84), mfp_of(VELO, size=100), mfp_of(UT, size=97)])
    real = encode_mep(list(mfps_of_events(superpixel_events[:2], 1).values()))
    broken_rules = [with_source(three, 2, VELO), with_source(three, 1, ODIN + 1), with_source(three, 2, ODIN + 1)]
    outcomes = set()
    for data in [*FORMLESS, GOOD, three, *broken_rules, real, *damaged(three), *truncations(real), *wrong_sizes(real)]:
        reason = reason_of(Mep.parse, data)
        assert reason_of(mep_places, data) == reason
        outcomes.add(reason)
        if reason:
            continue
        mep, (n_events, places) = Mep.parse(data), mep_places(data)
        assert n_events == mep.n_events
        expected = zip(mep.source_ids, mep.offsets, (mfp.packet_size for mfp in mep.mfps), strict=True)
        assert [tuple(row) for row in places.tolist()] == list(expected)
    assert outcomes == {"", "truncated", "bad_magic", "bad_size", "mismatch", "malformed", "duplicate"}


def test_a_mep_whose_sources_do_not_ascend_is_refused() -> None:
    mep = bytearray(encode_mep([mfp_of(ODIN), mfp_of(VELO), mfp_of(UT)]))
    second, third = Mep.parse(mep).offsets[1:]
    mep[10:14] = mep[12:14] + mep[10:12]
    mep[second + 16 : second + 18], mep[third + 16 : third + 18] = (
        mep[third + 16 : third + 18],
        mep[second + 16 : second + 18],
    )
    with pytest.raises(ProtocolError, match="comes after"):
        Mep.parse(mep)
    with pytest.raises(ProtocolError, match="malformed in MFP 2"):
        mep_places(mep)


def test_real_events_are_recovered_from_a_mep(superpixel_events: list[list[RawBank]]) -> None:
    packets = mfps_of_events(superpixel_events, 6001)
    mep = Mep.parse(encode_mep(list(packets.values())))
    assert mep.source_ids == tuple(packets)
    assert (mep.event_id, mep.n_events) == (6001, 7)
    for banks, original in zip(mep.events(), superpixel_events, strict=True):
        assert len(banks) == len(original) <= len(packets)
        assert sorted((b.type, b.version, bytes(b.payload)) for b in banks) == sorted(
            (b.type, b.version, bytes(b.payload)) for b in original
        )
