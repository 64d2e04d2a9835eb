"""Names of event files, and the pieces that they consist of (no I/O)."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hltnode.daemon.common.vocabulary import EventStream, QuarantineReason

PART_SUFFIX = ".mdf.part"
FINAL_SUFFIX = ".mdf"
# A copy of a .part file without the events that go to quarantine, while it is written.
NEW_SUFFIX = ".mdf.new"


class FileKey(NamedTuple):
    """One event file; `prefix` names the node and the session that began it."""

    prefix: str
    run: int
    stream: EventStream
    number: int

    @property
    def stem(self) -> str:
        """The name without suffix."""
        return f"{self.prefix}_{self.run:010d}_{self.stream}_{self.number:05d}"

    @property
    def part(self) -> str:
        """The name while the content can still change."""
        return self.stem + PART_SUFFIX

    @property
    def new(self) -> str:
        """The name of the copy that replaces the .part file."""
        return self.stem + NEW_SUFFIX

    @property
    def final(self) -> str:
        """The name of the finished file."""
        return self.stem + FINAL_SUFFIX


def files_of(node: str, names: list[str], suffix: str) -> list[FileKey]:
    """The event files of a node, from any session, among `names`; only those with this suffix."""
    streams = "|".join(EventStream)
    # A session name has no underscore. Otherwise node "a" would claim the files of node "a_b".
    pattern = re.compile(rf"({re.escape(node)}_[^_]+)_(\d{{10,}})_({streams})_(\d{{5,}}){re.escape(suffix)}")
    matches = filter(None, map(pattern.fullmatch, names))
    return [FileKey(m[1], int(m[2]), EventStream(m[3]), int(m[4])) for m in matches]


class Row(NamedTuple):
    """The events of one MEP in a piece. `gone` says why they leave the file; None: they stay."""

    mep: int
    records: int
    bytes: int
    gone: QuarantineReason | None = None


@dataclass(slots=True)
class Piece:
    """Consecutive MDF records of a file that were written together: first byte, CRC32C, and the rows of their MEPs."""

    begin: int
    crc: int
    rows: list[Row]

    @property
    def end(self) -> int:
        """The first byte after the last record."""
        return self.begin + sum(row.bytes for row in self.rows)

    @property
    def kept(self) -> bool:
        """Whether at least one of its events stays in the file."""
        return any(row.gone is None for row in self.rows)


@dataclass(slots=True)
class Extent:
    """Bytes of a file that stay (reason None) or go to quarantine for one reason; `events` is 0 if not known."""

    begin: int
    end: int
    reason: QuarantineReason | None
    events: int = 0


@dataclass(slots=True)
class FileState:
    """A file without its final name, as the journal describes it: its pieces in file order."""

    pieces: list[Piece] = field(default_factory=list)
    finished: bool = False
    """The journal says that the file has its final name or is about to get it."""
    last_mep: int = -1
    """The largest MEP id in the file."""

    def add(self, piece: Piece) -> None:
        """Append a piece."""
        self.pieces.append(piece)
        self.last_mep = max(self.last_mep, *(row.mep for row in piece.rows))

    @property
    def end(self) -> int:
        """The first byte after the last piece."""
        return self.pieces[-1].end if self.pieces else 0

    def rows(self) -> list[Row]:
        """The rows whose events stay in the file."""
        return [row for piece in self.pieces for row in piece.rows if row.gone is None]

    def extents(self, size: int) -> list[Extent]:
        """Divide the `size` bytes of the .part file by destination. Bytes outside all pieces were not acknowledged."""
        extents: list[Extent] = []

        def add(end: int, reason: QuarantineReason | None, events: int) -> None:
            begin = extents[-1].end if extents else 0
            end = min(end, size)
            if end <= begin:
                return
            if extents and extents[-1].reason is reason:
                extents[-1].end = end
                extents[-1].events += events
            else:
                extents.append(Extent(begin, end, reason, events))

        for piece in sorted(self.pieces, key=lambda piece: piece.begin):
            add(piece.begin, QuarantineReason.NOT_ACKNOWLEDGED, 0)
            at = piece.begin
            for row in piece.rows:
                at += row.bytes
                add(at, row.gone, row.records)
        add(size, QuarantineReason.NOT_ACKNOWLEDGED, 0)
        return extents
