"""Outputs that wait for a consumer are woken by its socket: no wake-up is lost, and nothing asks again and again."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

from hltnode.daemon.common.vocabulary import EventSocketKind, OutputName, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.output_sockets import EventOutput, OutputSocket
from hltnode.daemon.output.slow_consumer_policy import Message

pytestmark = pytest.mark.loopback

MESSAGES = 400
BYTES = 20_000


class Consumer:
    """A thread that reads with pauses, from when `begins` is true."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str, begins: Callable[[], bool] = lambda: True
    ) -> None:
        self.received: list[int] = []
        self._context = context
        self._endpoint = endpoint
        self._begins = begins
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        rng = random.Random(1)
        with self._context.socket(zmq.PULL) as socket:
            socket.setsockopt(zmq.RCVHWM, 1)
            socket.setsockopt(zmq.RCVBUF, 4096)
            while not self._begins():
                time.sleep(0.001)
            socket.connect(self._endpoint)
            while len(self.received) < MESSAGES and socket.poll(10_000):
                self.received.append(int(socket.recv()[:8]))
                if rng.random() < 0.2:
                    time.sleep(rng.random() * 2e-3)


def numbered(_item: object, sequence: int) -> Message:
    return (b"%08d" % sequence + bytes(BYTES),)


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.mark.parametrize("late", [False, True])
async def test_a_consumer_that_pauses_or_connects_late_gets_every_message(
    context: zmq.Context[zmq.Socket[bytes]], late: bool
) -> None:
    socket = OutputSocket(context, "tcp://127.0.0.1:*", EventSocketKind.PUSH, high_water_mark=1)
    counters = OutputCounters()
    output = EventOutput(OutputName.EVENTS, socket, SlowConsumerPolicy.WAIT, counters, queue=1)
    output.start(asyncio.get_running_loop())
    consumer = Consumer(context, output.endpoint, lambda: counters.blocked > 0 or not late)
    consumer.thread.start()
    async with asyncio.timeout(30.0):
        await output.sender.put_all(range(MESSAGES), numbered)
    await asyncio.to_thread(consumer.thread.join)
    assert consumer.received == list(range(MESSAGES))
    # Waiting messages were tried again when there was room, and not continuously.
    assert counters.blocked < 4 * MESSAGES
    output.close(linger_ms=0)


async def test_messages_kept_by_drop_old_are_sent_when_there_is_room_without_a_new_message(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    socket = OutputSocket(context, "tcp://127.0.0.1:*", EventSocketKind.PUSH, high_water_mark=1)
    counters = OutputCounters()
    output = EventOutput(OutputName.EVENTS, socket, SlowConsumerPolicy.DROP_OLD, counters, queue=MESSAGES)
    output.start(asyncio.get_running_loop())
    await output.sender.put_all(range(MESSAGES), numbered)
    assert counters.queued == MESSAGES
    consumer = Consumer(context, output.endpoint)
    consumer.thread.start()
    async with asyncio.timeout(30.0):
        while counters.queued:
            await asyncio.sleep(0.01)
    await asyncio.to_thread(consumer.thread.join)
    assert consumer.received == list(range(MESSAGES))
    output.close(linger_ms=0)
