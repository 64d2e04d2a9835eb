"""Pages that cost processor time: waiting requests share one page, and all pages together have a budget.

Without it, a client that requests /metrics again and again takes the processor from the event loop. A page is never
older than the request that it answers.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from hltnode.daemon.common.token_buckets import TokenBucket

# Processor time of all pages, in ns: at once, and for each second. A page of many series costs 50 ms, and Prometheus
# requests it every few seconds.
AT_ONCE_NS, PER_SECOND_NS = 500_000_000, 150_000_000

_T = TypeVar("_T")

Prepare = Callable[[], Callable[[], bytes]]
"""Called in the event loop; returns the function that creates the page."""


class SharedPages:
    """Creates pages. All calls come from the event loop.

    Args:
        cpu_ns: processor time of the calling thread.
    """

    def __init__(self, clock_ns: Callable[[], int], cpu_ns: Callable[[], int] = time.thread_time_ns) -> None:
        self._clock_ns = clock_ns
        self._cpu_ns = cpu_ns
        self._budget = TokenBucket(AT_ONCE_NS, PER_SECOND_NS, clock_ns())
        self._thread = asyncio.Lock()
        """Held for a page that is created in a thread: one at a time."""
        self._waiting: dict[str, asyncio.Task[bytes]] = {}
        """Pages that are requested and not yet begun."""
        self._tasks: set[asyncio.Task[bytes]] = set()

    async def get(self, name: str, prepare: Prepare, *, in_thread: bool = True) -> bytes:
        """A page that is begun after this call, as soon as the budget allows it."""
        task = self._waiting.get(name)
        if task is None:
            task = self._waiting[name] = asyncio.create_task(self._make(name, prepare, in_thread))
            self._tasks.add(task)
            task.add_done_callback(self._made)
        # A client that leaves does not end the page of the others.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End the pages in progress."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, name: str, prepare: Prepare, in_thread: bool) -> bytes:
        spent: list[int] = []
        try:
            async with self._thread if in_thread else nullcontext():
                while wait_ns := self._budget.wait_ns(1, self._clock_ns()):
                    await asyncio.sleep(wait_ns / 1e9)
                # From now on a request gets the next page.
                del self._waiting[name]
                render = self._timed(prepare, spent)
                if in_thread:
                    return await asyncio.to_thread(self._timed, render, spent)
                return self._timed(render, spent)
        finally:
            self._budget.spend(sum(spent))
            if self._waiting.get(name) is asyncio.current_task():
                del self._waiting[name]

    def _timed(self, function: Callable[[], _T], spent: list[int]) -> _T:
        begin_ns = self._cpu_ns()
        try:
            return function()
        finally:
            spent.append(self._cpu_ns() - begin_ns)

    def _made(self, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Marks an error as seen: all clients may have left.
            task.exception()
