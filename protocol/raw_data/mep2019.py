"""The multi-event packet of the 2019 event builder, read only (docs/formats/mep-2019.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hltnode.protocol.buffers import Buffer, byte_view, padded
from hltnode.protocol.errors import MepError, RejectReason
from hltnode.protocol.raw_data.mdf import DATA_TYPE_MEP, GENERIC_HEADER, GENERIC_HEADER_SIZE, check_record_size
from hltnode.protocol.raw_data.raw_bank import RawBank

# u16 blocks, u16 packing factor, u32 reserved, u64 size in bytes of everything after the header's arrays.
_EB_HEADER = struct.Struct("<HHIQ")
# u64 event id, u16 fragments, u16 reserved, u32 bytes of all fragments.
_BLOCK_HEADER = struct.Struct("<QHHI")


@dataclass(frozen=True, slots=True)
class Block2019:
    """The fragments of one source: `types` and `fragments` have one entry per event."""

    source_id: int
    version: int
    event_id: int
    types: bytes
    fragments: tuple[memoryview, ...]


@dataclass(frozen=True, slots=True)
class Mep2019:
    """One packet: `n_events` is the packing factor that all blocks share."""

    n_events: int
    blocks: tuple[Block2019, ...]

    def events(self) -> list[list[RawBank]]:
        """The raw banks of each event, in the order of the blocks; source ids are those of the simulation."""
        return [
            [RawBank(block.types[i], block.version, block.source_id, block.fragments[i]) for block in self.blocks]
            for i in range(self.n_events)
        ]


def parse_mep2019(buffer: Buffer) -> Mep2019:
    """Check that `buffer` is exactly one packet, after its MDF generic header, and give views of its fragments.

    Raises MdfError for the sizes of the generic header, MepError for everything else.
    """
    view = byte_view(buffer)
    size = check_record_size(view, "2019 MEP")
    if size != len(view):
        raise MepError(RejectReason.BAD_SIZE, f"2019 MEP: {size} bytes announced, got {len(view)}")
    _, _, _, _, compression, version_and_length, data_type, _ = GENERIC_HEADER.unpack_from(view)
    if data_type != DATA_TYPE_MEP:
        raise MepError(RejectReason.BAD_VERSION, f"2019 MEP: data type {DATA_TYPE_MEP} expected, {data_type} found")
    if compression & 0xF:
        raise MepError(RejectReason.BAD_VERSION, f"2019 MEP: compressed (level {compression & 0xF}), not supported")
    header_at = GENERIC_HEADER_SIZE + 4 * (version_and_length & 0xF)
    arrays_at = header_at + _EB_HEADER.size
    if arrays_at > size:
        raise MepError(RejectReason.TRUNCATED, f"2019 MEP: headers need {arrays_at} bytes, got {size}")
    n_blocks, packing, _, mep_size = _EB_HEADER.unpack_from(view, header_at)
    versions_at = arrays_at + padded(2 * n_blocks, 2)
    offsets_at = versions_at + padded(2 * n_blocks, 2)
    data_at = offsets_at + 4 * n_blocks
    if n_blocks == 0 or packing == 0 or data_at + mep_size != size:
        raise MepError(
            RejectReason.BAD_SIZE,
            f"2019 MEP: {n_blocks} blocks of {packing} events in {mep_size} bytes after byte {data_at}, got {size}",
        )
    sources = struct.unpack_from(f"<{n_blocks}H", view, arrays_at)
    versions = struct.unpack_from(f"<{n_blocks}H", view, versions_at)
    offsets = struct.unpack_from(f"<{n_blocks}I", view, offsets_at)
    data = view[data_at:]
    blocks: list[Block2019] = []
    end = 0
    for source, version, offset in zip(sources, versions, offsets, strict=True):
        where = f"2019 MEP: block of source {source} at byte {data_at + offset}"
        if offset < end:
            raise MepError(RejectReason.BAD_SIZE, f"{where}: overlaps the block before, which ends at {data_at + end}")
        if version > 0xFF:
            raise MepError(RejectReason.BAD_VERSION, f"{where}: bank version {version} is above 255")
        block, end = _parse_block(data, offset, source, version, packing, where)
        blocks.append(block)
    return Mep2019(packing, tuple(blocks))


def _parse_block(
    data: memoryview, offset: int, source: int, version: int, packing: int, where: str
) -> tuple[Block2019, int]:
    """The block at `offset` of `data`, and the offset of its end."""
    types_at = offset + _BLOCK_HEADER.size
    sizes_at = types_at + padded(packing, 2)
    fragments_at = sizes_at + padded(2 * packing, 2)
    if fragments_at > len(data):
        raise MepError(RejectReason.TRUNCATED, f"{where}: its headers end beyond the packet")
    event_id, n_fragments, _, block_size = _BLOCK_HEADER.unpack_from(data, offset)
    if n_fragments != packing:
        raise MepError(RejectReason.MISMATCH, f"{where}: {packing} fragments expected, {n_fragments} found")
    sizes = struct.unpack_from(f"<{packing}H", data, sizes_at)
    end = fragments_at + block_size
    if sum(sizes) != block_size:
        raise MepError(RejectReason.BAD_SIZE, f"{where}: fragments add up to {sum(sizes)} bytes, not {block_size}")
    if end > len(data):
        raise MepError(
            RejectReason.TRUNCATED, f"{where}: {block_size} bytes announced, {len(data) - fragments_at} left"
        )
    fragments: list[memoryview] = []
    start = fragments_at
    for size in sizes:
        fragments.append(data[start : start + size])
        start += size
    types = bytes(data[types_at : types_at + packing])
    return Block2019(source, version, event_id, types, tuple(fragments)), end
