"""The sender of an output: its slow consumer policy, which waits in the event loop, and reports drops to the log."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import OutputName, SlowConsumerPolicy
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.slow_consumer_policy import Item, Message, SendPolicy

LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("slow_consumer_policy")


class PolicySender(SendPolicy):
    """Sender of one output. All calls come from the thread of the event loop, except `send_at_once`."""

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
        super().__init__(policy, try_send, counters, drop_after_ns=drop_after_ns, queue=queue, clock_ns=clock_ns)
        self.name = name
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._room = asyncio.Event()

    async def put_all(self, items: Iterable[Item], encode: Callable[[Item, int], Message]) -> None:
        """Send items in order; `encode` turns an item and its sequence number into a message."""
        for wait_ns in self.steps(items, encode):
            await self._wait_for_room(wait_ns)

    def pump(self) -> None:
        """Try to send waiting messages; called when a consumer may have room."""
        self._room.set()
        super().pump()

    async def _wait_for_room(self, ns: int | None) -> None:
        """Wait until `pump` is called, at most for this time."""
        self._room.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if ns is None else ns * 1e-9):
                await self._room.wait()

    def _dropped(self) -> None:
        super()._dropped()
        left_out = self._limit.due("dropped")
        if left_out is not None:
            log.warning("message_dropped", output=self.name, policy=self.policy, left_out=left_out)
