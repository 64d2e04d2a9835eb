"""The transport frame."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RejectReason, check_crc, decode_header, encode_frame
from hltnode.protocol.errors import FrameError
from hltnode.protocol.transport.frame_header import set_frame_tokens
from tests.protocol.strategies import mep_ids, u16, u32, u64

GOOD = encode_frame(b"payload!", run=1, mep_id=2, source_id=3, send_time_ns=4, flags=5, token=6)


def test_the_layout_is_that_of_the_format() -> None:
    header = struct.pack("<IHHIIQQHH", 0x464E4C48, 2, 5, 1, 8, 2, 4, 3, 0)
    assert header + struct.pack("<IQ", crc32c(header + b"payload!"), 6) + b"payload!" == GOOD


@given(mfp=st.binary(max_size=300), run=u32, mep_id=mep_ids, source_id=u16, send_time_ns=u64, flags=u16, token=u64)
def test_a_frame_comes_back_as_written(
    mfp: bytes, run: int, mep_id: int, source_id: int, send_time_ns: int, flags: int, token: int
) -> None:
    frame = encode_frame(
        mfp, run=run, mep_id=mep_id, source_id=source_id, send_time_ns=send_time_ns, flags=flags, token=token
    )
    header = decode_header(frame, max_bytes=300)
    check_crc(header, memoryview(frame))
    assert frame[48:] == mfp
    assert (header.run, header.mep_id, header.source_id) == (run, mep_id, source_id)
    assert (header.send_time_ns, header.flags, header.length, header.token) == (send_time_ns, flags, len(mfp), token)


def changed(at: int, layout: str, value: int) -> bytes:
    damaged = bytearray(GOOD)
    struct.pack_into(layout, damaged, at, value)
    return bytes(damaged)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectReason.TRUNCATED),
        (GOOD[:47], RejectReason.TRUNCATED),
        (GOOD[:-1], RejectReason.TRUNCATED),
        (GOOD + b"\0", RejectReason.BAD_SIZE),
        (changed(0, "<I", 0x464E4C49), RejectReason.BAD_MAGIC),
        (changed(4, "<H", 1), RejectReason.BAD_VERSION),
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


def test_every_single_bit_flip_outside_the_token_is_found() -> None:
    for bit in (*range(8 * 40), *range(8 * 48, 8 * len(GOOD))):
        damaged = bytearray(GOOD)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(FrameError):
            check_crc(decode_header(damaged, max_bytes=1000), damaged)


def test_a_wrong_crc_names_the_fragment() -> None:
    damaged = changed(36, "<I", 0)
    with pytest.raises(FrameError, match="source 3, run 1, MEP 2") as error:
        check_crc(decode_header(damaged, max_bytes=1000), damaged)
    assert error.value.reason is RejectReason.BAD_CRC


@pytest.mark.parametrize("field", ["run", "mep_id", "source_id", "send_time_ns", "flags", "token"])
def test_a_field_that_does_not_fit_is_refused(field: str) -> None:
    fields = {"run": 1, "mep_id": 2, "source_id": 3, field: 1 << 64}
    with pytest.raises(FrameError):
        encode_frame(b"", **fields)


def test_another_token_in_a_kept_frame_leaves_all_else_and_the_crc() -> None:
    frames = [bytearray(GOOD), bytearray(encode_frame(b"other", run=1, mep_id=2, source_id=4))]
    set_frame_tokens([memoryview(frame) for frame in frames], (1 << 64) - 2)
    header = decode_header(frames[0], max_bytes=1000)
    check_crc(header, frames[0])
    assert header.token == (1 << 64) - 2
    assert frames[0][:40] + frames[0][48:] == GOOD[:40] + GOOD[48:]
    assert decode_header(frames[1], max_bytes=1000).token == header.token
    with pytest.raises(ValueError, match="fewer bytes than its header"):
        set_frame_tokens([bytearray(47)], 1)
