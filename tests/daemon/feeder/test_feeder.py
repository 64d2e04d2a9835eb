"""One feeder without sockets and without real time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from hltnode.daemon.common.vocabulary import HelloRefusal
from hltnode.daemon.feeder.feeder import HELLO_SECONDS, Feeder, FeederIdentity, FeederRefusedError
from hltnode.daemon.feeder.mep_source import FeedMep
from hltnode.daemon.feeder.single_node import feed_meps
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Error, Goodbye, Hello, Nack, Welcome
from hltnode.protocol.transport.frame_header import decode_header
from tests.daemon.fakes import RUN, synthetic_meps
from tests.daemon.manual_clock import ManualClock

SOURCES = (1, 2)


class RecordedConnection:
    """A connection to a node that the test plays."""

    monitors = ()

    def __init__(self) -> None:
        self.frames: list[tuple[int, int]] = []
        self.messages: list[ControlMessage] = []
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.answer: ControlMessage | None = None
        """What the node answers to a hello, None for nothing."""
        self.reconnected = 0

    async def send_frame(self, frame: bytes) -> None:
        header = decode_header(memoryview(frame), max_bytes=len(frame))
        self.frames.append((header.mep_id, header.source_id))

    async def send_message(self, message: ControlMessage) -> None:
        self.messages.append(message)
        if isinstance(message, Hello) and self.answer is not None:
            self.incoming.put_nowait(encode_message(self.answer))

    def reconnect(self) -> None:
        self.reconnected += 1

    async def receive_message(self) -> bytes:
        return await self.incoming.get()

    async def close(self, last: ControlMessage) -> None:
        self.messages.append(last)


class Bench:
    """A feeder of two sources, its clock, and the node's side of its connection."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.connection = RecordedConnection()
        identity = FeederIdentity(name="f", run=RUN, sources=SOURCES, events_per_mep=8, max_fragment_bytes=60_000)
        self.feeder = Feeder(self.connection, identity, clock=self.clock)

    async def node_sends(self, *messages: ControlMessage) -> None:
        for message in messages:
            self.connection.incoming.put_nowait(encode_message(message))
        await self.clock.run_ready()

    async def welcome(self, credits: int, session: str = "s") -> None:
        """The node takes the feeder, and answers its hellos from now on."""
        self.connection.answer = Welcome("n", session, RUN, 60_000)
        await self.node_sends(self.connection.answer, Credit(RUN, credits))

    async def node_leaves(self) -> None:
        """The node says goodbye, and answers no more."""
        self.connection.answer = None
        await self.node_sends(Goodbye("session ends"))

    def take_frames(self) -> list[tuple[int, int]]:
        frames, self.connection.frames = self.connection.frames, []
        return frames

    def hellos(self) -> int:
        return sum(isinstance(message, Hello) for message in self.connection.messages)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    async with bench.feeder:
        await bench.clock.run_ready()
        yield bench


def meps(n: int) -> list[FeedMep]:
    return list(synthetic_meps(n, sources=SOURCES))


async def test_a_hello_is_repeated_in_its_period(bench: Bench) -> None:
    assert bench.hellos() == 1
    await bench.clock.advance(3.5 * HELLO_SECONDS)
    assert bench.hellos() == 4


async def test_nothing_is_sent_before_welcome_and_credit_and_then_up_to_the_credit(bench: Bench) -> None:
    for mep in meps(3):
        bench.feeder.keep(mep)
    await bench.clock.advance(10.0)
    assert bench.take_frames() == []
    await bench.welcome(2)
    assert bench.take_frames() == [(0, 1), (0, 2), (1, 1), (1, 2)]


async def test_a_fragment_that_found_no_place_is_sent_again_after_50_ms(bench: Bench) -> None:
    bench.feeder.keep(meps(1)[0])
    await bench.welcome(1)
    bench.take_frames()
    await bench.node_sends(Nack(RUN, 2, 0, RejectReason.NO_CREDIT, True))
    await bench.clock.advance(0.049)
    assert bench.take_frames() == []
    await bench.clock.advance(0.001)
    assert bench.take_frames() == [(0, 2)]


async def test_what_may_be_lost_is_sent_again_after_some_seconds(bench: Bench) -> None:
    for mep in meps(2):
        bench.feeder.keep(mep)
    await bench.welcome(2)
    bench.take_frames()
    await bench.node_sends(Ack(RUN, ((1, 1),)))
    await bench.clock.advance(2.9)
    assert bench.take_frames() == []
    await bench.clock.advance(3.0)
    assert bench.take_frames() == [(0, 1), (0, 2)]


async def test_a_node_that_says_goodbye_gets_nothing_until_its_next_welcome_and_then_everything(bench: Bench) -> None:
    bench.feeder.keep(meps(1)[0])
    await bench.welcome(1)
    bench.take_frames()
    await bench.clock.advance(7.0)
    bench.take_frames()
    await bench.node_leaves()
    assert not bench.feeder.is_connected
    assert bench.feeder.lost_since_ns == 7_000_000_000
    await bench.welcome(1, session="t")
    assert bench.feeder.lost_since_ns is None
    assert bench.take_frames() == [(0, 1), (0, 2)]


async def test_a_feeder_that_is_refused_for_long_ends_with_the_text_of_the_node(bench: Bench) -> None:
    bench.connection.answer = Error(HelloRefusal.RUN_CANNOT_START, "3 MEPs of run 6 are open")
    await bench.clock.advance(30.0)
    bench.feeder.check()
    await bench.clock.advance(3 * HELLO_SECONDS)
    with pytest.raises(FeederRefusedError, match="3 MEPs of run 6 are open: so for 30 s"):
        bench.feeder.check()


async def test_the_rate_of_a_feed_is_kept_on_the_clock(bench: Bench) -> None:
    await bench.welcome(100)
    # 8 events per MEP at 16 events per second.
    feeding = asyncio.create_task(feed_meps(meps(5), [bench.feeder], rate=16.0, clock=bench.clock))
    await bench.clock.advance(0.9)
    assert {mep for mep, _ in bench.take_frames()} == {0, 1}
    await bench.clock.advance(1.2)
    assert {mep for mep, _ in bench.take_frames()} == {2, 3, 4}
    await bench.node_sends(Ack(RUN, ((0, 4),)))
    report = await feeding
    assert report.complete
    assert report.seconds == pytest.approx(2.1)
