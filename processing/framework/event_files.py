"""Files of events: MDF (plain or gzip), Run-3 MEP and 2019 MEP, recognised by their first bytes, memory-mapped."""

import gzip
import mmap
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from hltnode.protocol.errors import MdfError, MepError, ProtocolError, RejectReason
from hltnode.protocol.raw_data.mdf import DATA_TYPE_MEP, GENERIC_HEADER, check_record_size, is_mdf, iter_records
from hltnode.protocol.raw_data.mep import HEADER_SIZE as MEP_HEADER_SIZE
from hltnode.protocol.raw_data.mep import MAGIC as MEP_MAGIC
from hltnode.protocol.raw_data.mep import Mep, announced_size, iter_meps
from hltnode.protocol.raw_data.mep2019 import parse_mep2019
from hltnode.protocol.raw_data.raw_bank import RawBank

GZIP_MAGIC = b"\x1f\x8b"
MAX_UNPACKED_RECORD = 64 << 20
"""Maximum size of a record of a gzip file in bytes; it may be much larger than the file."""


class EventFileError(RuntimeError):
    """A file cannot be read; the message gives its name, the fault and the place."""


def read_events(path: Path, begin: int = 0) -> Iterator[list[RawBank]]:
    """The raw banks of each event of one file; payloads are views of the mapped file.

    begin: start of an MDF record or a Run-3 MEP in bytes, 0 for other files.

    Raises EventFileError.
    """
    content = _mapped(path)
    try:
        yield from _unpacked_events(path) if _is_gzip(content) else _events_of(content[begin:])
    except ProtocolError as error:
        behind = f" (behind byte {begin})" if begin else ""
        raise EventFileError(f"{path}: {error}{behind}") from error


def event_counts(path: Path) -> Iterator[tuple[int, int]]:
    """The start in bytes and the number of events of each part of a file.

    Parts are MDF records (only sizes are read) and Run-3 MEPs; any other file is one part. Raises EventFileError.
    """
    content = _mapped(path)
    try:
        if _is_gzip(content):
            yield 0, sum(1 for _ in _unpacked_events(path))
        elif _is_run3_mep(content):
            at = 0
            for mep in iter_meps(content):
                yield at, mep.n_events
                at += announced_size(content[at:], "MEP")
        elif not is_mdf(content[: GENERIC_HEADER.size]):
            yield 0, sum(1 for _ in _events_of(content))
        else:
            at = 0
            while at < len(content):
                yield at, 1
                at += check_record_size(content[at:], f"MDF record at byte {at}")
    except ProtocolError as error:
        raise EventFileError(f"{path}: {error}") from error


def refuse_pipe(path: Path) -> None:
    """Raise EventFileError if the path is not a regular file.

    Opening a pipe would wait for a writer, and files are mapped or read more than once.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise EventFileError(f"{path}: neither a file nor a folder: write its events to a file first")


def _mapped(path: Path) -> memoryview:
    try:
        refuse_pipe(path)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise EventFileError(f"{path}: the file is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise EventFileError(f"{path}: {error.strerror}") from error


def _is_gzip(content: memoryview) -> bool:
    return content[: len(GZIP_MAGIC)] == GZIP_MAGIC


def _is_run3_mep(content: memoryview) -> bool:
    return len(content) >= GENERIC_HEADER.size and struct.unpack_from("<H", content)[0] == MEP_MAGIC


def read_meps(path: Path) -> Iterator[Mep]:
    """The Run-3 MEPs of a file, each a copy in memory that does not depend on the file.

    Raises EventFileError.
    """
    at = 0
    try:
        with path.open("rb") as file:
            while head := file.read(MEP_HEADER_SIZE):
                where = f"MEP at byte {at}"
                size = announced_size(head, where)
                mep = bytearray(head)
                mep += file.read(size - MEP_HEADER_SIZE)
                if len(mep) < size:
                    raise MepError(RejectReason.TRUNCATED, f"{where}: {size} bytes announced, {len(mep)} are left")
                yield Mep.parse(mep)
                at += size
    except ProtocolError as error:
        raise EventFileError(f"{path}: {error}") from error
    except OSError as error:
        raise EventFileError(f"{path}: {error.strerror}") from error


def read_all_events(paths: Iterable[Path]) -> Iterator[list[RawBank]]:
    """The events of several files, in order. Raises EventFileError."""
    for path in paths:
        yield from read_events(path)


def _unpacked_events(path: Path) -> Iterator[list[RawBank]]:
    """The events of a gzip-compressed MDF file, each in its own memory."""
    at = 0
    try:
        with gzip.open(path) as file:
            while head := file.read(GENERIC_HEADER.size):
                where = f"MDF record at byte {at} of the unpacked file"
                if not is_mdf(head):
                    raise MdfError(RejectReason.MALFORMED, f"{where}: a gzip file must contain MDF")
                size = struct.unpack_from("<I", head)[0]
                if size > MAX_UNPACKED_RECORD:
                    raise MdfError(RejectReason.BAD_SIZE, f"{where}: {size} bytes exceed the limit of a record")
                record = head + file.read(max(size - len(head), 0))
                try:
                    yield next(iter_records(record)).banks()
                except MdfError as error:
                    raise MdfError(error.reason, f"{where}: {error}") from error
                at += len(record)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise EventFileError(f"{path}: damaged gzip file after {at} unpacked bytes: {error}") from error


def _events_of(content: memoryview) -> Iterator[list[RawBank]]:
    if len(content) < GENERIC_HEADER.size:
        raise MdfError(RejectReason.TRUNCATED, f"{len(content)} bytes are less than any header")
    if _is_run3_mep(content):
        for mep in iter_meps(content):
            yield from mep.events()
    elif GENERIC_HEADER.unpack_from(content)[6] == DATA_TYPE_MEP:
        yield from parse_mep2019(content).events()
    else:
        for record in iter_records(content):
            yield record.banks()
