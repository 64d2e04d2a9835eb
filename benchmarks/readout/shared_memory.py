"""The ways from a feeder to a node of the same machine: shared memory against tcp and ipc, in processor time.

The seven real events, packed repeatedly into MEPs of all their sources, go to a node with an engine that computes and
accepts nothing. The node is a separate process with all of hltnode's readout, event building, credits and
acknowledgements. A feeder packs and sends. The time is the processor time of all threads of a process per event. The
ways take turns.
"""

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import uvloop
import zmq.asyncio

from benchmarks.lhcb.real_events import CHAIN, real_file
from benchmarks.measure import Result
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.shared_memory import SharedMemory
from hltnode.client.sockets import PLAIN, connect_to_node
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.daemon.replay.made_ahead import made_ahead
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import BatchLimits
from tests.daemon.fakes import FakeEngine, FakeWorkspace

FIGURES = "shared_memory"
MIB = 1 << 20
WAYS = ("tcp", "ipc", "shm")
EVENTS = {7: 700, 100: 2000, 1000: 4000}
"""Number of events of each turn, by events per MEP."""
RUNS = 5
MAX_FRAGMENT_BYTES = 16 * MIB
MEP_BYTES = 128 * MIB
SEGMENT_BYTES = 1024 * MIB


class _Workspace(FakeWorkspace):
    """Reads nothing."""

    def seal(self, meps: Sequence[MepInBatch]) -> None:
        self._meps = meps


class _Engine(FakeEngine):
    """Accepts nothing."""

    def __init__(self, limits: BatchLimits) -> None:
        super().__init__(limits)
        self._decisions[:] = 0

    def create_workspace(self) -> FakeWorkspace:
        self.workspaces.append(_Workspace(len(self.workspaces), self._limits, self.behaviour, self._decisions))
        return self.workspaces[-1]


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time per event (µs) of the node and of the feeder, and events per second."""

    node: float
    feeder: float
    rate: float


def serve(directory: str, way: str, orders: Connection) -> None:
    """Node process: reports its endpoints, then its processor time on request."""
    keep_heap()
    log.configure("warning", LogFormat.CONSOLE)
    uvloop.run(_serve(Path(directory), way, orders))


async def _serve(directory: Path, way: str, orders: Connection) -> None:
    config = NodeConfig.model_validate(
        {
            "node": {"name": way},
            "network": {
                "data": f"ipc://{directory}/data" if way == "ipc" else "tcp://127.0.0.1:*",
                "control": f"ipc://{directory}/control" if way != "tcp" else "tcp://127.0.0.1:*",
                "decisions": f"ipc://{directory}/decisions",
                "max_frame_bytes": MAX_FRAGMENT_BYTES,
            },
            "shared_memory": {"socket": f"{directory}/memory"},
            "builder": {"mep_timeout_ms": 60_000, "feeder_timeout_ms": 60_000, "max_mep_bytes": MEP_BYTES},
            "pipeline": {"slots": 3, "slot_bytes": 2 * MEP_BYTES, "max_events": 4096},
            "output": {"directory": f"{directory}/out"},
            "http": {"port": 0},
        }
    )
    node = Node(config, _Engine(batch_limits(config)), backend="none", version="0")
    await node.start()
    data = f"shm://{directory}/memory" if way == "shm" else node.receiver.endpoint
    orders.send((data, node.control.endpoint))
    asyncio.get_running_loop().add_reader(orders.fileno(), lambda: orders.send((orders.recv(), time.process_time())[1]))
    await node.run()


class NodeProcess:
    """A node with one way of transport."""

    def __init__(self, directory: Path, way: str) -> None:
        directory.mkdir()
        spawn = multiprocessing.get_context("spawn")
        self._orders, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(str(directory), way, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self.data, self.control = self._orders.recv()

    def cpu_seconds(self) -> float:
        """Processor time of all its threads."""
        self._orders.send(None)
        seconds: float = self._orders.recv()
        return seconds

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()


def feed(node: NodeProcess, path: Path, events_per_mep: int, run: int, memory: SharedMemory | None) -> Costs:
    """Feed a run over one way."""
    packing = Packing(
        events_per_mep=events_per_mep,
        max_fragment_bytes=MAX_FRAGMENT_BYTES,
        repeat=EVENTS[events_per_mep] // 7,
        memory=memory,
    )
    stream = meps_of_files([path], CHAIN.readout, packing)

    async def feed_all() -> Costs:
        identity = FeederIdentity(
            name="bench",
            run=run,
            sources=stream.sources,
            events_per_mep=stream.events_per_mep,
            max_fragment_bytes=MAX_FRAGMENT_BYTES,
        )
        with zmq.asyncio.Context() as context:
            connection = connect_to_node(context, node.data, node.control, PLAIN, memory)
            async with Feeder(connection, identity) as feeder:
                while not feeder.is_connected:
                    await asyncio.sleep(0.01)
                before = node.cpu_seconds(), time.process_time(), time.perf_counter()
                report = await feed_meps(made_ahead(stream), [feeder])
                after = node.cpu_seconds(), time.process_time(), time.perf_counter()
                if not report.complete:
                    raise RuntimeError(f"the node did not take all MEPs: {report}")
                of_node, of_feeder, seconds = ((b - a) / report.events for a, b in zip(before, after, strict=True))
                return Costs(of_node * 1e6, of_feeder * 1e6, 1 / seconds)

    return uvloop.run(feed_all())


def measure(path: Path, events_per_mep: int) -> dict[str, Costs]:
    """Medians of each way, in turn after a warm-up."""
    memory = SharedMemory(SEGMENT_BYTES)
    runs = count(1)
    with tempfile.TemporaryDirectory() as temporary:
        nodes = {way: NodeProcess(Path(temporary) / way, way) for way in WAYS}
        try:
            found: dict[str, list[Costs]] = {way: [] for way in WAYS}
            for turn in range(RUNS + 1):
                for way in WAYS if turn % 2 else WAYS[::-1]:
                    costs = feed(nodes[way], path, events_per_mep, next(runs), memory if way == "shm" else None)
                    if turn:
                        found[way].append(costs)
        finally:
            for node in nodes.values():
                node.close()
            memory.close()
    return {
        way: Costs(
            *(statistics.median(values) for values in zip(*((c.node, c.feeder, c.rate) for c in costs), strict=True))
        )
        for way, costs in found.items()
    }


def run(shared: Path) -> Iterator[Result]:
    """Measure MEPs of each size for node and feeder, against tcp and ipc."""
    for events_per_mep in EVENTS:
        costs = measure(real_file(shared), events_per_mep)
        for what in ("node", "feeder"):
            own = getattr(costs["shm"], what)
            for way in ("tcp", "ipc"):
                other = getattr(costs[way], what)
                yield Result(
                    f"{what}, {events_per_mep} events per MEP",
                    own,
                    "µs of processor time per event",
                    f"{way}: {other:,.0f} µs",
                    other / own,
                )


def summary(results: list[Result]) -> dict[str, object]:
    """Ratio of the processor time of the other way to shared memory, by MEP size, process and way."""
    found: dict[str, object] = {}
    ratios = iter(results)
    for events_per_mep in EVENTS:
        found[str(events_per_mep)] = {
            f"{what}_{way}_ratio": next(ratios).ratio for what in ("node", "feeder") for way in ("tcp", "ipc")
        }
    return found
