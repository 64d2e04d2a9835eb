"""The account of the control socket: bytes and messages of each connection, by which the limiter judges it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgpack
import pytest
import zmq

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.control_socket import BUDGET_PARTS, CONTROL_HWM, ControlSocket
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.security.message_budget import ADDRESS_AT_ONCE, FEEDER_AT_ONCE, FLOOD_MESSAGES
from hltnode.daemon.security.message_parts import MAX_PARTS
from hltnode.daemon.security.received_input import ReceivedInput
from hltnode.protocol.transport.control_messages import CONTROL_VERSION, encode_message
from hltnode.protocol.transport.feeder_messages import Error, Goodbye
from hltnode.protocol.transport.refusals import MessageRefusal
from tests.attacks.raw_peer import MORE, RawPeer, frame, item
from tests.daemon.fakes import eventually

pytestmark = pytest.mark.loopback


class NoClock:
    true_ns = 0

    def read(self) -> None:
        """The control socket reads the clock before its messages."""


class Site:
    """A control socket that answers nothing, and one peer."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        self.counters = Counters()
        self.received = ReceivedInput()
        self.socket = ControlSocket(
            context,
            "tcp://127.0.0.1:*",
            self.counters,
            cast(ReadingClock, NoClock()),
            lambda _socket: None,
            self.received,
        )
        self.welcomed = False
        self.arrived: list[object] = []
        self.peer = RawPeer(int(self.socket.endpoint.rpartition(":")[2]))

    @property
    def account(self) -> tuple[int, int]:
        """Messages and bytes of the only connection."""
        found = [self.received.tally.of(descriptor) for descriptor in range(1024)]
        (account,) = [each for each in found if each[0]]
        return account

    @property
    def descriptor(self) -> int:
        return next(each for each in range(1024) if self.received.tally.of(each)[0])


@asynccontextmanager
async def site(*items: bytes) -> AsyncIterator[Site]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    found = Site(context)
    nothing = cast(Any, lambda *_: None)
    found.socket.start(
        asyncio.get_running_loop(),
        lambda _identity, message: found.arrived.append(message),
        nothing,
        lambda _peer: True,
        lambda _identity: found.welcomed,
    )
    await asyncio.to_thread(found.peer.shake_hands, b"DEALER", *items)
    yield found
    found.peer.close()
    found.socket.close(0)
    context.term()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 5000])
@pytest.mark.parametrize("parts", [1, 2, 1000])
async def test_the_account_equals_the_bytes_on_the_wire_for_any_number_of_parts(parts: int, size: int) -> None:
    message = frame(bytes(size), MORE) * (parts - 1) + frame(bytes(size))
    async with site() as found:
        await asyncio.to_thread(found.peer.send, message * 3)
        await eventually(lambda: found.received.tally.total == 3)
        assert found.account == (3, 3 * len(message))
        assert found.counters.control_messages_rejected == 3
        assert found.received.reported() == (
            {found.descriptor: ConnectionRefusal.MALFORMED} if parts + 1 > MAX_PARTS else {}
        )
        # Once for each message: the peer may close the connection before it ends.
        addresses = [("127.0.0.1", ConnectionRefusal.MALFORMED)] * 3 if parts + 1 > MAX_PARTS else []
        assert found.received.reported_addresses() == addresses


@pytest.mark.parametrize("version", [0, CONTROL_VERSION - 1, CONTROL_VERSION + 1, -1, (1 << 64) - 1])
async def test_a_peer_of_another_version_gets_an_answer_that_it_reads_and_that_names_both_versions(
    version: int,
) -> None:
    hello = msgpack.packb({"v": version, "type": "hello", "anything": 1})
    async with site() as found:
        await asyncio.to_thread(found.peer.send, frame(hello))
        flags, size = await asyncio.to_thread(found.peer.receive, 2)
        assert flags == 0
        answer = msgpack.unpackb(await asyncio.to_thread(found.peer.receive, size))
        assert set(answer) == {"v", "type", "reason", "text"}
        assert (answer["v"], answer["type"], answer["reason"]) == (version, "error", "bad_version")
        assert (
            f"version {CONTROL_VERSION} expected, {version} found; since version {CONTROL_VERSION} " in answer["text"]
        )


async def test_messages_of_a_refused_connection_are_counted_and_dropped_unread() -> None:
    async with site() as found:
        await asyncio.to_thread(found.peer.send, frame(b"x"))
        await eventually(lambda: found.counters.control_messages_rejected == 1)
        found.received.tally.refuse(found.descriptor)
        await asyncio.to_thread(found.peer.send, frame(b"x") * 10)
        await eventually(lambda: found.received.tally.total == 11)
        assert found.account == (11, 11 * len(frame(b"x")))
        assert found.counters.control_messages_rejected == 1


async def test_a_peer_whose_user_id_is_no_text_is_served() -> None:
    async with site(item(b"User-Id", b"\xff")) as found:
        await asyncio.to_thread(found.peer.send, frame(encode_message(Goodbye("feeder ends"))))
        await eventually(lambda: found.arrived == [Goodbye("feeder ends")])


@pytest.mark.parametrize("welcomed", [False, True])
async def test_messages_above_the_budget_of_their_sender_are_dropped_unread_and_its_connection_ends(
    welcomed: bool,
) -> None:
    most = int(FEEDER_AT_ONCE if welcomed else ADDRESS_AT_ONCE)
    async with site() as found:
        found.welcomed = welcomed
        refused = found.counters.messages_refused
        await asyncio.to_thread(found.peer.send, frame(b"x") * (most + FLOOD_MESSAGES))
        await eventually(lambda: found.received.tally.total == most + FLOOD_MESSAGES)
        assert (refused[MessageRefusal.MALFORMED], refused[MessageRefusal.TOO_MANY]) == (most, FLOOD_MESSAGES)
        assert found.received.reported() == {}
        await asyncio.to_thread(found.peer.send, frame(b"x") * 100)
        await eventually(lambda: found.received.tally.total == most + FLOOD_MESSAGES + 100)
        assert found.received.reported() == {found.descriptor: ConnectionRefusal.FLOOD}
        assert refused[MessageRefusal.MALFORMED] == most


async def test_a_flood_of_a_peer_that_has_gone_ends_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its descriptor may belong to another one by now."""
    async with site() as found:
        monkeypatch.setattr(found.socket, "_send", lambda _identity, _raw: zmq.EHOSTUNREACH)
        most = int(ADDRESS_AT_ONCE) + 2 * FLOOD_MESSAGES
        await asyncio.to_thread(found.peer.send, frame(b"x") * most)
        await eventually(lambda: found.received.tally.total == most)
        assert found.counters.messages_refused[MessageRefusal.TOO_MANY] == 2 * FLOOD_MESSAGES
        assert found.received.reported() == {}
        assert found.received.reported_addresses() == [("127.0.0.1", ConnectionRefusal.FLOOD)]
        assert found.received.reported_addresses() == []


async def test_a_message_that_is_dropped_is_not_delivered() -> None:
    """Its peer has gone, or has left too many messages unread; only the first is not reached."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    counters, nothing = Counters(), cast(Any, lambda *_: None)
    socket = ControlSocket(
        context, "tcp://127.0.0.1:*", counters, cast(ReadingClock, NoClock()), lambda _socket: None, ReceivedInput()
    )
    arrived: list[bytes] = []
    socket.start(
        asyncio.get_running_loop(),
        lambda identity, _: arrived.append(identity),
        nothing,
        lambda _: True,
        lambda _: True,
    )
    message = Error("reason", "x" * 200)
    assert not socket.delivers(b"unknown", message)
    assert not socket.reaches(b"unknown", message)
    assert counters.control_messages_unsent == 2
    with context.socket(zmq.DEALER) as peer:
        peer.setsockopt(zmq.RCVHWM, 1)
        peer.setsockopt(zmq.RCVBUF, 4096)
        peer.connect(socket.endpoint)
        peer.send(encode_message(Goodbye("feeder ends")))
        await eventually(lambda: bool(arrived))
        [identity] = arrived
        n = 0
        while socket.delivers(identity, message):
            n += 1
            assert n < 1_000_000
        assert n >= CONTROL_HWM
        assert counters.control_messages_unsent == 3
        assert socket.reaches(identity, message)
    socket.close(0)
    context.term()


async def test_the_event_loop_gets_its_turn_after_a_few_messages() -> None:
    async with site() as found:
        # The loop does not run meanwhile.
        found.peer.send(frame(b"x") * 300)
        assert found.socket._socket.poll(10_000)
        assert not found.socket._read_until(time.monotonic_ns() + 3_600_000_000_000)
        assert found.received.tally.total == BUDGET_PARTS // 2
        found.socket.read()
        await eventually(lambda: found.received.tally.total == 300)
