"""The stored memory of a supervisor."""

import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.daemon.replay.assignment_memory import AssignmentMemory, AssignmentMemoryError

NODES = ["tcp://a:1", "tcp://b:1"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.sqlite"


def opened(path: Path | None, run: int = 7, nodes: list[str] = NODES) -> AssignmentMemory:
    return AssignmentMemory(path, run=run, nodes=nodes)


def test_the_next_process_keeps_assignments_moves_acknowledgements_and_the_session(path: Path) -> None:
    memory = opened(path)
    assert not memory.continues
    session = memory.session
    for mep in range(6):
        memory.assign(mep, mep % 2)
    memory.skip(6)
    for mep in (0, 1):
        memory.acknowledged(mep)
    memory.move(2, 0, 1)
    memory.move(4, 0, 1)
    memory.move(4, 1, 0)
    memory.close()
    again = opened(path)
    assert (again.continues, again.session, again.next_mep) == (True, session, 7)
    assert again.assigned() == {2: 1, 3: 1, 4: 0, 5: 1}
    assert [again.revoked(node).ranges() for node in range(2)] == [[(2, 2)], [(4, 4)]]
    again.confirmed_below(3)
    assert [again.revoked(node).ranges() for node in range(2)] == [[], [(4, 4)]]
    again.close()


def test_the_memory_of_another_input_is_refused_with_the_way_out(path: Path) -> None:
    memory = AssignmentMemory(path, run=7, nodes=NODES, input_name="one")
    memory.assign(0, 1)
    memory.close()
    with pytest.raises(AssignmentMemoryError, match=r"memory\.sqlite: .* another input as run 7: .*--run.* ctl close"):
        AssignmentMemory(path, run=7, nodes=NODES, input_name="two")
    again = AssignmentMemory(path, run=7, nodes=NODES, input_name="one")
    assert again.assigned() == {0: 1}
    again.close()


def test_a_process_that_is_killed_loses_no_decision(path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from hltnode.daemon.replay.assignment_memory import AssignmentMemory
memory = AssignmentMemory(Path(sys.argv[1]), run=7, nodes=sys.argv[2:])
for mep in range(1000):
    memory.assign(mep, mep % 2)
    if mep % 3:
        memory.acknowledged(mep)
memory.move(999, 1, 0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code, str(path), *NODES], check=False).returncode == -9
    memory = opened(path)
    assert memory.next_mep == 1000
    assert memory.assigned() == {mep: mep % 2 if mep != 999 else 0 for mep in range(0, 1000, 3)}
    assert memory.revoked(1).ranges() == [(999, 999)]
    memory.close()


def test_a_finished_feed_leaves_no_memory_and_the_next_one_starts_from_zero(path: Path) -> None:
    memory = opened(path)
    memory.assign(0, 1)
    memory.finish()
    assert list(path.parent.iterdir()) == []
    memory = opened(path)
    assert not memory.continues
    memory.close()


def test_a_file_in_use_or_of_another_feed_is_refused_and_stays_unchanged(path: Path) -> None:
    memory = opened(path)
    memory.assign(0, 1)
    with pytest.raises(AssignmentMemoryError, match="another replay process uses this file"):
        opened(path)
    memory.close()
    with pytest.raises(AssignmentMemoryError, match="belongs to run 7 and nodes"):
        opened(path, run=8)
    with pytest.raises(AssignmentMemoryError, match="belongs to run 7 and nodes"):
        opened(path, nodes=NODES[::-1])
    assert opened(path).assigned() == {0: 1}


@pytest.mark.parametrize("first_damaged", [100, 4096, 8192])
def test_a_damaged_file_is_moved_aside(path: Path, first_damaged: int) -> None:
    memory = opened(path)
    for mep in range(1000):
        memory.assign(mep, 1)
    memory.close()
    damaged = path.read_bytes()[:first_damaged] + bytes(range(256)) * 16
    path.write_bytes(damaged)
    memory = opened(path)
    assert not memory.continues
    [aside] = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == damaged
    memory.close()


def test_a_foreign_file_is_refused_and_stays_unchanged(path: Path) -> None:
    for content in (b"x", b"events" * 10_000):
        path.write_bytes(content)
        with pytest.raises(AssignmentMemoryError, match="this file was not written by hltnode replay"):
            opened(path)
        assert path.read_bytes() == content
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(AssignmentMemoryError, match="left unchanged"):
        opened(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_decision_that_cannot_be_written_is_an_error_and_not_remembered(path: Path) -> None:
    memory = opened(path)
    memory.assign(0, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(AssignmentMemoryError, match="/memory"):
            memory.assign(1, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    memory.close()
    assert opened(path).assigned() == {0: 1}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssignmentMemoryError, match="missing"):
        opened(tmp_path / "missing" / "memory")


def test_without_a_path_nothing_is_kept() -> None:
    opened(None).assign(0, 1)
    assert not opened(None).continues
