"""The journal, and the recovery of files from it."""

from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy
from hltnode.daemon.monitoring.counters import WriterCounters
from hltnode.daemon.output.event_writer import EventWriter
from hltnode.daemon.output.journal import Journal, JournalContent, read_journal
from hltnode.daemon.output.recovery import recover_files, revoke_events
from hltnode.protocol.raw_data.mdf import encode_record, iter_records

RUN = 7


class Session:
    """One session of a node: a writer, its journal, and batches whose events carry the number of their MEP."""

    def __init__(self, directory: Path, name: str, *, max_file_events: int = 1000) -> None:
        self.directory = directory
        self.path = directory / "node.journal"
        self.history = read_journal(self.path)
        if self.history is not None:
            recover_files(directory, self.history)
        self.writer = EventWriter(
            directory,
            f"node_{name}",
            WriterCounters(),
            max_file_bytes=1 << 20,
            max_file_events=max_file_events,
            fsync=FsyncPolicy.FILE,
        )
        self.journal = Journal(self.path, f"node_{name}", FsyncPolicy.FILE, self.history)

    def batch(self, *meps: int, events: int = 3, note: bool = True) -> None:
        for mep in meps:
            for event in range(events):
                body = (mep * 100 + event).to_bytes(8, "little")
                self.writer.append(EventStream.ACCEPTED, RUN, encode_record(body, run=RUN, checksum=False))
        self.writer.flush()
        if note:
            rows = [(mep, {EventStream.ACCEPTED: events, EventStream.ERROR: 0}) for mep in meps]
            self.journal.append(RUN, rows, self.writer.positions())

    def die(self) -> None:
        """As with SIGKILL: descriptors are closed, nothing is finished."""
        self.writer.abandon()

    def revoke_events(self, *meps: int) -> set[int]:
        self.writer.finish_files()
        lost = revoke_events(self.directory, self.journal.content, RUN, set(meps))
        self.journal.compact()
        return lost

    def end(self) -> list[int]:
        self.writer.finish_files()
        self.journal.close()
        assert not list(self.directory.glob("*.part"))
        return kept(self.directory)


def kept(directory: Path) -> list[int]:
    """Numbers of the MEPs of all events in finished files."""
    return sorted(
        int.from_bytes(record.body[:8], "little") // 100
        for path in directory.glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


def done(content: JournalContent | None) -> list[tuple[int, int]]:
    assert content is not None
    return content.done[RUN].ranges() if RUN in content.done else []


def test_without_a_journal_there_is_no_history(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "node.journal") is None


@pytest.mark.parametrize("max_file_events", [1000, 4])
def test_events_after_the_last_line_are_cut_because_their_meps_are_sent_again(
    tmp_path: Path, max_file_events: int
) -> None:
    first = Session(tmp_path, "a", max_file_events=max_file_events)
    first.batch(0, 1)
    first.batch(2, 3, note=False)
    first.die()
    second = Session(tmp_path, "b")
    assert done(second.history) == [(0, 1)]
    second.batch(2, 3)
    assert second.end() == sorted([0, 1, 2, 3] * 3)


def test_a_session_killed_before_its_first_line_leaves_no_file(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(0, note=False)
    first.die()
    Session(tmp_path, "b")
    assert not list(tmp_path.glob("*.mdf*"))


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_line_that_was_being_written_counts_as_not_written(tmp_path: Path, cut: int) -> None:
    first = Session(tmp_path, "a")
    first.batch(0, 1)
    first.batch(2)
    first.die()
    raw = first.path.read_bytes()
    first.path.write_bytes(raw[:-cut])
    second = Session(tmp_path, "b")
    assert done(second.history) == [(0, 1)]
    assert second.end() == [0, 0, 0, 1, 1, 1]


def test_a_damaged_line_ends_the_journal(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(0)
    begin = len(first.path.read_bytes())
    first.batch(1)
    first.batch(2)
    first.die()
    raw = bytearray(first.path.read_bytes())
    raw[begin + 20] ^= 1
    first.path.write_bytes(raw)
    assert done(read_journal(first.path)) == [(0, 0)]


def test_history_is_kept_over_several_sessions_and_ends_with_the_run(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        session = Session(tmp_path, name)
        session.batch(number)
        session.die()
    last = Session(tmp_path, "d")
    assert done(last.history) == [(0, 2)]
    last.journal.run_ended(RUN)
    assert last.end() == sorted([0, 1, 2] * 3)
    assert done(read_journal(last.path)) == []


def test_below_the_floor_the_acknowledged_meps_are_one_range(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    for mep in range(0, 20, 2):
        session.batch(mep)
    session.journal.acknowledged_below(RUN, 15)
    session.journal.compact()
    assert done(read_journal(session.path)) == [(0, 14), (16, 16), (18, 18)]
    session.die()


@pytest.mark.parametrize("max_file_events", [1000, 4])
def test_revoked_meps_are_removed_from_the_files_of_this_and_of_a_killed_session(
    tmp_path: Path, max_file_events: int
) -> None:
    first = Session(tmp_path, "a", max_file_events=max_file_events)
    first.batch(0, 1, 2)
    first.batch(3, 4)
    first.die()
    second = Session(tmp_path, "b", max_file_events=max_file_events)
    second.batch(5, 6)
    assert second.revoke_events(1, 3, 6) == set()
    second.batch(7)
    assert second.revoke_events(4, 7) == set()
    assert done(read_journal(second.path)) == [(0, 0), (2, 2), (5, 5)]
    second.batch(3)
    second.die()
    third = Session(tmp_path, "c")
    assert third.end() == sorted([0, 2, 3, 5] * 3)


def test_events_in_a_file_that_was_collected_are_out_of_reach(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    session.batch(0)
    session.writer.finish_files()
    for path in tmp_path.glob("*.mdf"):
        path.unlink()
    assert session.revoke_events(0) == {0}
    session.die()


def test_a_journal_that_has_grown_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hltnode.daemon.output.journal.COMPACT_BYTES", 2000)
    monkeypatch.setattr("hltnode.daemon.output.journal.KEPT_BATCHES", 4)
    session = Session(tmp_path, "a")
    for mep in range(200):
        session.batch(mep, events=1)
    assert session.path.stat().st_size < 4000
    session.die()
    content = read_journal(session.path)
    assert done(content) == [(0, 199)]
    assert Session(tmp_path, "b").end() == list(range(200))
