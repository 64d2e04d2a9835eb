"""Run-3 multi-event packets: the MFPs of all sources for one range of events (docs/formats/mep.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from hltnode.protocol._native import join_mfps
from hltnode.protocol._native import mep_places as find_places
from hltnode.protocol.buffers import Buffer, byte_view, padded
from hltnode.protocol.errors import MepError, RejectReason
from hltnode.protocol.raw_data.mfp import Mfp, events_of_mfps
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR, subdetector_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = 0xCEFA
HEADER_SIZE = 8
WORD = 4

_HEADER = struct.Struct("<HHI")
_MFP_PACKET_SIZE_AT = 4
_MFP_PACKET_SIZE = struct.Struct("<I")


class Mep:
    """A checked view of one MEP.

    Attributes: `mfps` by ascending source id, ODIN first if there is one; `event_id` of the first event; `n_events`;
    `offsets` of the MFPs from the MEP's start, in bytes.
    """

    __slots__ = ("event_id", "mfps", "n_events", "offsets")

    def __init__(self, mfps: tuple[Mfp, ...], offsets: tuple[int, ...]) -> None:
        """Use :meth:`parse`; the arguments must be consistent."""
        self.mfps = mfps
        self.offsets = offsets
        self.event_id = mfps[0].event_id
        self.n_events = mfps[0].n_fragments

    @classmethod
    def parse(cls, buffer: Buffer) -> Mep:
        """Check that `buffer` is exactly one MEP and give a view of it.

        Checks magic, sizes, every MFP, that MFPs do not overlap, and the event builder's rules (see _check_rules).
        Raises MepError, or MfpError for a damaged MFP.
        """
        view = byte_view(buffer)
        size = announced_size(view, "MEP")
        if size != len(view):
            reason = RejectReason.TRUNCATED if size > len(view) else RejectReason.BAD_SIZE
            raise MepError(reason, f"MEP: {size} bytes announced, got {len(view)}")
        n = int(_HEADER.unpack_from(view)[1])
        if n == 0:
            raise MepError(RejectReason.BAD_SIZE, "MEP: no MFPs")
        offsets_at = HEADER_SIZE + padded(2 * n, 2)
        data_at = offsets_at + WORD * n
        if data_at > size:
            raise MepError(RejectReason.BAD_SIZE, f"MEP: arrays of {n} MFPs exceed its {size} bytes")
        sources = struct.unpack_from(f"<{n}H", view, HEADER_SIZE)
        offsets = tuple(offset * WORD for offset in struct.unpack_from(f"<{n}I", view, offsets_at))
        mfps: list[Mfp] = []
        end = data_at
        for source, offset in zip(sources, offsets, strict=True):
            where = f"MEP: MFP of source {source} at byte {offset}"
            if offset < end or offset + WORD + _MFP_PACKET_SIZE_AT > size:
                raise MepError(
                    RejectReason.BAD_SIZE, f"{where}: expected between the end of the previous MFP, {end}, and {size}"
                )
            (packet_size,) = _MFP_PACKET_SIZE.unpack_from(view, offset + _MFP_PACKET_SIZE_AT)
            end = offset + packet_size
            if end > size:
                raise MepError(RejectReason.TRUNCATED, f"{where}: ends at byte {end}, the MEP at {size}")
            mfp = Mfp.parse(view[offset:end])
            if mfp.source_id != source:
                raise MepError(RejectReason.MISMATCH, f"{where}: the MFP names source {mfp.source_id}")
            mfps.append(mfp)
        _check_rules(mfps)
        return cls(tuple(mfps), offsets)

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The source ids, ascending."""
        return tuple(mfp.source_id for mfp in self.mfps)

    def events(self) -> list[list[RawBank]]:
        """The raw banks of each event, by source id."""
        return events_of_mfps(self.mfps)


def announced_size(head: Buffer, where: str) -> int:
    """The size in bytes of the MEP that begins with these bytes, 8 or more.

    Raises MepError, whose text starts with `where`.
    """
    if len(head) < HEADER_SIZE:
        raise MepError(RejectReason.TRUNCATED, f"{where}: header needs {HEADER_SIZE} bytes, {len(head)} are left")
    magic, _, words = _HEADER.unpack_from(head)
    if magic != MAGIC:
        raise MepError(RejectReason.BAD_MAGIC, f"{where}: magic 0x{MAGIC:04X} expected, 0x{magic:04X} found")
    size = int(words) * WORD
    if size < HEADER_SIZE:
        raise MepError(RejectReason.BAD_SIZE, f"{where}: size of {size} bytes is less than a header")
    return size


def _check_rules(mfps: Sequence[Mfp]) -> None:
    """Check that sources ascend without repeats, that ODIN occurs at most once, and that events agree."""
    first = mfps[0]
    for before, mfp in pairwise(mfps):
        if mfp.source_id == before.source_id:
            raise MepError(RejectReason.DUPLICATE, f"MEP: source {mfp.source_id} occurs twice")
        if mfp.source_id < before.source_id:
            raise MepError(RejectReason.MALFORMED, f"MEP: source {mfp.source_id} comes after source {before.source_id}")
        if subdetector_of(mfp.source_id) == ODIN_SUBDETECTOR:
            raise MepError(RejectReason.DUPLICATE, f"MEP: source {mfp.source_id} is a second ODIN")
        if (mfp.event_id, mfp.n_fragments) != (first.event_id, first.n_fragments):
            raise MepError(
                RejectReason.MISMATCH,
                f"MEP: source {mfp.source_id} has {mfp.n_fragments} events from {mfp.event_id}, "
                f"source {first.source_id} has {first.n_fragments} from {first.event_id}",
            )


def mep_places(buffer: Buffer) -> tuple[int, NDArray[np.int64]]:
    """Number of events and MFPs of exactly one MEP, checked as by Mep.parse, without Python per MFP.

    The MFPs are i64[n, 3]: source id, byte offset in the MEP, bytes. Raises MepError.
    """
    refusal, at_fault, _, n_events, places = find_places(buffer)
    if refusal:
        which = "" if at_fault < 0 else f" in MFP {at_fault}, counted from 0"
        raise MepError(RejectReason(refusal), f"MEP of {len(buffer)} bytes: {refusal}{which}")
    return n_events, places


def mep_of_slot(slot: Buffer, places: NDArray[np.int64]) -> bytes:
    """The MEP of checked MFPs in the memory of a slot, as `encode_mep` gives it, without Python per MFP.

    `places` are i64[n, 3]: source id, offset in the slot and bytes of each MFP, in any order. Raises ValueError for a
    place outside of the slot.
    """
    return join_mfps(slot, places)


def iter_meps(buffer: Buffer) -> Iterator[Mep]:
    """The consecutive MEPs in `buffer`. Raises MepError or MfpError at the first damaged one."""
    view = byte_view(buffer)
    at = 0
    while at < len(view):
        where = f"MEP at byte {at}"
        size = announced_size(view[at:], where)
        if at + size > len(view):
            raise MepError(RejectReason.TRUNCATED, f"{where}: {size} bytes announced, {len(view) - at} are left")
        yield Mep.parse(view[at : at + size])
        at += size


def encode_mep(mfps: Sequence[Buffer], *, align: int = 3) -> bytes:
    """One MEP of encoded MFPs in any order; each starts at a multiple of 2**align bytes (align >= 2).

    Raises MepError if the MFPs break the event builder's rules, MfpError if one is damaged.
    """
    if not 2 <= align <= 12:
        raise MepError(RejectReason.MALFORMED, f"MEP: alignment 2**{align} bytes, 2**2..2**12 expected")
    parsed = sorted((Mfp.parse(mfp) for mfp in mfps), key=lambda mfp: mfp.source_id)
    n = len(parsed)
    if not 1 <= n <= 0xFFFF:
        raise MepError(RejectReason.BAD_SIZE, f"MEP: {n} MFPs, 1..65535 expected")
    _check_rules(parsed)
    sources = struct.pack(f"<{n}H", *(mfp.source_id for mfp in parsed)).ljust(padded(2 * n, 2), b"\0")
    offsets: list[int] = []
    body: list[Buffer] = []
    end = HEADER_SIZE + len(sources) + WORD * n
    for mfp in parsed:
        start = padded(end, align)
        body.append(bytes(start - end))
        body.append(mfp.view)
        offsets.append(start // WORD)
        end = start + mfp.packet_size
    size = padded(end, 2)
    body.append(bytes(size - end))
    try:
        head = _HEADER.pack(MAGIC, n, size // WORD) + sources + struct.pack(f"<{n}I", *offsets)
    except struct.error as error:
        raise MepError(RejectReason.OVERSIZED, f"MEP of {size} bytes: {error}") from error
    return b"".join((head, *body))
