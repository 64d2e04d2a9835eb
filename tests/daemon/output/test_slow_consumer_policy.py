"""The three slow consumer policies: sent messages, dropped messages, and waits of the caller."""

import asyncio

import pytest

from hltnode.daemon.common.vocabulary import DropReason, OutputName, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.policy_sender import PolicySender
from hltnode.daemon.output.slow_consumer_policy import Message


class Consumer:
    """Accepts messages while it has room."""

    def __init__(self) -> None:
        self.room = 0
        self.taken: list[int] = []

    def take(self, message: Message) -> bool:
        if self.room == 0:
            return False
        self.room -= 1
        self.taken.append(int(message[0]))
        return True


def numbered(_item: object, sequence: int) -> Message:
    return (b"%d" % sequence,)


class Bench:
    def __init__(
        self,
        policy: SlowConsumerPolicy,
        *,
        queue: int = 1,
        drop_after_ns: int = 0,
        consumer: Consumer | None = None,
    ) -> None:
        self.consumer = consumer or Consumer()
        self.counters = OutputCounters()
        self.now_ns = 0
        self.sender = PolicySender(
            OutputName.EVENTS,
            policy,
            self.consumer.take,
            self.counters,
            queue=queue,
            drop_after_ns=drop_after_ns,
            clock_ns=lambda: self.now_ns,
        )

    async def put(self, n: int) -> None:
        await self.sender.put_all(range(n), numbered)

    @property
    def dropped(self) -> int:
        return self.counters.dropped[DropReason.SLOW_SUBSCRIBER]


@pytest.mark.parametrize("policy", SlowConsumerPolicy)
async def test_a_consumer_with_room_gets_everything_in_order(policy: SlowConsumerPolicy) -> None:
    bench = Bench(policy)
    bench.consumer.room = 10
    await bench.put(4)
    await bench.put(3)
    assert bench.consumer.taken == list(range(7))
    assert (bench.counters.sent, bench.dropped) == (7, 0)


async def test_wait_holds_the_caller_until_the_consumer_reads_and_loses_nothing() -> None:
    bench = Bench(SlowConsumerPolicy.WAIT)
    bench.consumer.room = 1
    bench.now_ns = 5
    putting = asyncio.create_task(bench.put(3))
    while bench.sender.waiting_since_ns is None:
        await asyncio.sleep(0)
    assert bench.sender.waiting_since_ns == 5
    assert not putting.done()
    bench.consumer.room = 10
    bench.sender.pump()
    await putting
    assert bench.sender.waiting_since_ns is None
    assert bench.consumer.taken == [0, 1, 2]
    assert bench.dropped == 0


async def test_drop_new_drops_new_messages_and_the_sequence_numbers_have_gaps() -> None:
    bench = Bench(SlowConsumerPolicy.DROP_NEW)
    bench.consumer.room = 2
    await bench.put(5)
    bench.consumer.room = 2
    await bench.put(2)
    assert bench.consumer.taken == [0, 1, 5, 6]
    assert (bench.counters.sent, bench.dropped) == (4, 3)


async def test_drop_old_keeps_the_newest_messages_and_sends_them_when_there_is_room() -> None:
    bench = Bench(SlowConsumerPolicy.DROP_OLD, queue=2)
    await bench.put(5)
    assert (bench.counters.queued, bench.dropped) == (2, 3)
    bench.consumer.room = 10
    bench.sender.pump()
    assert bench.consumer.taken == [3, 4]
    assert bench.counters.queued == 0


async def test_messages_queued_by_drop_old_at_the_end_are_counted_as_dropped() -> None:
    bench = Bench(SlowConsumerPolicy.DROP_OLD, queue=4)
    await bench.put(3)
    bench.sender.close()
    assert (bench.dropped, bench.counters.queued) == (3, 0)


async def test_drop_new_waits_for_a_stopped_consumer_once_and_again_after_it_has_read() -> None:
    class Clock(Consumer):
        def take(self, message: Message) -> bool:
            bench.now_ns += 1000
            return super().take(message)

    bench = Bench(SlowConsumerPolicy.DROP_NEW, drop_after_ns=3000, consumer=Clock())
    tries = []
    for room in (0, 0, 0, 1, 0):
        bench.consumer.room = room
        before = bench.counters.blocked
        await bench.put(1)
        tries.append(bench.counters.blocked - before)
    # The first and the last message wait for the whole time.
    assert tries == [3, 1, 1, 0, 3]
    assert (bench.consumer.taken, bench.dropped) == ([3], 4)
