"""The slow consumer policy of an output: the handling of messages that no consumer can take (no sockets here).

Every message gets the next sequence number of its output, also a dropped one. So a consumer sees how many it missed.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import DropReason, OutputName, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.protocol.buffers import Buffer

LOG_INTERVAL_NS = 10_000_000_000

Message = Sequence[Buffer]
"""The parts of one ZeroMQ message."""
Item = TypeVar("Item")

log = get_logger("slow_consumer_policy")


class PolicySender:
    """Sender of one output. All calls come from the thread of the event loop, except `send_at_once`.

    Args:
        try_send: sends a message, or returns False at once if no consumer can take it.
        drop_after_ns: with `drop_new`, longest wait of a `put_all` call before it drops messages.
        queue: with `drop_old`, number of messages kept for a slow consumer.
    """

    def __init__(
        self,
        name: OutputName,
        policy: SlowConsumerPolicy,
        try_send: Callable[[Message], bool],
        counters: OutputCounters,
        *,
        drop_after_ns: int = 0,
        queue: int = 1,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.name = name
        self.policy = policy
        self._send = try_send
        self._counters = counters
        self.drop_after_ns = drop_after_ns
        self._max_queue = queue
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._queue: deque[Message] = deque()
        self._sequence = 0
        self._dropping = False
        self._room = asyncio.Event()
        self.waiting_since_ns: int | None = None
        """With `wait`: start time of the current wait for a consumer; None if no message waits."""

    async def put_all(self, items: Iterable[Item], encode: Callable[[Item, int], Message]) -> None:
        """Send items in order; `encode` turns an item and its sequence number into a message."""
        deadline_ns = self._clock_ns() + self.drop_after_ns
        for item in items:
            message = encode(item, self._sequence)
            self._sequence += 1
            if self.policy is SlowConsumerPolicy.WAIT:
                await self._wait(message)
            elif self.policy is SlowConsumerPolicy.DROP_NEW:
                await self._send_or_drop(message, deadline_ns)
            else:
                self._queue_or_drop_oldest(message)

    def send_at_once(self, items: Iterable[Item], encode: Callable[[Item, int], Message]) -> int:
        """Send items in order as far as consumers take them without waiting; returns how many. They are not counted.

        The only call that may come from another thread; the caller excludes all others meanwhile.
        """
        n = 0
        if not self._queue:
            for item in items:
                if not self._send(encode(item, self._sequence)):
                    return n
                self._sequence += 1
                n += 1
            self._dropping = False
        return n

    def pump(self) -> None:
        """Try to send waiting messages; called when a consumer may have room."""
        self._room.set()
        while self._queue and self._try_send(self._queue[0]):
            self._queue.popleft()
        self._counters.queued = len(self._queue)

    def close(self) -> None:
        """Count messages that are still queued as dropped."""
        for _ in self._queue:
            self._dropped()
        self._queue.clear()
        self._counters.queued = 0

    async def _wait(self, message: Message) -> None:
        if self._try_send(message):
            return
        self.waiting_since_ns = self._clock_ns()
        await self._wait_for_room(None)
        while not self._try_send(message):
            await self._wait_for_room(None)
        self.waiting_since_ns = None

    async def _wait_for_room(self, ns: int | None) -> None:
        """Wait until `pump` is called, at most for this time."""
        self._room.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if ns is None else ns * 1e-9):
                await self._room.wait()

    async def _send_or_drop(self, message: Message, deadline_ns: int) -> None:
        # After a drop, do not wait until a send succeeds: a stopped consumer costs this time once, not
        # per batch.
        while not (sent := self._try_send(message)):
            left_ns = deadline_ns - self._clock_ns()
            if self._dropping or left_ns <= 0:
                break
            await self._wait_for_room(left_ns)
        self._dropping = not sent
        if not sent:
            self._dropped()

    def _queue_or_drop_oldest(self, message: Message) -> None:
        # A copy: the queue must not hold the other events of a batch in memory.
        self._queue.append([bytes(part) for part in message])
        self.pump()
        if len(self._queue) > self._max_queue:
            self._queue.popleft()
            self._counters.queued -= 1
            self._dropped()

    def _try_send(self, message: Message) -> bool:
        if self._send(message):
            self._counters.sent += 1
            return True
        self._counters.blocked += 1
        return False

    def _dropped(self) -> None:
        self._counters.dropped[DropReason.SLOW_SUBSCRIBER] += 1
        left_out = self._limit.due("dropped")
        if left_out is not None:
            log.warning("message_dropped", output=self.name, policy=self.policy, left_out=left_out)
