"""Signals that end a farm, and programs that are tied to their parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.daemon.commands.farm.local.processes import EndedBySignalError, end_signals, processes
from hltnode.daemon.commands.guard import guarded_folder
from hltnode.daemon.commands.tied import MODULE


def tied(parent: int, *program: str) -> list[str]:
    return [sys.executable, "-P", "-m", MODULE, str(parent), *program]


def test_a_tied_program_runs_for_its_parent_alone(tmp_path: Path) -> None:
    made = tmp_path / "made"
    subprocess.run(tied(os.getppid(), "/usr/bin/touch", str(made)), check=True, timeout=60)
    assert not made.exists()
    subprocess.run(tied(os.getpid(), "/usr/bin/touch", str(made)), check=True, timeout=60)
    assert made.exists()


def test_processes_are_killed_at_the_end(tmp_path: Path) -> None:
    with processes() as started:
        process = started.start(["/bin/sleep", "600"], tmp_path / "log")
        assert process.poll() is None
    assert process.poll() == -signal.SIGKILL


def test_a_signal_ends_the_start_and_only_the_second_one_ends_a_running_farm() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with end_signals(), pytest.raises(EndedBySignalError) as found:
        signal.raise_signal(signal.SIGTERM)
    assert found.value.number == signal.SIGTERM
    with end_signals() as signals:
        signals.wait_for_first()
        assert not signals.wait(0.0)
        signal.raise_signal(signal.SIGINT)
        assert signals.number == signal.SIGINT
        assert signals.wait(600.0)
        with pytest.raises(EndedBySignalError):
            signal.raise_signal(signal.SIGINT)
        # The end itself is not interrupted.
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_farm_under_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with end_signals():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with end_signals(), pytest.raises(EndedBySignalError):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_guarded_folder_goes_with_its_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with guarded_folder("a-") as folder:
        assert (folder.parent, folder.name[:2]) == (tmp_path, "a-")
        (folder / "inner").mkdir()
        (folder / "inner" / "file").touch()
    assert not folder.exists()
