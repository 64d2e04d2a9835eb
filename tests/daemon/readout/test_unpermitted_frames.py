"""Connections that send only frames without permission are reported; those of correct feeders are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import zmq

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.readout.frame_handler import IN_FLIGHT_NS, FrameHandler
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.security.received_input import UNPERMITTED_FRAMES, ReceivedInput
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.transport.frame_header import VERSION, encode_frame
from tests.daemon.readout.bench import EVENTS, MS, RUN, SECOND, Bench

pytestmark = pytest.mark.loopback

STEP_NS = 100 * MS
WITHOUT_PERMISSION = 12345


def frame_of(mep: int, token: int, source: int = 1) -> bytes:
    mfp = encode_mfp(
        source_id=source, event_id=mep * EVENTS, version=1, types=[63] * EVENTS, fragments=[b"x"] * EVENTS, align=3
    )
    return encode_frame(mfp, run=RUN, mep_id=mep, source_id=source, token=token)


class Site:
    """A data socket on TCP, feeders a and b with sources 1 and 2, and a connection to the socket."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        self.bench = Bench(feeders=2)
        self.bench.hello("a")
        self.bench.hello("b")
        self.received = ReceivedInput()
        self.clock = ReadingClock(lambda: self.bench.now)
        handler = FrameHandler(
            self.bench.builder,
            [memoryview(bytearray(8192)) for _ in self.bench.builder.pool.slots],
            self.bench.counters,
            self.bench.carry_out,
            self.bench.registry.permissions.refusal,
            self.bench.registry.permissions.answers,
            max_frame_bytes=4096,
            clock=self.clock,
        )
        self.receiver = Receiver(context, "tcp://127.0.0.1:*", handler, max_frame_bytes=4096, received=self.received)
        self.receiver.start(asyncio.get_running_loop())
        self.feeder = context.socket(zmq.PUSH)
        self.feeder.setsockopt(zmq.LINGER, 0)
        self.feeder.connect(self.receiver.endpoint)

    async def take(self, frame: bytes, n: int = 1, step_ns: int = STEP_NS) -> list[ConnectionRefusal]:
        """The reasons for which connections are reported while this frame comes some times."""
        counters = self.bench.counters
        for _ in range(n):
            before = counters.fragments_received
            self.bench.now += step_ns
            self.clock.wakes_ns = self.bench.now
            self.feeder.send(frame)
            while counters.fragments_received == before:
                self.receiver.read()
                await asyncio.sleep(0)
        return list(self.received.reported().values())

    async def settle(self) -> None:
        """Have all frames arrive that may have been sent with an ended token."""
        assert await self.take(frame_of(0, WITHOUT_PERMISSION), int(IN_FLIGHT_NS // STEP_NS)) == []


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    found = Site(context)
    try:
        yield found
    finally:
        found.feeder.close()
        found.receiver.close()
        context.term()


@pytest.mark.parametrize(
    "frame",
    [
        frame_of(0, WITHOUT_PERMISSION),
        frame_of(10**6, 0),
        b"x",
        frame_of(0, 0)[:4] + (VERSION - 1).to_bytes(2, "little") + frame_of(0, 0)[6:],
    ],
    ids=["unknown token", "no token, MEP to come", "no header", "other version"],
)
async def test_a_connection_that_sends_only_frames_without_permission_is_reported(frame: bytes) -> None:
    async with site() as found:
        await found.settle()
        assert await found.take(frame, 2 * UNPERMITTED_FRAMES) == [ConnectionRefusal.UNPERMITTED]


async def test_the_sources_of_others_are_no_permission() -> None:
    async with site() as found:
        await found.settle()
        frame = frame_of(0, found.bench.token("a"), source=2)
        assert await found.take(frame, 2 * UNPERMITTED_FRAMES) == [ConnectionRefusal.UNPERMITTED]
        assert found.bench.counters.fragments_rejected[RejectReason.FOREIGN_SOURCE] == 2 * UNPERMITTED_FRAMES


async def test_refused_frames_of_a_feeder_with_permission_are_no_offence() -> None:
    async with site() as found:
        await found.settle()
        token = found.bench.token("a")
        damaged = bytearray(frame_of(0, token))
        damaged[-1] ^= 1
        for frame in (bytes(damaged), frame_of(10**6, token)):
            assert await found.take(frame, 2 * UNPERMITTED_FRAMES) == []
        assert found.bench.counters.fragments_rejected[RejectReason.BAD_CRC] == 2 * UNPERMITTED_FRAMES


@pytest.mark.parametrize("mep", [0, 1])
async def test_a_permitted_frame_in_python_or_in_compiled_code_ends_the_row(mep: int) -> None:
    async with site() as found:
        await found.settle()
        # MEP 0 is open, and compiled code knows the token of a: it takes the next fragment of a.
        assert await found.take(frame_of(0, found.bench.token("b"), source=2)) == []
        found.bench.registry.permissions.answers.permit(1, found.bench.token("a"))
        assert await found.take(frame_of(0, WITHOUT_PERMISSION), UNPERMITTED_FRAMES - 1) == []
        assert await found.take(frame_of(mep, found.bench.token("a"))) == []
        assert await found.take(frame_of(0, WITHOUT_PERMISSION), UNPERMITTED_FRAMES - 1) == []
        assert await found.take(frame_of(0, WITHOUT_PERMISSION)) == [ConnectionRefusal.UNPERMITTED]


async def test_a_feeder_is_not_reported_for_frames_with_the_token_of_an_earlier_process_of_the_node() -> None:
    async with site() as found:
        # The node has just started. The feeder sends on until its next welcome.
        stale = frame_of(0, WITHOUT_PERMISSION)
        assert await found.take(stale, UNPERMITTED_FRAMES + 1) == []
        assert found.bench.now > 6 * SECOND
        # The frames that were on the way come behind the welcome.
        assert await found.take(stale, UNPERMITTED_FRAMES + 1) == []
        assert await found.take(frame_of(0, found.bench.token("a"))) == []
        assert found.bench.counters.fragments_rejected[RejectReason.UNKNOWN_TOKEN] == 2 * UNPERMITTED_FRAMES + 2


async def test_a_feeder_is_not_reported_for_frames_on_the_way_when_its_token_ends() -> None:
    async with site() as found:
        await found.settle()
        token = found.bench.token("a")
        found.bench.hello("b")
        # Another process of feeder a has taken its place.
        found.bench.hello("a", session="f2", identity=b"new")
        assert found.bench.token("a") != token
        assert await found.take(frame_of(0, token), 2 * UNPERMITTED_FRAMES) == []


async def test_a_feeder_is_not_reported_for_frames_on_the_way_while_others_come_and_leave() -> None:
    """Each change has Python asked for the next frame."""
    async with site() as found:
        await found.settle()
        token = found.bench.token("a")
        found.bench.leave("a")
        for _ in range(2 * UNPERMITTED_FRAMES):
            found.bench.leave("b")
            found.bench.hello("b")
            assert await found.take(frame_of(0, token)) == []
