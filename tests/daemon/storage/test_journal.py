"""The open journal: content after a kill, rewriting, and started batches."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from hltnode.daemon.storage.journal import Journal
from hltnode.daemon.storage.journal_content import JournalContent
from hltnode.daemon.storage.journal_format import Record, encode_record, scan_records
from hltnode.daemon.storage.output_directory import OutputError
from tests.daemon.storage.sessions import JOURNAL, RUN, Session, events_of


def content_of(directory: Path) -> JournalContent:
    """The journal as a reader decodes it."""
    content = JournalContent()
    scan = scan_records((directory / JOURNAL).read_bytes())
    assert not scan.damage
    for record in scan.records:
        content.apply(record)
    return content


def state_of(content: JournalContent) -> str:
    return json.dumps(list(content.records("node_a")))


def test_a_journal_read_from_disk_equals_the_journal_in_memory(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", max_file_events=4)
    session.store.supervise(8)
    session.store.name_input(RUN, "f00d")
    session.store.journal.begin_batch(RUN, [(0, 9)])
    for mep in range(9):
        session.batch(mep)
        session.batch(mep, run=8)
    session.store.revoke(8, [(2, 4), (7, 7)])
    session.store.confirm(8, 6)
    content = session.store.journal.content
    read = content_of(tmp_path)
    assert read.done() == content.done()
    assert read.inputs() == {RUN: "f00d"}
    assert {key: state.pieces for key, state in read.files.items() if not state.finished} == {
        key: state.pieces for key, state in content.files.items()
    }
    session.store.journal.compact()
    assert state_of(content_of(tmp_path)) == state_of(content)
    assert content_of(tmp_path).inputs() == {RUN: "f00d"}
    session.kill()


def test_the_largest_mep_that_was_begun_is_kept_over_kills_and_rewriting(tmp_path: Path) -> None:
    """Also if it was computed before the kill and is in no batch: its decision may have left."""
    session = Session(tmp_path, "a")
    assert session.store.journal.begun_below(RUN) == 0
    for meps in ([(0, 1), (4, 4)], [(2, 2)]):
        session.store.journal.begin_batch(RUN, meps)
        session.store.journal.end_batch(RUN, meps)
    session.batch(0)
    assert session.store.journal.begun_below(RUN) == 5
    session.kill()
    again = Session(tmp_path, "b")
    assert again.store.journal.begun_below(RUN) == 5
    again.store.journal.compact()
    again.kill()
    assert content_of(tmp_path).begun_below(RUN) == 5
    assert content_of(tmp_path).begun_below(RUN + 1) == 0


def test_reserved_ids_are_not_interrupted_after_a_kill(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    session.store.journal.reserve(RUN, 256)
    assert session.store.journal.begun_below(RUN) == 256
    session.kill()
    again = Session(tmp_path, "b")
    assert again.store.journal.begun_below(RUN) == 256
    assert again.store.journal.interrupted(RUN) == {}
    again.kill()


def test_a_mep_on_which_a_session_ended_was_begun_also_in_a_journal_of_an_earlier_version() -> None:
    """Such a version rewrote a journal without `begun_below`."""
    content = JournalContent()
    content.apply({"run": RUN, "done": [[0, 3]], "finished_below": 0, "supervised": False, "tck": 1})
    assert content.begun_below(RUN) == 0
    content.apply({"run": RUN, "interrupted": [[5, 1], [6, 2]]})
    content.apply({"run": RUN, "interrupted": [[4, 1]]})
    assert content.begun_below(RUN) == 7


def test_a_journal_that_has_grown_is_rewritten_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.storage.journal.COMPACT_BYTES", 2000)
    session = Session(tmp_path, "a", max_file_events=20)
    for mep in range(200):
        session.batch(mep)
    assert (tmp_path / JOURNAL).stat().st_size < 8000
    session.kill()
    again = Session(tmp_path, "b")
    assert again.done() == [(0, 199)]
    assert again.end() == events_of(range(200))


def test_a_rewrite_that_fails_leaves_the_old_journal_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.storage.journal.COMPACT_BYTES", 500)
    session = Session(tmp_path, "a")

    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        for mep in range(50):
            session.batch(mep)
        with pytest.raises(OutputError, match="No space left"):
            session.store.journal.compact()
    assert session.store.problem is None
    assert content_of(tmp_path).done()[RUN] == ((0, 49),)
    grown = (tmp_path / JOURNAL).stat().st_size
    session.store.journal.compact()
    assert (tmp_path / JOURNAL).stat().st_size < grown
    session.kill()
    assert Session(tmp_path, "b").end() == events_of(range(50))


def test_a_record_that_the_disk_refuses_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(tmp_path, "a")
    session.batch(0)
    real = os.write

    def half(descriptor: int, data: bytes) -> int:
        if JOURNAL not in os.readlink(f"/proc/self/fd/{descriptor}"):
            return real(descriptor, data)
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[: len(data) - 15])

    before = (tmp_path / JOURNAL).read_bytes()
    session.append(1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(OutputError, match="No space left"):
            session.store.commit(RUN, [(1, 1)])
        assert (tmp_path / JOURNAL).read_bytes() == before
        patch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "")))
        with pytest.raises(OutputError, match="No space left"):
            session.store.commit(RUN, [(1, 1)])
    session.store.commit(RUN, [(1, 1)])
    session.kill()
    again = Session(tmp_path, "b")
    assert again.done() == [(0, 1)]
    assert again.end() == events_of([0, 1])


def test_below_the_floor_the_acknowledged_meps_are_one_range(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    for mep in range(0, 20, 2):
        session.batch(mep)
    session.store.journal.content.acknowledged_below(RUN, 15)
    session.store.journal.compact()
    assert content_of(tmp_path).done()[RUN] == ((0, 14), (16, 16), (18, 18))
    session.kill()


def test_meps_that_were_computed_when_a_session_ended_are_counted_until_they_are_finished(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.store.journal.begin_batch(RUN, [(0, 3)])
    first.batch(0, 1)
    first.kill()
    second = Session(tmp_path, "b")
    assert second.store.journal.interrupted(RUN) == {2: 1, 3: 1}
    second.store.journal.begin_batch(RUN, [(2, 2), (9, 9)])
    second.store.journal.compact()
    second.kill()
    third = Session(tmp_path, "c")
    assert third.store.journal.interrupted(RUN) == {2: 2, 3: 1, 9: 1}
    assert third.store.journal.interrupted(8) == {}
    third.batch(2, 3)
    assert third.store.journal.interrupted(RUN) == {9: 1}
    third.kill()
    fourth = Session(tmp_path, "d")
    assert fourth.store.journal.interrupted(RUN) == {9: 1}
    fourth.store.end_run(RUN)
    assert fourth.store.journal.interrupted(RUN) == {}
    fourth.end()


def test_a_batch_begins_while_a_grown_journal_is_forced_and_its_record_is_in_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.storage.journal.COMPACT_BYTES", 500)
    session = Session(tmp_path, "a")
    journal: Journal = session.store.journal
    real = os.fsync
    begun: list[tuple[int, bool]] = []

    def force(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".new"):
            mep = 1000 + len(begun)
            thread = threading.Thread(target=journal.begin_batch, args=(RUN, [(mep, mep)]), daemon=True)
            thread.start()
            thread.join(10.0)
            begun.append((mep, thread.is_alive()))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", force)
        for mep in range(50):
            session.batch(mep)
    assert len(begun) > 1
    assert not any(waited for _, waited in begun)
    assert state_of(content_of(tmp_path)) == state_of(journal.content)
    session.kill()
    again = Session(tmp_path, "b")
    assert again.store.journal.interrupted(RUN) == {mep: 1 for mep, _ in begun}
    assert again.done() == [(0, 49)]
    again.kill()


def test_batches_may_begin_in_another_thread_while_the_journal_is_written(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", max_file_events=10)
    journal: Journal = session.store.journal

    def begin() -> None:
        for mep in range(300):
            journal.begin_batch(8, [(mep, mep)])

    thread = threading.Thread(target=begin)
    thread.start()
    for mep in range(100):
        session.batch(mep)
        if mep % 10 == 0:
            journal.compact()
    thread.join()
    session.kill()
    again = Session(tmp_path, "b")
    assert again.store.journal.interrupted(8) == dict.fromkeys(range(300), 1)
    assert again.done() == [(0, 99)]
    assert again.counters.journal_damage == 0
    again.kill()


def test_a_record_of_another_version_is_reported_and_skipped(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    session.batch(0)
    session.kill()
    no_range: Record = {"run": 7, "batch": [[1]], "pieces": []}
    unknown: list[Record] = [{"batch": 7}, {"run": "x", "begin": []}, {"finished": [1]}, no_range, {}]
    with (tmp_path / JOURNAL).open("ab") as journal:
        journal.write(b"".join(map(encode_record, unknown)))
    again = Session(tmp_path, "b")
    assert again.counters.journal_damage == len(unknown)
    assert again.done() == [(0, 0)]
    assert (tmp_path / "quarantine" / JOURNAL).exists()
    again.kill()
