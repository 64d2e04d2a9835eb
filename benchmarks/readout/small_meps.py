"""What a small MEP costs beside its computing: processor time of a node per MEP of 16 events, by number of MEPs whose
decisions share a message.

The node is a process with all of hltnode's readout, event building, outputs and acknowledgements, and an engine that
computes and accepts nothing. One feeder sends MEPs of one source and 1,168 bytes over ipc, as those of NA62's RICH. A
subscriber receives the decisions. The ways take turns.

`python -m benchmarks.readout.small_meps` prints the functions that take the time of the node's event loop (cProfile).
"""

import asyncio
import cProfile
import io
import multiprocessing
import pstats
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import uvloop
import zmq.asyncio

from benchmarks.measure import Result
from hltnode.client.feeder import Feeder, FeederIdentity
from hltnode.client.mep import FeedMep
from hltnode.client.sockets import FeederSockets
from hltnode.daemon.common import log
from hltnode.daemon.common.vocabulary import LogFormat
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.limits import line_words
from hltnode.processing.framework.output_lists import no_words
from hltnode.protocol.raw_data.mfp import encode_mfp
from tests.daemon.fakes import FakeEngine, FakeOutput, FakeWorkspace

FIGURES = "small_meps"
WAYS = (1, 256)
EVENTS_PER_MEP = 16
FRAGMENT_BYTES = 68
MEPS = 600
RUNS = 3


class _Workspace(FakeWorkspace):
    """Reads nothing, and decides nothing."""

    n_lines = 1

    def seal(self, meps: Sequence[MepInBatch]) -> None:
        self._meps = meps

    @property
    def output(self) -> FakeOutput:
        n = sum(mep.n_events for mep in self._meps)
        lines = np.zeros((n, line_words(self.n_lines)), np.uint32)
        counts = {"tracks": np.zeros(n, np.uint32)}
        return FakeOutput(np.zeros(n, np.uint8), lines, np.zeros(n, np.uint32), no_words(n), counts)


class _Engine(FakeEngine):
    def create_workspace(self) -> FakeWorkspace:
        self.workspaces.append(_Workspace(len(self.workspaces), self._limits, self.behaviour, self._decisions))
        return self.workspaces[-1]


def serve(directory: str, meps_per_message: int, orders: Connection, profiled: bool) -> None:
    """Node process: reports its endpoints, then its processor time on request."""
    keep_heap()
    log.configure("warning", LogFormat.CONSOLE)
    uvloop.run(_serve(Path(directory), meps_per_message, orders, profiled))


async def _serve(directory: Path, meps_per_message: int, orders: Connection, profiled: bool) -> None:
    config = NodeConfig.model_validate(
        {
            "node": {"name": f"n{meps_per_message}"},
            "network": {
                "data": f"ipc://{directory}/data",
                "control": f"ipc://{directory}/control",
                "decisions": f"ipc://{directory}/decisions",
                "max_frame_bytes": 1 << 16,
            },
            "builder": {"mep_timeout_ms": 60_000, "feeder_timeout_ms": 60_000, "max_mep_bytes": 1 << 16},
            "pipeline": {"slots": 3, "slot_bytes": 32 << 20, "max_events": 4096, "flush_deadline_us": 2000},
            "decisions": {"meps_per_message": meps_per_message, "policy": "wait"},
            "output": {"directory": f"{directory}/out"},
            "http": {"port": 0},
        }
    )
    node = Node(config, _Engine(batch_limits(config)), backend="none", version="0")
    profile = cProfile.Profile(time.thread_time)
    await node.start()
    orders.send((node.receiver.endpoint, node.control.endpoint, node.publisher.endpoint))

    def answer() -> None:
        order = orders.recv()
        if order == "profile" and profiled:
            profile.enable()
        if order == "report":
            profile.disable()
            text = io.StringIO()
            pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(45)
            orders.send(text.getvalue())
        else:
            orders.send(time.process_time())

    asyncio.get_running_loop().add_reader(orders.fileno(), answer)
    await node.run()


class NodeProcess:
    """A node with a number of MEPs per decision message."""

    def __init__(self, directory: Path, meps_per_message: int, *, profiled: bool = False) -> None:
        directory.mkdir()
        spawn = multiprocessing.get_context("spawn")
        self._orders, theirs = spawn.Pipe()
        arguments = (str(directory), meps_per_message, theirs, profiled)
        self._process = spawn.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.data, self.control, self.decisions = self._orders.recv()

    def ask(self, order: str = "") -> object:
        """The processor time of all its threads, or its profile with the order "report"."""
        self._orders.send(order)
        return self._orders.recv()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()


def made_meps(n: int) -> list[FeedMep]:
    """MEPs of one source."""
    payload = bytes(FRAGMENT_BYTES)
    found = []
    for mep in range(n):
        mfp = encode_mfp(
            source_id=4096,
            event_id=mep * EVENTS_PER_MEP,
            version=1,
            types=[8] * EVENTS_PER_MEP,
            fragments=[payload] * EVENTS_PER_MEP,
        )
        found.append(FeedMep.of_mfps(mep, mep * EVENTS_PER_MEP, {4096: mfp}))
    return found


def feed(node: NodeProcess, run: int, n_meps: int) -> tuple[float, float]:
    """Processor time of the node per MEP (µs), and MEPs per second."""
    meps = made_meps(n_meps)

    async def feed_all() -> tuple[float, float]:
        identity = FeederIdentity(
            name="bench", run=run, sources=(4096,), events_per_mep=EVENTS_PER_MEP, max_fragment_bytes=1 << 15
        )
        with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as subscriber:
            subscriber.subscribe(b"")
            subscriber.setsockopt(zmq.LINGER, 0)
            subscriber.setsockopt(zmq.RCVHWM, 0)
            subscriber.connect(node.decisions)
            async with Feeder(FeederSockets(context, node.data, node.control), identity) as feeder:
                await feeder.welcomed()
                before, begin = float(str(node.ask("profile"))), time.perf_counter()
                for mep in meps:
                    await feeder.offer(mep)
                await feeder.finish(n_meps - 1)
                after, end = float(str(node.ask())), time.perf_counter()
        return (after - before) / n_meps * 1e6, n_meps / (end - begin)

    return uvloop.run(feed_all())


def measure(ways: Sequence[int] = WAYS, runs: int = RUNS, n_meps: int = MEPS) -> dict[int, tuple[float, float]]:
    """Medians of each way, in turn after a warm-up: processor time per MEP (µs), MEPs per second."""
    numbers = count(1)
    with tempfile.TemporaryDirectory() as temporary:
        nodes = {way: NodeProcess(Path(temporary) / str(way), way) for way in ways}
        found: dict[int, list[tuple[float, float]]] = {way: [] for way in ways}
        try:
            for turn in range(runs + 1):
                for way in ways if turn % 2 else ways[::-1]:
                    costs = feed(nodes[way], next(numbers), n_meps)
                    if turn:
                        found[way].append(costs)
        finally:
            for node in nodes.values():
                node.close()
    return {
        way: (statistics.median(c[0] for c in costs), statistics.median(c[1] for c in costs))
        for way, costs in found.items()
    }


def run(_shared: Path) -> Iterator[Result]:
    """The results."""
    costs = measure()
    (alone, rate), (shared, rate_shared) = (costs[way] for way in WAYS)
    one, many = "a message for each MEP", f"up to {WAYS[1]} MEPs in a message"
    yield Result(f"node per MEP of {EVENTS_PER_MEP} events, processor time, {one}", alone, "µs", "", None)
    yield Result(f"the same, {many}", shared, "µs", one, alone / shared)
    yield Result(f"MEPs per second, {one}", rate, "1/s", "", None)
    yield Result(f"the same, {many}", rate_shared, "1/s", one, rate_shared / rate)


def profile() -> None:
    """Print where the time of the event loop goes."""
    for way in WAYS:
        with tempfile.TemporaryDirectory() as temporary:
            node = NodeProcess(Path(temporary) / "node", way, profiled=True)
            try:
                print(f"{way} MEPs per message: {feed(node, 1, MEPS)[0]:.1f} µs of the node per MEP, with cProfile")
                print(node.ask("report"))
            finally:
                node.close()


if __name__ == "__main__":
    profile()
