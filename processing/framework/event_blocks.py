"""Files of events as blocks of a fixed number of events and bounded memory, across file boundaries, for feeders.

Compiled code finds uncompressed MDF records, also in gzip files, without Python per record. Other files are read event
by event (event_files.py), and their events written as such records.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.event_files import (
    Damaged,
    EventFileError,
    damaged_event,
    damaged_rest,
    raise_damage,
    read_events,
    refuse_pipe,
)
from hltnode.protocol._native import find_events
from hltnode.protocol.errors import MdfError, ProtocolError
from hltnode.protocol.packing import EventBlock
from hltnode.protocol.raw_data.file_format import FileFormat, format_of
from hltnode.protocol.raw_data.mdf import (
    GENERIC_HEADER_SIZE,
    HEADER_SIZE,
    RUN_OFFSET,
    check_record_size,
    encode_record,
    uncompressed,
)
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

_READ_BYTES = 8 << 20
MAX_BLOCK_BYTES = 128 << 20
"""Bytes of the unpacked records of a block. Files are no measure of it: zlib packs up to 1,000 times smaller."""


class TooLargeError(ValueError):
    """Events do not fit in the memory that the caller allows."""


def read_event_blocks(
    paths: Iterable[Path],
    n_events: int,
    *,
    verify_checksum: bool,
    max_bytes: int = MAX_BLOCK_BYTES,
    damaged: Damaged = raise_damage,
) -> Iterator[EventBlock]:
    """The events of several files, n_events at a time; the last block may have fewer.

    A block ends earlier with the event that reaches `max_bytes` unpacked bytes. A block is valid until the next one is
    requested.

    verify_checksum: also check the raw banks. damaged: called with the fault of each damaged event; reading goes on
    behind it, or with the next file if the place of the next event is unknown.

    Raises EventFileError, which names the file and the place.
    """
    blocks = _Blocks(n_events, verify_checksum, max_bytes, damaged)
    for path in paths:
        try:
            yield from blocks.of_file(path)
        except ProtocolError as error:
            raise EventFileError(f"{path}: {error}") from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            damaged(EventFileError(f"{path}: damaged gzip file after {blocks.n_of_file} whole events: {error}"))
            blocks.drop_rest()
        except OSError as error:
            raise EventFileError(f"{path}: {error.strerror}") from error
    yield from blocks.rest()


def read_whole(
    paths: Iterable[Path], *, verify_checksum: bool, max_bytes: int, damaged: Damaged = raise_damage
) -> EventBlock | None:
    """All events of several files at once, None if there are none.

    Raises EventFileError, and TooLargeError if the events unpack to `max_bytes` or more.
    """
    blocks = read_event_blocks(
        paths, sys.maxsize, verify_checksum=verify_checksum, max_bytes=max_bytes, damaged=damaged
    )
    whole = next(blocks, None)
    if whole is not None and int(whole.ends[-1]) >= max_bytes:
        raise TooLargeError(f"the events unpack to {max_bytes} bytes or more")
    return whole


def runs_in_headers(block: EventBlock) -> NDArray[np.uint32]:
    """The run in the MDF header of each event of a block of files, u32[events]; 0 for a record without a run."""
    data = np.frombuffer(block.data, np.uint8)
    at = block.begins.astype(np.int64)[:, None] + (RUN_OFFSET - HEADER_SIZE + np.arange(4))
    runs: NDArray[np.uint32] = data[at].copy().view("<u4")[:, 0]
    return runs


def join_blocks(blocks: Sequence[EventBlock]) -> EventBlock:
    """One block with the events of one or more blocks."""
    if len(blocks) == 1:
        return blocks[0]
    offsets = np.cumsum([0, *(len(block.data) for block in blocks)], dtype=np.uint64)
    return EventBlock(
        np.concatenate([np.frombuffer(block.data, np.uint8) for block in blocks]).data,
        np.concatenate([block.begins + offset for block, offset in zip(blocks, offsets, strict=False)]),
        np.concatenate([block.ends + offset for block, offset in zip(blocks, offsets, strict=False)]),
    )


def blocks_of(whole: EventBlock, passes: Iterable[object], n_events: int) -> Iterator[EventBlock]:
    """Blocks of n_events from events in memory, for a number of passes; the last block may have fewer.

    A block ends earlier with the event that reaches MAX_BLOCK_BYTES.
    """
    sizes = whole.ends - whole.begins
    waiting = np.empty(0, np.intp)

    def next_block() -> EventBlock:
        nonlocal waiting
        n = 1 + int(np.searchsorted(np.cumsum(sizes[waiting[:n_events]]), MAX_BLOCK_BYTES))
        block = whole.select(waiting[: min(n, n_events)])
        waiting = waiting[len(block) :]
        return block

    for _ in passes:
        waiting = np.concatenate((waiting, np.arange(len(whole))))
        while len(waiting) >= n_events:
            yield next_block()
    while len(waiting):
        yield next_block()


def event_blocks(events: Iterable[list[RawBank]], n_events: int) -> Iterator[EventBlock]:
    """The same for generated events."""
    blocks = _Blocks(n_events, verify_checksum=False, max_bytes=MAX_BLOCK_BYTES)
    for banks in events:
        yield from blocks.of_event(banks)
    yield from blocks.rest()


class _Blocks:
    """MDF records in a reused buffer: the found records, and the bytes after them."""

    def __init__(self, n_events: int, verify_checksum: bool, max_bytes: int, damaged: Damaged = raise_damage) -> None:
        self._damaged = damaged
        self._path = Path()
        self._n_events = n_events
        self._max_bytes = max_bytes
        self._verify = verify_checksum
        self._buffer = np.empty(2 * _READ_BYTES, np.uint8)
        self._filled = 0
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._origin = 0
        """Buffer offset of the first byte of the current file, which may have left the buffer."""
        self._is_lost = False
        """True if the place of the next record of the current file is unknown."""
        self.n_of_file = 0
        """Number of whole records found in the current file, damaged ones included."""

    def of_file(self, path: Path) -> Iterator[EventBlock]:
        refuse_pipe(path)
        self._path = path
        with path.open("rb", buffering=0) as file:
            head = file.read(GENERIC_HEADER_SIZE)
            file.seek(0)
            kind = format_of(head)
            if kind is FileFormat.GZIP:
                with gzip.open(file) as unpacked:
                    yield from self._of_mdf(unpacked)
                return
            if kind is FileFormat.MDF:
                yield from self._of_mdf(file)
                return
        for banks in read_events(path, damaged=self._damaged):
            yield from self.of_event(banks)

    def of_event(self, banks: list[RawBank]) -> Iterator[EventBlock]:
        self._append(encode_record(encode_banks(banks), run=0, checksum=False))
        yield from self._find()

    def rest(self) -> Iterator[EventBlock]:
        if self._begins:
            yield self._block()

    def _of_mdf(self, file: io.FileIO | gzip.GzipFile) -> Iterator[EventBlock]:
        self._origin = self._filled
        self.n_of_file = 0
        self._is_lost = False
        # Read a gzip file in pieces: if it is truncated, all events before the cut are found.
        read = file.readinto1 if isinstance(file, gzip.GzipFile) else file.readinto
        while not self._is_lost:
            self._make_room(_READ_BYTES)
            n_read = read(self._buffer.data[self._filled : self._filled + _READ_BYTES])
            if not n_read:
                break
            self._filled += n_read
            yield from self._find()
        if self._rest_at < self._filled:
            try:
                check_record_size(self._bytes[self._rest_at :], self._where)
            except MdfError as error:
                self._damaged(damaged_rest(self._path, error, self.n_of_file))
            self.drop_rest()

    def drop_rest(self) -> None:
        """Drop the bytes after the found records."""
        self._filled = self._rest_at

    @property
    def _bytes(self) -> memoryview:
        return self._buffer.data[: self._filled]

    @property
    def _rest_at(self) -> int:
        """End of the found records."""
        return self._ends[-1] if self._ends else 0

    @property
    def _where(self) -> str:
        return f"MDF record at byte {self._rest_at - self._origin}"

    def _append(self, record: bytes) -> None:
        self._make_room(len(record))
        self._buffer[self._filled : self._filled + len(record)] = np.frombuffer(record, np.uint8)
        self._filled += len(record)

    def _make_room(self, n_bytes: int) -> None:
        if self._filled + n_bytes > len(self._buffer):
            larger = np.empty(max(2 * len(self._buffer), self._filled + n_bytes), np.uint8)
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger

    def _find(self) -> Iterator[EventBlock]:
        """Find whole records; yields full blocks."""
        while self._rest_at < self._filled:
            n_wanted = self._n_events - len(self._begins)
            begins, ends, is_cut_off = find_events(self._bytes, self._rest_at, n_wanted, self._verify)
            self._begins += begins
            self._ends += ends
            self.n_of_file += len(begins)
            if len(self._begins) == self._n_events or self._rest_at >= self._max_bytes:
                yield self._block()
                self._drop_found()
            elif is_cut_off or self._rest_at == self._filled:
                return
            else:
                self._rewrite_record()

    def _rewrite_record(self) -> None:
        """Write a compressed record uncompressed; report and drop one that is damaged or of another kind."""
        at = self._rest_at
        rest = self._bytes[at:]
        try:
            size = check_record_size(rest, self._where)
        except MdfError as error:
            self._damaged(damaged_rest(self._path, error, self.n_of_file))
            self._is_lost = True
            self.drop_rest()
            return
        plain = b""
        try:
            plain = uncompressed(rest[:size], self._where, verify_checksum=self._verify)
        except MdfError as error:
            self._damaged(damaged_event(self._path, error, self.n_of_file))
            self.n_of_file += 1
        following = bytes(rest[size:])
        self._filled = at
        self._append(plain + following)
        self._origin += len(plain) - size

    def _block(self) -> EventBlock:
        return EventBlock(
            self._bytes[: self._rest_at], np.array(self._begins, np.uint64), np.array(self._ends, np.uint64)
        )

    def _drop_found(self) -> None:
        end = self._rest_at
        self._buffer[: self._filled - end] = self._buffer[end : self._filled]
        self._filled -= end
        self._origin -= end
        self._begins, self._ends = [], []
