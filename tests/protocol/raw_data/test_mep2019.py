"""The 2019 multi-event packet."""

from __future__ import annotations

import struct

import pytest

from hltnode.protocol import ProtocolError, RawBank, RejectReason, decode_odin
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mep2019 import parse_mep2019


def packet(
    *, sizes: tuple[int, ...] = (3, 5), block_size: int = 8, version: int = 2, n_fragments: int = 2, offset: int = 0
) -> bytes:
    """One block of two events behind a generic header without sub-header."""
    block = struct.pack("<QHHI", 7, n_fragments, 0, block_size) + bytes((63, 63, 0, 0)) + struct.pack("<2H", *sizes)
    block += b"abcdefgh"
    header = struct.pack("<HHIQ", 1, 2, 0, len(block)) + struct.pack("<4HI", 9, 0, version, 0, offset)
    size = 20 + len(header) + len(block)
    return struct.pack("<4I4B", size, size, size, 0, 0, 0, 2, 0) + header + block


def test_fragments_follow_one_another_without_padding() -> None:
    mep = parse_mep2019(packet())
    assert mep.n_events == 2
    assert mep.events() == [[RawBank(63, 2, 9, memoryview(b"abc"))], [RawBank(63, 2, 9, memoryview(b"defgh"))]]
    assert mep.blocks[0].event_id == 7


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (packet()[:-1], RejectReason.TRUNCATED),
        (packet() + b"\0", RejectReason.BAD_SIZE),
        (packet(sizes=(3, 6)), RejectReason.BAD_SIZE),
        (packet(sizes=(3, 6), block_size=9), RejectReason.TRUNCATED),
        (packet(version=256), RejectReason.BAD_VERSION),
        (packet(n_fragments=3), RejectReason.MISMATCH),
        (packet(offset=0xFFFFFFFF), RejectReason.TRUNCATED),
        (packet()[:18] + b"\x01" + packet()[19:], RejectReason.BAD_VERSION),
        (packet()[:16] + b"\x01" + packet()[17:], RejectReason.BAD_VERSION),
    ],
)
def test_a_damaged_packet_is_refused_with_its_reason(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(ProtocolError) as error:
        parse_mep2019(data)
    assert error.value.reason is reason


def test_the_real_packet_holds_the_events_of_the_mdf_file(
    mep2019_file: bytes, superpixel_events: list[list[RawBank]]
) -> None:
    mep = parse_mep2019(mep2019_file)
    assert (mep.n_events, len(mep.blocks)) == (10, 1025)
    events = mep.events()
    odins = [decode_odin(b) for banks in events for b in banks if b.type == BankType.ODIN]
    assert [odin.event_id for odin in odins] == list(range(6001, 6011))
    detectors = {LhcbBankType.FT_CLUSTER, LhcbBankType.MUON}

    def payloads(banks: list[RawBank]) -> list[tuple[int, int, bytes]]:
        return sorted((b.type, b.source_id, bytes(b.payload)) for b in banks if b.type in detectors)

    for banks, from_mdf in zip(events, superpixel_events, strict=False):
        assert payloads(banks) == payloads(from_mdf)
