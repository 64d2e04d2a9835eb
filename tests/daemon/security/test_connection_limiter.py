"""Limits on real connections: connections above a limit end, and their descriptors are free again."""

import asyncio
import errno
import os
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import zmq.asyncio

from hltnode.daemon.common.vocabulary import ConnectionEvent, ConnectionRefusal, Endpoint
from hltnode.daemon.node.node import Node
from hltnode.daemon.replay.single_node import feed_meps
from hltnode.daemon.security import connection_limiter
from hltnode.daemon.security.message_budget import ADDRESS_AT_ONCE, FLOOD_MESSAGES
from hltnode.daemon.security.tcp_connection import TcpConnection
from tests.attacks.raw_peer import MORE, RawPeer, frame, frame_header, subscribe
from tests.daemon.fakes import eventually, make_config, make_feeder, running_node, synthetic_meps

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("nothing_is_left_behind")]


def limited(tmp_path: Path, **limits: Any) -> Any:
    return running_node(make_config(tmp_path, limits=limits))


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    context = zmq.asyncio.Context()
    yield context
    context.destroy(linger=0)


def port(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def refused(node: Node, endpoint: Endpoint, reason: ConnectionRefusal) -> Callable[[], int]:
    return lambda: node.counters.operation.connections_refused[endpoint, reason]


async def in_thread(peer: RawPeer, socket_type: bytes) -> RawPeer:
    return await asyncio.to_thread(peer.shake_hands, socket_type)


async def test_connections_of_an_address_are_limited_before_a_handshake_and_others_still_feed(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with limited(tmp_path, connections=16, connections_of_this_machine=12) as (node, _):
        open_now = node.counters.operation.open_connections
        peers = [RawPeer(port(node.receiver.endpoint), "127.0.0.2") for _ in range(40)]
        await eventually(lambda: refused(node, Endpoint.DATA, ConnectionRefusal.ADDRESS_FULL)() == 28)
        await eventually(lambda: open_now[Endpoint.DATA] == 12)
        more = [RawPeer(port(node.receiver.endpoint), "127.0.0.3") for _ in range(12)]
        # The socket is full, and the feeder's address has the fewest connections.
        async with make_feeder(context, node) as feeder:
            assert (await feed_meps(synthetic_meps(5), [feeder])).complete
        assert refused(node, Endpoint.DATA, ConnectionRefusal.SOCKET_FULL)()
        for peer in peers + more:
            peer.close()
        await eventually(lambda: open_now[Endpoint.DATA] == 0)


async def test_a_frame_that_is_not_finished_in_time_ends_its_connection(tmp_path: Path) -> None:
    async with limited(tmp_path, unfinished_seconds=0.5) as (node, _):
        with RawPeer(port(node.receiver.endpoint)) as peer:
            await in_thread(peer, b"PUSH")
            assert peer.send(frame_header(70 * 1024) + bytes(69 * 1024))
            await eventually(refused(node, Endpoint.DATA, ConnectionRefusal.STALLED))
            await eventually(peer.is_cut)


async def test_a_connection_accepted_while_descriptors_were_exhausted_is_limited_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([errno.EMFILE, errno.ENFILE])

    def connection(descriptor: int, local_port: int | None) -> TcpConnection:
        if (number := next(failures, None)) is not None:
            raise OSError(number, os.strerror(number))
        return TcpConnection(descriptor, local_port)

    monkeypatch.setattr(connection_limiter, "TcpConnection", connection)
    async with limited(tmp_path, unfinished_seconds=0.5) as (node, _):
        with RawPeer(port(node.receiver.endpoint)) as peer:
            await in_thread(peer, b"PUSH")
            assert peer.send(frame_header(70 * 1024) + bytes(69 * 1024))
            await eventually(refused(node, Endpoint.DATA, ConnectionRefusal.STALLED))
            await eventually(peer.is_cut)
        await eventually(lambda: node.counters.operation.open_connections[Endpoint.DATA] == 0)


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1, hard))
    try:
        with suppress(OSError):
            while True:
                used.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in used:
            os.close(descriptor)


async def test_the_limiter_follows_connections_at_once_when_descriptors_are_free_again(tmp_path: Path) -> None:
    async with limited(tmp_path) as (node, _):
        connections = node.counters.operation.connections
        with socket.socket() as peer:
            with no_free_descriptor():
                peer.connect(("127.0.0.1", port(node.receiver.endpoint)))
                await eventually(lambda: connections[Endpoint.DATA, ConnectionEvent.ACCEPT_FAILED] > 0)
            await eventually(lambda: node.counters.operation.open_connections[Endpoint.DATA] == 1)
        # libzmq has tried to accept some 100,000 times a second.
        assert connections[Endpoint.DATA, ConnectionEvent.ACCEPT_FAILED] < 1000
        await eventually(lambda: node.counters.operation.open_connections[Endpoint.DATA] == 0)


async def test_a_message_of_parts_without_end_ends_its_connection(tmp_path: Path) -> None:
    async with limited(tmp_path) as (node, _):
        for endpoint, kind, name in (
            (node.receiver.endpoint, b"PUSH", Endpoint.DATA),
            (node.control.endpoint, b"DEALER", Endpoint.CONTROL),
        ):
            with RawPeer(port(endpoint)) as peer:
                await in_thread(peer, kind)
                while await asyncio.to_thread(peer.send, frame(b"", MORE) * 10_000):
                    assert node.counters.operation.unfinished_bytes[name] < 64 << 20
                assert refused(node, name, ConnectionRefusal.UNFINISHED)() == 1


async def test_an_idle_data_connection_is_closed_and_its_feeder_connects_again_and_feeds(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with limited(tmp_path, idle_seconds=1.0) as (node, _), make_feeder(context, node) as feeder:
        await eventually(refused(node, Endpoint.DATA, ConnectionRefusal.IDLE))
        assert (await feed_meps(synthetic_meps(5), [feeder])).complete


async def test_a_subscriber_that_sends_too_much_is_disconnected_and_the_others_stay(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with limited(tmp_path) as (node, _):
        with context.socket(zmq.SUB) as good:
            good.subscribe(b"")
            good.connect(node.publisher.endpoint)
            await eventually(lambda: node.counters.decisions.subscribers == 1)
            with RawPeer(port(node.publisher.endpoint)) as bad:
                await in_thread(bad, b"SUB")
                for i in range(1000):
                    bad.send_what_fits(subscribe(i.to_bytes(8, "little")))
                await eventually(refused(node, Endpoint.DECISIONS, ConnectionRefusal.UNEXPECTED_INPUT))
                await eventually(bad.is_cut)
            # Its subscriptions ended with the connection.
            await eventually(lambda: node.counters.decisions.subscribers == 1)
            async with make_feeder(context, node) as feeder:
                assert (await feed_meps(synthetic_meps(3), [feeder])).complete
            for _ in range(3):
                assert await good.recv()


async def test_a_flood_of_subscriptions_ends_before_the_next_check_of_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limiter, "LOOK_SECONDS", 1000.0)
    async with limited(tmp_path) as (node, _):
        with RawPeer(port(node.publisher.endpoint)) as peer:
            await in_thread(peer, b"SUB")
            cut = refused(node, Endpoint.DECISIONS, ConnectionRefusal.UNEXPECTED_INPUT)
            await asyncio.to_thread(peer.send, subscribe(bytes(100)) * 100)
            await eventually(cut)
            await eventually(peer.is_cut)


async def test_a_flood_of_whole_messages_does_not_keep_an_honest_feeder_from_feeding(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with limited(tmp_path) as (node, _), make_feeder(context, node) as feeder:
        stop = False

        def flood() -> None:
            with RawPeer(port(node.control.endpoint)) as peer:
                peer.shake_hands(b"DEALER")
                end = time.monotonic() + 2.0
                while not stop and time.monotonic() < end and peer.send_what_fits(frame(b"x") * 3000) >= 0:
                    time.sleep(0.001)

        flooding = asyncio.create_task(asyncio.to_thread(flood))
        assert (await feed_meps(synthetic_meps(50), [feeder])).complete
        stop = True
        await flooding


async def test_the_address_of_an_ended_connection_is_refused_on_all_ports_and_others_are_not(
    tmp_path: Path, context: zmq.asyncio.Context
) -> None:
    async with limited(tmp_path) as (node, _), make_feeder(context, node) as feeder:
        ports = [port(each) for each in (node.publisher.endpoint, node.receiver.endpoint, node.control.endpoint)]
        with RawPeer(ports[0], "127.0.0.2") as bad, RawPeer(ports[1], "127.0.0.2") as earlier:
            await in_thread(bad, b"SUB")
            await in_thread(earlier, b"PUSH")
            await asyncio.to_thread(bad.send, subscribe(bytes(100)) * 100)
            await eventually(lambda: node.counters.operation.refused_addresses == 1)
            assert node.counters.operation.address_refusals == 1
            for each in ports:
                with pytest.raises(TimeoutError):
                    await asyncio.to_thread(RawPeer, each, "127.0.0.2", seconds=0.2)
            assert not earlier.is_cut()
        with RawPeer(ports[0], "127.0.0.3") as other:
            await in_thread(other, b"SUB")
        assert (await feed_meps(synthetic_meps(5), [feeder])).complete


async def test_the_address_of_a_flood_is_refused_also_when_its_peer_has_closed_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with limited(tmp_path) as (node, _):
        # As for a peer that has closed: no answer reaches it.
        monkeypatch.setattr(node.control, "_send", lambda _identity, _raw: zmq.EHOSTUNREACH)
        with RawPeer(port(node.control.endpoint), "127.0.0.2") as peer:
            await in_thread(peer, b"DEALER")
            await asyncio.to_thread(peer.send, frame(b"x") * (2 * int(ADDRESS_AT_ONCE) + FLOOD_MESSAGES))
            await eventually(lambda: node.counters.operation.refused_addresses == 1)
            assert not peer.is_cut()


async def test_bytes_within_the_rate_of_a_subscriber_never_end_it(tmp_path: Path) -> None:
    async with limited(tmp_path) as (node, _):
        with RawPeer(port(node.publisher.endpoint)) as peer:
            await in_thread(peer, b"SUB")
            # Greeting and READY took 92 bytes of the 4,096.
            await asyncio.to_thread(peer.send, subscribe(bytes(197)) * 19)
            await asyncio.sleep(0.2)
            assert not peer.is_cut()
            await asyncio.to_thread(peer.send, subscribe(bytes(197)) * 2)
            await eventually(peer.is_cut)
