"""The slow consumer policy of an output: the handling of messages that no consumer can take (no I/O, no waits).

Every message gets the next sequence number of its output, also a dropped one. So a consumer sees how many it missed.
A node waits in its event loop (`PolicySender`), the model of a farm in its own time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from hltnode.daemon.common.vocabulary import DropReason, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.protocol.buffers import Buffer

Message = Sequence[Buffer]
"""The parts of one ZeroMQ message."""
Item = TypeVar("Item")


class SendPolicy:
    """The policy of one output.

    Args:
        try_send: sends a message, or returns False at once if no consumer can take it.
        drop_after_ns: with `drop_new`, longest wait of the messages of one `steps` before it drops them.
        queue: with `drop_old`, number of messages kept for a slow consumer.
    """

    def __init__(
        self,
        policy: SlowConsumerPolicy,
        try_send: Callable[[Message], bool],
        counters: OutputCounters,
        *,
        drop_after_ns: int = 0,
        queue: int = 1,
        clock_ns: Callable[[], int],
    ) -> None:
        self.policy = policy
        self._send = try_send
        self._counters = counters
        self.drop_after_ns = drop_after_ns
        self._max_queue = queue
        self._clock_ns = clock_ns
        self._queue: deque[Message] = deque()
        self._sequence = 0
        self._dropping = False
        self.waiting_since_ns: int | None = None
        """With `wait`: start time of the current wait for a consumer; None if no message waits."""

    def steps(self, items: Iterable[Item], encode: Callable[[Item, int], Message]) -> Iterator[int | None]:
        """Send items in order; `encode` turns an item and its sequence number into a message.

        Yields when a message must wait: the longest time in ns, or None for any time. The caller continues when a
        consumer may have room, or when the time is over.
        """
        deadline_ns = self._clock_ns() + self.drop_after_ns
        for item in items:
            message = encode(item, self._sequence)
            self._sequence += 1
            if self.policy is SlowConsumerPolicy.WAIT:
                yield from self._wait(message)
            elif self.policy is SlowConsumerPolicy.DROP_NEW:
                yield from self._send_or_drop(message, deadline_ns)
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
        while self._queue and self._try_send(self._queue[0]):
            self._queue.popleft()
        self._counters.queued = len(self._queue)

    def close(self) -> None:
        """Count messages that are still queued as dropped."""
        for _ in self._queue:
            self._dropped()
        self._queue.clear()
        self._counters.queued = 0

    def _wait(self, message: Message) -> Iterator[None]:
        if self._try_send(message):
            return
        self.waiting_since_ns = self._clock_ns()
        yield None
        while not self._try_send(message):
            yield None
        self.waiting_since_ns = None

    def _send_or_drop(self, message: Message, deadline_ns: int) -> Iterator[int]:
        # After a drop, do not wait until a send succeeds: a stopped consumer costs this time once, not
        # per batch.
        while not (sent := self._try_send(message)):
            left_ns = deadline_ns - self._clock_ns()
            if self._dropping or left_ns <= 0:
                break
            yield left_ns
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
