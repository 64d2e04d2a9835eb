"""What a journal says: which MEPs are finished, and where their events lie in files that can still change.

No I/O and no clock. Everything follows from the records, in their order, by `apply`; `records` are the fewest records
from which the same content follows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hltnode.daemon.common.vocabulary import EventStream, QuarantineReason
from hltnode.daemon.storage.event_files import FileKey, FileState, Piece, Row
from hltnode.daemon.storage.journal_format import Record
from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges

Ranges = Sequence[tuple[int, int]]
"""(first, last) ids of MEPs, last included."""
Item = TypeVar("Item")
# Ranges or ids in one record: damage costs one record, so records stay small.
PER_RECORD = 256


@dataclass(slots=True)
class Revocation:
    """What a revocation found: the events that do not stay in the files, and the MEPs that no file gives back."""

    events: int = 0
    out_of_reach: MepRanges = field(default_factory=MepRanges)


@dataclass(slots=True)
class Loss:
    """What the files do not hold although the journal says so.

    `meps` are not finished any more, of each run; `incomplete` stay finished, because others of their events are in a
    finished file and would be doubled.
    """

    events: int = 0
    meps: dict[int, Ranges] = field(default_factory=dict)
    incomplete: dict[int, Ranges] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    """One run that has not ended."""

    done: MepRanges = field(default_factory=MepRanges)
    supervised: bool = False
    tck: int = 0
    """Key of the trigger configuration that decides on its events; 0: none has been computed."""
    finished_below: int = 0
    """One more than the largest MEP in a finished file."""
    split: set[int] = field(default_factory=set)
    """MEPs with events in a finished file and in one that can change."""
    computing: MepRanges = field(default_factory=MepRanges)
    """What this session computes."""
    interrupted: dict[int, int] = field(default_factory=dict)


class JournalContent:
    """The content of a journal; empty, until records are applied."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self.files: dict[FileKey, FileState] = {}
        """Files that may not have their final name yet."""
        self.sessions: dict[str, str] = {}
        """Sessions that did not end in order, with the boot of the machine in which they began."""

    def apply(self, record: Record) -> None:
        """Apply one record.

        Raises LookupError, TypeError or ValueError: it is none that this version writes.
        """
        match record:
            case {"session": str(prefix), "boot": str(boot)}:
                self.begin_session(prefix, boot)
            case {"closed": str(prefix)}:
                self.sessions.pop(prefix, None)
            case {"run": int(run), "batch": list(meps), "pieces": list(rows)}:
                pieces = [(_key(key), _piece(piece)) for key, *piece in rows]
                self.add_batch(run, _ranges(meps), pieces, supervised=bool(record.get("supervised")))
            case {"file": list(key), "piece": list(row)}:
                self._add_piece(_key(key), _piece(row))
            case {"finished": list(key)}:
                self.finish(_key(key))
            case {"copied": list(key), "to": list(to)}:
                self.copy(_key(key), _key(to))
            case {"run": int(run), "revoked": list(meps)}:
                self.revoke(run, _ranges(meps))
            case {"run": int(run), "begin": list(meps)}:
                self.begin_batch(run, _ranges(meps), int(record.get("tck", 0)))
            case {"run": int(run), "end": list(meps)}:
                self.end_batch(run, _ranges(meps))
            case {"run": int(run), "done": list(meps), "finished_below": int(below), "supervised": bool(supervised)}:
                _add_all(self._run(run).done, _ranges(meps))
                self._run(run).finished_below = below
                self._run(run).supervised = supervised
                self._run(run).tck = int(record.get("tck", 0))
            case {"run": int(run), "split": list(meps)}:
                self._run(run).split.update(int(mep) for mep in meps)
            case {"run": int(run), "interrupted": list(rows)}:
                self._run(run).interrupted.update((int(mep), int(times)) for mep, times in rows)
            case {"over": int(run)}:
                self.end_run(run)
            case _:
                raise ValueError(f"unknown record of the journal with {sorted(record)}")

    def records(self, prefix: str) -> Iterator[Record]:
        """Records from which this content follows; of sessions `prefix` is named alone, the present one."""
        for number, run in self._runs.items():
            for ranges in _chunks(run.done.ranges()) or [[]]:
                values = {"finished_below": run.finished_below, "supervised": run.supervised, "tck": run.tck}
                yield {"run": number, "done": ranges, **values}
        for key, state in self.files.items():
            for piece in state.pieces:
                yield {"file": key, "piece": piece_row(piece)}
            if state.finished:
                yield {"finished": key}
        for number, run in self._runs.items():
            yield from ({"run": number, "split": meps} for meps in _chunks(sorted(run.split)))
            yield from ({"run": number, "interrupted": rows} for rows in _chunks(sorted(run.interrupted.items())))
        yield {"session": prefix, "boot": self.sessions[prefix]}
        for number, run in self._runs.items():
            yield from ({"run": number, "begin": ranges, "tck": run.tck} for ranges in _chunks(run.computing.ranges()))

    def done(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Finished MEPs of each run that has not ended, as (first, last) ranges."""
        return {number: tuple(run.done.ranges()) for number, run in self._runs.items()}

    def of_other_tck(self, tck: int) -> dict[int, int]:
        """Runs of which events are finished that another trigger configuration has decided on, with its key."""
        return {number: run.tck for number, run in self._runs.items() if run.done.ranges() and run.tck not in (0, tck)}

    def finished_of(self, run: int, meps: frozenset[int]) -> frozenset[int]:
        """Those of some MEPs of a run that are finished."""
        state = self._runs.get(run)
        return frozenset() if state is None else frozenset(mep for mep in meps if mep in state.done)

    def supervised(self, run: int) -> bool:
        """Whether a feeder may revoke MEPs of a run."""
        return run in self._runs and self._runs[run].supervised

    def supervise(self, run: int) -> None:
        """A feeder may revoke MEPs of a run from now on."""
        self._run(run).supervised = True

    def interrupted(self, run: int) -> dict[int, int]:
        """MEPs of a run, not finished, with the number of sessions that ended while they were being computed."""
        return dict(self._runs[run].interrupted) if run in self._runs else {}

    def begin_session(self, prefix: str, boot: str) -> None:
        """A session begins; what an earlier one was computing at its end was interrupted."""
        for run in self._runs.values():
            for first, last in run.computing.ranges():
                for mep in range(first, last + 1):
                    run.interrupted[mep] = run.interrupted.get(mep, 0) + 1
            run.computing = MepRanges()
        self.sessions[prefix] = boot

    def begin_batch(self, run: int, meps: Ranges, tck: int) -> None:
        """The session computes these MEPs now, with the trigger configuration of this key."""
        state = self._run(run)
        if not state.done.ranges():
            state.tck = tck
        _add_all(state.computing, meps)

    def end_batch(self, run: int, meps: Ranges) -> None:
        """The session computes these MEPs no more."""
        if run in self._runs:
            for first, last in meps:
                self._runs[run].computing.discard(first, last)

    def add_batch(
        self, number: int, meps: Ranges, pieces: Iterable[tuple[FileKey, Piece]], *, supervised: bool
    ) -> None:
        """MEPs of a run are finished, and their events are in these pieces of files."""
        run = self._run(number)
        run.supervised |= supervised
        for first, last in meps:
            run.done.add(first, last)
            run.computing.discard(first, last)
        if run.interrupted:
            finished = MepRanges(meps)
            run.interrupted = {mep: times for mep, times in run.interrupted.items() if mep not in finished}
        for key, piece in pieces:
            self._add_piece(key, piece)

    def copy(self, key: FileKey, to: FileKey) -> None:
        """What was in a file is now at the same places of another one."""
        if key in self.files:
            self.files[to] = self.files.pop(key)

    def finish(self, key: FileKey) -> None:
        """A file is about to get its final name."""
        state = self.files.get(key)
        if state is None or state.finished:
            return
        state.finished = True
        run = self._runs.get(key.run)
        if run is not None:
            meps = {row.mep for row in state.rows()}
            run.finished_below = max([run.finished_below, *(mep + 1 for mep in meps)])
            run.split = (run.split | meps) & {row.mep for other in self._open_files(key.run) for row in other.rows()}

    def end_run(self, run: int) -> None:
        """Nothing of a run will be sent again."""
        self._runs.pop(run, None)

    def acknowledged_below(self, run: int, below: int) -> None:
        """Every MEP below an id is acknowledged: merges their ranges into one."""
        if below > 0 and run in self._runs:
            self._runs[run].done.add(0, below - 1)

    def forget(self, key: FileKey) -> None:
        """A file has its final name, or nothing is left of it: nothing about it can change any more."""
        self.files.pop(key, None)

    def revoke(self, run: int, meps: Ranges) -> Revocation:
        """Take MEPs back: they are not finished any more, and their events do not stay in files that can change.

        Those of which events are in a finished file are out of reach; they stay finished. Where only the id can tell (a
        file that is finished is forgotten), a MEP counts as out of reach: in a supervised run none that may be revoked
        is as old as those in finished files.
        """
        result = Revocation()
        state = self._runs.get(run)
        if state is None:
            return result
        taken = self._take_out(run, MepRanges(meps), QuarantineReason.REVOKED)
        result.events = sum(row.records for row in taken)
        for span in meps:
            for first, last in state.done.overlap(span[0], min(span[1], state.finished_below - 1)):
                result.out_of_reach.add(first, last)
        for row in taken:
            if row.mep not in state.split:
                result.out_of_reach.discard(row.mep)
        for first, last in meps:
            state.done.discard(first, last)
        _add_all(state.done, result.out_of_reach.ranges())
        return result

    def lose(self, lost: Mapping[FileKey, Callable[[Piece], bool]]) -> Loss:
        """Files do not hold these pieces: their MEPs are not finished any more, and none of their events stays."""
        loss = Loss()
        meps: dict[int, set[int]] = {}
        for key, is_lost in lost.items():
            for piece in filter(is_lost, self.files[key].pieces):
                for i, row in enumerate(piece.rows):
                    if row.gone is None:
                        loss.events += row.records
                        meps.setdefault(key.run, set()).add(row.mep)
                        piece.rows[i] = row._replace(gone=QuarantineReason.DAMAGED)
        for number, of_run in meps.items():
            run = self._run(number)
            if of_run & run.split:
                loss.incomplete[number] = as_ranges(of_run & run.split)
            if of_run - run.split:
                loss.meps[number] = as_ranges(of_run - run.split)
            self._take_out(number, of_run - run.split, QuarantineReason.DAMAGED)
            for first, last in loss.meps.get(number, ()):
                run.done.discard(first, last)
        return loss

    def _run(self, number: int) -> _Run:
        return self._runs.setdefault(number, _Run())

    def _add_piece(self, key: FileKey, piece: Piece) -> None:
        self.files.setdefault(key, FileState()).add(piece)

    def _open_files(self, run: int) -> list[FileState]:
        return [state for key, state in self.files.items() if key.run == run and not state.finished]

    def _take_out(self, run: int, meps: MepRanges | set[int], reason: QuarantineReason) -> list[Row]:
        """The rows of some MEPs that stayed in files until now."""
        taken = []
        for state in self._open_files(run):
            for piece in state.pieces:
                for i, row in enumerate(piece.rows):
                    if row.gone is None and row.mep in meps:
                        taken.append(row)
                        piece.rows[i] = row._replace(gone=reason)
        return taken


def piece_row(piece: Piece) -> list[object]:
    """A piece as the journal holds it: begin, CRC32C, and for each MEP id, records, bytes and what takes it out."""
    rows = [row if row.gone else row[:3] for row in piece.rows]
    return [piece.begin, piece.crc, rows]


def _key(key: list[object]) -> FileKey:
    prefix, run, stream, number = key
    if not (isinstance(prefix, str) and isinstance(run, int) and isinstance(number, int)):
        raise TypeError(f"no file of events: {key}")
    return FileKey(prefix, run, EventStream(str(stream)), number)


def _piece(row: list[object]) -> Piece:
    match row:
        case [int(begin), int(crc), list(rows)] if rows:
            return Piece(begin, crc, [_row(*values) for values in rows])
    raise ValueError(f"no piece of a file: {row}")


def _row(mep: int, records: int, nbytes: int, gone: str | None = None) -> Row:
    return Row(int(mep), int(records), int(nbytes), QuarantineReason(gone) if gone else None)


def _ranges(meps: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in meps]


def _add_all(ledger: MepRanges, meps: Ranges) -> None:
    for first, last in meps:
        ledger.add(first, last)


def _chunks(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[at : at + PER_RECORD] for at in range(0, len(items), PER_RECORD)]
