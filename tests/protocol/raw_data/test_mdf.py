"""MDF records."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.protocol import RawBank, RejectReason, encode_bank, encode_banks, encode_record, iter_records
from hltnode.protocol.errors import MdfError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import MAX_BLOCKS, jenkins_checksum
from tests.protocol.strategies import raw_banks, u32

BODY = encode_banks([RawBank(LhcbBankType.UT, 3, 1, memoryview(b"abcdef"))])
GOOD = encode_record(BODY, run=7)


def changed(at: int, layout: str, value: int) -> bytes:
    damaged = bytearray(GOOD)
    struct.pack_into(layout, damaged, at, value)
    return bytes(damaged)


@given(
    banks=st.lists(raw_banks, max_size=5),
    run=u32,
    orbit=u32,
    bunch_id=u32,
    routing_bits=st.tuples(u32, u32, u32, u32),
    version=st.sampled_from([1, 3]),
    checksum=st.booleans(),
    compression=st.integers(0, 9),
)
def test_records_come_back_as_written(
    banks: list[RawBank],
    run: int,
    orbit: int,
    bunch_id: int,
    routing_bits: tuple[int, int, int, int],
    version: int,
    checksum: bool,
    compression: int,
) -> None:
    encoded = encode_record(
        encode_banks(banks),
        run=run,
        orbit=orbit,
        bunch_id=bunch_id,
        routing_bits=routing_bits,
        version=version,
        checksum=checksum,
        compression=compression,
    )
    for record in iter_records(encoded * 2):
        header = record.header
        assert record.banks() == banks
        assert (header.run, header.orbit, header.bunch_id) == (run, orbit, bunch_id)
        assert (header.routing_bits, header.version, header.compression) == (routing_bits, version, compression)
        assert (header.checksum != 0) == checksum
        assert header.record_size == len(encoded)


def test_an_uncompressed_body_is_a_view_into_the_buffer() -> None:
    buffer = bytearray(encode_record(BODY, run=7, checksum=False))
    (record,) = iter_records(buffer)
    buffer[-1] = 77
    assert record.body[-1] == 77


def test_the_checksum_is_the_one_at_a_time_hash_over_signed_bytes() -> None:
    def step_by_step(data: bytes) -> int:
        state = 0
        for byte in data:
            state = (state + (byte - 256 if byte > 127 else byte)) % 2**32
            state = (state + (state << 10)) % 2**32
            state ^= state >> 6
        state = (state + (state << 3)) % 2**32
        state ^= state >> 11
        return (state + (state << 15)) % 2**32

    for data in (b"", b"a", b"\xff\x80\x7f", bytes(range(256)) * 3):
        assert jenkins_checksum(data) == step_by_step(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (GOOD[:10], RejectReason.TRUNCATED),
        (GOOD[:-1], RejectReason.TRUNCATED),
        (GOOD + GOOD[:-4], RejectReason.TRUNCATED),
        (changed(0, "<I", 4), RejectReason.MALFORMED),
        (changed(8, "<I", 4), RejectReason.MALFORMED),
        (struct.pack("<3I", 0, 0, 0) + GOOD[12:], RejectReason.BAD_SIZE),
        (struct.pack("<3I", 24, 24, 24) + GOOD[12:], RejectReason.BAD_SIZE),
        (changed(17, "<B", 0x07), RejectReason.BAD_VERSION),
        (changed(17, "<B", 0x20), RejectReason.BAD_VERSION),
        (changed(17, "<B", 0x47), RejectReason.BAD_VERSION),
        (changed(17, "<B", 0x36), RejectReason.BAD_SIZE),
        (changed(18, "<B", 2), RejectReason.BAD_VERSION),
        (changed(18, "<B", 3), RejectReason.BAD_VERSION),
        (changed(36, "<I", 8), RejectReason.BAD_CHECKSUM),
        (changed(12, "<I", 1), RejectReason.BAD_CHECKSUM),
    ],
)
def test_a_damaged_record_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(MdfError) as error:
        list(iter_records(data))
    assert error.value.reason is reason


def test_the_checksum_is_not_verified_if_this_is_switched_off() -> None:
    (record,) = iter_records(changed(36, "<I", 8), verify_checksum=False)
    assert record.header.run == 8


def test_records_before_a_damaged_one_are_read() -> None:
    records = iter_records(GOOD + b"junk")
    assert next(records).header.run == 7
    with pytest.raises(MdfError, match=f"record at byte {len(GOOD)}"):
        next(records)


def test_time_aligned_events_are_refused_by_name() -> None:
    body = encode_bank(RawBank(BankType.TAE_HEADER, 1, 0, memoryview(bytes(12)))) + BODY
    with pytest.raises(MdfError, match="TAE"):
        list(iter_records(encode_record(body, run=1)))


@pytest.mark.parametrize("tag", [b"CS", b"XZ", b"L4"])
def test_other_compressions_are_refused_by_name(tag: bytes) -> None:
    record = bytearray(encode_record(BODY, run=1, compression=1, checksum=False))
    record[48:50] = tag
    with pytest.raises(MdfError, match=tag.decode()) as error:
        list(iter_records(record))
    assert error.value.reason is RejectReason.BAD_VERSION


def test_a_body_of_too_many_compressed_blocks_is_refused() -> None:
    empty = b"ZL\x08" + len(zlib.compress(b"")).to_bytes(3, "little") + bytes(3) + zlib.compress(b"")
    record = encode_record(empty * (MAX_BLOCKS + 1), run=1, checksum=False)
    with pytest.raises(MdfError, match="compressed blocks") as error:
        list(iter_records(record[:16] + b"\x01" + record[17:]))
    assert error.value.reason is RejectReason.OVERSIZED


@pytest.mark.parametrize("version", [0, 2, 4])
def test_a_version_that_is_not_written_is_refused(version: int) -> None:
    with pytest.raises(MdfError):
        encode_record(BODY, run=1, version=version)


def reencoded(data: bytes) -> bytes:
    return b"".join(
        encode_record(
            encode_banks(record.banks()),
            run=record.header.run,
            orbit=record.header.orbit,
            bunch_id=record.header.bunch_id,
            routing_bits=record.header.routing_bits,
            version=record.header.version,
            checksum=record.header.checksum != 0,
            compression=record.header.compression,
        )
        for record in iter_records(data)
    )


@pytest.mark.parametrize("file", ["retina_mdf", "superpixel_mdf", "compressed_mdf", "run3_mdf"])
def test_real_files_are_read_with_checksums_and_written_back_byte_by_byte(
    file: str, request: pytest.FixtureRequest
) -> None:
    data: bytes = request.getfixturevalue(file)
    assert reencoded(data) == data


def test_the_real_events_have_the_known_banks(retina_mdf: bytes, compressed_mdf: bytes) -> None:
    common = {
        (LhcbBankType.RICH, 3): 350,
        (LhcbBankType.FT_CLUSTER, 5): 240,
        (LhcbBankType.VP, 2): 208,
        (LhcbBankType.UT, 3): 180,
        (LhcbBankType.ECAL_PACKED, 2): 28,
        (LhcbBankType.MUON, 2): 10,
        (LhcbBankType.HCAL_PACKED, 2): 8,
        (BankType.ODIN, 6): 1,
    }
    added = {(LhcbBankType.VP_RETINA_CLUSTER, 3): 208, (LhcbBankType.MC_TRACKS, 2): 4, (LhcbBankType.MC_VERTICES, 1): 1}
    first = next(iter_records(retina_mdf, verify_checksum=False))
    assert Counter((b.type, b.version) for b in first.banks()) == common | added
    first = next(iter_records(compressed_mdf, verify_checksum=False))
    assert Counter((b.type, b.version) for b in first.banks()) == common


def test_the_files_hold_the_same_detector_data(
    superpixel_events: list[list[RawBank]], retina_events: list[list[RawBank]]
) -> None:
    detectors = {LhcbBankType.FT_CLUSTER, LhcbBankType.MUON, BankType.ODIN}
    for left, right in zip(superpixel_events, retina_events, strict=True):
        assert [b for b in left if b.type in detectors] == [b for b in right if b.type in detectors]
