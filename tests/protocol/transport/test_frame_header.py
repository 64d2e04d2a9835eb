"""The transport frame."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RejectReason, check_crc, decode_header, encode_frame
from hltnode.protocol.errors import FrameError
from tests.protocol.strategies import mep_ids, u16, u32, u64

GOOD = encode_frame(b"payload!", run=1, mep_id=2, source_id=3, send_time_ns=4, flags=5)


def test_the_layout_is_that_of_the_format() -> None:
    header = struct.pack("<IHHIIQQHH", 0x464E4C48, 1, 5, 1, 8, 2, 4, 3, 0)
    assert header + struct.pack("<I", crc32c(header + b"payload!")) + b"payload!" == GOOD


@given(mfp=st.binary(max_size=300), run=u32, mep_id=mep_ids, source_id=u16, send_time_ns=u64, flags=u16)
def test_a_frame_comes_back_as_written(
    mfp: bytes, run: int, mep_id: int, source_id: int, send_time_ns: int, flags: int
) -> None:
    frame = encode_frame(mfp, run=run, mep_id=mep_id, source_id=source_id, send_time_ns=send_time_ns, flags=flags)
    header = decode_header(frame, max_bytes=300)
    check_crc(header, memoryview(frame))
    assert frame[40:] == mfp
    assert (header.run, header.mep_id, header.source_id) == (run, mep_id, source_id)
    assert (header.send_time_ns, header.flags, header.length) == (send_time_ns, flags, len(mfp))


def changed(at: int, layout: str, value: int) -> bytes:
    damaged = bytearray(GOOD)
    struct.pack_into(layout, damaged, at, value)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectReason.TRUNCATED),
        (GOOD[:39], RejectReason.TRUNCATED),
        (GOOD[:-1], RejectReason.TRUNCATED),
        (GOOD + b"\0", RejectReason.BAD_SIZE),
        (changed(0, "<I", 0x464E4C49), RejectReason.BAD_MAGIC),
        (changed(4, "<H", 2), RejectReason.BAD_VERSION),
        (changed(12, "<I", 9), RejectReason.TRUNCATED),
        (changed(12, "<I", 7), RejectReason.BAD_SIZE),
        (changed(12, "<I", 0xFFFFFFFF), RejectReason.OVERSIZED),
        (changed(34, "<H", 1), RejectReason.MALFORMED),
    ],
)
def test_a_damaged_header_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(FrameError) as error:
        decode_header(data, max_bytes=1000)
    assert error.value.reason is reason


def test_an_mfp_over_the_limit_is_refused() -> None:
    decode_header(GOOD, max_bytes=8)
    with pytest.raises(FrameError) as error:
        decode_header(GOOD, max_bytes=7)
    assert error.value.reason is RejectReason.OVERSIZED


def test_every_single_bit_flip_is_found() -> None:
    for bit in range(8 * len(GOOD)):
        damaged = bytearray(GOOD)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FrameError):
            check_crc(decode_header(damaged, max_bytes=1000), damaged)


def test_a_wrong_crc_names_the_fragment() -> None:
    damaged = changed(36, "<I", 0)
    with pytest.raises(FrameError, match="source 3, run 1, MEP 2") as error:
        check_crc(decode_header(damaged, max_bytes=1000), damaged)
    assert error.value.reason is RejectReason.BAD_CRC


@pytest.mark.parametrize("field", ["run", "mep_id", "source_id", "send_time_ns", "flags"])
def test_a_field_that_does_not_fit_is_refused(field: str) -> None:
    fields = {"run": 1, "mep_id": 2, "source_id": 3, field: 1 << 64}
    with pytest.raises(FrameError):
        encode_frame(b"", **fields)
