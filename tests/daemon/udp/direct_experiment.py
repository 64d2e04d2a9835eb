"""A node whose receiving threads decide MEPs of datagrams, for tests of direct decisions."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zmq

from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.node import Node
from hltnode.daemon.node.sizing import batch_limits
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from tests.daemon.fakes import Behaviour, FakeEngine, FakeWorkspace, eventually, make_config, node_of_engine
from tests.daemon.udp.direct_batch import HeldBatch
from tests.daemon.udp.packets import EVENTS, RUN, SOURCES, burst_of

PACKETS = 2
"""Packets of a MEP."""
MOST_MEPS = 64
SECONDS = 20.0
LINES = f"""
[[lines]]
type = "SourceSize"
name = "Large"
source = {SOURCES[1]}
min_size = 15
"""
"""A packet has banks of 10 to 18 bytes."""
SHORT = "hltnode.daemon.compute.pipeline.SHORT_SECONDS"
"""On a busy machine the kernels of a short batch may take longer."""


def config_of(tmp_path: Path, **changes: dict[str, object]) -> NodeConfig:
    sections: dict[str, dict[str, object]] = {
        "udp": {
            "endpoint": "udp://127.0.0.1:0",
            "senders": [{"address": "127.0.0.1", "sources": SOURCES}],
            "events_per_packet": EVENTS,
            "packets_per_mep": PACKETS,
            "flush_us": 10_000_000,
        },
        "latency": {"decisions_first": True, "serial": True},
        "pipeline": {"threads": 1, "max_events": 64, "slot_bytes": 1 << 20, "slots": 3},
        "output": {"streams": ["error"]},
    }
    for section, values in changes.items():
        sections[section] = {**sections.get(section, {}), **values}
    return make_config(tmp_path, **sections)


class Experiment:
    """A node with a direct workspace that a test can stop, a sender of datagrams, and a subscriber of decisions."""

    behaviour: Behaviour

    def __init__(
        self, node: Node, batch: HeldBatch | None, subscriber: zmq.Socket[bytes], cpus: list[set[int]]
    ) -> None:
        self.node, self._batch, self._subscriber = node, batch, subscriber
        self.cpus = cpus
        """The CPUs of the thread of each direct computation."""
        receiver = node._sockets.udp_receiver
        assert receiver is not None
        self.receiver, self.intake = receiver, receiver._intake

    @property
    def batch(self) -> HeldBatch:
        """The batch of the direct workspace of a fake engine."""
        assert self._batch is not None
        return self._batch

    def send(self, mep: int, *, burst: int = 1, run: int = RUN, ends_run: bool = False, without: int = -1) -> None:
        """Send the datagrams of a MEP; without those of a source. With `ends_run`, it is the last one of the run."""
        address = "127.0.0.1", int(self.receiver.endpoint.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            n_meps = mep + 1 if ends_run else MOST_MEPS
            for source, sequence, datagram in burst_of(n_meps * PACKETS, burst=burst, run=run, ends_run=ends_run):
                if sequence // PACKETS == mep and source != without:
                    sender.sendto(datagram, address)

    def wait_for_meps(self, n: int) -> None:
        """Until the datagrams of this number of MEPs are joined. The event loop is blocked meanwhile."""
        end = time.monotonic() + SECONDS
        while self.intake.counts()["packets"] < n * PACKETS * len(SOURCES):
            assert time.monotonic() < end
            time.sleep(0.001)

    def take(self, seconds: float = SECONDS) -> MepDecision | None:
        """The next decision. The event loop is blocked meanwhile."""
        return decode_decision(self._subscriber.recv()) if self._subscriber.poll(int(seconds * 1000)) else None

    async def next(self) -> MepDecision:
        """The next decision; the node works meanwhile."""
        await eventually(lambda: bool(self._subscriber.poll(0)))
        return decode_decision(self._subscriber.recv())

    async def subscribed(self) -> None:
        """Wait until the node knows its subscriber."""
        await eventually(lambda: self.node.counters.decisions.subscribers > 0)

    async def begin(self) -> None:
        """Have the first MEP of a run decided the usual way, until the next one may be decided directly."""
        await self.subscribed()
        self.send(0)
        assert (await self.next()).mep == 0
        await self.rest(1)

    async def rest(self, n_meps: int) -> None:
        """Wait until the node has nothing to do."""
        await eventually(lambda: self.node.counters.meps_acknowledged == n_meps and self.node.builder.is_idle)

    def wait_for_decision(self) -> None:
        """Until the receiving thread has sent a decision. The event loop is blocked meanwhile."""
        end = time.monotonic() + SECONDS
        while self.batch.computed == 0 or self.intake.computes_since_ns:
            assert time.monotonic() < end
            time.sleep(0.001)


@asynccontextmanager
async def experiment(config: NodeConfig, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Experiment]:
    engine, batches, cpus = FakeEngine(batch_limits(config)), list[HeldBatch](), list[set[int]]()
    engine.behaviour.direct = True

    def compiled(workspace: FakeWorkspace) -> HeldBatch:
        batches.append(HeldBatch(workspace, cpus.append))
        return batches[-1]

    monkeypatch.setattr(SHORT, SECONDS)
    monkeypatch.setattr(FakeWorkspace, "compiled_batch", property(compiled))
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        async with node_of_engine(config, engine, "fake") as node:
            subscriber.subscribe(b"")
            subscriber.connect(node.publisher.endpoint)
            [batch] = batches
            it = Experiment(node, batch, subscriber, cpus)
            it.behaviour = engine.behaviour
            try:
                yield it
            finally:
                batch.may_compute.set()
