"""Nodes and their supervising feeder on this machine."""

import json
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.demo_processes import free_ports, get
from hltnode.daemon.commands.farm.local.processes import HLTNODE, FarmFailedError, Processes, end_of, stop

START_SECONDS = 180.0
"""Longest start of all nodes, which start at the same time."""
DRAIN_SECONDS = 70.0
"""A node drains in at most 56 s."""
FEED_SECONDS = 120.0
"""Longest time for the acknowledgements after the end of the input: a lost node is awaited, then its MEPs move."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """What all nodes of the farm have in common. sections: other keys of node.toml, by section."""

    chain: str
    backend: str
    threads: int
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class LocalNode:
    """A node in its folder, and its sessions. serve: another program, with the configuration as last argument."""

    def __init__(self, name: str, directory: Path, processes: Processes, serve: Sequence[str] = ()) -> None:
        directory.mkdir()
        self.name, self.directory = name, directory
        data, control, decisions, http = free_ports(4)
        self.data, self.control, self.decisions = (f"tcp://127.0.0.1:{port}" for port in (data, control, decisions))
        self.url = f"http://127.0.0.1:{http}"
        self.config, self.output, self.log = directory / "node.toml", directory / "output", directory / "log"
        self.sessions = 0
        self.killed = 0
        """Sessions that ended without a last status."""
        self.process: subprocess.Popen[bytes] | None = None
        self._processes = processes
        self._serve = tuple(serve)
        self._http = http

    def configure(self, settings: NodeSettings, farm: Sequence[str]) -> None:
        """Write node.toml. farm: addresses of the pages of all nodes."""
        sections: dict[str, dict[str, Any]] = {
            "node": {"name": self.name},
            "network": {
                "data": self.data,
                "control": self.control,
                "decisions": self.decisions,
                "max_frame_bytes": 8 * _MIB,
            },
            # Processes of one machine wait for each other: no MEP is given up before its feeder has sent it.
            "builder": {
                "min_feeders": 1,
                "max_mep_bytes": 16 * _MIB,
                "mep_timeout_ms": 5000,
                "overtaken_after_ms": 5000,
                "evict_after_ms": 5000,
            },
            "pipeline": {
                "backend": settings.backend,
                "threads": settings.threads,
                "slot_bytes": 64 * _MIB,
                "max_events": 512,
            },
            "trigger": {"chain": settings.chain},
            "output": {"directory": str(self.output)},
            "http": {"port": self._http, "farm_nodes": list(farm)},
            "log": {"level": "warning", "format": "console"},
        }
        for name, keys in settings.sections.items():
            sections.setdefault(name, {}).update(keys)
        self.config.write_text(
            "\n".join(
                f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
                for name, keys in sections.items()
            )
        )

    def start(self) -> None:
        """Start a session."""
        self.sessions += 1
        command = self._serve or (*HLTNODE, "serve", "--json", str(self._last_status), "--config")
        self.process = self._processes.start([*command, str(self.config)], self.log)

    @property
    def _last_status(self) -> Path:
        return self.directory / f"status-{self.sessions}.json"

    @property
    def is_alive(self) -> bool:
        """Whether the process of the node runs."""
        return self.process is not None and self.process.poll() is None

    def status(self) -> dict[str, Any] | None:
        """The content of /status; None while the node does not answer."""
        try:
            found: dict[str, Any] = json.loads(get(f"{self.url}/status"))
        except OSError:
            return None
        return found

    def metrics(self) -> str:
        """The content of /metrics. Raises OSError."""
        return get(f"{self.url}/metrics")

    def note_end(self) -> int:
        """Count a session that ended early; returns the exit code."""
        assert self.process is not None
        self.killed += 1
        return self.process.wait()

    def last_lines(self) -> str:
        """The end of the log."""
        return end_of(self.log)

    def kill(self) -> None:
        """SIGKILL, and its end."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> dict[str, Any] | None:
        """Drain the node with SIGTERM; its last status, None if it left none. Raises FarmFailedError."""
        assert self.process is not None
        exit_code = stop(self.process, signal.SIGTERM, DRAIN_SECONDS)
        if exit_code:
            raise FarmFailedError(f"{self.name} ended with exit code {exit_code}:\n{end_of(self.log)}")
        return json.loads(self._last_status.read_text()) if self._last_status.exists() else None


def wait_until_running(nodes: Sequence[LocalNode], seconds: float = START_SECONDS) -> None:
    """Wait until all nodes are warm. Raises FarmFailedError."""
    end = time.monotonic() + seconds
    left = list(nodes)
    while left:
        for node in left:
            if not node.is_alive:
                raise FarmFailedError(f"{node.name} did not start:\n{end_of(node.log)}")
        left = [node for node in left if (node.status() or {}).get("state") != "running"]
        if left and time.monotonic() > end:
            names = ", ".join(node.name for node in left)
            raise FarmFailedError(f"{names}: not ready after {seconds:.0f} s:\n{end_of(left[0].log)}")
        if left:
            time.sleep(0.1)


class LocalFeeder:
    """The supervising feeder: `hltnode replay` with all nodes."""

    def __init__(self, directory: Path, processes: Processes) -> None:
        directory.mkdir()
        self.log, self._report = directory / "log", directory / "report.json"
        self._memory = directory / "assignments"
        self._processes = processes
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, nodes: Sequence[LocalNode], file: Path, chain: str, run: int, *options: str) -> None:
        """Feed the events of a file to all nodes. options: others of `hltnode replay`."""
        ends = [part for node in nodes for part in ("--to", node.data, "--control", node.control)]
        # With one node there is nothing to assign.
        memory = ("--memory", str(self._memory)) if len(nodes) > 1 else ()
        self.process = self._processes.start(
            [
                *(*HLTNODE, "replay", str(file), *ends, "--chain", chain, "--run", str(run), *options),
                *(*memory, "--json", str(self._report), "--name", "farm"),
            ],
            self.log,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the feeder runs."""
        return self.process is not None and self.process.poll() is None

    def end_input(self) -> None:
        """End an endless input: the feeder waits for the acknowledgements, and ends."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)

    def report(self) -> dict[str, Any]:
        """The report of a feeder that has ended. Raises FarmFailedError."""
        assert self.process is not None
        exit_code = self.process.wait()
        try:
            found: dict[str, Any] = json.loads(self._report.read_text())
        except (OSError, ValueError) as error:
            raise FarmFailedError(f"the feeder ended with exit code {exit_code}:\n{end_of(self.log)}") from error
        return found
