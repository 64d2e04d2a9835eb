"""The record of the finished runs of an interrupted replay."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from hltnode.daemon.replay.finished_runs import FinishedRuns
from hltnode.daemon.replay.input_files import FeedError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "replay-runs"


def test_a_run_is_found_again_with_its_last_mep_and_its_confirmation(path: Path) -> None:
    runs = FinishedRuns(path)
    runs.stored(5, "a", 12, complete=False)
    [known] = [FinishedRuns(path).find(5, "a")]
    assert known is not None
    assert (known.last_mep, known.complete, known.confirmed) == (12, False, False)
    runs.confirmed(5, "a")
    known = FinishedRuns(path).find(5, "a")
    assert known is not None
    assert (known.last_mep, known.complete, known.confirmed) == (12, False, True)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_another_input_of_the_same_run_is_not_finished(path: Path) -> None:
    FinishedRuns(path).stored(5, "a", 12, complete=True)
    assert FinishedRuns(path).find(5, "b") is None
    assert FinishedRuns(path).find(6, "a") is None


def test_the_file_vanishes_with_the_last_run_of_the_last_replay(path: Path) -> None:
    runs = FinishedRuns(path)
    for run, name in ((5, "a"), (6, "b"), (5, "of another replay")):
        runs.stored(run, name, None, complete=True)
    runs.forget([(5, "a"), (6, "b"), (7, "never stored")])
    assert FinishedRuns(path).find(6, "b") is None
    assert FinishedRuns(path).find(5, "of another replay") is not None
    runs.forget([(5, "of another replay")])
    assert not path.exists()
    runs.forget([])


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"no json", b'{"version": 1, "runs": [{"run": "5"}]}', b'{"version": 2, "runs": []}']
)
def test_a_record_that_cannot_be_read_ends_the_replay_and_stays_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FeedError, match="replay-runs"):
        FinishedRuns(path)
    assert path.read_bytes() == content


def test_a_record_that_cannot_be_written_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"nowhere.runs: .*--memory FILE"):
        FinishedRuns(tmp_path / "nowhere" / "runs").stored(5, "a", 1, complete=True)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_record_of_before_and_no_other_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    runs = FinishedRuns(path)
    runs.stored(5, "a", 12, complete=True)
    before = path.read_bytes()

    def fail(*_arguments: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, fail)
        with pytest.raises(FeedError, match=r"replay-runs: No space left"):
            runs.stored(6, "b", 12, complete=True)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
