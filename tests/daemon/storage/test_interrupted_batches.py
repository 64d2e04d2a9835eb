"""The journal on batches that were in computation at the end of their session."""

from pathlib import Path

from hltnode.daemon.storage.journal_content import JournalContent
from hltnode.daemon.storage.journal_format import Record
from tests.daemon.storage.sessions import RUN, Session


def test_a_run_with_finished_meps_keeps_the_trigger_configuration_of_the_first() -> None:
    content = JournalContent()
    records: list[Record] = [
        {"run": RUN, "begin": [[0, 1]], "tck": 5},
        {"run": RUN, "begin": [[0, 1]], "tck": 6},
        {"run": RUN, "batch": [[0, 1]], "pieces": []},
        {"run": RUN, "begin": [[2, 3]], "tck": 7},
        {"run": RUN + 1, "begin": [[0, 1]], "tck": 5},
    ]
    for record in records:
        content.apply(record)
    content.begin_session("n_s", "boot")
    again = JournalContent()
    for record in content.records("n_s"):
        again.apply(record)
    for known in (content, again):
        assert known.of_other_tck(7) == {RUN: 6}
        assert known.of_other_tck(6) == {}
        assert known.keys() == {RUN: 6}


def test_batches_after_a_change_of_the_key_are_recorded_with_the_new_one(tmp_path: Path) -> None:
    session = Session(tmp_path, "a")
    session.batch(0)
    session.store.journal.use_tck(77)
    session.store.journal.begin_batch(RUN + 1, [(0, 0)])
    session.batch(0, run=RUN + 1)
    session.kill()
    again = Session(tmp_path, "b")
    assert again.store.journal.content.keys() == {RUN + 1: 77}
    again.kill()


def test_a_mep_that_a_session_was_computing_at_its_end_is_counted_each_time(tmp_path: Path) -> None:
    for name, times in (("a", 0), ("b", 1), ("c", 2)):
        session = Session(tmp_path, name)
        assert session.store.journal.interrupted(RUN) == ({5: times, 6: times} if times else {})
        session.store.journal.begin_batch(RUN, [(5, 6)])
        session.kill()


def test_meps_computed_before_the_end_of_the_session_are_not_counted(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.store.journal.begin_batch(RUN, [(3, 4)])
    first.store.journal.begin_batch(RUN, [(5, 6)])
    first.store.journal.end_batch(RUN, [(3, 4)])
    first.kill()
    second = Session(tmp_path, "b")
    assert second.store.journal.interrupted(RUN) == {5: 1, 6: 1}
    second.store.journal.begin_batch(RUN, [(5, 5)])
    second.store.journal.end_batch(RUN, [(5, 5)])
    second.store.journal.begin_batch(RUN, [(6, 6)])
    second.store.journal.compact()
    second.kill()
    assert Session(tmp_path, "c").store.journal.interrupted(RUN) == {5: 1, 6: 2}


def test_a_mep_that_is_finished_is_forgotten_and_so_is_a_run_that_has_ended(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    for run in (RUN, RUN + 1):
        first.store.journal.begin_batch(run, [(5, 6)])
    first.kill()
    second = Session(tmp_path, "b")
    second.batch(5)
    second.store.journal.run_ended(RUN + 1)
    second.kill()
    third = Session(tmp_path, "c")
    assert third.store.journal.interrupted(RUN) == {6: 1}
    assert third.store.journal.interrupted(RUN + 1) == {}


def test_an_end_in_order_interrupts_nothing(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.store.journal.begin_batch(RUN, [(5, 6)])
    first.store.journal.end_batch(RUN, [(5, 6)])
    first.batch(5, 6)
    first.end()
    assert Session(tmp_path, "b").store.journal.interrupted(RUN) == {}
