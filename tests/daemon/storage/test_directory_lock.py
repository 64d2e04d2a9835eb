"""One owner of an output directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.daemon.storage.directory_lock import LOCK_NAME, DirectoryLock, DirectoryLockedError
from hltnode.daemon.storage.output_directory import OutputError


def test_the_lock_file_names_the_owner_and_stays_when_it_has_left(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "out")
    file = tmp_path / "out" / LOCK_NAME
    assert file.read_text() == f"{os.getpid()}\n"
    number = file.stat().st_ino
    lock.release()
    DirectoryLock(tmp_path / "out").release()
    assert file.stat().st_ino == number


def test_a_second_owner_is_refused_by_the_process_id_of_the_first_and_changes_nothing(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    before = (tmp_path / LOCK_NAME).stat()
    with pytest.raises(DirectoryLockedError, match=f"{tmp_path}: another node writes here, pid {os.getpid()}"):
        DirectoryLock(tmp_path)
    after = (tmp_path / LOCK_NAME).stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    lock.release()


def test_a_killed_owner_leaves_the_directory_to_the_next_one(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from hltnode.daemon.storage.directory_lock import DirectoryLock\n"
        f"lock = DirectoryLock(Path({str(tmp_path)!r})); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == -9
    assert (tmp_path / LOCK_NAME).read_text() != f"{os.getpid()}\n"
    DirectoryLock(tmp_path).release()


def test_a_directory_that_is_moved_away_and_back_keeps_its_owner(tmp_path: Path) -> None:
    here, away = tmp_path / "here", tmp_path / "away"
    lock = DirectoryLock(here)
    here.rename(away)
    with pytest.raises(DirectoryLockedError):
        DirectoryLock(away)
    away.rename(here)
    with pytest.raises(DirectoryLockedError):
        DirectoryLock(here)
    lock.release()


def test_a_directory_is_created_only_if_its_parent_exists(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="its parent does not exist"):
        DirectoryLock(tmp_path / "no" / "parent")
    assert not list(tmp_path.iterdir())
