"""The content of a journal: the finished MEPs, and the places of their events in files that can still change.

No I/O and no clock. `apply` builds the content from the records in order; `records` yields a minimal set of records
that builds the same content.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hltnode.daemon.common.vocabulary import EventStream, QuarantineReason
from hltnode.daemon.storage.event_files import FileKey, FileState, Piece, Row
from hltnode.daemon.storage.journal_format import Record
from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges

Ranges = Sequence[tuple[int, int]]
"""Inclusive ranges (first, last) of MEP ids."""
Item = TypeVar("Item")
# Largest number of ranges or ids in one record. Damage costs whole records, so records stay small.
PER_RECORD = 256


@dataclass(slots=True)
class Revocation:
    """Result of a revocation: number of events that leave their files, and MEPs that are already in finished files."""

    events: int = 0
    out_of_reach: MepRanges = field(default_factory=MepRanges)


@dataclass(slots=True)
class Loss:
    """Events that the journal names but no file holds.

    `meps` (by run) are no longer finished and may be sent again. `incomplete` (by run) stay finished: some of their
    events are in a finished file and would be stored twice.
    """

    events: int = 0
    meps: dict[int, Ranges] = field(default_factory=dict)
    incomplete: dict[int, Ranges] = field(default_factory=dict)


@dataclass(slots=True)
class Stored:
    """Finished files of one stream of a run, in all sessions, with their events and bytes."""

    files: int = 0
    events: int = 0
    bytes: int = 0

    def add(self, rows: Sequence[Row]) -> None:
        """Add a file with these rows."""
        self.files += 1
        self.events += sum(row.records for row in rows)
        self.bytes += sum(row.bytes for row in rows)


@dataclass(slots=True)
class _Run:
    """One run that has not ended."""

    done: MepRanges = field(default_factory=MepRanges)
    supervised: bool = False
    input: str = ""
    """The input that its feeders name; empty: unknown."""
    tck: int = 0
    """TCK that decides on its events; 0: no event has been computed."""
    finished_below: int = 0
    """One more than the largest MEP id in a finished file."""
    split: set[int] = field(default_factory=set)
    """MEPs with events both in a finished file and in a file that can still change."""
    computing: MepRanges = field(default_factory=MepRanges)
    """MEPs that this session is computing."""
    begun_below: int = 0
    """One more than the largest MEP id that a back end has got."""
    interrupted: dict[int, int] = field(default_factory=dict)
    stored: dict[EventStream, Stored] = field(default_factory=dict)
    """What the forgotten files hold."""


class JournalContent:
    """The content of a journal; initially empty."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self.files: dict[FileKey, FileState] = {}
        """Files that may not have their final names yet."""
        self.sessions: dict[str, str] = {}
        """Sessions without a clean end -> boot identifier at their start."""

    def apply(self, record: Record) -> None:
        """Apply one record.

        Raises LookupError, TypeError or ValueError if this version writes no such record.
        """
        match record:
            case {"session": str(prefix), "boot": str(boot)}:
                self.begin_session(prefix, boot)
            case {"closed": str(prefix)}:
                self.sessions.pop(prefix, None)
            case {"run": int(run), "batch": list(meps), "pieces": list(rows)}:
                pieces = [(_key(key), _piece(piece)) for key, *piece in rows]
                self.add_batch(run, _ranges(meps), pieces, supervised=bool(record.get("supervised")))
                self.name_input(run, str(record.get("input", "")))
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
                self._run(run).begun_below = int(record.get("begun_below", 0))
                self._run(run).stored = {
                    EventStream(stream): Stored(int(files), int(events), int(nbytes))
                    for stream, (files, events, nbytes) in dict(record.get("stored", {})).items()
                }
                self.name_input(run, str(record.get("input", "")))
            case {"run": int(run), "split": list(meps)}:
                self._run(run).split.update(int(mep) for mep in meps)
            case {"run": int(run), "interrupted": list(rows)}:
                state = self._run(run)
                state.interrupted.update((int(mep), int(times)) for mep, times in rows)
                # Earlier versions rewrote a journal without `begun_below`.
                state.begun_below = max([state.begun_below, *(mep + 1 for mep in state.interrupted)])
            case {"over": int(run)}:
                self.end_run(run)
            case _:
                raise ValueError(f"unknown record of the journal with {sorted(record)}")

    def records(self, prefix: str) -> Iterator[Record]:
        """Records that build this content; `prefix` is the current session, the only one named."""
        for number, run in self._runs.items():
            for ranges in _chunks(run.done.ranges()) or [[]]:
                values: Record = {"finished_below": run.finished_below, "supervised": run.supervised, "tck": run.tck}
                if run.input:
                    values["input"] = run.input
                if run.begun_below:
                    values["begun_below"] = run.begun_below
                if run.stored:
                    values["stored"] = {stream: [of.files, of.events, of.bytes] for stream, of in run.stored.items()}
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
        """Finished MEPs of each run that has not ended, as inclusive ranges."""
        return {number: tuple(run.done.ranges()) for number, run in self._runs.items()}

    def keys(self) -> dict[int, int]:
        """The TCK of each run with finished events."""
        return {number: run.tck for number, run in self._runs.items() if run.done.ranges() and run.tck}

    def of_other_tck(self, tck: int) -> dict[int, int]:
        """Runs with finished events that another trigger configuration decided, and its TCK."""
        return {number: run.tck for number, run in self._runs.items() if run.done.ranges() and run.tck not in (0, tck)}

    def finished_of(self, run: int, meps: frozenset[int]) -> frozenset[int]:
        """The subset of `meps` that is finished."""
        state = self._runs.get(run)
        return frozenset() if state is None else frozenset(mep for mep in meps if mep in state.done)

    def supervised(self, run: int) -> bool:
        """Whether a feeder may revoke MEPs of a run."""
        return run in self._runs and self._runs[run].supervised

    def supervise(self, run: int) -> None:
        """Allow feeders to revoke MEPs of a run."""
        self._run(run).supervised = True

    def inputs(self) -> dict[int, str]:
        """The input of each run that has a known one."""
        return {number: run.input for number, run in self._runs.items() if run.input}

    def name_input(self, run: int, name: str) -> None:
        """Note the input that the feeders of a run name; an empty name changes nothing."""
        if name:
            self._run(run).input = name

    def interrupted(self, run: int) -> dict[int, int]:
        """MEP id -> number of sessions that ended while the MEP was being computed; unfinished MEPs only."""
        return dict(self._runs[run].interrupted) if run in self._runs else {}

    def begun_below(self, run: int) -> int:
        """One more than the largest MEP id of a run that a back end has got in this session or an earlier one."""
        return self._runs[run].begun_below if run in self._runs else 0

    def begin_session(self, prefix: str, boot: str) -> None:
        """Begin a session. MEPs that the previous session was computing at its end count as interrupted."""
        for run in self._runs.values():
            for first, last in run.computing.ranges():
                for mep in range(first, last + 1):
                    run.interrupted[mep] = run.interrupted.get(mep, 0) + 1
            run.computing = MepRanges()
        self.sessions[prefix] = boot

    def begin_batch(self, run: int, meps: Ranges, tck: int) -> None:
        """The session starts to compute these MEPs with the trigger configuration `tck`."""
        state = self._run(run)
        if not state.done.ranges():
            state.tck = tck
        _add_all(state.computing, meps)
        state.begun_below = max(state.begun_below, 1 + max(last for _, last in meps))

    def end_batch(self, run: int, meps: Ranges) -> None:
        """The session has computed these MEPs."""
        if run in self._runs:
            for first, last in meps:
                self._runs[run].computing.discard(first, last)

    def add_batch(
        self, number: int, meps: Ranges, pieces: Iterable[tuple[FileKey, Piece]], *, supervised: bool
    ) -> None:
        """Mark MEPs of a run finished; `pieces` hold their events."""
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
        """File `to` replaces `key`, with the same content at the same offsets."""
        if key in self.files:
            self.files[to] = self.files.pop(key)

    def finish(self, key: FileKey) -> None:
        """Mark a file finished: it is about to get its final name."""
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
        """Forget a run whose MEPs will not be sent again."""
        self._runs.pop(run, None)

    def acknowledged_below(self, run: int, below: int) -> None:
        """Merge the ranges below an id into one: all of these MEPs are acknowledged."""
        if below > 0 and run in self._runs:
            self._runs[run].done.add(0, below - 1)

    def forget(self, key: FileKey) -> None:
        """Forget a file that has its final name or no content; the totals of its run keep its events."""
        state = self.files.pop(key, None)
        run = self._runs.get(key.run)
        if state is not None and run is not None and (rows := state.rows()):
            run.stored.setdefault(key.stream, Stored()).add(rows)

    def stored(self, run: int) -> dict[EventStream, Stored]:
        """The finished files of a run that has not ended, in all sessions, by stream."""
        of_run = self._runs.get(run)
        return {} if of_run is None else {stream: replace(of) for stream, of in of_run.stored.items()}

    def revoke(self, run: int, meps: Ranges) -> Revocation:
        """Revoke MEPs: they lose their state "finished", and their events leave the files that can still change.

        MEPs with events in a finished file are out of reach and stay finished. Finished files are forgotten, so only
        the id can tell: every MEP below `finished_below` counts as out of reach. In a supervised run, no MEP that may
        be revoked is that old.
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
        """Mark pieces as lost: their MEPs lose their state "finished", and their other events leave the files."""
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
        """Mark the rows of some MEPs as leaving their files; returns the rows that stayed until now."""
        taken = []
        for state in self._open_files(run):
            for piece in state.pieces:
                for i, row in enumerate(piece.rows):
                    if row.gone is None and row.mep in meps:
                        taken.append(row)
                        piece.rows[i] = row._replace(gone=reason)
        return taken


def piece_row(piece: Piece) -> list[object]:
    """A piece as a journal row: begin, CRC32C, and per MEP its id, records, bytes and the reason why it leaves."""
    rows = [row if row.gone else row[:3] for row in piece.rows]
    return [piece.begin, piece.crc, rows]


def _key(key: list[object]) -> FileKey:
    prefix, run, stream, number = key
    if not (isinstance(prefix, str) and isinstance(run, int) and isinstance(number, int)):
        raise TypeError(f"not an event file: {key}")
    return FileKey(prefix, run, EventStream(str(stream)), number)


def _piece(row: list[object]) -> Piece:
    match row:
        case [int(begin), int(crc), list(rows)] if rows:
            return Piece(begin, crc, [_row(*values) for values in rows])
    raise ValueError(f"not a piece of an event file: {row}")


def _row(mep: int, records: int, nbytes: int, gone: str | None = None) -> Row:
    return Row(int(mep), int(records), int(nbytes), QuarantineReason(gone) if gone else None)


def _ranges(meps: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in meps]


def _add_all(ledger: MepRanges, meps: Ranges) -> None:
    for first, last in meps:
        ledger.add(first, last)


def _chunks(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[at : at + PER_RECORD] for at in range(0, len(items), PER_RECORD)]
