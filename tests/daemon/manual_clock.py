"""A clock that a test sets by hand."""

import asyncio
import contextlib
from heapq import heappop, heappush

# Turns of the event loop in which everything that a step has woken comes to its next wait.
TURNS = 20


class ManualClock:
    """Time passes only by `advance`; waits end in the order of their times."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._waits: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._waits, (self.now_ns + round(seconds * 1e9), self._count, future))
        await future

    async def wait(self, event: asyncio.Event, seconds: float | None) -> None:
        waits: list[asyncio.Task[object]] = [asyncio.create_task(event.wait())]
        if seconds is not None:
            waits.append(asyncio.create_task(self.sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await wait

    async def run_ready(self) -> None:
        """Let everything run that needs no time."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass."""
        end_ns = self.now_ns + round(seconds * 1e9)
        await self.run_ready()
        while self._waits and self._waits[0][0] <= end_ns:
            self.now_ns, _, future = heappop(self._waits)
            if not future.done():
                future.set_result(None)
            await self.run_ready()
        self.now_ns = end_ns
