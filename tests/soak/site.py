"""The processes of a soak: one node, its feeders, and what can be done to them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.demo import free_ports
from tests.daemon.pages import metric, status_page
from tests.soak.content import RUN

FAULTS = "drop=0.001,duplicate=0.005,reorder=0.02,corrupt=0.002,delay=0.002"
START_SECONDS = 30.0
MEP_TIMEOUT_MS = 1000


class SoakError(RuntimeError):
    """Something that must not happen in a soak; the message says what."""


class Site:
    """A node (`hltnode serve`, CPU back end, every event accepted) and feeders with faults on the loopback."""

    def __init__(self, directory: Path, *, feeders: int, rate: float, seed: int) -> None:
        self.directory = directory
        self.output = directory / "output"
        self.input = directory / "events.mep"
        self.reports = directory / "reports"
        self.reports.mkdir()
        self.node: subprocess.Popen[bytes] | None = None
        self.feeders: dict[int, subprocess.Popen[bytes]] = {}
        self.starts = 0
        self._n_feeders = feeders
        self._rate = rate
        self._seed = seed
        data, control, decisions, self._http = free_ports(4)
        self._data, self._control = f"tcp://127.0.0.1:{data}", f"tcp://127.0.0.1:{control}"
        self.decisions = f"tcp://127.0.0.1:{decisions}"
        self._config = directory / "node.toml"
        trigger = directory / "trigger.toml"
        trigger.write_text('[[lines]]\ntype = "Passthrough"\nname = "Hlt1Passthrough"\n')
        self._config.write_text(
            f"""
[node]
name = "soak"
[network]
data = "{self._data}"
control = "{self._control}"
decisions = "{self.decisions}"
max_frame_bytes = 65536
[builder]
feeders = {feeders}
mep_timeout_ms = {MEP_TIMEOUT_MS}
max_mep_bytes = 65536
[pipeline]
slot_bytes = 1048576
max_events = 320
flush_deadline_ms = 20
backend = "cpu"
threads = 1
[trigger]
file = {json.dumps(str(trigger))}
[output]
directory = {json.dumps(str(self.output))}
max_file_events = 5000
[decisions]
queue = 4
[http]
port = {self._http}
"""
        )

    def start_node(self) -> None:
        """Start the node and wait until it answers. Raises SoakError."""
        self.node = self._start("node", "serve", "--config", str(self._config))
        end = time.monotonic() + START_SECONDS
        while (status := self.status()) is None or status["state"] != "running":
            if self.node.poll() is not None or time.monotonic() > end:
                raise SoakError(f"the node did not start (exit code {self.node.poll()})")
            time.sleep(0.05)

    def start_feeder(self, number: int) -> None:
        """Start feeder `number` (from 1) from the beginning of the input; faults differ from start to start."""
        self.starts += 1
        self.feeders[number] = self._start(
            f"feeder{number}", "feed", "--to", self._data, "--control", self._control,
            "--input", str(self.input), "--run", str(RUN), "--part", f"{number}/{self._n_feeders}",
            "--rate", str(self._rate), "--fault", FAULTS, "--seed", str(self._seed * 1000 + self.starts),
            "--json", str(self.reports / f"feeder{number}_{self.starts}.json"),
        )  # fmt: skip

    def status(self) -> dict[str, Any] | None:
        """The status page of the node; None if it does not answer."""
        return status_page(self._http)

    def dropped_decisions(self) -> int:
        """Decisions that this session of the node dropped because the consumer was slow."""
        return round(metric(self._http, 'hlt1_output_messages_dropped_total{output="decisions"}'))

    def running_feeders(self) -> list[int]:
        """Numbers of the feeders that still feed."""
        return [number for number, process in self.feeders.items() if process.poll() is None]

    def log_lines(self, name: str) -> Iterator[dict[str, Any]]:
        """The JSON log lines of all processes of a name, oldest process first."""
        for path in sorted(self.directory.glob(f"*_{name}.log")):
            for line in path.read_text(errors="replace").splitlines():
                if line.startswith("{"):
                    yield json.loads(line)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        number = len(list(self.directory.glob("*.log")))
        with (self.directory / f"{number:04}_{name}.log").open("wb") as log:
            return subprocess.Popen([sys.executable, "-m", "hltnode.daemon", *arguments], stdout=log, stderr=log)

    def close(self) -> None:
        """End what still runs."""
        for process in (self.node, *self.feeders.values()):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """SIGSTOP for the time of the block."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)
