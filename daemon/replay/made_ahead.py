"""Packs MEPs in a thread ahead of sending: all fragments of a MEP are ready before the first one is sent."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor

from hltnode.client.mep import FeedMep

# Number of packed MEPs that wait to be sent.
_AHEAD = 2


async def made_ahead(meps: Iterable[FeedMep]) -> AsyncGenerator[FeedMep, None]:
    """Yield the MEPs while the thread packs the next ones. Raises the errors of packing."""
    iterator = iter(meps)
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1, thread_name_prefix="packing")

    def make() -> asyncio.Future[FeedMep | None]:
        return loop.run_in_executor(pool, next, iterator, None)

    waiting = deque(make() for _ in range(_AHEAD))
    try:
        while (mep := await waiting.popleft()) is not None:
            waiting.append(make())
            yield mep
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def in_order(meps: Iterable[FeedMep] | AsyncIterable[FeedMep]) -> AsyncIterator[FeedMep]:
    """MEPs of a list, or packed ahead by the thread."""
    if isinstance(meps, AsyncIterable):
        async for mep in meps:
            yield mep
    else:
        for mep in meps:
            yield mep
