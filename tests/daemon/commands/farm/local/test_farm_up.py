"""hltnode farm up as a user starts it: its pages, its accounting, and what every kind of end leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.farm.local.running import FARM_FILE

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(900)]

SECONDS = 400.0
"""Longest wait for anything, on a machine with a lot of other work."""
MARK = "FARM_TEST_MARK"


class RunningFarm:
    """`hltnode farm up`, whose temporary folder lies in a folder of the test."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        self.json = directory / "farm.json"
        self.text = directory / "text"
        self.mark = f"{MARK}={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        command = [sys.executable, "-m", "hltnode.daemon", "farm", "up", "--chain", "raw", "--events", "40", *options]
        with self.text.open("wb") as text:
            self.process = subprocess.Popen(
                [*command, "--json", str(self.json)],
                stdout=text,
                stderr=text,
                env={**os.environ, "TMPDIR": str(self.temporary), name: value},
            )

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + SECONDS
        while not (found := condition()):
            assert time.monotonic() < end, self.text.read_text()
            time.sleep(0.05)
        return found

    def addresses(self) -> dict[str, Any]:
        """The content of farm.json, once it is there."""

        def read() -> Any:
            assert self.process.poll() is None, self.text.read_text()
            return next((json.loads(path.read_text()) for path in self.temporary.glob(f"*/{FARM_FILE}")), None)

        found: dict[str, Any] = self.wait_for(read)
        return found

    def started_processes(self) -> set[int]:
        """All processes that it started, and those that these started."""
        found = set()
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.mark.encode() in path.read_bytes().split(b"\0"):
                    found.add(int(path.parent.name))
            except OSError:
                # It ended meanwhile.
                continue
        return found - {self.process.pid}

    def wait_until_nothing_is_left(self) -> None:
        self.wait_for(lambda: not self.started_processes())
        self.wait_for(lambda: not list(self.temporary.iterdir()))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningFarm]]:
    farms: list[RunningFarm] = []

    def started(*options: str) -> RunningFarm:
        farms.append(RunningFarm(tmp_path, *options))
        return farms[-1]

    yield started
    for farm in farms:
        if farm.process.poll() is None:
            farm.process.kill()
            farm.process.wait()


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def processed(node: dict[str, Any]) -> int:
    try:
        return int(json.loads(page(f"{node['http']}/status"))["events"]["processed"])
    except OSError:
        return 0


def shared_files_of(process: int) -> list[str]:
    """Names in /dev/shm that a process has open or mapped."""
    names = [os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir() if path.is_symlink()]
    names += Path(f"/proc/{process}/maps").read_text().split()
    return [name for name in names if name.startswith("/dev/shm/")]


@pytest.mark.expensive("runs a farm of real nodes")
def test_a_farm_that_is_killed_leaves_no_process_folder_or_shared_memory(start: Callable[..., RunningFarm]) -> None:
    farm = start("--nodes", "1", "--rate", "50")
    found = farm.addresses()
    farm.wait_for(lambda: all(processed(node) for node in found["nodes"]))
    named = {found["feeder_pid"], *(node["pid"] for node in found["nodes"])}
    assert named < farm.started_processes()
    # Nothing can be left in shared memory that has a name.
    assert [name for each in named for name in shared_files_of(each)] == []
    if shutil.which("prometheus") is not None:
        farm.wait_for(lambda: _targets(found["prometheus"]) == {node["http"] for node in found["nodes"]})
    farm.process.kill()
    farm.process.wait()
    farm.wait_until_nothing_is_left()


def _targets(prometheus: str) -> set[str]:
    """Addresses of the nodes that Prometheus scrapes with success."""
    try:
        answer = json.loads(page(f"{prometheus}/api/v1/query?query=up"))
    except OSError:
        return set()
    return {f"http://{each['metric']['instance']}" for each in answer["data"]["result"] if each["value"][1] == "1"}


@pytest.mark.expensive("runs a farm of real nodes")
def test_a_farm_restarts_a_killed_node_and_closes_its_accounts_at_ctrl_c(start: Callable[..., RunningFarm]) -> None:
    farm = start("--nodes", "2", "--rate", "50", "--no-monitoring")
    found = farm.addresses()
    # A node asks the others while its page is read.
    farm.wait_for(lambda: {"node0", "node1"} <= set(re.findall(r"node\d", page(found["farm_page"]))))
    farm.wait_for(lambda: all(processed(node) for node in found["nodes"]))
    os.kill(found["nodes"][0]["pid"], signal.SIGKILL)
    farm.wait_for(
        lambda: (
            "node0 ended with exit code -9; it starts again at once (restart 1 of at most 6)" in farm.text.read_text()
        )
    )
    farm.wait_for(lambda: "node0 is started again" in farm.text.read_text())
    # The file names the process that runs now.
    assert farm.addresses()["nodes"][0]["pid"] in farm.started_processes()
    farm.wait_for(lambda: processed(found["nodes"][0]))
    farm.process.send_signal(signal.SIGINT)
    assert farm.process.wait(SECONDS) == 0, farm.text.read_text()
    result = json.loads(farm.json.read_text())
    assert result["accounting_closes"]
    assert [node["sessions_killed"] for node in result["nodes"]] == [1, 0]
    assert result["fed"]["unacknowledged"] == 0
    assert "The accounting of the farm closes." in farm.text.read_text()
    farm.wait_until_nothing_is_left()


@pytest.mark.expensive("runs a farm of real nodes")
def test_a_farm_that_ends_after_its_time_accounts_for_every_event(start: Callable[..., RunningFarm]) -> None:
    farm = start("--nodes", "2", "--rate", "200", "--seconds", "2", "--no-monitoring")
    assert farm.process.wait(SECONDS) == 0, farm.text.read_text()
    result = json.loads(farm.json.read_text())
    of_nodes = [node["events"]["processed"] for node in result["nodes"]]
    assert sum(of_nodes) == result["fed"]["events"] >= 200
    assert min(of_nodes) > 0
    assert len(result["identities"]) == 7
    farm.wait_until_nothing_is_left()


@pytest.mark.expensive("runs a farm of real nodes")
def test_a_second_signal_ends_a_farm_at_once(start: Callable[..., RunningFarm]) -> None:
    farm = start("--nodes", "1", "--rate", "50", "--no-monitoring")
    found = farm.addresses()
    farm.wait_for(lambda: processed(found["nodes"][0]))
    # A stopped feeder never ends its input.
    os.kill(found["feeder_pid"], signal.SIGSTOP)
    farm.process.send_signal(signal.SIGTERM)
    farm.wait_for(lambda: _is_noted(farm))
    farm.process.send_signal(signal.SIGTERM)
    assert farm.process.wait(SECONDS) == 128 + signal.SIGTERM
    farm.wait_until_nothing_is_left()


def _is_noted(farm: RunningFarm) -> bool:
    """Whether the process has no pending signal: the first one has been handled."""
    status = Path(f"/proc/{farm.process.pid}/status").read_text()
    pending = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd:", "ShdPnd:"))]
    return all(int(mask, 16) == 0 for mask in pending)


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.mdf").touch()
    result = CliRunner().invoke(app, ["farm", "up", "--directory", str(tmp_path)])
    assert result.exit_code == 2
    assert "expected a new or an empty folder" in " ".join(result.output.split())
