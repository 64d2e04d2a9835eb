"""The raw banks of many events as one table: compiled code reads and packs them without an object per bank."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol._native import bank_objects, index_banks, index_objects
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import RawBank, iter_banks

BANK_ROW = np.dtype([("type", "u1"), ("version", "u1"), ("source", "<u2"), ("size", "<u4"), ("place", "<u8")])
"""A bank. `size` of its payload in bytes; `place`: number of its buffer << 40 | offset of the payload in bytes."""
_OFFSET_BITS = 40


class EventTable(Sequence[list[RawBank]]):
    """Events in order, each with its raw banks; event i has the rows begins[i] ... ends[i] - 1.

    Args:
        buffers: bytes that the payloads lie in; the table keeps them.
        rows: BANK_ROW[banks].
        begins, ends: u64[events].

    As a sequence it makes the raw banks of one event, whose payloads are views of the buffers.
    """

    __slots__ = ("begins", "buffers", "ends", "rows")

    def __init__(
        self,
        buffers: tuple[memoryview, ...],
        rows: NDArray[np.void],
        begins: NDArray[np.uint64],
        ends: NDArray[np.uint64],
    ) -> None:
        self.buffers = buffers
        self.rows = rows
        self.begins = begins
        self.ends = ends

    @classmethod
    def of_bytes(cls, data: memoryview, begins: Sequence[int], ends: Sequence[int]) -> Self:
        """Events whose raw banks are the bytes begins[i] ... ends[i] - 1. Raises BankError for a damaged event."""
        rows, row_ends = index_banks(data, begins, ends)
        if len(row_ends) < len(begins):
            list(iter_banks(data[begins[len(row_ends)] : ends[len(row_ends)]]))
            raise ValueError(f"event {len(row_ends)} lies outside the data of {len(data)} bytes")
        return cls((data,), np.frombuffer(rows, BANK_ROW), *_ranges(row_ends))

    @classmethod
    def of_events(cls, events: Sequence[Sequence[RawBank]]) -> Self:
        """Events with given banks, whose payloads are copied. Raises ValueError for a bank that does not fit."""
        data, rows, row_ends = index_objects(events)
        return cls((memoryview(data),), np.frombuffer(rows, BANK_ROW), *_ranges(row_ends))

    @classmethod
    def of_mfps(cls, mfps: Sequence[Mfp]) -> Self:
        """The events of a MEP; the MFPs agree in their events."""
        present = np.array([mfp.types for mfp in mfps]).T != NO_BANK
        rows = np.empty(present.shape, BANK_ROW)
        rows["type"] = np.array([mfp.types for mfp in mfps]).T
        rows["version"] = [mfp.version for mfp in mfps]
        rows["source"] = [mfp.source_id for mfp in mfps]
        rows["size"] = np.array([mfp.sizes for mfp in mfps]).T
        rows["place"] = np.array([mfp.offsets for mfp in mfps]).T
        rows["place"] |= np.arange(len(mfps), dtype=np.uint64) << np.uint64(_OFFSET_BITS)
        ends = np.cumsum(present.sum(axis=1))
        return cls(tuple(mfp.view for mfp in mfps), rows[present], *_ranges(ends))

    @classmethod
    def joined(cls, tables: Sequence["EventTable"]) -> "EventTable":
        """The events of several tables in order, in the same buffers."""
        if len(tables) == 1:
            return tables[0]
        if not tables:
            return cls.of_events([])
        buffers: list[memoryview] = []
        counts = np.concatenate([table.ends - table.begins for table in tables])
        rows = np.empty(int(counts.sum()), BANK_ROW)
        at = 0
        for table in tables:
            # Consecutive parts of one file share its buffer.
            is_same = bool(buffers) and len(table.buffers) == 1 and buffers[-1] is table.buffers[0]
            first = len(buffers) - is_same
            own = table.banks_in_order()
            # Copies of bytes are ten times as fast as those of structured elements.
            rows.view(np.uint8)[at * BANK_ROW.itemsize : (at + len(own)) * BANK_ROW.itemsize] = own.view(np.uint8)
            if first:
                rows["place"][at : at + len(own)] += np.uint64(first << _OFFSET_BITS)
            at += len(own)
            buffers += table.buffers[is_same:]
        return cls(tuple(buffers), rows, *_ranges(np.cumsum(counts)))

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, event: int) -> list[RawBank]: ...
    @overload
    def __getitem__(self, event: slice) -> "EventTable": ...
    def __getitem__(self, event: int | slice) -> "list[RawBank] | EventTable":
        if isinstance(event, slice):
            begin, end, _ = event.indices(len(self))
            return self._part(begin, max(begin, end))
        begin, end = int(self.begins[event]), int(self.ends[event])
        return bank_objects(self.packed_rows, begin, end, self.buffers, RawBank)

    def __iter__(self) -> Iterator[list[RawBank]]:
        packed = self.packed_rows
        for begin, end in zip(self.begins.tolist(), self.ends.tolist(), strict=True):
            yield bank_objects(packed, begin, end, self.buffers, RawBank)

    @property
    def packed_rows(self) -> NDArray[np.uint8]:
        """The rows as bytes, for compiled code."""
        return self.rows.view(np.uint8)

    def _part(self, begin: int, end: int) -> "EventTable":
        begins, ends = self.begins[begin:end], self.ends[begin:end]
        if len(begins) and (begins[1:] == ends[:-1]).all():
            first = begins[0]
            return EventTable(self.buffers, self.rows[int(first) : int(ends[-1])], begins - first, ends - first)
        return EventTable(self.buffers, self.rows, begins, ends)

    def select(self, events: NDArray[np.intp]) -> "EventTable":
        """These events in this order; one may occur several times."""
        return EventTable(self.buffers, self.rows, self.begins[events], self.ends[events])

    def repeated(self, times: int) -> "EventTable":
        """All events, `times` times."""
        return self.select(np.tile(np.arange(len(self)), times))

    def banks(self) -> tuple[NDArray[np.intp], NDArray[np.void]]:
        """Event and row of each bank, by event: intp[banks], BANK_ROW[banks]."""
        return np.repeat(np.arange(len(self)), (self.ends - self.begins).astype(np.intp)), self.banks_in_order()

    def banks_in_order(self) -> NDArray[np.void]:
        """The row of each bank, by event: BANK_ROW[banks]."""
        if not len(self):
            return self.rows[:0]
        if (self.begins[1:] == self.ends[:-1]).all():
            return self.rows[int(self.begins[0]) : int(self.ends[-1])]
        counts = (self.ends - self.begins).astype(np.intp)
        first = np.repeat(self.begins.astype(np.intp) - (np.cumsum(counts) - counts), counts)
        return self.rows[first + np.arange(len(first))]

    @property
    def held_bytes(self) -> int:
        """Memory of the events in bytes, payloads and rows."""
        rows = self.banks_in_order()
        return int(rows["size"].sum(dtype=np.int64)) + rows.nbytes

    def of_types(self, types: Iterable[int]) -> "EventTable":
        """The same events with only the banks of these types."""
        event, rows = self.banks()
        chosen = type_table(types)[rows["type"]]
        counts = np.bincount(event[chosen], minlength=len(self))
        return EventTable(self.buffers, rows[chosen], *_ranges(np.cumsum(counts)))

    def nbytes(self) -> NDArray[np.int64]:
        """i64[events]: memory of each event in bytes, payloads and rows."""
        event, rows = self.banks()
        sizes = np.bincount(event, weights=rows["size"] + np.float64(BANK_ROW.itemsize), minlength=len(self))
        return sizes.astype(np.int64)


def type_table(types: Iterable[int]) -> NDArray[np.bool_]:
    """bool[256]: true for these bank types."""
    found = np.zeros(256, np.bool_)
    found[list(types)] = True
    return found


def grouped(tables: Iterable[EventTable], n: int, max_bytes: int) -> Iterator[EventTable]:
    """The same events in tables of `n`; a table ends earlier with the event whose memory reaches `max_bytes`."""
    waiting: list[EventTable] = []
    n_events = n_bytes = 0
    for table in tables:
        if not len(table):
            continue
        whole = table.held_bytes
        if n_events + len(table) <= n and n_bytes + whole < max_bytes:
            # The usual case, without the sizes of single events.
            waiting.append(table)
            n_events += len(table)
            n_bytes += whole
            if n_events == n:
                yield EventTable.joined(waiting)
                waiting, n_events, n_bytes = [], 0, 0
            continue
        sizes = table.nbytes()
        at = 0
        while at < len(table):
            upto = n_bytes + np.cumsum(sizes[at : at + n - n_events])
            most = int(np.searchsorted(upto, max_bytes)) + 1
            taken = min(most, len(upto))
            waiting.append(table[at : at + taken])
            n_events += taken
            n_bytes = int(upto[taken - 1])
            at += taken
            if n_events == n or n_bytes >= max_bytes:
                yield EventTable.joined(waiting)
                waiting, n_events, n_bytes = [], 0, 0
    if waiting:
        yield EventTable.joined(waiting)


def as_tables(events: Iterable[EventTable | Sequence[RawBank]]) -> Iterator[EventTable]:
    """Tables of events that are tables already or, one by one, lists of banks."""
    for each in events:
        yield each if isinstance(each, EventTable) else EventTable.of_events([each])


def _ranges(ends: Sequence[int] | NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Begins and ends of consecutive events."""
    of_events = np.array(ends, np.uint64)
    return np.concatenate([np.zeros(min(1, len(of_events)), np.uint64), of_events[:-1]]), of_events
