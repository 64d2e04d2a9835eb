"""The node under attack: a process, its ports, its memory and its descriptors."""

import contextlib
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.security.access_control import CONTROL_TOTAL_BYTES, REQUEST_MARGIN, UNFINISHED_MARGIN
from hltnode.daemon.security.curve_keys import create_key_pair
from hltnode.daemon.security.memory_growth import GROWTH
from hltnode.daemon.storage.histogram_files import LIBRARY_SECONDS
from tests.attacks.stall_sampler import Stall, longest_stall, read_stalls
from tests.daemon.pages import metric, status_page

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
SAMPLE_SECONDS = 0.02
START_SECONDS = 120.0
"""Longest start of a node, on a machine with other work."""
SLOTS, SLOT_BYTES = 2, 32 * MIB
REQUEST_EVENTS, REQUEST_QUEUE_BYTES = 64, 8 * MIB
PROMISED_BY_PORT = {
    "data": SLOTS * SLOT_BYTES + UNFINISHED_MARGIN,
    "control": CONTROL_TOTAL_BYTES,
    # Requests that libzmq has read, and those in the queue.
    "requests": 2 * REQUEST_QUEUE_BYTES + REQUEST_MARGIN,
}
"""Memory in bytes that messages at a port may take, as SECURITY.md says. The first is the default of
`limits.unfinished_bytes`."""


def promised_bytes(*ports: str) -> int:
    """Memory in bytes that peers at these ports may take. Feeders use the data port meanwhile."""
    return sum(PROMISED_BY_PORT.get(port, 0) for port in {"data", *ports}) + GROWTH


PROMISED = promised_bytes(*PROMISED_BY_PORT)
GIVEN_BACK = 96 * MIB
"""Memory in bytes that may stay when the descriptors are given back: the rest follows within a minute."""

QUIET_SECONDS = LIBRARY_SECONDS + 2.0
"""A started node that has not grown for this time has loaded its libraries."""

FAKE = ("tests.daemon.node_process",)
"""Command of a node with a fake engine; the real one is `hltnode serve`."""
SERVE = ("tests.attacks.stall_sampler", "serve", "--config")
"""Command of `hltnode serve`, whose stalls explain themselves."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resident memory in bytes, and open file descriptors."""

    rss: int
    descriptors: int


AT_REST = Resources(32 * MIB, 2)
"""What may stay when a node is at rest: Python, libzmq and the log may have opened one or two descriptors that stay."""


class AttackedNode:
    """A node process that runs until `stop`.

    Args:
        limits: content of its section [limits].
        with_keys: CURVE on all sockets.
        encrypt_data: with keys, also on the data socket.
        sections: further sections of its configuration.
    """

    def __init__(
        self,
        directory: Path,
        command: tuple[str, ...] = FAKE,
        *,
        limits: str = "",
        with_keys: bool = False,
        encrypt_data: bool = True,
        sections: str = "",
    ) -> None:
        self.keys = directory / "keys" if with_keys else None
        self.encrypt_data = encrypt_data
        directory.mkdir(parents=True, exist_ok=True)
        self.data, self.control, self.decisions, self.events, self.pub, self.http, self.requests = free_ports(7)
        self.directory = directory
        self.log = directory / "log"
        self.output = directory / "out"
        config = directory / "node.toml"
        config.write_text(
            f"""
[node]
name = "attacked"
[network]
data = "tcp://127.0.0.1:{self.data}"
control = "tcp://127.0.0.1:{self.control}"
decisions = "tcp://127.0.0.1:{self.decisions}"
max_frame_bytes = {32 * MIB}
[limits]
{limits}
[pipeline]
slots = {SLOTS}
slot_bytes = {SLOT_BYTES}
max_events = 256
[output]
directory = "{self.output}"
[requests]
endpoint = "tcp://127.0.0.1:{self.requests}"
max_events = {REQUEST_EVENTS}
max_bytes = {MIB}
queue_bytes = {REQUEST_QUEUE_BYTES}
[events]
endpoint = "tcp://127.0.0.1:{self.events}"
policy = "drop_new"
[monitor]
endpoint = "tcp://127.0.0.1:{self.pub}"
[http]
port = {self.http}
{"" if self.keys is None else _security(self.keys, encrypt_data)}
{sections}
"""
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command, str(config)], cwd=ROOT, stdout=log, stderr=log
            )
        end = time.monotonic() + START_SECONDS
        while status_page(self.http) is None:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the node does not start:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)
        if command == SERVE:
            self._await_libraries(end)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and answers; on a busy machine an answer may take long."""
        return self.process.poll() is None and status_page(self.http, timeout=60.0) is not None

    def resources(self) -> Resources:
        """The current resources of the process."""
        process = psutil.Process(self.process.pid)
        return Resources(process.memory_info().rss, process.num_fds())

    def _await_libraries(self, end: float) -> None:
        """Wait until the memory has not grown for some seconds: a node loads the library of its histogram files in the
        background, which takes 75 MiB."""
        most, since = 0, time.monotonic()
        while time.monotonic() < min(since + QUIET_SECONDS, end):
            if (now := self.resources().rss) > most + MIB:
                most, since = now, time.monotonic()
            time.sleep(0.1)

    def open_files(self) -> Counter[str]:
        """The open descriptors by kind: the path of a file, else "socket", "anon_inode" or "pipe"."""
        found: Counter[str] = Counter()
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found[str(entry.readlink()).partition(":")[0]] += 1
        return found

    def resources_at_rest(self, before: Resources, seconds: float = 30.0, *, more: Resources = AT_REST) -> Resources:
        """The resources once descriptors and memory are back at the earlier level, or after `seconds`.

        more: how much more of them counts as the earlier level.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            now = self.resources()
            if now.descriptors <= before.descriptors + more.descriptors and now.rss < before.rss + more.rss:
                break
            time.sleep(0.1)
        return self.resources()

    def longest_stall(self, since: float) -> tuple[float, list[Stall]]:
        """Seconds of the longest stall of the event loop since a time, and the stalls of which the stack is known.

        Time without a processor does not count. A node with a fake engine knows only its longest delay of all.
        """
        stalls = read_stalls(self.directory)
        if stalls is None:
            return self.metric("hltnode_event_loop_lag_max_seconds"), []
        return longest_stall(stalls, since)

    def metric(self, series: str) -> float:
        """One series of /metrics."""
        return metric(self.http, series)

    def refused(self, socket: str, reason: str) -> float:
        """Number of connections that a limit has closed."""
        return self.metric(f'hltnode_connections_refused_total{{reason="{reason}",socket="{socket}"}}')

    def kill(self) -> None:
        """End the process at once; `stop` waits for open MEPs."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def _security(keys: Path, encrypt_data: bool) -> str:
    create_key_pair(keys / "node", "node")
    create_key_pair(keys / "feeders", "feeder")
    return f"""
[security]
server_key = "{keys / "node" / "node.key_secret"}"
feeders = "{keys / "feeders"}"
encrypt_data = {str(encrypt_data).lower()}
"""


class PeakSampler:
    """Records the maximum resources of a node from entry to exit."""

    def __init__(self, attacked: AttackedNode) -> None:
        self._attacked = attacked
        self.peak = attacked.resources()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> "PeakSampler":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            try:
                now = self._attacked.resources()
            except psutil.Error:
                return
            self.peak = Resources(max(self.peak.rss, now.rss), max(self.peak.descriptors, now.descriptors))
