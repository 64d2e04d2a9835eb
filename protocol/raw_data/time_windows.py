"""Records of windows of time: the bank that describes one, and its hits (docs/formats/time-windows.md)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TYPE_CHECKING

from hltnode.protocol.errors import RejectReason, ReportError
from hltnode.protocol.raw_data.bank_types import TIME_WINDOW, TYPES_OF_TRIGGER
from hltnode.protocol.raw_data.raw_bank import RawBank

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_VERSION = 1
_HEADER = struct.Struct("<2IQ2q2Qq11I")
_MAX_TIME = (1 << 63) - 1


class WindowStatus(IntFlag):
    """Bits of the status of a record."""

    CUT_OFF = 1
    """The window reaches beyond the margin of its slice: hits may be missing."""
    CONTINUED = 2
    """The record continues the window of the record before."""
    CONTINUES = 4
    """The window goes on in the next record."""
    SOURCE_MISSING = 8
    """A source has no fragments in the slice."""
    NO_FRAGMENT = 16
    """A source has no hits for a sub-slice, but an error bank or none."""
    DAMAGED = 32
    """A fragment is not whole records, or a hit lies outside of its sub-slice: these are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeWindow:
    """A record of a window. Times are in ns since the start of the run; ends are excluded.

    run, slice, number: its id; number counts the records of its slice. lines: bits of the list of windows. n: number of
    windows that it is merged of. flags: flags of all its sub-slices. slice_start, slice_end: the slice without margins.
    sources: u16[n], source of each hit. times: i64[n]. hits: u8[n, bytes of one], the hits as their sources sent them;
    the time in them counts from the start of their sub-slice.
    """

    run: int
    slice: int
    number: int
    start_ns: int
    end_ns: int
    slice_start: int
    slice_end: int
    lines: int
    n: int
    status: WindowStatus
    flags: int
    sources: NDArray[np.uint16] = field(repr=False)
    times: NDArray[np.int64] = field(repr=False)
    hits: NDArray[np.uint8] = field(repr=False)

    @property
    def id(self) -> tuple[int, int, int]:
        """Run, slice and number; no other record has it."""
        return self.run, self.slice, self.number


def decode_window(banks: Sequence[RawBank]) -> TimeWindow | None:
    """The window of a record from its banks; None for a record of an event.

    Raises ReportError for a damaged description, and for banks that are not those that it describes.
    """
    import numpy as np

    found = [bank for bank in banks if bank.type == TIME_WINDOW]
    if not found:
        return None
    if len(found) > 1:
        raise ReportError(RejectReason.MALFORMED, f"time window: {len(found)} banks describe the record")
    run, number, slice_, start, end, slice_start, slice_end, first, *words = _checked(found[0])
    lines, n, status, flags, length, size, at, kind, numerator, denominator, n_sub_slices = words
    n_bytes, order = kind & 0xFF, ">" if kind & 0x100 else "<"
    n_banks = np.frombuffer(found[0].payload, "<u4", offset=_HEADER.size)
    data = [each for each in banks if each.type not in TYPES_OF_TRIGGER]
    if int(n_banks.sum(dtype=np.uint64)) != len(data) or any(len(each.payload) % size for each in data):
        raise ReportError(RejectReason.MALFORMED, f"time window: {len(data)} banks are not the ones that it describes")
    counts = [len(each.payload) // size for each in data]
    hits = np.frombuffer(b"".join(bytes(each.payload) for each in data), np.uint8).reshape(-1, size)
    ticks = np.ascontiguousarray(hits[:, at : at + n_bytes]).view(f"{order}u{n_bytes}")[:, 0].astype(np.uint64)
    starts = first + length * np.repeat(np.arange(n_sub_slices, dtype=np.int64), n_banks)
    return TimeWindow(
        run,
        slice_,
        number,
        start,
        end,
        slice_start,
        slice_end,
        lines,
        n,
        WindowStatus(status),
        flags,
        sources=np.repeat(np.array([each.source_id for each in data], np.uint16), counts),
        times=np.repeat(starts, counts) + (ticks * np.uint64(numerator) // np.uint64(denominator)).astype(np.int64),
        hits=hits,
    )


def window_extent(bank: RawBank) -> tuple[int, int, int, WindowStatus]:
    """Run, start and end in ns, and status of a window from the bank that describes it. Raises ReportError."""
    run, _, _, start, end, _, _, _, _, _, status, *_ = _checked(bank)
    return run, start, end, WindowStatus(status)


def _checked(bank: RawBank) -> tuple[int, ...]:
    """The numbers of the bank before its table. Raises ReportError."""
    if bank.version != WINDOW_VERSION:
        raise ReportError(RejectReason.BAD_VERSION, f"time window: version {bank.version}, {WINDOW_VERSION} expected")
    raw = memoryview(bank.payload)
    if len(raw) < _HEADER.size:
        raise ReportError(RejectReason.TRUNCATED, f"time window: a bank of {len(raw)} bytes")
    fields = _HEADER.unpack_from(raw)
    start, end, first = fields[3], fields[4], fields[7]
    length, size, at, kind, numerator, denominator, n_sub_slices = fields[12:]
    if len(raw) != _HEADER.size + 4 * n_sub_slices:
        raise ReportError(RejectReason.BAD_SIZE, f"time window: {len(raw)} bytes for {n_sub_slices} sub-slices")
    n_bytes = kind & 0xFF
    if n_bytes not in (2, 4) or kind > 0x1FF or at + n_bytes > size or not numerator or not denominator or not length:
        raise ReportError(RejectReason.MALFORMED, f"time window: a time at byte {at} of hits of {size} bytes")
    if not start < end or abs(first) > _MAX_TIME - length * n_sub_slices:
        raise ReportError(RejectReason.MALFORMED, f"time window: from {start} to {end} ns")
    return fields


def join_windows(windows: Iterable[TimeWindow]) -> list[TimeWindow]:
    """The windows of a run with those of neighbouring slices merged where they overlap, and those that were cut joined.

    Both have the hits of the time that they share, so one copy is left out. The result does not depend on the lengths
    of the slices. A merged window has the id of the first of its records.
    """
    joined: list[list[TimeWindow]] = []
    ends: list[int] = []
    for window in sorted(windows, key=lambda each: (each.run, each.start_ns, each.id)):
        continues = bool(window.status & WindowStatus.CONTINUED)
        before = joined[-1][0].run == window.run if joined else False
        if before and (window.start_ns < ends[-1] or (continues and window.start_ns == ends[-1])):
            joined[-1].append(window)
            ends[-1] = max(ends[-1], window.end_ns)
        else:
            joined.append([window])
            ends.append(window.end_ns)
    return [_joined(parts) if len(parts) > 1 else parts[0] for parts in joined]


def _joined(parts: Sequence[TimeWindow]) -> TimeWindow:
    import numpy as np

    first = parts[0]
    end = first.start_ns
    new = []
    for part in parts:
        new.append(part.times >= end)
        end = max(end, part.end_ns)
    lines = status = flags = n = 0
    for part in parts:
        lines |= part.lines
        flags |= part.flags
        status |= part.status & ~(WindowStatus.CONTINUED | WindowStatus.CONTINUES)
        # Records of a window that was cut have the number of all its windows each.
        n += 0 if part.status & WindowStatus.CONTINUED else part.n
    return TimeWindow(
        first.run,
        first.slice,
        first.number,
        first.start_ns,
        end,
        min(part.slice_start for part in parts),
        max(part.slice_end for part in parts),
        lines,
        n,
        WindowStatus(status),
        flags,
        sources=np.concatenate([part.sources[kept] for part, kept in zip(parts, new, strict=True)]),
        times=np.concatenate([part.times[kept] for part, kept in zip(parts, new, strict=True)]),
        hits=np.concatenate([part.hits[kept] for part, kept in zip(parts, new, strict=True)]),
    )
