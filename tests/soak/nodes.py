"""A node of a soak: `hltnode serve` in its own directory (CPU back end, every event accepted)."""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.pages import all_metrics, status_page
from tests.soak.content import FEEDERS
from tests.soak.power_cut import CutReport, cut_power
from tests.soak.recorder import BOOT
from tests.soak.timeline import Session, Timeline

MEP_TIMEOUT_MS = 1000
# The start of a node failed if it does not answer within this time.
START_SECONDS = 120.0
AWAY = "output.away"
_MIB = 1024 * 1024


class SoakError(RuntimeError):
    """A failure that must not happen in a soak."""


class SoakNode:
    """Starts, kills and disturbs one node.

    tmpfs: put its directory on a file system that can be filled. sources: the expected sources; None: the sources that
    the feeders of a run announce.
    """

    def __init__(
        self,
        name: str,
        root: Path,
        timeline: Timeline,
        *,
        feeders: int,
        sources: tuple[int, ...] | None,
        fsync: str,
        tmpfs: bool,
    ) -> None:
        self.name = name
        self.root = root
        self.output = root / "output"
        self.fsync = fsync
        self.process: subprocess.Popen[bytes] | None = None
        self.session: Session | None = None
        self.starting_since: float | None = None
        self.mounted = False
        self._timeline = timeline
        self._starts = 0
        self._is_late = False
        self._descriptors: tuple[int, int] | None = None
        data, control, decisions, monitor, self.http = free_ports(5)
        self.data, self.control, self.decisions, self.monitor = (
            f"tcp://127.0.0.1:{port}" for port in (data, control, decisions, monitor)
        )
        root.mkdir()
        if tmpfs:
            self._mount("size=4g")
            self.mounted = True
        (root / BOOT).write_text("first boot\n")
        self._config = root.with_suffix(".toml")
        trigger = root.with_suffix(".trigger.toml")
        trigger.write_text('[[lines]]\ntype = "Passthrough"\nname = "Hlt1Passthrough"\n')
        self._config.write_text(
            f"""
[node]
name = "{name}"
[network]
data = "{self.data}"
control = "{self.control}"
decisions = "{self.decisions}"
max_frame_bytes = 65536
[builder]
min_feeders = {feeders}
max_feeders = {feeders}
{"" if sources is None else f"expected_sources = {list(sources)}"}
mep_timeout_ms = {MEP_TIMEOUT_MS}
max_mep_bytes = 65536
[pipeline]
slot_bytes = 1048576
max_events = 320
flush_deadline_us = 20_000
backend = "cpu"
threads = 1
[trigger]
file = {json.dumps(str(trigger))}
[output]
directory = {json.dumps(str(self.output))}
max_file_events = 600
fsync = "{fsync}"
[decisions]
queue = 4
[monitor]
endpoint = "{self.monitor}"
content = "decisions"
fraction = 1.0
max_rate = 1e6
[http]
port = {self.http}
"""
        )

    def start(self) -> None:
        """Start the process; `poll` detects when it runs."""
        self._starts += 1
        self._is_late = False
        self.starting_since = time.monotonic()
        command = [sys.executable, "-m", "tests.soak.node_process", str(self.root)]
        with self.root.with_suffix(f".{self._starts:03}.log").open("wb") as log:
            self.process = subprocess.Popen([*command, "serve", "--config", str(self._config)], stdout=log, stderr=log)

    def poll(self) -> None:
        """Record the session of a started node. Raises SoakError if it does not start, or has ended."""
        if self.process is None:
            return
        if (code := self.process.poll()) is not None:
            self.process = None
            self._end_session()
            self.starting_since = None
            raise SoakError(f"node {self.name} ended unexpectedly with exit code {code}, see its log {self._starts:03}")
        if self.starting_since is None:
            return
        status = self.status()
        if status is not None and status["state"] == "running":
            self.session = Session(self.name, f"{self.name}_{status['session']}", self.starting_since)
            self._timeline.sessions.append(self.session)
            self.starting_since = None
        elif time.monotonic() - self.starting_since > START_SECONDS and not self._is_late:
            self._is_late = True
            raise SoakError(f"node {self.name} does not run {START_SECONDS:.0f} s after its {self._starts}. start")

    @property
    def is_running(self) -> bool:
        """Whether the node has started and was not killed."""
        return self.process is not None and self.session is not None

    @property
    def is_down(self) -> bool:
        """Whether no process runs."""
        return self.process is None

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None
        self._end_session()

    def _end_session(self) -> None:
        if self.session is not None:
            self.session.end = time.monotonic()
            self.session = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has already ended."""
        if self.process is not None:
            os.kill(self.process.pid, number)

    def end(self, seconds: float) -> None:
        """Send SIGTERM and wait for a clean exit. Raises SoakError."""
        assert self.process is not None
        self.signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SoakError(f"node {self.name} did not drain in {seconds:.0f} s") from None
        self.process = None
        self._end_session()
        if code:
            raise SoakError(f"node {self.name} ended with exit code {code}")

    def runs_left(self) -> list[int]:
        """The open runs of the node."""
        status = self.status()
        if status is None:
            return []
        current = [status["run"]] if status["feeders"] and status["run"] is not None else []
        return [*current, *(kept["run"] for kept in status["kept_runs"])]

    def knows_feeders(self, run: int) -> bool:
        """Whether all feeders of a run are connected."""
        status = self.status()
        if status is None or status["run"] != run:
            return False
        return [feeder["connected"] for feeder in status["feeders"]] == [True] * FEEDERS

    def close_run(self, run: int) -> None:
        """Close a run whose feeders will not come back, as an operator does. Raises SoakError."""
        command = [sys.executable, "-m", "hltnode.daemon", "ctl", "close", "--to", self.control, "--run", str(run)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SoakError(f"node {self.name} does not close run {run}: {done.stdout} {done.stderr}")

    def cut_power(self, collected: set[str], rng: random.Random) -> CutReport:
        """Remove data that the killed node had not forced to the disk."""
        return cut_power(self.root, collected, rng)

    # Temporary faults

    def exhaust_descriptors(self) -> None:
        """Refuse every new file, socket or connection until `return_descriptors`."""
        assert self.process is not None
        pid = self.process.pid
        self._descriptors = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # Descriptors in use may be above the limit, but none below it is free.
        used = {int(entry) for entry in os.listdir(f"/proc/{pid}/fd")}
        lowest_free = next(number for number in range(len(used) + 1) if number not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, self._descriptors[1]))

    def return_descriptors(self) -> None:
        """Restore the limit."""
        if self.process is not None and self._descriptors is not None:
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, self._descriptors)

    def move_directory(self) -> None:
        """Rename the output directory until `return_directory`."""
        self.output.rename(self.root / AWAY)

    def return_directory(self) -> None:
        """Restore its name; a directory that was made in its place is kept beside it."""
        if self.output.exists():
            kept = len(list(self.root.glob("output.instead.*")))
            self.output.rename(self.root / f"output.instead.{kept}")
        (self.root / AWAY).rename(self.output)

    def fill_disk(self) -> None:
        """Fill the file system to its last page until `empty_disk`."""
        while True:
            status = os.statvfs(self.root)
            used = (status.f_blocks - status.f_bfree) * status.f_frsize
            if self._mount(f"remount,size={used}", check=False):
                return
            # The node has written since then, and a file system cannot become smaller than its content.

    def empty_disk(self) -> None:
        """Make room again."""
        self._mount("remount,size=4g")

    def _mount(self, options: str, *, check: bool = True) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.root)]
        return subprocess.run(command, check=check, capture_output=not check).returncode == 0

    # State of the node

    def status(self) -> dict[str, Any] | None:
        """The status page; None if the node does not answer."""
        return status_page(self.http, timeout=1.0)

    def dropped_decisions(self) -> int:
        """Decisions that this session dropped because the consumer was slow."""
        return round(all_metrics(self.http)['hltnode_output_messages_dropped_total{output="decisions"}'])

    def unacknowledged_meps(self) -> int | None:
        """Number of started MEPs without acknowledgement; None if the node does not answer."""
        with contextlib.suppress(OSError):
            metrics = all_metrics(self.http, timeout=1.0)
            gone = metrics["hltnode_meps_acknowledged_total"] + metrics["hltnode_meps_abandoned_total"]
            return max(0, round(metrics["hltnode_meps_opened_total"] - gone))
        return None

    def log_lines(self) -> Iterator[dict[str, Any]]:
        """The JSON log lines of all sessions, oldest first."""
        for path in sorted(self.root.parent.glob(f"{self.root.name}.*.log")):
            for line in path.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    yield json.loads(line)

    def close(self) -> None:
        """End the process if it still runs."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()
            self.process = None

    def keep_files(self) -> None:
        """Copy the content of the node's own file system to the disk."""
        if self.mounted:
            kept = self.root.with_suffix(".kept")
            shutil.copytree(self.root, kept)
            self.unmount()
            self.root.rmdir()
            kept.rename(self.root)

    def unmount(self) -> None:
        """Release the file system; its files are gone."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.root)], check=True)
            self.mounted = False


def can_mount(directory: Path) -> bool:
    """Whether this process may mount a tmpfs, which a full disk needs."""
    probe = directory / "probe"
    probe.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={_MIB}", "tmpfs", str(probe)]
    try:
        mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if mounted:
        subprocess.run(["umount", str(probe)], check=True)
    probe.rmdir()
    return mounted
