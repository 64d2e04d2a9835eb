"""Frames in one pass: the compiled checks agree with the Python parsers, and write only to their place."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import Mfp, ProtocolError, check_crc, decode_header, encode_frame, encode_mfp
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.fragment_frame import (
    copy_mfp,
    crc32c_implementations,
    has_right_crc,
    inspect_frame,
    joined_crc32c,
)
from hltnode.protocol.raw_data.bank_types import NO_BANK, TYPES_OF_NODE
from hltnode.protocol.raw_data.raw_bank import MAX_PAYLOAD_SIZE
from hltnode.protocol.transport.messages import MAX_MEP_ID
from tests.protocol import fuzz
from tests.protocol.strategies import fragment_lists, mep_ids, u8, u16, u32, u64

HEADER_SIZE = 48
IMPLEMENTATIONS = list(enumerate(crc32c_implementations()))
each_implementation = pytest.mark.parametrize(
    "implementation", [i for i, _ in IMPLEMENTATIONS], ids=dict(IMPLEMENTATIONS).get
)
GUARD = 0xA5

MFP = encode_mfp(
    source_id=4097, event_id=9, version=3, types=[63, 255, 63, 63], fragments=[b"ab" * 9, b"", b"", b"z" * 41]
)
GOOD = encode_frame(MFP, run=1, mep_id=2, source_id=4097, token=0x123456789ABCDEF0)


def sealed(frame: bytes) -> bytes:
    """The frame with the length of its payload and the correct CRC, so that deeper checks are reached."""
    header = bytearray(frame[:HEADER_SIZE])
    struct.pack_into("<I", header, 12, len(frame) - HEADER_SIZE)
    struct.pack_into("<I", header, 36, crc32c(frame[HEADER_SIZE:], crc32c(bytes(header[:36]))))
    return bytes(header) + frame[HEADER_SIZE:]


def inspected_in_python(frame: bytes) -> tuple[bool, str, int, int, int, int, int, int, int]:
    """Expected result of `inspect_frame`, by the Python parsers."""
    try:
        header = decode_header(frame, max_bytes=len(frame))
    except ProtocolError as error:
        return False, error.reason.value, 0, 0, 0, 0, 0, 0, 0
    known = header.run, header.source_id, header.mep_id, header.length
    try:
        mfp = Mfp.parse(frame[HEADER_SIZE:])
    except ProtocolError as error:
        return True, error.reason.value, *known, 0, 0, header.token
    refusal = ""
    if mfp.source_id != header.source_id:
        refusal = RejectReason.MALFORMED.value
    elif TYPES_OF_NODE & set(mfp.types.tolist()):
        refusal = RejectReason.RESERVED_TYPE.value
    elif max(mfp.sizes.tolist()) > MAX_PAYLOAD_SIZE:
        refusal = RejectReason.BANK_TOO_LARGE.value
    return True, refusal, *known, mfp.event_id, mfp.n_fragments, header.token


def crc_is_right_in_python(frame: bytes) -> bool:
    try:
        check_crc(decode_header(frame, max_bytes=len(frame)), frame)
    except ProtocolError:
        return False
    return True


def agrees(frame: bytes) -> bool:
    """Whether a frame is accepted; fails the test if compiled and Python checks differ."""
    found = inspect_frame(frame)
    assert found == inspected_in_python(frame), frame[:100].hex()
    if not found[0]:
        assert not has_right_crc(frame)
        return False
    right = crc_is_right_in_python(frame)
    for implementation in range(len(IMPLEMENTATIONS)):
        assert has_right_crc(frame, implementation) == right, frame[:100].hex()
    return right and not found[1]


def damaged_mfps(good: bytes) -> Iterator[bytes]:
    """Frames with correct header and CRC and an invalid MFP."""
    return (sealed(good[:HEADER_SIZE] + mfp) for mfp in fuzz.damaged(good[HEADER_SIZE:]))


def test_a_good_frame_is_accepted() -> None:
    assert agrees(GOOD)
    assert inspect_frame(GOOD) == (True, "", 1, 4097, 2, len(MFP), 9, 4, 0x123456789ABCDEF0)


def test_damaged_frames_are_refused_for_the_reasons_of_the_parsers_in_python() -> None:
    assert sum(not agrees(frame) for frame in fuzz.damaged(GOOD)) > 1000


def test_damaged_mfps_are_refused_for_the_reasons_of_the_parsers_in_python() -> None:
    reasons = {inspect_frame(frame)[1] for frame in damaged_mfps(GOOD) if not agrees(frame)}
    assert reasons == {"truncated", "bad_magic", "bad_size", "malformed", "reserved_type"}


@given(
    content=fragment_lists(),
    align=st.integers(0, 15),
    version=u8,
    run=u32,
    mep=mep_ids,
    source=u16,
    other_source=u16,
    event=u64,
    cut=st.integers(0, 3),
)
def test_any_fields_are_read_as_the_parsers_in_python_read_them(
    content: tuple[bytes, list[bytes]],
    align: int,
    version: int,
    run: int,
    mep: int,
    source: int,
    other_source: int,
    event: int,
    cut: int,
) -> None:
    types, fragments = content
    mfp = bytearray(
        encode_mfp(source_id=source, event_id=0, version=version, types=types, fragments=fragments, align=3)
    )
    struct.pack_into("<Q", mfp, 8, event)
    mfp[18] = align
    for carried_by in (source, other_source):
        agrees(encode_frame(bytes(mfp[: len(mfp) - cut]), run=run, mep_id=mep, source_id=carried_by))


@pytest.mark.parametrize("place", [0, 1, 70])
def test_exactly_the_types_that_the_node_writes_or_never_writes_are_refused(place: int) -> None:
    refused = set()
    for bank_type in range(NO_BANK):
        types = [63] * 71
        types[place] = bank_type
        mfp = encode_mfp(source_id=4097, event_id=9, version=3, types=types, fragments=[b"x"] * 71)
        frame = encode_frame(mfp, run=1, mep_id=2, source_id=4097)
        if not agrees(frame):
            refused.add(bank_type)
            assert inspect_frame(frame)[1] == "reserved_type"
    assert refused == {17, 48, 53, 54, 56, *range(242, 251)}


@pytest.mark.parametrize(("size", "refusal"), [(65_527, ""), (65_528, "bank_too_large"), (65_535, "bank_too_large")])
def test_a_fragment_that_fits_no_raw_bank_is_refused(size: int, refusal: str) -> None:
    mfp = encode_mfp(source_id=4097, event_id=9, version=3, types=[63] * 20, fragments=[b"ab"] * 19 + [bytes(size)])
    frame = encode_frame(mfp, run=1, mep_id=2, source_id=4097)
    assert inspect_frame(frame)[1] == refusal
    assert agrees(frame) == (not refusal)


def test_a_frame_of_the_last_id_of_64_bits_is_refused_because_no_id_confirms_it() -> None:
    last = bytearray(encode_frame(MFP, run=1, mep_id=MAX_MEP_ID, source_id=4097))
    assert agrees(bytes(last))
    struct.pack_into("<Q", last, 16, MAX_MEP_ID + 1)
    assert not agrees(sealed(bytes(last)))
    assert inspect_frame(sealed(bytes(last)))[:2] == (False, "malformed")
    with pytest.raises(ProtocolError, match=f"at most {MAX_MEP_ID}"):
        encode_frame(MFP, run=1, mep_id=MAX_MEP_ID + 1, source_id=4097)


@given(data=st.binary(max_size=200))
def test_noise_is_refused_for_the_reasons_of_the_parsers_in_python(data: bytes) -> None:
    agrees(data)
    agrees(GOOD[:HEADER_SIZE] + data)
    agrees(sealed(GOOD[:HEADER_SIZE] + data))


# Lengths around the block size of the fast implementations, and offsets around cache lines.
LENGTHS = [*range(70), 127, 128, 255, 767, 768, 769, 831, 832, 833, 1535, 1536, 2048, 6143, 6144, 6145, 6207, 6208]
LENGTHS += [6919, 8191, 8192, 8193, 12_288, 16_383, 16_384, 40_001, 200_003]


@each_implementation
def test_every_length_and_offset_is_copied_whole_with_the_right_crc_and_nothing_beside_it(implementation: int) -> None:
    rng = random.Random(7)
    slot = bytearray([GUARD]) * (max(LENGTHS) + 300)
    for length in LENGTHS:
        payload = rng.randbytes(length)
        frame = memoryview(bytes(3) + encode_frame(payload, run=1, mep_id=2, source_id=3))[3:]
        for offset in (0, 8, 56, 64, 72, 129):
            assert copy_mfp(frame, slot, offset, implementation)
            assert slot[offset : offset + length] == payload, (length, offset)
            slot[offset : offset + length] = bytes([GUARD]) * length
            assert slot.count(GUARD) == len(slot), (length, offset)


@each_implementation
@given(data=st.binary(max_size=9000), bit=st.integers(0, 1 << 30))
def test_a_flipped_bit_anywhere_gives_another_crc(implementation: int, data: bytes, bit: int) -> None:
    frame = bytearray(encode_frame(data, run=1, mep_id=2, source_id=3))
    assert has_right_crc(frame, implementation)
    # Fields whose change makes the header itself invalid are tested above. The CRC does not cover the token.
    places = [
        *range(8 * 6, 8 * 12),
        *range(8 * 16, 8 * 34),
        *range(8 * 36, 8 * 40),
        *range(8 * HEADER_SIZE, 8 * len(frame)),
    ]
    at = places[bit % len(places)]
    frame[at // 8] ^= 1 << at % 8
    assert not has_right_crc(frame, implementation)
    assert not copy_mfp(frame, bytearray(len(frame)), 0, implementation)


@given(parts=st.lists(st.binary(max_size=300), max_size=5))
def test_the_crc_of_consecutive_parts_follows_from_the_crc_of_each(parts: list[bytes]) -> None:
    joined = 0
    for part in parts:
        joined = joined_crc32c(joined, crc32c(part), len(part))
    assert joined == crc32c(b"".join(parts))


def test_a_part_may_have_any_size_up_to_megabytes() -> None:
    """Each bit of the size has a table of its own."""
    data = memoryview(random.Random(5).randbytes((1 << 22) + 1))
    first, whole = crc32c(b"before"), crc32c(data, crc32c(b"before"))
    for size in (0, 1, *(size for k in range(1, 23) for size in ((1 << k) - 1, 1 << k, (1 << k) + 1))):
        begin = joined_crc32c(first, crc32c(data[:-size] if size else data), len(data) - size)
        assert joined_crc32c(begin, crc32c(data[len(data) - size :]), size) == whole, size


@pytest.mark.parametrize("offset", [1, 1000 - len(MFP) + 1, 1000, 1001, 1 << 40, (1 << 64) - 1])
def test_a_frame_that_does_not_fit_behind_its_offset_is_not_copied(offset: int) -> None:
    slot = bytearray([GUARD]) * (len(MFP) if offset == 1 else 1000)
    with pytest.raises(ValueError, match="does not fit"):
        copy_mfp(GOOD, slot, offset)
    assert slot.count(GUARD) == len(slot)


def test_a_frame_whose_length_is_not_what_it_announces_is_not_copied() -> None:
    slot = bytearray([GUARD]) * 1000
    for frame in (GOOD[:-1], GOOD + b"\0", GOOD[:39], b"", *fuzz.wrong_sizes(GOOD, header=16)):
        if not inspect_frame(frame)[0]:
            assert not copy_mfp(frame, slot, 0)
    assert slot.count(GUARD) == len(slot)


def test_a_slot_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(BufferError):
        copy_mfp(GOOD, memoryview(bytes(1000)), 0)


def test_an_implementation_that_this_machine_has_not_is_refused() -> None:
    with pytest.raises(IndexError, match="does not exist"):
        has_right_crc(GOOD, len(IMPLEMENTATIONS))
