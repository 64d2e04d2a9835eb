"""One node under observation: its process, its directory, and the feeders that send to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import zmq.asyncio

from hltnode.client.fault_injection import FaultInjector, FaultPlan
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.machine.filesystem_identity import filesystem_identity
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.raw_data import mfp
from hltnode.protocol.transport.frame_header import HEADER_SIZE, decode_header
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps
from tests.daemon.pages import status_page
from tests.daemon.readout.mutations import seal

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
EVENTS = 8
NORMAL_RATE = 8.0
"""MEPs per second."""


def toml_value(value: object) -> str:
    """A value as TOML writes it; a table within one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(of)}" for key, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value)


class FrameFilter(FaultInjector):
    """Fault of the frames of some sources: none, lost, or held for some time."""

    def __init__(self) -> None:
        super().__init__(FaultPlan(), 1)
        self.lose: Callable[[int, int], bool] = lambda _source, _mep: False
        self.hold_ns: Callable[[int], int] = lambda _source: 0
        self.corrupt = False
        self.error_type: int | None = None
        """Type of the first bank of each fragment, in place of its own."""
        self._held: list[tuple[int, int, Buffer]] = []
        self._n = 0

    def take(self, now_ns: int, frame: Buffer) -> Sequence[Buffer]:
        header = decode_header(frame, max_bytes=1 << 20)
        leaving = list(self.due(now_ns))
        self._n += 1
        if self.lose(header.source_id, header.mep_id):
            return leaving
        if hold_ns := self.hold_ns(header.source_id):
            heappush(self._held, (now_ns + hold_ns, self._n, frame))
            return leaving
        if self.error_type is not None:
            changed = bytearray(frame)
            changed[HEADER_SIZE + mfp.HEADER_SIZE] = self.error_type
            seal(changed)
            return [*leaving, changed]
        if self.corrupt and self._n % 10 == 0:
            damaged = bytearray(frame)
            damaged[-1] ^= 1
            return [*leaving, damaged]
        return [*leaving, frame]

    def due(self, now_ns: int) -> list[Buffer]:
        leaving = []
        while self._held and self._held[0][0] <= now_ns:
            leaving.append(heappop(self._held)[2])
        return leaving

    @property
    def next_due_ns(self) -> int | None:
        return self._held[0][0] if self._held else None


class TestFeeder:
    """A feeder in the event loop of the test, with its own sockets, which can be closed like those of a killed
    process."""

    __test__ = False

    def __init__(self, site: Site, name: str, sources: Sequence[int], run: int) -> None:
        self._context = zmq.asyncio.Context()
        self.connection = FeederSockets(self._context, site.data, site.control)
        identity = FeederIdentity(
            name=name, run=run, sources=tuple(sources), events_per_mep=site.events, max_fragment_bytes=60_000
        )
        self.filter = FrameFilter()
        self.feeder = Feeder(self.connection, identity, faults=self.filter)
        self.rate = NORMAL_RATE
        self._site = site
        self._task: asyncio.Task[None] | None = None
        self.sent = -1

    async def start(self, *, feeding: bool = True, first: int = 0) -> TestFeeder:
        """Say hello, and feed."""
        await self.feeder.__aenter__()
        if feeding:
            self._task = asyncio.create_task(self._feed(first))
        return self

    async def _feed(self, first: int) -> None:
        sources = self.feeder.identity.sources
        for mep in synthetic_meps(1_000_000_000, sources=sources, events=self._site.events, first=first, size=20):
            await self.feeder.offer(mep)
            self.sent = mep.mep
            while not self.rate:
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0 / self.rate)

    async def stop_feeding(self) -> None:
        """Stop feeding, but stay connected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def finish(self) -> None:
        """End the run regularly."""
        await self.stop_feeding()
        await self.feeder.finish(self.sent)
        await self.leave()

    async def leave(self) -> None:
        """Say goodbye without waiting for acknowledgements."""
        await self.stop_feeding()
        await self.feeder.__aexit__()
        self._context.destroy(linger=0)

    async def vanish(self) -> None:
        """Close the sockets without a message, like a killed process."""
        await self.stop_feeding()
        for task in self.feeder._tasks:
            task.cancel()
        await asyncio.gather(*self.feeder._tasks, return_exceptions=True)
        self._context.destroy(linger=0)


class Site:
    """A node in its own directory.

    Args:
        settings: keys of node.toml by section, in addition to those of a small node.
        events: number of events of a MEP.
    """

    def __init__(self, directory: Path, settings: dict[str, dict[str, object]], *, events: int = EVENTS) -> None:
        self.directory = directory
        self.events = events
        directory.mkdir()
        data, control, decisions, self.http, self.extra_port = free_ports(5)
        self.data, self.control = f"tcp://127.0.0.1:{data}", f"tcp://127.0.0.1:{control}"
        self.decisions_port, self.data_port = decisions, data
        self.instance = f"127.0.0.1:{self.http}"
        self.names = {self.instance}
        """What alerts call the node."""
        self.output = directory / "disk" / "out"
        self.output.parent.mkdir()
        self.config = directory / "node.toml"
        sections: dict[str, dict[str, object]] = {
            "node": {"name": directory.name},
            "network": {
                "data": self.data,
                "control": self.control,
                "decisions": f"tcp://127.0.0.1:{decisions}",
                "max_frame_bytes": 65_536,
            },
            "builder": {"mep_timeout_ms": 300, "max_mep_bytes": 65_536},
            "pipeline": {"slot_bytes": 524_288, "max_events": 256, "flush_deadline_us": 10_000},
            "output": {"directory": str(self.output), "fsync": "never"},
            "http": {"port": self.http},
        }
        extra = {"EXTRA": f"tcp://127.0.0.1:{self.extra_port}", "UDP": f"udp://127.0.0.1:{self.extra_port}"}
        for section, keys in settings.items():
            given = {key: extra.get(value, value) if isinstance(value, str) else value for key, value in keys.items()}
            sections[section] = {**sections.get(section, {}), **given}
        lines = [
            f"[{name}]\n" + "".join(f"{k} = {toml_value(v)}\n" for k, v in keys.items())
            for name, keys in sections.items()
        ]
        self.config.write_text("\n".join(lines))
        self.process: subprocess.Popen[bytes] | None = None
        self.feeders: list[TestFeeder] = []
        self.mounted = False
        self._number = 0
        self._starts = 0
        self.cleanups: list[Callable[[], object]] = []

    # The node

    def behave(self, **behaviour: object) -> None:
        """Set the behaviour of the back end."""
        self._number += 1
        temporary = self.directory / "behaviour.tmp"
        temporary.write_text(json.dumps({**behaviour, "number": self._number}))
        temporary.rename(self.directory / "behaviour.json")

    async def start(self, prefix: Sequence[str] = (), *, ready: bool = True) -> None:
        """Start the node and wait until it answers."""
        self._starts += 1
        command = [*prefix, sys.executable, "-m", "tests.alerts.node_process", str(self.config)]
        with (self.directory / f"log{self._starts}").open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        await self.wait_for(lambda s: s is not None and (not ready or s["state"] == "running"), START_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the node."""
        assert self.process is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """SIGKILL the node."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def restart(self) -> None:
        """Stop the node in order and start it again."""
        assert self.process is not None
        self.signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait, START_SECONDS)
        await self.start()

    async def status(self) -> dict[str, Any] | None:
        """The status page."""
        return await asyncio.to_thread(status_page, self.http, timeout=5.0)

    async def wait_for(self, condition: Callable[[dict[str, Any] | None], object], seconds: float = 60.0) -> None:
        """Wait for a condition on the status. Raises RuntimeError."""
        end = time.monotonic() + seconds
        while not condition(await self.status()):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.directory.name}: the expected status did not appear\n{self.log()[-1500:]}")
            await asyncio.sleep(0.1)

    async def processed(self, events: int) -> None:
        """Wait until the node has decided this number of further events."""
        status = await self.status()
        before = 0 if status is None else status["events"]["processed"]
        await self.wait_for(lambda s: s is not None and s["events"]["processed"] >= before + events)

    def log(self) -> str:
        """The log of the last session."""
        return (self.directory / f"log{self._starts}").read_text(errors="replace")

    def command(self, *arguments: str) -> None:
        """Run hltnode ctl. Raises CalledProcessError."""
        command = [sys.executable, "-m", "hltnode.daemon", "ctl", *arguments, "--to", self.control]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    def post(self, path: str) -> None:
        """Send a request that the node refuses."""
        with contextlib.suppress(OSError):
            request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", data=b"", method="POST")
            urllib.request.urlopen(request, timeout=5).close()

    # Feeders

    async def feed(
        self,
        name: str = "feeder",
        sources: Sequence[int] = SOURCES,
        *,
        run: int = RUN,
        feeding: bool = True,
        first: int = 0,
    ) -> TestFeeder:
        """Start one more feeder."""
        feeder = TestFeeder(self, name, sources, run)
        self.feeders.append(feeder)
        return await feeder.start(feeding=feeding, first=first)

    # The disk

    def mount(self, size: str) -> None:
        """Mount a file system for the output; it uses memory only for written data."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.output.parent)], check=True)
        self.mounted = True
        # Alerts on disks have the file system in place of the node.
        self.names.add(filesystem_identity(self.output.parent))

    def resize(self, size: str | int) -> bool:
        """Change the size of the file system; False if its content is larger."""
        command = ["mount", "-t", "tmpfs", "-o", f"remount,size={size}", "tmpfs", str(self.output.parent)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def fill(self, *, free_pages: int = 0) -> None:
        """Fill the file system up to its last pages."""
        while True:
            status = os.statvfs(self.output.parent)
            if self.resize((status.f_blocks - status.f_bfree + free_pages) * status.f_frsize):
                return

    def part_files(self) -> list[Path]:
        """Open event files, those with events first."""
        return sorted(self.output.glob("*.part"), key=lambda path: -path.stat().st_size)

    async def close(self) -> None:
        """End all processes and unmount."""
        for feeder in self.feeders:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(feeder.vanish(), 5)
        for cleanup in self.cleanups:
            cleanup()
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.output.parent)], check=True)
