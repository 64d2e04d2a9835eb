"""One feeder without sockets and without real time."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hltnode.client.feeder import HELLO_SECONDS, SILENT_HELLOS, Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.mep import FeedMep
from hltnode.daemon.replay.pacing import Pacer
from hltnode.daemon.replay.single_node import feed_meps, make_report
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage, encode_message
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.frame_header import decode_header
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.daemon.fakes import RUN, synthetic_meps
from tests.daemon.manual_clock import ManualClock

SOURCES = (1, 2)


class RecordedConnection:
    """A connection to a node that the test simulates."""

    troubles = ()
    memory = None

    def __init__(self) -> None:
        self.frames: list[tuple[int, int]] = []
        self.messages: list[ControlMessage] = []
        self.incoming: asyncio.Queue[bytes] = asyncio.Queue()
        self.answer: ControlMessage | None = None
        """Answer of the node to a hello; None: no answer."""
        self.reconnected = 0

    async def send_frames(self, frames: list[Buffer]) -> int:
        for frame in frames:
            header = decode_header(memoryview(frame), max_bytes=len(frame))
            self.frames.append((header.mep_id, header.source_id))
        return len(frames)

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
    """A feeder with two sources, its clock, and the node's side of its connection."""

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
        """The node accepts the feeder, and answers its hellos from now on."""
        self.connection.answer = Welcome("n", session, RUN, 60_000, 1)
        await self.node_sends(self.connection.answer, Credit(RUN, credits))

    async def node_leaves(self) -> None:
        """The node says goodbye, and stops answering."""
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


async def test_a_hello_names_the_chain_only_if_the_feeder_knows_it(bench: Bench) -> None:
    assert b"chain" not in encode_message(bench.feeder.hello())
    named = Feeder(RecordedConnection(), replace(bench.feeder.identity, chain="lhcb"), clock=bench.clock)
    assert named.hello().chain == "lhcb"
    assert b"chain" in encode_message(named.hello())


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


async def test_a_node_that_is_alive_and_acknowledges_late_gets_nothing_twice(bench: Bench) -> None:
    for mep in meps(3):
        bench.feeder.keep(mep)
    await bench.welcome(3)
    assert len(bench.take_frames()) == 6
    await bench.node_sends(Held("s", RUN, ((0, 0),)))
    await bench.clock.advance(3.0)
    await bench.node_sends(Held("s", RUN, ((1, 2),)))
    await bench.clock.advance(600.0)
    assert bench.take_frames() == []


async def test_what_another_session_of_the_node_has_held_goes_again(bench: Bench) -> None:
    for mep in meps(2):
        bench.feeder.keep(mep)
    await bench.welcome(2)
    bench.take_frames()
    await bench.node_sends(Held("s", RUN, ((0, 0),)), Held("s", RUN + 1, ((1, 1),)), Held("r", RUN, ((1, 1),)))
    await bench.node_leaves()
    await bench.welcome(2)
    assert bench.take_frames() == [(1, 1), (1, 2)]
    await bench.node_leaves()
    await bench.welcome(2, session="t")
    assert bench.take_frames() == [(0, 1), (0, 2), (1, 1), (1, 2)]


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
    with pytest.raises(FeederRefusedError, match="3 MEPs of run 6 are open: refused for 30 s"):
        bench.feeder.check()


async def test_the_rate_of_a_feed_is_kept_on_the_clock(bench: Bench) -> None:
    await bench.welcome(100)
    # 8 events per MEP at 16 events per second.
    feeding = asyncio.create_task(feed_meps(meps(5), [bench.feeder], pacer=Pacer(16.0, bench.clock), clock=bench.clock))
    await bench.clock.advance(0.9)
    assert {mep for mep, _ in bench.take_frames()} == {0, 1}
    await bench.clock.advance(1.2)
    assert {mep for mep, _ in bench.take_frames()} == {2, 3, 4}
    await bench.node_sends(Ack(RUN, ((0, 4),)))
    report = await feeding
    assert report.complete
    assert report.seconds == pytest.approx(2.1)


async def test_a_node_that_answers_no_hello_is_lost_and_gets_nothing_until_it_answers_again(bench: Bench) -> None:
    for mep in meps(2):
        bench.feeder.keep(mep)
    await bench.welcome(1)
    bench.take_frames()
    bench.connection.answer = None
    await bench.clock.advance((SILENT_HELLOS - 1) * HELLO_SECONDS)
    assert bench.feeder.is_connected
    await bench.clock.advance(2 * HELLO_SECONDS)
    assert not bench.feeder.is_connected
    assert bench.feeder.lost_since_ns is not None
    assert bench.connection.reconnected == 1
    await bench.node_sends(Credit(RUN, 5))
    assert bench.take_frames() == []
    await bench.welcome(2)
    assert bench.take_frames() == [(0, 1), (0, 2), (1, 1), (1, 2)]


async def test_a_feeder_that_was_held_up_itself_does_not_take_the_node_for_lost(bench: Bench) -> None:
    await bench.welcome(1)
    bench.clock.now_ns += 3600 * 10**9
    await bench.clock.advance(2 * HELLO_SECONDS)
    assert bench.feeder.is_connected
    assert bench.connection.reconnected == 0


async def test_nothing_is_repeated_while_the_node_is_silent(bench: Bench) -> None:
    bench.feeder.keep(meps(1)[0])
    await bench.welcome(1)
    bench.take_frames()
    await bench.clock.advance(2.5)
    bench.connection.answer = None
    await bench.clock.advance(2.0)
    assert bench.take_frames() == []


async def test_the_last_hello_confirms_everything_and_the_goodbye_comes_after_its_answer(bench: Bench) -> None:
    await bench.welcome(10)
    feeding = asyncio.create_task(feed_meps(meps(3), [bench.feeder], clock=bench.clock))
    await bench.clock.run_ready()
    bench.connection.answer = None
    await bench.node_sends(Ack(RUN, ((0, 2),)))
    last = bench.connection.messages[-1]
    assert isinstance(last, Hello)
    assert last.first_mep == 3
    await bench.clock.advance(0.5)
    assert not feeding.done()
    await bench.node_sends(Welcome("n", "s", RUN, 60_000, 1))
    assert (await feeding).complete


async def test_a_confirmation_that_no_node_answers_is_not_waited_for_long(bench: Bench) -> None:
    await bench.welcome(10)
    feeding = asyncio.create_task(feed_meps(meps(1), [bench.feeder], clock=bench.clock))
    await bench.clock.run_ready()
    bench.connection.answer = None
    await bench.node_sends(Ack(RUN, ((0, 0),)))
    await bench.clock.advance(3.0)
    assert feeding.done()
    assert (await feeding).complete


async def test_a_feeder_whose_run_is_known_and_acknowledged_ends_without_any_credit(bench: Bench) -> None:
    feeding = asyncio.create_task(feed_meps(meps(5), [bench.feeder], clock=bench.clock))
    bench.connection.answer = Welcome("n", "s", RUN, 60_000, 1)
    await bench.node_sends(bench.connection.answer, Ack(RUN, ((0, 4),)))
    report = await feeding
    assert report.complete
    assert (report.meps, report.fragments) == (5, 0)


async def test_a_run_that_an_operator_has_closed_ends_the_feeder_with_what_was_not_acknowledged(bench: Bench) -> None:
    await bench.welcome(10)
    feeding = asyncio.create_task(feed_meps(meps(3), [bench.feeder], clock=bench.clock))
    await bench.clock.run_ready()
    await bench.node_sends(Ack(RUN, ((1, 1),)), RunClosed(RUN))
    with pytest.raises(FeederRefusedError, match=f"run {RUN} was closed by an operator"):
        await feeding
    report = make_report([bench.feeder], 3, 24, 1.0)
    assert report.unacknowledged_meps == [(0, 0), (2, 2)]
    assert not report.complete


async def test_messages_of_another_run_change_nothing(bench: Bench) -> None:
    bench.feeder.keep(meps(1)[0])
    await bench.welcome(1)
    await bench.node_sends(Ack(RUN + 1, ((0, 0),)), Credit(RUN + 1, 0), RunClosed(RUN + 1))
    assert bench.feeder.window.unacknowledged == 1
    assert bench.feeder.window.limit == 1
    bench.feeder.check()


async def test_a_node_that_has_gone_over_to_another_run_gets_nothing_and_refuses_nothing_for_good(bench: Bench) -> None:
    for mep in meps(2):
        bench.feeder.keep(mep)
    await bench.welcome(1)
    bench.take_frames()
    await bench.node_sends(Nack(RUN + 1, 1, 0, RejectReason.FOREIGN_RUN, False), Credit(RUN, 5))
    assert bench.take_frames() == []
    assert bench.feeder.window.unacknowledged == 2
    assert not bench.feeder.window.refused


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (HelloRefusal.FOREIGN_CHAIN, "--chain"),
        (HelloRefusal.EVENTS_PER_MEP, "--events-per-mep"),
        (HelloRefusal.FOREIGN_RUN, "--run"),
        (HelloRefusal.NO_SOURCES, "--sources"),
        (RejectReason.BAD_VERSION, "same version of hltnode"),
    ],
)
async def test_a_permanent_refusal_ends_the_feeder_at_once_and_names_the_remedy(
    bench: Bench, reason: str, advice: str
) -> None:
    await bench.node_sends(Error(reason, "not this"))
    with pytest.raises(FeederRefusedError, match=f"not this: .*{advice}"):
        bench.feeder.check()


@pytest.mark.parametrize("reason", [HelloRefusal.TOO_MANY_FEEDERS, HelloRefusal.SOURCE_TAKEN])
async def test_more_connections_than_the_node_takes_end_soon_and_others_wait(
    bench: Bench, reason: HelloRefusal
) -> None:
    bench.connection.answer = Error(reason, "all of 1 feeders are there")
    await bench.clock.advance(10.0)
    bench.feeder.check()
    bench.feeder.node_takes_others = lambda: True
    await bench.clock.advance(5.0)
    with pytest.raises(FeederRefusedError, match=r"--sources.*builder\.max_feeders"):
        bench.feeder.check()


async def test_what_a_supervisor_has_to_revoke_is_not_confirmed_before_the_node_has_revoked_it(bench: Bench) -> None:
    bench.feeder.supervising = True
    for mep in meps(4):
        bench.feeder.keep(mep)
    await bench.welcome(4)
    for moved in (1, 2):
        bench.feeder.window.revoke(moved)
    await bench.node_sends(Ack(RUN, ((0, 0), (3, 3))))
    await bench.clock.advance(HELLO_SECONDS)
    hello = [message for message in bench.connection.messages if isinstance(message, Hello)][-1]
    assert (hello.supervises, hello.first_mep) == (True, 1)
    assert Revoked(RUN, ((1, 2),)) in bench.connection.messages
    await bench.node_sends(Revoked(RUN, ((1, 2),)))
    await bench.clock.advance(HELLO_SECONDS)
    hello = [message for message in bench.connection.messages if isinstance(message, Hello)][-1]
    assert hello.first_mep == 4


async def test_a_revocation_of_many_meps_goes_in_messages_that_a_node_reads(bench: Bench) -> None:
    bench.feeder.supervising = True
    for mep in range(0, 140_000, 2):
        bench.feeder.window.revoked.add(mep)
    bench.feeder.window.revoked.add(10**6, 10**6 + 100_000)
    await bench.welcome(1)
    await bench.clock.advance(HELLO_SECONDS)
    parts = [message for message in bench.connection.messages if isinstance(message, Revoked)]
    assert len(parts) >= 70
    for part in parts:
        assert len(encode_message(part)) < 32_768
    for part in parts:
        await bench.node_sends(part)
    assert not bench.feeder.window.to_revoke


async def test_a_new_session_hears_revocations_again_and_returns_until_they_are_confirmed(
    bench: Bench,
) -> None:
    bench.feeder.supervising = True
    for mep in meps(4):
        bench.feeder.keep(mep)
    await bench.welcome(4)
    frames = {mep: bench.feeder.window.revoke(mep) for mep in (1, 2)}
    await bench.node_sends(Revoked(RUN, ((1, 2),)))
    bench.connection.messages.clear()
    await bench.clock.advance(HELLO_SECONDS)
    assert not [message for message in bench.connection.messages if isinstance(message, Revoked)]
    await bench.welcome(4, session="t")
    bench.feeder.window.add(2, frames[2])
    await bench.clock.advance(HELLO_SECONDS)
    assert Revoked(RUN, ((1, 1),)) in bench.connection.messages
    assert Returned(RUN, ((2, 2),)) in bench.connection.messages
    await bench.node_sends(Returned(RUN, ((2, 2),)))
    bench.connection.messages.clear()
    await bench.clock.advance(HELLO_SECONDS)
    assert not [message for message in bench.connection.messages if isinstance(message, Returned)]


async def test_a_feeder_acknowledged_before_it_could_send_reports_its_missing_fragments(
    bench: Bench,
) -> None:
    await bench.welcome(5)
    bench.connection.frames.clear()
    await bench.node_sends(Missed(RUN, 1, ((0, 1),)), Missed(RUN + 1, 2, ((2, 2),)), Ack(RUN, ((0, 2),)))
    await feed_meps(meps(3), [bench.feeder])
    report = make_report([bench.feeder], 3, 24, 1.0)
    assert report.refused["late"].meps == 2
    assert not report.complete
