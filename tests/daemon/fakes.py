"""An engine without kernels, synthetic MEPs, and a node in the test's own loop."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import zmq.asyncio
from numpy.typing import NDArray

from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.mep import FeedMep
from hltnode.client.sockets import FeederConnection, FeederSockets, Trouble
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.event_pictures import Draw
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits, request_batch_limits
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError, Timings
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.channel_groups import CountedChannels
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.histograms import HistogramShape, n_counts
from hltnode.processing.framework.limits import BatchLimits, line_words
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.framework.memory_plan import SlotMemory
from hltnode.processing.framework.output_lists import ListContent, OutputList, no_words
from hltnode.processing.framework.streaming import Streaming
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.followed_conditions import FollowedConditions
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.lumi_summary import CounterRange
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.control_messages import ControlMessage

RUN = 42
TCK = 0xC0FFEE
TRACKS_PER_EVENT = 3
ODIN_SOURCE = 0
SOURCES = (ODIN_SOURCE, 4096, 4097, 6144)


@dataclass
class FakeOutput:
    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    selected: ListContent
    counts: dict[str, NDArray[np.uint32]]
    lists: Mapping[str, ListContent] = field(default_factory=dict)
    summary: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 0), np.uint32))


@dataclass
class Behaviour:
    """How the fake back end behaves; may be changed while it runs."""

    seconds: float = 0.0
    fail_next: int = 0
    broken: bool = False  # fails on every batch, the empty one of the warm-up included
    lost_in: str = ""  # `submit` or `poll`: there the device is lost
    hang: threading.Event = field(default_factory=threading.Event)
    hanging_slots: set[int] = field(default_factory=set)
    crawl: bool = False  # batches that hang still make progress, a step with each poll
    direct: bool = False  # computes batches in the calling thread
    threads: int = 1  # of the back end
    deadly: bytes = b""  # a fragment with these bytes ends the process


def lines_of_event(event: int, n_lines: int) -> list[int]:
    """The lines of the fake engine that accept this event of a MEP: none if its number is even, else the last line
    and those whose numbers are multiples of twice its own."""
    return sorted({n_lines - 1, *range(0, n_lines, 2 * event)}) if event % 2 else []


class FakeWorkspace:
    """Accepts every second event of a MEP, as `lines_of_event` says."""

    def __init__(self, slot: int, limits: BatchLimits, behaviour: Behaviour, decisions: NDArray[np.uint32]) -> None:
        self._slot = slot
        self._decisions = decisions
        self._input = np.zeros(limits.input_bytes, dtype=np.uint8)
        self._behaviour = behaviour
        self._done_at = 0.0
        self._meps: Sequence[MepInBatch] = ()
        self._failed = False
        self.batches: list[int] = []
        self.directly: list[int] = []
        self.counted = np.zeros(n_counts(FakeEngine.histograms), np.uint32)
        self.progress = 0
        self.polls = 0

    @property
    def input_data(self) -> NDArray[np.uint8]:
        return self._input

    def seal(self, meps: Sequence[MepInBatch]) -> None:
        for mep in meps:
            for source, offset, size in mep.fragments:
                header = self._input[offset : offset + 20]
                assert int.from_bytes(header[0:2].tobytes(), "little") == 0x40CE
                assert int.from_bytes(header[4:8].tobytes(), "little") == size
                assert int.from_bytes(header[16:18].tobytes(), "little") == source
        self._meps = meps

    def submit(self, ended: Callable[[], None]) -> None:
        self._lose_device("submit")
        if self._behaviour.deadly and any(self._has(mep, self._behaviour.deadly) for mep in self._meps):
            os.kill(os.getpid(), signal.SIGKILL)
        self._failed = bool(self._meps) and self._behaviour.fail_next > 0
        self._behaviour.fail_next -= self._failed
        self._done_at = time.monotonic() + (self._behaviour.seconds if self._meps else 0.0)
        self.batches.append(len(self._meps))
        if self._done_at > time.monotonic():
            timer = threading.Timer(self._behaviour.seconds, ended)
            timer.daemon = True
            timer.start()
        else:
            ended()

    def compute_directly(self) -> bool:
        if not self._behaviour.direct:
            return False
        if self._behaviour.fail_next > 0:
            self._behaviour.fail_next -= 1
            raise BackendError("the fake device has fallen off the bus")
        self._failed = False
        self.directly.append(len(self._meps))
        while self._behaviour.hang.is_set():
            self.progress += self._behaviour.crawl
            time.sleep(0.01)
        return True

    def compute_here(self) -> bool:
        if not self.compute_directly():
            return False
        self._lose_device("submit")
        self.progress += 1
        return True

    @property
    def sharing_threads(self) -> int:
        return self._behaviour.threads

    def _has(self, mep: MepInBatch, wanted: bytes) -> bool:
        return any(wanted in self._input[begin : begin + size].tobytes() for _, begin, size in mep.fragments)

    def _lose_device(self, call: str) -> None:
        if self._behaviour.lost_in == call:
            raise DeviceLostError("the fake device computes nothing any more")

    def poll(self) -> bool:
        self.polls += 1
        self._lose_device("poll")
        if self._failed or self._behaviour.broken:
            raise BackendError("the fake device has fallen off the bus")
        hangs = self._behaviour.hang.is_set() or self._slot in self._behaviour.hanging_slots
        done = not hangs and time.monotonic() >= self._done_at
        self.progress += done or self._behaviour.crawl
        return done

    def take_histogram_counts(self) -> NDArray[np.uint32]:
        counted, self.counted = self.counted, np.zeros_like(self.counted)
        return counted

    @property
    def timings(self) -> Timings:
        return Timings(1e-4, self._behaviour.seconds, 1e-4)

    @property
    def compiled_batch(self) -> None:
        return None

    @property
    def decision_rows(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
        output = self.output
        return output.accepted, output.lines, output.flags

    @property
    def output(self) -> FakeOutput:
        n = sum(mep.n_events for mep in self._meps)
        lines = np.concatenate([self._decisions[: mep.n_events] for mep in self._meps])
        flags = np.concatenate([np.full(mep.n_events, int(mep.flags), dtype=np.uint32) for mep in self._meps])
        assert len(lines) == n
        counts = {"tracks": np.full(n, TRACKS_PER_EVENT, dtype=np.uint32)}
        return FakeOutput(np.asarray(lines.any(axis=1), dtype=np.uint8), lines, flags, no_words(n), counts)


class FakeEngine:
    """What the daemon needs of an engine."""

    collections = ("tracks",)
    summary: tuple[CounterRange, ...] = ()
    lists: Mapping[str, OutputList] = {}
    streaming: Streaming | None = None
    windows: OutputList | None = None
    flags = FlagTable()
    subdetectors: Mapping[int, str] = {}
    error_types: Mapping[int, str] = {89: "DAQ_ERROR_FRAGMENT_THROTTLED", 92: "DAQ_ERROR_FRAGMENT_MISSING"}
    histograms: tuple[HistogramShape, ...] = ()
    measured: tuple[MeasuredQuantity, ...] = ()
    counted: tuple[CountedChannels, ...] = ()
    tck = TCK
    memory = SlotMemory(device=3 << 20, pinned=1 << 20, thread=0, per_event=4096)

    def __init__(self, limits: BatchLimits, lines: tuple[str, ...] = ("every_second",)) -> None:
        self.lines = lines
        self.line_routing = np.zeros((len(lines), 3), dtype=np.uint32)
        fired = np.zeros((limits.events, 32 * line_words(len(lines))), dtype=np.uint8)
        for event in range(limits.events):
            fired[event, lines_of_event(event, len(lines))] = 1
        self._decisions = np.packbits(fired, axis=1, bitorder="little").view("<u4")
        self.behaviour = Behaviour()
        self.workspaces: list[FakeWorkspace] = []
        self.closed = False
        self._limits = limits

    def channels(self, changed: Mapping[str, NDArray[np.uint8]]) -> tuple[CountedChannels, ...]:
        return self.counted

    def replace_constants(
        self, constants: Mapping[str, NDArray[np.uint8]], measured: Sequence[MeasuredQuantity], tck: int
    ) -> None:
        self.constants, self.measured, self.tck = constants, tuple(measured), tck

    def create_workspace(self) -> FakeWorkspace:
        slot = len(self.workspaces)
        self.workspaces.append(FakeWorkspace(slot, self._limits, self.behaviour, self._decisions))
        return self.workspaces[-1]

    def create_direct_workspace(self) -> FakeWorkspace:
        return self.create_workspace()

    def close(self) -> None:
        self.closed = True


def make_config(directory: Path, **sections: Mapping[str, object]) -> NodeConfig:
    """A small node on free ports of the loopback."""
    values: dict[str, Mapping[str, object]] = {
        "node": {"name": "testnode"},
        "network": {
            "data": "tcp://127.0.0.1:*",
            "control": "tcp://127.0.0.1:*",
            "decisions": "tcp://127.0.0.1:*",
            "max_frame_bytes": 64 * 1024,
        },
        "builder": {"mep_timeout_ms": 300, "max_mep_bytes": 64 * 1024},
        "pipeline": {"slots": 3, "slot_bytes": 512 * 1024, "max_events": 256, "flush_deadline_us": 10_000},
        "output": {"directory": str(directory / "out")},
        "http": {"port": 0},
    }
    for section, change in sections.items():
        values[section] = {**values.get(section, {}), **change}
    return NodeConfig.model_validate(values)


@asynccontextmanager
async def running_node(
    config: NodeConfig, lines: tuple[str, ...] = ("every_second",)
) -> AsyncIterator[tuple[Node, FakeEngine]]:
    """A node that is ready; stopped and drained afterwards."""
    engine = FakeEngine(batch_limits(config), lines)
    asked = None if config.requests.endpoint is None else FakeEngine(request_batch_limits(config), lines)
    async with node_of_engine(config, engine, "fake", request_engine=asked) as node:
        yield node, engine


@asynccontextmanager
async def node_of_engine(
    config: NodeConfig,
    engine: Engine,
    backend: str,
    trigger: TckDocument | None = None,
    draw: Callable[[], Draw] | None = None,
    followed: FollowedConditions | None = None,
    request_engine: Engine | None = None,
) -> AsyncIterator[Node]:
    """The same with an engine that the test has made."""
    node = Node(
        config,
        engine,
        backend=backend,
        version="0",
        trigger=trigger,
        draw=draw,
        followed=followed,
        request_engine=request_engine,
    )
    await node.start()
    task = asyncio.create_task(node.run())
    try:
        yield node
    finally:
        if not node._stop.is_set():
            node.request_stop()
        await task


def synthetic_meps(
    n: int, *, sources: Sequence[int] = SOURCES, events: int = 8, seed: int = 1, first: int = 0, size: int = 40
) -> Iterator[FeedMep]:
    """MEPs of random banks, of a type that no kernel decodes; each starts with the number of its event (u64)."""
    rng = np.random.default_rng(seed)
    for mep in range(first, first + n):
        mfps = {
            source: encode_mfp(
                source_id=source,
                event_id=mep * events,
                version=1,
                types=[LhcbBankType.TEST_DET] * events,
                fragments=[
                    (mep * events + i).to_bytes(8, "little") + rng.bytes(int(rng.integers(0, size)))
                    for i in range(events)
                ],
            )
            for source in sources
        }
        yield FeedMep.of_mfps(mep, mep * events, mfps)


class InterceptedConnection:
    """The sockets of a feeder to a node, whose messages a test holds back or replaces."""

    memory = None

    def __init__(self, context: zmq.asyncio.Context, node: Node) -> None:
        self._sockets = FeederSockets(context, node.receiver.endpoint, node.control.endpoint)
        self.sends_messages = True
        """Without, no message leaves, and the end of the context closes the sockets as that of a killed process."""
        self.received: Callable[[bytes], bytes | None] = lambda raw: raw
        """What the feeder receives for a message of the node, None for nothing."""

    @property
    def troubles(self) -> Sequence[Trouble]:
        return self._sockets.troubles

    async def send_frames(self, frames: list[Buffer]) -> int:
        return await self._sockets.send_frames(frames)

    async def send_message(self, message: ControlMessage) -> None:
        if self.sends_messages:
            await self._sockets.send_message(message)

    def reconnect(self) -> None:
        self._sockets.reconnect()

    async def receive_message(self) -> bytes:
        while (message := self.received(await self._sockets.receive_message())) is None:
            pass
        return message

    async def close(self, last: ControlMessage) -> None:
        if self.sends_messages:
            await self._sockets.close(last)


def make_feeder(
    context: zmq.asyncio.Context,
    node: Node,
    *,
    connection: FeederConnection | None = None,
    name: str = "feeder",
    sources: Sequence[int] = SOURCES,
    run: int = RUN,
    events: int = 8,
    max_fragment_bytes: int = 60_000,
    chain: str = "",
) -> Feeder:
    """A feeder that is connected to a node of this process."""
    identity = FeederIdentity(
        name=name,
        run=run,
        sources=tuple(sources),
        events_per_mep=events,
        max_fragment_bytes=max_fragment_bytes,
        chain=chain,
    )
    return Feeder(connection or FeederSockets(context, node.receiver.endpoint, node.control.endpoint), identity)


async def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a condition holds; fails the test if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "condition did not come true in time"
        await asyncio.sleep(0.005)
