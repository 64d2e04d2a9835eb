"""Events per second of the engine, with events copied by one thread, and of a node with feeders over TCP."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.gpu.report import Section
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.offline_runner import EncodedMep, OfflineRunner

START_SECONDS, MEASURED_SECONDS, END_SECONDS = 180.0, 20.0, 60.0
SAMPLE_SECONDS = 0.5
FEEDERS = 4
"""Number of feeder processes: one process sends less than a GPU takes."""


def measure_engine(engine: Engine, mep: EncodedMep, meps: int) -> float:
    """Events per second through three slots, each MEP copied into pinned memory."""
    runner = OfflineRunner(engine)
    runner.warm_up([mep])
    begin = time.perf_counter()
    events = sum(batch.workspace.n_events for batch in runner.run(repeat(mep, meps)))
    return events / (time.perf_counter() - begin)


def node_config(folder: Path, ports: Sequence[int], backend: str, device: int) -> str:
    """Configuration of a node with large slots, as TOML."""
    data, control, decisions, http = ports
    return f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[builder]
min_feeders = {FEEDERS}
[pipeline]
backend = "{backend}"
device = {device}
[output]
directory = "{folder / "output"}"
fsync = "never"
[http]
port = {http}
[log]
format = "console"
"""


class NodeUnderLoad:
    """A node and its feeders as processes."""

    def __init__(self, folder: Path, events: Path, *, backend: str, device: int, repeats: int) -> None:
        self._folder = folder
        ports = free_ports(4)
        self._status_page = f"http://127.0.0.1:{ports[3]}/status"
        config = folder / "node.toml"
        config.write_text(node_config(folder, ports, backend, device))
        self._node = self._start("node", "serve", "--config", str(config))
        self._feed = [
            *("replay", "--to", f"tcp://127.0.0.1:{ports[0]}", "--control", f"tcp://127.0.0.1:{ports[1]}"),
            *(str(events), "--events-per-mep", "64", "--repeat", str(repeats), "--name", "gpu"),
        ]
        self._feeders: list[subprocess.Popen[bytes]] = []

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([sys.executable, "-m", "hltnode.daemon", *arguments], stdout=log, stderr=log)

    def _processed(self) -> int | None:
        try:
            with urllib.request.urlopen(self._status_page, timeout=5) as page:
                status: dict[str, Any] = json.load(page)
        except (urllib.error.URLError, OSError):
            return None
        return int(status["events"]["processed"])

    def _fail(self, what: str) -> RuntimeError:
        return RuntimeError(f"{what}:\n{(self._folder / 'node.log').read_text()[-2000:]}")

    def wait_until_ready(self) -> None:
        """Raises RuntimeError with the end of its log if the node ends or does not start in time."""
        until = time.monotonic() + START_SECONDS
        while self._processed() is None:
            if self._node.poll() is not None or time.monotonic() > until:
                raise self._fail("the node did not start")
            time.sleep(SAMPLE_SECONDS)

    def rate(self) -> float:
        """Mean events per second while the feeders send, for MEASURED_SECONDS at most. Raises RuntimeError if the node
        or a feeder fails."""
        self._feeders = [
            self._start(f"feeder{part}", *self._feed, "--part", f"{part}/{FEEDERS}") for part in range(1, FEEDERS + 1)
        ]
        seen: list[tuple[float, int]] = []
        until = time.monotonic() + START_SECONDS
        while any(feeder.poll() is None for feeder in self._feeders) and time.monotonic() < until:
            time.sleep(SAMPLE_SECONDS)
            if self._node.poll() is not None:
                raise self._fail("the node has ended")
            if processed := self._processed():
                seen.append((time.monotonic(), processed))
                if processed > seen[0][1]:
                    until = min(until, seen[0][0] + MEASURED_SECONDS)
        if any(feeder.returncode for feeder in self._feeders):
            raise self._fail("a feeder failed")
        (begin, first), (end, last) = (seen[0], seen[-1]) if seen else ((0.0, 0), (0.0, 0))
        if last == first:
            raise self._fail("too few events were processed to measure")
        return (last - first) / (end - begin)

    def close(self) -> None:
        """End all processes."""
        for feeder in self._feeders:
            if feeder.poll() is None:
                feeder.kill()
                feeder.wait()
        if self._node.poll() is None:
            self._node.send_signal(signal.SIGTERM)
            try:
                self._node.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._node.kill()
                self._node.wait()


def node_rate(events: Path, *, backend: str, device: int, repeats: int) -> float:
    """Events per second of a node that gets a file over TCP. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="hltnode-gpu-") as folder:
        node = NodeUnderLoad(Path(folder), events, backend=backend, device=device, repeats=repeats)
        try:
            node.wait_until_ready()
            return node.rate()
        finally:
            node.close()


def throughput(name: str, slots: float, engine: float) -> Section:
    """Rates for the same events; `slots`: without copies by the host."""
    return Section(
        title=f"Throughput of the engine: {name}",
        header=("what", "events/s"),
        rows=[
            ("slots: events in pinned memory", f"{slots:,.0f}"),
            ("engine: one thread copies events into pinned memory", f"{engine:,.0f}"),
        ],
        data={"slots": slots, "engine": engine},
    )


def node_throughput(events_per_second: float) -> Section:
    """Rate of a node, with all its work besides the kernels."""
    cores = len(os.sched_getaffinity(0))
    return Section(
        title="Throughput of a node",
        text=f"{events_per_second:,.0f} events/s: {FEEDERS} feeders over TCP and the node on {cores} cores.",
        data={"events_per_second": events_per_second, "cores": cores},
    )
