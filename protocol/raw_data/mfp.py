"""Multi-fragment packets: the fragments of one readout source for a range of events (docs/formats/mfp.md)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol._native import fragment_bytes
from hltnode.protocol.buffers import Buffer, byte_view, padded
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.raw_bank import RawBank

MAGIC = 0x40CE
HEADER_SIZE = 20
MAX_FRAGMENTS = 0xFFFF
# Fragments hold 32-bit words that are read in place, so a packing below 4 bytes is refused; 256 bytes exceeds every
# cache line and DMA burst.
MIN_ALIGN = 2
MAX_ALIGN = 8

_HEADER = struct.Struct("<HHIQHBB")
_EVENT_ID = struct.Struct("<Q")
_EVENT_ID_AT = 8
_U8 = np.dtype("<u1")
_U16 = np.dtype("<u2")
_LAST_EVENT_ID = 0xFFFF_FFFF_FFFF_FFFF
_PAD_MASKS = tuple(np.uint32((1 << align) - 1) for align in range(MAX_ALIGN + 1))
_KEEP_MASKS = tuple(~mask for mask in _PAD_MASKS)
_PADDING = tuple(bytes(length) for length in range(1 << MAX_ALIGN))


def data_offset(n_fragments: int) -> int:
    """Bytes from the start of an MFP to its first fragment: header, types and sizes, each array padded to 4 bytes."""
    return HEADER_SIZE + padded(n_fragments, 2) + padded(2 * n_fragments, 2)


class Mfp:
    """A checked view of one MFP; nothing is copied.

    Attributes: `source_id` u16, `event_id` u64 of fragment 0 (fragment i belongs to event_id + i), `n_fragments`,
    `align` (fragments are padded to 2**align bytes), `version` u8 of the banks, `packet_size` in bytes, `view` (the
    packet's bytes).
    """

    __slots__ = (
        "_offsets",
        "align",
        "event_id",
        "n_fragments",
        "packet_size",
        "source_id",
        "version",
        "view",
    )

    def __init__(self, view: memoryview, header: tuple[int, ...]) -> None:
        """Use :meth:`parse`; the arguments must be consistent."""
        _, self.n_fragments, self.packet_size, self.event_id, self.source_id, self.align, self.version = header
        self.view = view
        self._offsets: NDArray[np.uint32] | None = None

    @classmethod
    def parse(cls, buffer: Buffer) -> Mfp:
        """Check that `buffer` is exactly one MFP and give a view of it.

        Checks everything that a reader of fragments relies on: magic, packing, arrays inside the packet, padded
        fragments that add up to the packet size, empty absent banks, event ids that do not wrap. Raises MfpError.
        """
        view = byte_view(buffer)
        length = len(view)
        if length < HEADER_SIZE:
            raise MfpError(RejectReason.TRUNCATED, f"MFP: header needs {HEADER_SIZE} bytes, got {length}")
        header = _HEADER.unpack_from(view)
        magic, n, packet_size, event_id, source, align, _ = header
        if magic != MAGIC:
            raise MfpError(RejectReason.BAD_MAGIC, f"MFP: magic 0x{MAGIC:04X} expected, 0x{magic:04X} found")
        if packet_size != length:
            reason = RejectReason.TRUNCATED if packet_size > length else RejectReason.BAD_SIZE
            raise MfpError(reason, f"MFP of source {source}: packet of {packet_size} bytes announced, got {length}")
        if n == 0:
            raise MfpError(RejectReason.BAD_SIZE, f"MFP of source {source}: no fragments")
        if not MIN_ALIGN <= align <= MAX_ALIGN:
            raise MfpError(
                RejectReason.MALFORMED,
                f"MFP of source {source}: alignment 2**{align} bytes, 2**{MIN_ALIGN}..2**{MAX_ALIGN} expected",
            )
        data_at = data_offset(n)
        if data_at > packet_size:
            raise MfpError(
                RejectReason.BAD_SIZE, f"MFP of source {source}: arrays of {n} fragments exceed {packet_size} bytes"
            )
        if event_id > _LAST_EVENT_ID - (n - 1):
            raise MfpError(RejectReason.MALFORMED, f"MFP of source {source}: event ids from {event_id} overflow")
        size = fragment_bytes(view, n, align)
        if size < 0:
            raise MfpError(RejectReason.MALFORMED, f"MFP of source {source}: an absent bank has a size")
        if data_at + size != packet_size:
            raise MfpError(
                RejectReason.BAD_SIZE,
                f"MFP of source {source}: fragments end at byte {data_at + size}, packet at {packet_size}",
            )
        return cls(view, header)

    @property
    def sizes(self) -> NDArray[np.uint16]:
        """Bytes of each fragment without padding, u16[n_fragments]."""
        return np.frombuffer(self.view, _U16, self.n_fragments, HEADER_SIZE + padded(self.n_fragments, 2))

    @property
    def types(self) -> NDArray[np.uint8]:
        """Bank type of each fragment, u8[n_fragments]; NO_BANK if the event has none."""
        return np.frombuffer(self.view, _U8, self.n_fragments, HEADER_SIZE)

    @property
    def offsets(self) -> NDArray[np.uint32]:
        """Byte offset of each fragment from the start of the packet, u32[n_fragments]."""
        if self._offsets is None:
            ends = np.cumsum((self.sizes + _PAD_MASKS[self.align]) & _KEEP_MASKS[self.align], dtype=np.uint32)
            self._offsets = np.empty_like(ends)
            self._offsets[0] = 0
            self._offsets[1:] = ends[:-1]
            self._offsets += np.uint32(data_offset(self.n_fragments))
        return self._offsets

    def fragment(self, i: int) -> memoryview:
        """The bytes of fragment `i` (0 <= i < n_fragments), without padding."""
        start = int(self.offsets[i])
        return self.view[start : start + int(self.sizes[i])]

    def banks(self) -> list[RawBank | None]:
        """The raw bank of each event, None if the event has none."""
        view, version, source = self.view, self.version, self.source_id
        return [
            None if bank_type == NO_BANK else RawBank(bank_type, version, source, view[start : start + size])
            for bank_type, start, size in zip(
                self.types.tolist(), self.offsets.tolist(), self.sizes.tolist(), strict=True
            )
        ]


def encode_mfp(
    *,
    source_id: int,
    event_id: int,
    version: int,
    types: Sequence[int],
    fragments: Sequence[Buffer],
    align: int = 3,
) -> bytes:
    """One MFP of `fragments` (bytes without bank headers); the first belongs to event `event_id`.

    `types` holds one u8 per fragment; NO_BANK requires an empty fragment.  Raises MfpError for values that do not fit.
    """
    n = len(fragments)
    if not 1 <= n <= MAX_FRAGMENTS or len(types) != n:
        raise MfpError(
            RejectReason.BAD_SIZE, f"MFP of source {source_id}: {n} fragments and {len(types)} types, 1..65535 of each"
        )
    if not MIN_ALIGN <= align <= MAX_ALIGN:
        raise MfpError(RejectReason.MALFORMED, f"MFP of source {source_id}: alignment 2**{align} bytes is out of range")
    mask = (1 << align) - 1
    parts: list[Buffer] = [b"", b"", b""]
    sizes: list[int] = []
    for fragment in fragments:
        size = len(fragment)
        sizes.append(size)
        parts.append(fragment)
        if size & mask:
            parts.append(_PADDING[-size & mask])
    data_at = data_offset(n)
    try:
        parts[1] = bytes(types).ljust(padded(n, 2), b"\0")
        parts[2] = struct.pack(f"<{n}H", *sizes).ljust(padded(2 * n, 2), b"\0")
        packet_size = data_at + sum(sizes) + sum(-size & mask for size in sizes)
        parts[0] = _HEADER.pack(MAGIC, n, packet_size, event_id, source_id, align, version)
    except (struct.error, ValueError) as error:
        raise MfpError(RejectReason.OVERSIZED, f"MFP of source {source_id}, event {event_id}: {error}") from error
    return b"".join(parts)


def set_event_id(mfp: bytearray | memoryview, event_id: int) -> None:
    """Renumber the events of an encoded MFP from `event_id`. Raises MfpError if the id does not fit."""
    try:
        _EVENT_ID.pack_into(mfp, _EVENT_ID_AT, event_id)
    except struct.error as error:
        raise MfpError(RejectReason.MALFORMED, f"MFP: event id {event_id}: {error}") from error


def events_of_mfps(mfps: Sequence[Mfp]) -> list[list[RawBank]]:
    """The raw banks of each event of a MEP, in the order of `mfps`; source ids are those of the readout.

    Raises MfpError if the MFPs differ in their first event id or number of fragments.
    """
    if not mfps:
        return []
    first = mfps[0]
    for mfp in mfps:
        if (mfp.event_id, mfp.n_fragments) != (first.event_id, first.n_fragments):
            raise MfpError(
                RejectReason.MISMATCH,
                f"source {mfp.source_id} has {mfp.n_fragments} events from {mfp.event_id}, "
                f"source {first.source_id} has {first.n_fragments} from {first.event_id}",
            )
    columns = [mfp.banks() for mfp in mfps]
    return [[bank for bank in row if bank is not None] for row in zip(*columns, strict=True)]
