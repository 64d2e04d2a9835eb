"""Threads that do not block the end of the process, and calls from threads into the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object) -> None:
    """Schedule a call in the loop, from any thread; no effect after the end of the loop."""
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        # The thread of a hung back end may outlive the loop.
        if not loop.is_closed():
            raise


class EndableQueue(Protocol):
    """A queue whose reader stops at None."""

    def put(self, item: None, /) -> None:
        """Append an item."""


def end_thread(thread: threading.Thread, queue: EndableQueue, timeout_s: float) -> bool:
    """End a thread that reads a queue until None. True if it ended in time or never ran."""
    if thread.is_alive():
        queue.put(None)
        thread.join(timeout_s)
    return not thread.is_alive()


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread; return its result or raise its exception.

    Unlike with `asyncio.to_thread`, neither the end of the loop nor the exit of the interpreter waits for the thread: a
    hung driver or file system must not keep a node from ending. After a cancellation, `work` continues and its result
    is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        # If no caller waits for the result, the loop may be closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    thread = threading.Thread(target=run, name=f"hltnode-{getattr(work, '__name__', 'work')}", daemon=True)
    thread.start()
    try:
        return await future
    finally:
        if future.done() and not future.cancelled():
            # The thread has nothing left to do.
            thread.join()
