"""Final names of files, and revocations in this session and in files of earlier sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.common.vocabulary import EventStream, FsyncPolicy, QuarantineReason
from tests.daemon.storage.sessions import RUN, Session, events_in, events_of, kept, names, quarantined


def supervised(directory: Path, name: str, *, max_file_events: int = 4) -> Session:
    session = Session(directory, name, max_file_events=max_file_events)
    session.store.supervise(RUN)
    return session


def test_a_full_file_gets_its_final_name_after_the_journal_knows_its_last_batch(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", max_file_events=4)
    session.append(1, 2)
    session.store._writer.flush()
    assert not list(tmp_path.glob("*.mdf"))
    session.store.commit(RUN, [(1, 2)])
    assert not list(tmp_path.glob("*.mdf"))
    session.store.finish_files()
    assert kept(tmp_path) == events_of([1, 2])[:4]
    session.kill()


def test_in_a_supervised_run_a_full_file_waits_until_its_meps_are_confirmed(tmp_path: Path) -> None:
    session = supervised(tmp_path, "a")
    session.batch(1, 2)
    session.batch(4, 5)
    assert kept(tmp_path) == []
    session.store.confirm(RUN, 2)
    assert kept(tmp_path) == []
    session.store.confirm(RUN, 3)
    assert kept(tmp_path) == events_of([1, 2])[:4]
    session.store.confirm(RUN, 2)
    session.store.confirm(RUN, 5)
    assert kept(tmp_path) == [*events_of([1, 2]), 400, 401]
    session.store.leave_run(RUN)
    assert kept(tmp_path) == [*events_of([1, 2]), 400, 401]
    session.store.end_run(RUN)
    assert session.end() == events_of([1, 2, 4, 5])


def test_a_session_confirms_and_revokes_events_of_an_earlier_session(tmp_path: Path) -> None:
    first = supervised(tmp_path, "a")
    first.batch(1, 2)
    first.batch(4, 5)
    first.kill()
    second = Session(tmp_path, "b", max_file_events=4)
    assert kept(tmp_path) == []
    second.store.confirm(RUN, 2)
    second.store.revoke(RUN, [(2, 2)])
    assert second.done() == [(1, 1), (4, 5)]
    second.store.confirm(RUN, 5)
    assert kept(tmp_path) == [100, 101, 102, 400, 401]
    assert quarantined(tmp_path, "revoked") == events_of([2])
    second.batch(2)
    second.store.end_run(RUN)
    assert second.end() == events_of([1, 2, 4, 5])
    assert second.counters.quarantined_events[QuarantineReason.REVOKED] == 3


@pytest.mark.parametrize("max_file_events", [1000, 4])
def test_revoked_events_do_not_stay_in_the_files_of_this_and_of_killed_sessions(
    tmp_path: Path, max_file_events: int
) -> None:
    first = supervised(tmp_path, "a", max_file_events=max_file_events)
    first.batch(0, 1, 2)
    first.batch(3, 4)
    first.kill()
    second = supervised(tmp_path, "b", max_file_events=max_file_events)
    second.batch(5, 6)
    second.store.revoke(RUN, [(1, 1), (3, 3), (6, 6)])
    second.batch(7)
    second.kill()
    third = supervised(tmp_path, "c", max_file_events=max_file_events)
    third.store.revoke(RUN, [(4, 4), (7, 9)])
    assert third.done() == [(0, 0), (2, 2), (5, 5)]
    third.batch(3)
    third.store.end_run(RUN)
    assert third.end() == events_of([0, 2, 3, 5])
    assert quarantined(tmp_path, "revoked") == events_of([1, 3, 4, 6, 7])
    assert third.counters.out_of_reach_meps == 0


def test_a_file_with_only_revoked_events_goes_to_quarantine_as_a_whole(tmp_path: Path) -> None:
    session = supervised(tmp_path, "a")
    session.batch(1)
    session.store.revoke(RUN, [(0, 5)])
    session.store.end_run(RUN)
    assert session.end() == []
    assert quarantined(tmp_path, "revoked") == events_of([1])
    assert not [name for name in names(tmp_path) if ".mdf" in name]


def test_finished_files_are_out_of_reach_of_a_revocation_which_is_counted(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", max_file_events=4)
    session.batch(1, 2)
    session.store.leave_run(RUN)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.mdf")}
    session.store.revoke(RUN, [(0, 1)])
    assert session.counters.out_of_reach_meps == 1
    assert session.done() == [(1, 2)]
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.mdf")} == before
    session.kill()


def test_a_revocation_above_all_finished_files_removes_its_meps_and_none_is_out_of_reach(
    tmp_path: Path,
) -> None:
    session = supervised(tmp_path, "a", max_file_events=6)
    session.batch(1, 2)
    session.batch(4, 5)
    session.batch(7, 8)
    session.batch(3, 6)
    session.store.confirm(RUN, 3)
    session.store.revoke(RUN, [(7, 8)])
    assert session.counters.out_of_reach_meps == 0
    assert session.done() == [(1, 6)]
    session.kill()


def test_a_mep_with_events_in_a_finished_file_and_in_another_one_is_out_of_reach(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", max_file_events=2)
    session.batch(1)
    assert kept(tmp_path) == [100, 101]
    session.store.revoke(RUN, [(1, 1)])
    assert session.counters.out_of_reach_meps == 1
    session.store.end_run(RUN)
    assert session.end() == [100, 101]
    assert quarantined(tmp_path, "revoked") == [102]


def test_ranges_of_a_trillion_meps_are_revoked_without_going_mep_by_mep(tmp_path: Path) -> None:
    session = supervised(tmp_path, "a", max_file_events=1_000_000)
    for mep in range(0, 4000, 50):
        session.batch(*range(mep, mep + 50))
    session.store.revoke(RUN, [(first << 41, (first << 41) + (1 << 40)) for first in range(60)])
    session.store.end_run(RUN)
    assert session.end() == []
    assert len(quarantined(tmp_path, "revoked")) == 12_000


def test_the_same_quarantine_again_after_a_kill_is_one_file(tmp_path: Path) -> None:
    first = supervised(tmp_path, "a")
    first.batch(1, 2)
    first.store.revoke(RUN, [(1, 1)])
    [key] = [key for key in first.store.journal.content.files if key.number == 1]
    first.store._prepare(key)
    assert names(tmp_path / "quarantine")
    before = names(tmp_path / "quarantine")
    first.kill()
    second = Session(tmp_path, "b")
    second.store.end_run(RUN)
    assert names(tmp_path / "quarantine") == before
    assert second.end() == events_of([2])


def test_a_quarantined_file_never_replaces_another_one(tmp_path: Path) -> None:
    first = Session(tmp_path, "a")
    first.batch(1)
    first.write_only(2)
    first.kill()
    [part] = tmp_path.glob("*accepted*.part")
    taken = tmp_path / "quarantine" / f"{part.name.removesuffix('.mdf.part')}_not_acknowledged_168.mdf"
    taken.parent.mkdir()
    taken.write_bytes(b"something else")
    Session(tmp_path, "b").kill()
    assert taken.read_bytes() == b"something else"
    assert events_in(taken.with_name(f"{taken.stem}.2.mdf").read_bytes()) == events_of([2])


def test_an_operator_ends_a_run_other_than_the_current_one(tmp_path: Path) -> None:
    session = supervised(tmp_path, "a")
    session.batch(1, 2)
    session.batch(8, run=8)
    session.store.end_run(RUN)
    assert kept(tmp_path) == events_of([1, 2])
    session.batch(10, run=8)
    assert len(session.end()) == 12
    assert session.store.journal.content.done() == {8: ((8, 8), (10, 10))}


def test_the_summary_of_a_run_names_its_finished_files(tmp_path: Path) -> None:
    session = Session(tmp_path, "a", fsync=FsyncPolicy.NEVER)
    session.batch(1)
    session.store.end_run(RUN)
    assert session.store.write_summary({"run": RUN}) == "node_a_0000000007_summary.json"
    assert session.store.write_summary({"run": RUN}) == "node_a_0000000007_summary_2.json"
    text = (tmp_path / "node_a_0000000007_summary.json").read_text()
    assert '"node_a_0000000007_accepted_00001.mdf": 168' in text
    session.kill()


def on_disk(directory: Path) -> dict[str, dict[str, int]]:
    """Finished files, events and bytes of RUN, counted in the files of the node."""
    found = {}
    for stream in EventStream:
        contents = [path.read_bytes() for path in directory.glob(f"node_*_{RUN:010d}_{stream}_*.mdf")]
        events = sum(len(events_in(content)) for content in contents)
        found[stream.value] = {"files": len(contents), "events": events, "bytes": sum(map(len, contents))}
    return found


def summary(directory: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / name).read_text())
    return found


def test_the_summaries_of_a_run_name_each_finished_file_also_those_of_killed_sessions(tmp_path: Path) -> None:
    for name, mep in (("a", 1), ("b", 2)):
        session = Session(tmp_path, name, fsync=FsyncPolicy.NEVER)
        session.batch(mep)
        session.kill()
    # A file of another run, and one of another node.
    (tmp_path / "node_a_0000000008_accepted_00001.mdf").write_bytes(b"")
    (tmp_path / "other_a_0000000007_accepted_00001.mdf").write_bytes(b"")
    (tmp_path / "node_z_0000000007_summary.json").write_text("not JSON")
    session = Session(tmp_path, "c", fsync=FsyncPolicy.NEVER)
    session.batch(4)
    session.store.end_run(RUN)
    first = summary(tmp_path, session.store.write_summary({"run": RUN}))
    assert set(first["files"]) == {"node_c_0000000007_accepted_00001.mdf"}
    earlier = {"node_a_0000000007_accepted_00001.mdf", "node_b_0000000007_accepted_00001.mdf"}
    assert first["files_of_killed_sessions"] == {name: (tmp_path / name).stat().st_size for name in earlier}
    assert first["stored"] == on_disk(tmp_path)
    # They are named once.
    assert summary(tmp_path, session.store.write_summary({"run": RUN}))["files_of_killed_sessions"] == {}
    session.kill()


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_summary_after_kills_counts_exactly_what_the_files_hold(tmp_path: Path, rewritten: bool) -> None:
    first = Session(tmp_path, "a", max_file_events=4)
    first.batch(1, 2, 3, 4, 6)
    first.batch(7)
    if rewritten:
        first.store.journal.compact()
    first.kill()
    second = Session(tmp_path, "b", max_file_events=4)
    second.batch(8, 9)
    second.store.leave_run(RUN)
    left = summary(tmp_path, second.store.write_summary({"run": RUN}))
    assert left["stored"] == on_disk(tmp_path)
    second.batch(10)
    second.kill()
    third = Session(tmp_path, "c", max_file_events=4)
    third.batch(12)
    third.store.end_run(RUN)
    ended = summary(tmp_path, third.store.write_summary({"run": RUN}))
    assert ended["stored"] == on_disk(tmp_path)
    assert sum(of_stream["events"] for of_stream in ended["stored"].values()) == len(kept(tmp_path))
    named = [*left["files"], *left["files_of_killed_sessions"], *ended["files"], *ended["files_of_killed_sessions"]]
    assert sorted(named) == sorted(path.name for path in tmp_path.glob("*.mdf"))
    third.kill()
