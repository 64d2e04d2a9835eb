"""Ctrl-C and SIGTERM at any moment end a command with one line and the exit code of the signal, and leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

# Long enough that no signal comes too late.
COMMANDS = {
    "simulate": ("simulate", "-n", "100000", "-o", "{tmp}/long.mdf"),
    "simulate in jobs": ("simulate", "-n", "100000", "--jobs", "2", "-o", "{tmp}/long.mdf"),
    "process": ("process", "{events}", "--repeat", "100000", "--accepted", "{tmp}/accepted.mdf"),
    "validate": ("validate", "{events}"),
    "rates": ("rates", "{events}"),
    "demo": ("demo", "--repeat", "10000", "--feeders", "2", "-o", "{tmp}/demo"),
    "demo of many": ("demo", "-n", "100000", "-o", "{tmp}/demo"),
    "replay": ("replay", "--simulate", "--to", "tcp://127.0.0.1:9", "--control", "tcp://127.0.0.1:9"),
}
WITH_A_REPORT = {"replay"}
"""These commands handle the signals themselves and report done and undone work."""
SECONDS_AFTER_THE_HANDLER = [0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0]
COPIES = 50
SECONDS_OF_HELPERS = 10.0
NOTED_BYTES = 4096
"""A journal of this size has notes of several batches."""
NAMES = {signal.SIGINT: b"interrupted", signal.SIGTERM: b"terminated"}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "events.mdf"
    command = [sys.executable, "-m", "hltnode.daemon", "simulate", "-n", "20", "-o", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    path.write_bytes(path.read_bytes() * COPIES)
    return path


def has_handlers(process: subprocess.Popen[bytes]) -> bool:
    """Before that it is Python itself that starts."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def in_session(session: int) -> Iterator[int]:
    """The processes of a session that have not ended."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(of) == session and state != "Z":
                yield int(entry.name)


def left_of_session(session: int) -> list[str]:
    """Processes that still run after the helpers, which end with their pipe, had time to end."""
    give_up = time.monotonic() + SECONDS_OF_HELPERS
    while (pids := list(in_session(session))) and time.monotonic() < give_up:
        time.sleep(0.01)
    return [command_of(pid) for pid in pids]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return f"process {pid}, which has just ended"


def check_ending(name: str, number: signal.Signals, seconds: float, events: Path, tmp_path: Path) -> None:
    command = [part.format(events=events, tmp=tmp_path) for part in COMMANDS[name]]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "hltnode.daemon", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    try:
        while not has_handlers(process):
            time.sleep(0.001)
        time.sleep(seconds)
        if process.poll() is not None:
            pytest.skip("it has already ended")
        if number is signal.SIGINT:
            # As a terminal does: all processes of the foreground get it.
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, said = process.communicate(timeout=120)
        left = left_of_session(process.pid)
    finally:
        for pid in in_session(process.pid):
            os.kill(pid, signal.SIGKILL)
    assert process.returncode == 128 + number, said.decode()
    assert b"Traceback" not in said, said.decode()
    if name in WITH_A_REPORT:
        assert said.count(NAMES[number]) <= 1, said.decode()
    else:
        assert said.count(NAMES[number]) == 1, said.decode()
    assert not left
    assert not list(scratch.iterdir())
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "number", "seconds"),
    [
        ("process", signal.SIGINT, 0.0),
        ("process", signal.SIGINT, 2.0),
        ("simulate in jobs", signal.SIGINT, 1.5),
        ("demo", signal.SIGINT, 3.0),
        ("demo", signal.SIGTERM, 1.0),
    ],
)
def test_a_signal_ends_a_command_with_one_line(
    name: str, number: signal.Signals, seconds: float, events: Path, tmp_path: Path
) -> None:
    check_ending(name, number, seconds, events, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", SECONDS_AFTER_THE_HANDLER)
@pytest.mark.parametrize("number", NAMES, ids=lambda number: number.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_ends_every_command_at_every_moment(
    name: str, number: signal.Signals, seconds: float, events: Path, tmp_path: Path
) -> None:
    check_ending(name, number, seconds, events, tmp_path)


@pytest.mark.expensive("runs two demos with all their processes")
def test_a_killed_demo_leaves_no_process_and_no_folder_and_the_next_one_is_not_disturbed(tmp_path: Path) -> None:
    scratch, folder = tmp_path / "scratch", tmp_path / "demo"
    scratch.mkdir()
    log = tmp_path / "log"
    command = [sys.executable, "-m", "hltnode.daemon", "demo", "--chain", "raw", "--feeders", "1", "-o", str(folder)]
    with log.open("wb") as said:
        demo = subprocess.Popen(
            [*command, "-n", "40", "--repeat", "10000"],
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
    try:
        # The journal of a run that has decisions, and that nothing ends.
        while not any(path.stat().st_size > NOTED_BYTES for path in folder.glob("*.journal")):
            assert demo.poll() is None, log.read_text()
            time.sleep(0.05)
        demo.kill()
        demo.wait()
        while any(in_session(demo.pid)) or any(scratch.iterdir()):
            time.sleep(0.05)
    finally:
        for pid in in_session(demo.pid):
            os.kill(pid, signal.SIGKILL)
    after = subprocess.run([*command, "-n", "40", "--repeat", "2"], capture_output=True, text=True, timeout=200)
    assert after.returncode == 0, after.stdout + after.stderr


def test_ctrl_c_ends_without_a_traceback_before_the_handlers_are_imported() -> None:
    watched = """
import signal, sys
# As in a terminal, even if the test runner ignores the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "hltnode.daemon.common":
            print(signal.getsignal(signal.SIGINT).name)
sys.meta_path.insert(0, Watch())
import hltnode.daemon.__main__
"""
    done = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "SIG_DFL\n"
