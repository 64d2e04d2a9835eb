"""Recovery of the files of an earlier session."""

import random
from pathlib import Path

import pytest

from hltnode.daemon.common.vocabulary import FsyncPolicy, QuarantineReason
from hltnode.daemon.storage.output_directory import OutputError
from tests.daemon.storage.sessions import (
    JOURNAL,
    Session,
    copy_directory,
    events_in,
    events_of,
    kept,
    names,
    quarantined,
)


def finals(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.mdf")}


@pytest.mark.parametrize("max_file_events", [1000, 4])
def test_events_without_a_journal_entry_go_to_quarantine_and_their_meps_are_resent(
    tmp_path: Path, max_file_events: int
) -> None:
    first = Session(tmp_path, "a", max_file_events=max_file_events)
    first.batch(0, 1)
    first.write_only(2, 3)
    first.kill()
    second = Session(tmp_path, "b")
    assert second.done() == [(0, 1)]
    assert quarantined(tmp_path, "not_acknowledged") == events_of([2, 3])
    assert second.counters.quarantined_events[QuarantineReason.NOT_ACKNOWLEDGED] == 6
    second.batch(2, 3)
    assert second.end() == events_of(range(4))


def test_the_files_of_a_session_without_a_batch_in_the_journal_go_to_quarantine_whole(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.write_only(0)
    first.kill()
    Session(tmp_path, "b").kill()
    assert names(tmp_path) == [JOURNAL, "quarantine"]
    assert quarantined(tmp_path, "not_acknowledged") == events_of([0])


def test_forty_three_synced_files_survive_a_journal_that_was_never_forced(tmp_path: Path) -> None:
    first = Session(tmp_path, "a", max_file_events=20)
    empty = (tmp_path / JOURNAL).read_bytes()
    for mep in range(0, 430, 10):
        first.batch(*range(mep, mep + 10))
    first.kill()
    before = finals(tmp_path)
    assert len(before) >= 43
    (tmp_path / JOURNAL).write_bytes(empty)
    second = Session(tmp_path, "b")
    after = finals(tmp_path)
    assert {name: after[name] for name in before} == before
    second.kill()


def warnings_of_a_missing_journal(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if "journal_missing" in line]


def test_finished_files_without_a_journal_are_reported_and_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = Session(tmp_path, "a", max_file_events=4)
    first.batch(0, 1, 2)
    first.end()
    before = finals(tmp_path)
    assert len(before) > 1
    Session(tmp_path, "b").kill()
    assert warnings_of_a_missing_journal(capsys) == []
    (tmp_path / JOURNAL).unlink()
    Session(tmp_path, "c").kill()
    (warning,) = warnings_of_a_missing_journal(capsys)
    assert f"finished_files={len(before)}" in warning
    assert all(name in warning for name in (min(before), max(before)))
    assert finals(tmp_path) == before
    # The new session has a journal, which knows nothing of the files.
    Session(tmp_path, "d").kill()
    assert warnings_of_a_missing_journal(capsys) == []


def test_the_files_of_another_node_are_no_reason_for_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other_a_0000000001_accepted_00000.mdf").write_bytes(b"")
    Session(tmp_path, "b").kill()
    assert warnings_of_a_missing_journal(capsys) == []


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_record_that_was_being_written_counts_as_not_written(tmp_path: Path, cut: int) -> None:
    first = Session(tmp_path, "a")
    first.batch(0, 1)
    first.batch(2)
    first.kill()
    raw = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(raw[: -cut - 1])
    second = Session(tmp_path, "b")
    assert second.done() == [(0, 1)]
    assert second.end() == events_of([0, 1])
    assert quarantined(tmp_path, "not_acknowledged") == events_of([2])


def test_a_damaged_record_costs_its_own_batch_and_none_of_the_later_ones(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(0)
    begin = (tmp_path / JOURNAL).stat().st_size
    first.batch(1)
    first.batch(2)
    first.kill()
    raw = bytearray((tmp_path / JOURNAL).read_bytes())
    raw[begin + 30] ^= 1
    (tmp_path / JOURNAL).write_bytes(raw)
    second = Session(tmp_path, "b")
    assert second.done() == [(0, 0), (2, 2)]
    assert second.counters.journal_damage == 1
    assert second.counters.missing_events == 0
    assert kept(tmp_path) == events_of([0, 2])
    assert quarantined(tmp_path, "not_acknowledged") == events_of([1])
    assert (tmp_path / "quarantine" / JOURNAL).read_bytes() == raw
    second.kill()


def test_a_wholly_unreadable_journal_is_kept_in_quarantine(tmp_path: Path) -> None:
    first = Session(tmp_path, "a", max_file_events=4)
    for mep in range(4):
        first.batch(mep)
    first.kill()
    before = finals(tmp_path)
    garbage = random.Random(1).randbytes(3000)
    (tmp_path / JOURNAL).write_bytes(garbage)
    second = Session(tmp_path, "b")
    second.kill()
    assert (tmp_path / "quarantine" / JOURNAL).read_bytes() == garbage
    assert finals(tmp_path) == before
    assert sorted(kept(tmp_path) + quarantined(tmp_path, "not_acknowledged")) == events_of(range(4))


def lived_in(directory: Path) -> list[int]:
    """A directory after rotation, a kill, a compaction, and another kill; returns the MEPs in it."""
    directory.mkdir()
    first = Session(directory, "a", max_file_events=5)
    for mep in range(5):
        first.batch(mep)
    first.kill()
    second = Session(directory, "b", max_file_events=5)
    second.store.supervise(8)
    for mep in range(5, 10):
        second.batch(mep)
        second.batch(mep, run=8)
    second.kill()
    return list(range(10))


def test_a_journal_that_is_cut_costs_no_finished_file_and_no_event(tmp_path: Path) -> None:
    meps = lived_in(tmp_path / "lived")
    raw = (tmp_path / "lived" / JOURNAL).read_bytes()
    before = finals(tmp_path / "lived")
    wanted = sorted([*events_of(meps), *events_of(range(5, 10))])
    for cut in range(0, len(raw), 11):
        directory = copy_directory(tmp_path / "lived", tmp_path / str(cut))
        (directory / JOURNAL).write_bytes(raw[:cut])
        Session(directory, "c").kill()
        after = finals(directory)
        assert {name: after.get(name) for name in before} == before, cut
        everywhere = [n for path in directory.rglob("*.mdf*") for n in events_in(path.read_bytes())]
        assert sorted(everywhere) == wanted, cut


def test_a_flipped_bit_of_the_journal_costs_no_finished_file_and_no_event(tmp_path: Path) -> None:
    meps = lived_in(tmp_path / "lived")
    raw = (tmp_path / "lived" / JOURNAL).read_bytes()
    before = finals(tmp_path / "lived")
    wanted = sorted([*events_of(meps), *events_of(range(5, 10))])
    rng = random.Random(5)
    for number in range(250):
        damaged = bytearray(raw)
        at = rng.randrange(len(raw))
        damaged[at] ^= 1 << rng.randrange(8)
        directory = copy_directory(tmp_path / "lived", tmp_path / str(number))
        (directory / JOURNAL).write_bytes(damaged)
        session = Session(directory, "c")
        assert session.counters.journal_damage == 1, at
        assert session.counters.missing_events == 0, at
        session.kill()
        after = finals(directory)
        assert {name: after.get(name) for name in before} == before, at
        everywhere = [n for path in directory.rglob("*.mdf*") for n in events_in(path.read_bytes())]
        assert sorted(everywhere) == wanted, at


def test_a_file_shorter_than_its_journal_is_reported_and_its_meps_are_accepted_again(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(1, 2)
    first.batch(4, 5)
    first.kill()
    [part] = tmp_path.glob("*accepted*.part")
    part.write_bytes(part.read_bytes()[:-10])
    second = Session(tmp_path, "b", boot="another")
    assert second.done() == [(1, 2)]
    assert second.counters.missing_events == 6
    assert second.counters.power_cuts == 1
    assert kept(tmp_path) == events_of([1, 2])
    second.batch(4, 5)
    assert second.end() == events_of([1, 2, 4, 5])


def test_damaged_bytes_go_to_quarantine_with_the_rest_of_their_meps(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(3)
    first.batch(4)
    first.kill()
    [part] = tmp_path.glob("*accepted*.part")
    raw = bytearray(part.read_bytes())
    raw[100] ^= 1
    part.write_bytes(raw)
    second = Session(tmp_path, "b")
    assert second.done() == [(4, 4)]
    assert second.counters.missing_events == 2
    assert kept(tmp_path) == events_of([4])
    # The event of MEP 3 in the error stream is intact; it would be doubled when the MEP comes again.
    assert 302 in quarantined(tmp_path, "damaged")
    second.batch(3)
    assert second.end() == events_of([3, 4])


def test_an_absent_part_file_is_missing_and_an_absent_finished_file_was_collected(tmp_path: Path) -> None:
    first = Session(tmp_path, "a", max_file_events=6)
    first.batch(1, 2)
    first.batch(4, 5)
    first.batch(7)
    first.kill()
    for path in (*tmp_path.glob("*.mdf"), *tmp_path.glob("*.part")):
        path.unlink()
    second = Session(tmp_path, "b")
    assert second.done() == [(1, 2), (4, 5)]
    assert second.counters.missing_events == 3
    second.kill()


@pytest.mark.parametrize(("boot", "done"), [("boot", [(0, 5)]), ("another", [(0, 3)])])
def test_an_absent_file_of_a_damaged_journal_was_collected_unless_the_machine_was_down(
    tmp_path: Path, boot: str, done: list[tuple[int, int]]
) -> None:
    first = Session(tmp_path, "a", max_file_events=4)
    first.batch(0, 1, 2, 3)
    first.store.leave_run(7)
    end = (tmp_path / JOURNAL).stat().st_size
    first.batch(4, 5)
    first.kill()
    raw = (tmp_path / JOURNAL).read_bytes()
    [finished] = [at for at in range(end, len(raw)) if raw.startswith(b'{"finished"', at)]
    (tmp_path / JOURNAL).write_bytes(raw[: finished + 5] + b"x" + raw[finished + 6 :])
    for path in (*tmp_path.glob("*.mdf"), *tmp_path.glob("*.part")):
        path.unlink()
    second = Session(tmp_path, "b", boot=boot)
    assert second.done() == done
    assert (second.counters.missing_events > 0) is (boot == "another")
    second.kill()


def test_a_mep_with_collected_and_missing_events_is_not_accepted_again(
    tmp_path: Path,
) -> None:
    first = Session(tmp_path, "a", max_file_events=2)
    first.batch(1)
    first.kill()
    assert kept(tmp_path) == [100, 101]
    [part] = tmp_path.glob("*.part")
    part.write_bytes(b"")
    second = Session(tmp_path, "b")
    assert second.done() == [(1, 1)]
    assert second.counters.missing_events == 1
    second.kill()


def test_history_is_kept_over_several_sessions_and_ends_with_the_run(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        session = Session(tmp_path, name)
        session.batch(number)
        session.kill()
    last = Session(tmp_path, "d")
    assert last.done() == [(0, 2)]
    last.store.end_run(7)
    assert last.end() == events_of(range(3))
    again = Session(tmp_path, "e")
    assert again.done() == []
    again.kill()


def test_twenty_runs_that_did_not_end_are_all_kept(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    for run in range(20):
        first.batch(run, run=run)
    first.end()
    second = Session(tmp_path, "b")
    assert [second.done(run) for run in range(20)] == [[(run, run)] for run in range(20)]
    second.kill()


def test_files_of_a_node_with_a_similar_name_are_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "node_b_s1_0000000007_accepted_00001.mdf.part"
    other.write_bytes(b"not ours")
    Session(tmp_path, "a").kill()
    assert other.read_bytes() == b"not ours"


@pytest.mark.parametrize("fsync", FsyncPolicy)
def test_a_session_that_ends_in_order_leaves_nothing_to_recover(tmp_path: Path, fsync: FsyncPolicy) -> None:
    first = Session(tmp_path, "a", max_file_events=4, fsync=fsync)
    for mep in range(6):
        first.batch(mep)
    assert first.end() == events_of(range(6))
    second = Session(tmp_path, "b", fsync=fsync, boot="another")
    assert second.done() == [(0, 5)]
    assert second.counters.power_cuts == second.counters.missing_events == second.counters.journal_damage == 0
    assert not (tmp_path / "quarantine").exists()
    second.kill()


def test_a_missing_directory_is_created_if_its_parent_exists(tmp_path: Path) -> None:
    Session(tmp_path / "out", "a").kill()
    assert (tmp_path / "out").is_dir()
    with pytest.raises(OutputError, match=r"output\.directory: its parent does not exist"):
        Session(tmp_path / "no" / "out", "a")
    assert not (tmp_path / "no").exists()


def test_a_directory_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Not a directory"):
        Session(tmp_path / "file" / "output", "a")
