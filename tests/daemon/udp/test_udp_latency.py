"""Decisions first with datagrams: no MEP id of a decision that may have left is used again."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import zmq
import zmq.asyncio

from hltnode.daemon.compute.interruptions import RESERVED_MEPS
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.node.node import Node
from hltnode.daemon.storage.journal import Journal
from hltnode.protocol.transport.decisions import MepDecision, decode_decision
from tests.daemon.fakes import eventually, make_config, make_feeder, running_node, synthetic_meps
from tests.daemon.udp.packets import EVENTS, RUN, SOURCES, burst_of

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]

PACKETS = 2
"""Packets of a MEP."""


def config_of(tmp_path: Path) -> NodeConfig:
    udp = {
        "endpoint": "udp://127.0.0.1:0",
        "senders": [{"address": "127.0.0.1", "sources": SOURCES}],
        "events_per_packet": EVENTS,
        "packets_per_mep": PACKETS,
        "flush_us": 10_000_000,
    }
    return make_config(tmp_path, udp=udp, latency={"decisions_first": True}, output={"streams": ["error"]})


class Listener:
    """A subscriber of the decisions of a node, and a sender of datagrams."""

    def __init__(self, context: zmq.asyncio.Context, node: Node) -> None:
        self.node = node
        self.subscriber = context.socket(zmq.SUB)
        self.subscriber.subscribe(b"")
        self.subscriber.connect(node.publisher.endpoint)

    async def send(self, n_meps: int, burst: int = 1) -> None:
        await eventually(lambda: self.node.counters.decisions.subscribers > 0)
        receiver = self.node._sockets.udp_receiver
        assert receiver is not None
        address = "127.0.0.1", int(receiver.endpoint.rpartition(":")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _, _, datagram in burst_of(n_meps * PACKETS, burst=burst):
                sender.sendto(datagram, address)

    async def take(self, n: int, seconds: float = 20.0) -> list[MepDecision]:
        async with asyncio.timeout(seconds):
            return [decode_decision(await self.subscriber.recv()) for _ in range(n)]


@pytest.fixture
def context() -> Iterator[zmq.asyncio.Context]:
    with zmq.asyncio.Context() as context:
        yield context
        context.destroy(linger=0)


async def test_ids_of_meps_that_were_computed_before_a_kill_are_not_used_again(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    """Decisions of MEPs up to `last` may have left before the kill; boards send these events to no other session."""
    last = 6 + RESERVED_MEPS
    seen: list[MepDecision] = []
    for burst in (1, 2):
        async with running_node(config_of(tmp_path)) as (node, _):
            listener = Listener(context, node)
            await listener.send(2, burst)
            seen += await listener.take(2)
            await eventually(partial(lambda node: node.counters.meps_acknowledged == 2, node))
            if burst == 1:
                node._path.store.journal.begin_batch(RUN, [(2, last)])
    assert [decision.mep for decision in seen] == [0, 1, last + 1, last + 2]


async def test_only_ids_of_datagrams_are_reserved_ahead(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feeder with the sources of the boards sends its MEPs again, so each of them has its notes."""
    for directory in ("boards", "feeder"):
        (tmp_path / directory).mkdir()
    async with running_node(config_of(tmp_path / "boards")) as (node, _):
        listener = Listener(context, node)
        await listener.send(1)
        await listener.take(1)
        assert node._path.store.journal.begun_below(RUN) == RESERVED_MEPS
        assert node._path._comes_once(RUN)
        assert not node._path._comes_once(RUN + 1)
        # When the next run has started, the sources of this one are not known any more.
        with monkeypatch.context() as patched:
            patched.setattr(node._core.builder, "run", RUN + 1)
            assert not node._path._comes_once(RUN)
    async with (
        running_node(config_of(tmp_path / "feeder")) as (node, _),
        make_feeder(context, node, sources=SOURCES, run=RUN) as feeder,
    ):
        await feeder.offer(next(synthetic_meps(1, sources=SOURCES)))
        await eventually(lambda: node.counters.meps_acknowledged == 1)
        assert node._path.store.journal.begun_below(RUN) == 1
        assert not node._path._comes_once(RUN)


@pytest.mark.parametrize("noted", [True, False])
async def test_decisions_on_datagrams_go_first_only_if_the_journal_keeps_their_ids(
    tmp_path: Path, context: zmq.asyncio.Context, monkeypatch: pytest.MonkeyPatch, noted: bool
) -> None:
    """A disk that refuses the note does not keep the id; then the decision waits for the journal, as usual."""
    if not noted:
        monkeypatch.setattr(Journal, "reserve", lambda *_: None)
    async with running_node(config_of(tmp_path)) as (node, _):
        listener, released = Listener(context, node), threading.Event()
        store = node._path.store
        commit = store.commit

        def held(run: int, meps: tuple[tuple[int, int], ...]) -> None:
            assert released.wait(20.0)
            commit(run, meps)

        monkeypatch.setattr(store, "commit", held)
        await listener.send(1)
        if noted:
            [decision] = await listener.take(1)
        else:
            await eventually(lambda: node._path.gather._queue.empty() and node.builder_control.builder._gathered)
            with pytest.raises(TimeoutError):
                await listener.take(1, seconds=0.3)
        assert node.counters.meps_acknowledged == 0
        released.set()
        if not noted:
            [decision] = await listener.take(1)
        assert (decision.mep, decision.n_events) == (0, PACKETS * EVENTS)
        await eventually(lambda: node.counters.meps_acknowledged == 1)
    assert node.counters.decisions_first == noted
