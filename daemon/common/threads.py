"""Work in a thread that must not keep the process from ending, and calls from threads into the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object) -> None:
    """Call in the loop, from any thread; nothing after the end of the loop."""
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        # A back end that hangs may keep its thread beyond the end of the loop.
        if not loop.is_closed():
            raise


class EndableQueue(Protocol):
    """A queue whose reader takes None as its end."""

    def put(self, item: None, /) -> None:
        """Behind what is queued."""


def end_thread(thread: threading.Thread, queue: EndableQueue, timeout_s: float) -> bool:
    """End a thread that reads a queue until None. True if it has ended in time, or never ran."""
    if thread.is_alive():
        queue.put(None)
        thread.join(timeout_s)
    return not thread.is_alive()


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """The result of `work`, or its exception.

    Other than with `asyncio.to_thread`, neither the end of the loop nor that of the interpreter waits for the thread: a
    driver or a file system that hangs must not keep a node from ending. After a cancellation `work` goes on and its
    result is dropped.
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
        # The loop is closed if no caller waited for this.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    thread = threading.Thread(target=run, name=f"hltnode-{getattr(work, '__name__', 'work')}", daemon=True)
    thread.start()
    try:
        return await future
    finally:
        if future.done() and not future.cancelled():
            # It has nothing left to do.
            thread.join()
