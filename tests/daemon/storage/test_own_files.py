"""Files of the node that another process removes, replaces or prepares."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.storage.directory_lock import LOCK_NAME, DirectoryLock
from hltnode.daemon.storage.output_directory import DIRECTORY_MODE, FILE_MODE, OutputDirectory, OutputError
from tests.daemon.storage.sessions import NODE, RUN, Session, events_of

JOURNAL = f"{NODE}.journal"


@pytest.mark.parametrize("file", [JOURNAL, LOCK_NAME])
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_without_its_journal_or_its_lock_the_node_acknowledges_nothing_and_says_why(
    tmp_path: Path, file: str, how: str
) -> None:
    lock = DirectoryLock(tmp_path)
    session = Session(tmp_path, "a")
    session.store.own(lock.replaced)
    session.batch(1)
    away = tmp_path / "away"
    (tmp_path / file).rename(away)
    if how == "replaced":
        (tmp_path / file).write_bytes(away.read_bytes())
    session.append(2)
    for _ in range(2):
        with pytest.raises(OutputError, match="removed or replaced"):
            session.store.commit(RUN, [(2, 2)])
    assert session.done() == [(1, 1)]
    problem = session.store.problem
    assert problem is not None
    assert problem.startswith(f"{tmp_path / file}: it was removed or replaced")
    # Put back, the node goes on with the same events.
    away.rename(tmp_path / file)
    session.store.commit(RUN, [(2, 2)])
    assert session.store.problem is None
    assert session.done() == [(1, 2)]
    assert session.end() == events_of([1, 2])
    lock.release()


@pytest.mark.parametrize("file", [JOURNAL, LOCK_NAME])
def test_a_check_without_a_write_names_the_file_and_ends_when_it_is_back(tmp_path: Path, file: str) -> None:
    lock = DirectoryLock(tmp_path)
    session = Session(tmp_path, "a")
    session.store.own(lock.replaced)
    session.store.check_files()
    assert session.store.problem is None
    (tmp_path / file).rename(tmp_path / "away")
    session.store.check_files()
    assert (session.store.problem or "").startswith(f"{tmp_path / file}: it was removed or replaced")
    (tmp_path / "away").rename(tmp_path / file)
    session.store.check_files()
    assert session.store.problem is None
    session.kill()
    lock.release()


def test_a_directory_that_is_moved_while_the_node_runs_keeps_its_lock_and_journal(tmp_path: Path) -> None:
    here, away = tmp_path / "here", tmp_path / "away"
    lock = DirectoryLock(here)
    session = Session(here, "a")
    session.store.own(lock.replaced)
    here.rename(away)
    session.batch(1)
    assert session.done() == [(1, 1)]
    session.kill()
    lock.release()


@pytest.mark.parametrize("file", [JOURNAL + ".new", LOCK_NAME])
def test_a_link_in_the_place_of_a_file_is_refused_and_its_target_is_not_written(tmp_path: Path, file: str) -> None:
    target = tmp_path / "target"
    target.write_text("of another user")
    out = tmp_path / "out"
    out.mkdir()
    (out / file).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        Session(out, "a") if file != LOCK_NAME else DirectoryLock(out)
    assert target.read_text() == "of another user"


@pytest.fixture(params=[0o000, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_permissions_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    directory = OutputDirectory(tmp_path / "out")
    os.close(directory.open("file", os.O_WRONLY | os.O_CREAT))
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == DIRECTORY_MODE
    assert stat.S_IMODE((tmp_path / "out" / "file").stat().st_mode) == FILE_MODE
    # An operator's choice for a file that exists stays.
    (tmp_path / "out" / "file").chmod(0o600)
    os.close(directory.open("file", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    assert stat.S_IMODE((tmp_path / "out" / "file").stat().st_mode) == 0o600
    directory.close()
