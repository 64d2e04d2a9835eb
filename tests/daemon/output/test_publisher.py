"""The decision stream over real sockets: every decision is received, or its loss is counted and visible in the sequence
numbers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
import zmq

from hltnode.daemon.common.vocabulary import DropReason, SlowConsumerPolicy
from hltnode.daemon.common.zmq_sockets import BindError
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.output_sockets import DecisionPublisher
from hltnode.protocol.transport.decisions import MepDecision, decode_decision

pytestmark = pytest.mark.loopback

Context = zmq.Context[zmq.Socket[bytes]]
OPEN: list[zmq.Socket[bytes]] = []


def decision(mep: int, n_events: int = 8) -> MepDecision:
    return MepDecision(
        node="n1",
        run=7,
        mep=mep,
        seq=0,
        first_event=mep * n_events,
        n_events=n_events,
        n_lines=33,
        tck=1,
        close_reason="complete",
        missing_sources=(),
        accepted=bytes(-(-n_events // 8)),
        lines=bytes(8 * n_events),
        flags=bytes(4 * n_events),
    )


@pytest.fixture
def context() -> Iterator[Context]:
    context = zmq.Context()
    OPEN.clear()
    yield context
    # Also the sockets of the publisher: a test that fails has not closed it.
    context.destroy(linger=0)


@pytest.fixture
def counters() -> OutputCounters:
    return OutputCounters()


def subscriber(context: Context, endpoint: str, *, high_water_mark: int = 1000) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.SUB)
    OPEN.append(socket)
    socket.setsockopt(zmq.RCVHWM, high_water_mark)
    socket.setsockopt(zmq.RCVTIMEO, 5000)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(endpoint)
    return socket


async def changed(publisher: DecisionPublisher, counters: OutputCounters, before: int) -> int:
    """The number of subscribers as soon as it has changed."""
    while counters.subscribers == before:
        publisher.changed()
        await asyncio.sleep(0.005)
    return counters.subscribers


async def subscribed(publisher: DecisionPublisher, counters: OutputCounters, number: int) -> None:
    while counters.subscribers != number:
        publisher.changed()
        await asyncio.sleep(0.005)


async def test_subscribers_get_every_decision_with_consecutive_sequence_numbers(
    context: Context, counters: OutputCounters
) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters)
    sockets = [subscriber(context, publisher.endpoint) for _ in range(2)]
    await subscribed(publisher, counters, 2)
    await publisher.publish([decision(5), decision(6)])
    await publisher.publish([decision(7)])
    for socket in sockets:
        received = [decode_decision(socket.recv()) for _ in range(3)]
        assert [(of.mep, of.seq) for of in received] == [(5, 0), (6, 1), (7, 2)]
    assert counters.sent == 3
    publisher.close(linger_ms=0)


async def test_subscriptions_are_counted_until_they_end(context: Context, counters: OutputCounters) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters)
    first = subscriber(context, publisher.endpoint)
    assert await changed(publisher, counters, 0) == 1
    second = subscriber(context, publisher.endpoint)
    assert await changed(publisher, counters, 1) == 2
    first.close(linger=0)
    assert await changed(publisher, counters, 2) == 1
    second.setsockopt(zmq.UNSUBSCRIBE, b"")
    assert await changed(publisher, counters, 1) == 0
    publisher.close(linger_ms=0)


async def test_without_subscribers_publishing_does_not_wait(context: Context, counters: OutputCounters) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters, high_water_mark=1)
    await publisher.publish([decision(mep) for mep in range(2000)])
    assert counters.sent == 2000
    assert counters.blocked == 0
    publisher.close(linger_ms=0)


async def test_a_stopped_subscriber_delays_once_and_its_loss_is_counted_and_visible(
    context: Context, counters: OutputCounters
) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters, drop_after_ns=100_000_000, high_water_mark=2)
    slow = subscriber(context, publisher.endpoint, high_water_mark=2)
    await subscribed(publisher, counters, 1)
    mep = 0
    while counters.dropped[DropReason.SLOW_SUBSCRIBER] == 0:
        await publisher.publish([decision(mep, n_events=20_000)])
        mep += 1
    assert counters.blocked > 1
    started = time.monotonic()
    await publisher.publish([decision(mep + i) for i in range(300)])
    assert time.monotonic() - started < 20.0  # 300 times the longest wait would be 30 s
    sent_before = counters.sent
    dropped_before = counters.dropped[DropReason.SLOW_SUBSCRIBER]
    assert sent_before + dropped_before == mep + 300

    received = [decode_decision(slow.recv()) for _ in range(sent_before)]
    while counters.sent == sent_before:
        await publisher.publish([decision(999)])
    received.append(decode_decision(slow.recv()))
    total = counters.sent + counters.dropped[DropReason.SLOW_SUBSCRIBER]
    assert received[-1].seq == total - 1
    missed = total - len(received)
    assert missed == counters.dropped[DropReason.SLOW_SUBSCRIBER]
    publisher.close(linger_ms=0)


async def test_a_subscriber_that_pauses_briefly_loses_nothing(context: Context, counters: OutputCounters) -> None:
    publisher = DecisionPublisher(
        context, "tcp://127.0.0.1:*", counters, drop_after_ns=20_000_000_000, high_water_mark=2
    )
    slow = subscriber(context, publisher.endpoint, high_water_mark=2)
    publisher.start(asyncio.get_running_loop())
    await subscribed(publisher, counters, 1)

    def read_all() -> list[int]:
        while not counters.blocked:
            time.sleep(0.005)
        return [decode_decision(slow.recv()).seq for _ in range(200)]

    reading = asyncio.create_task(asyncio.to_thread(read_all))
    await publisher.publish([decision(mep, n_events=20_000) for mep in range(200)])
    assert await reading == list(range(200))
    assert counters.dropped[DropReason.SLOW_SUBSCRIBER] == 0
    publisher.close(linger_ms=0)


async def test_messages_that_are_not_subscriptions_are_ignored(context: Context, counters: OutputCounters) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters)
    peer = context.socket(zmq.XSUB)
    OPEN.append(peer)
    peer.connect(publisher.endpoint)
    peer.send(b"\x07hello")
    peer.send(b"")
    peer.send(b"\x01" + b"x" * 5000)
    good = subscriber(context, publisher.endpoint)
    await subscribed(publisher, counters, 1)
    await publisher.publish([decision(1)])
    assert decode_decision(good.recv()).mep == 1
    publisher.close(linger_ms=0)


def test_an_endpoint_in_use_is_an_error_at_the_start(context: Context, counters: OutputCounters) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters)
    with pytest.raises(BindError, match="Address already in use"):
        DecisionPublisher(context, publisher.endpoint, counters)
    publisher.close(linger_ms=0)


async def test_decisions_of_another_thread_leave_in_one_sequence_with_those_of_the_loop(
    context: Context, counters: OutputCounters
) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters)
    publisher.start(asyncio.get_running_loop())
    socket = subscriber(context, publisher.endpoint, high_water_mark=0)
    await subscribed(publisher, counters, 1)
    n = 300

    def send() -> int:
        return sum(publisher.send_at_once([decision(n + i), decision(2 * n + i)]) for i in range(n))

    other = asyncio.create_task(asyncio.to_thread(send))
    for mep in range(n):
        await publisher.publish([decision(mep)])
        await asyncio.sleep(0)
    n_sent = await other
    # A send that meets one of the loop is declined, and its caller publishes it later.
    assert 0 < n_sent <= 2 * n
    found = [decode_decision(socket.recv()) for _ in range(n + n_sent)]
    assert [each.seq for each in found] == list(range(n + n_sent))
    assert [each.mep for each in found if each.mep < n] == list(range(n))
    assert len({each.mep for each in found}) == n + n_sent
    assert counters.sent == n
    publisher.close(linger_ms=0)
    assert publisher.send_at_once([decision(0)]) == 0


async def test_what_a_full_subscriber_does_not_take_at_once_is_left_to_the_caller(
    context: Context, counters: OutputCounters
) -> None:
    publisher = DecisionPublisher(context, "tcp://127.0.0.1:*", counters, high_water_mark=2)
    socket = subscriber(context, publisher.endpoint, high_water_mark=1)
    await subscribed(publisher, counters, 1)
    decisions = [decision(mep, n_events=60_000) for mep in range(100)]
    n = publisher.send_at_once(decisions)
    assert 0 < n < len(decisions)
    socket.setsockopt(zmq.RCVTIMEO, 300)
    found = [decode_decision(socket.recv()) for _ in range(n)]
    with pytest.raises(zmq.Again):
        socket.recv()
    assert [(each.mep, each.seq) for each in found] == [(mep, mep) for mep in range(n)]
    # A message that did not leave has used no number.
    assert publisher.send_at_once(decisions[n : n + 1]) == 1
    assert decode_decision(socket.recv()).seq == n
    publisher.close(linger_ms=0)


async def test_no_decision_of_another_thread_overtakes_one_that_waits_in_the_loop(
    context: Context, counters: OutputCounters
) -> None:
    publisher = DecisionPublisher(
        context, "tcp://127.0.0.1:*", counters, policy=SlowConsumerPolicy.WAIT, high_water_mark=2
    )
    publisher.start(asyncio.get_running_loop())
    socket = subscriber(context, publisher.endpoint, high_water_mark=1)
    await subscribed(publisher, counters, 1)
    waiting = asyncio.create_task(publisher.publish([decision(mep, n_events=60_000) for mep in range(100)]))
    while publisher.sender.waiting_since_ns is None:
        await asyncio.sleep(0.001)
    # Room for one: the loop has not seen it yet.
    decode_decision(await asyncio.to_thread(socket.recv))
    assert publisher.send_at_once([decision(1000)]) == 0
    for _ in range(99):
        await asyncio.to_thread(socket.recv)
    await waiting
    assert publisher.send_at_once([decision(1000)]) == 1
    assert decode_decision(socket.recv()).seq == 100
    publisher.close(linger_ms=0)
