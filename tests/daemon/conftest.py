"""Logs that do not outlive the streams of a test, a check for leaks, and the builder's history in failure reports."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
import zmq
from zmq.utils.garbage import gc as pyzmq_memory

from tests.daemon.failure_report import pytest_runtest_makereport

UUID_CLOCK = "/var/lib/libuuid/clock.txt"

__all__ = ["logs_as_before", "nothing_is_left_behind", "pytest_runtest_makereport"]


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A test that configures the logs binds them to streams which pytest closes; the next test starts afresh."""
    root = logging.getLogger()  # noqa: TID251
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
async def nothing_is_left_behind() -> AsyncIterator[None]:
    """No thread, task, socket or file descriptor survives a test."""
    threads = set(threading.enumerate())
    descriptors = _descriptors()
    yield
    # The thread with which pyzmq frees the memory of messages above 64 kB, which it sends without a copy.
    pyzmq_memory.stop()
    others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    assert not others, others
    await asyncio.sleep(0)
    left = [t for t in threading.enumerate() if t not in threads and not t.name.startswith("asyncio_")]
    for thread in left:
        # A back end that hung until just now is checked ten times a second.
        thread.join(1.0)
    left = [thread for thread in left if thread.is_alive()]
    assert not left, left
    gc.collect()
    open_sockets = [o for o in gc.get_objects() if isinstance(o, zmq.Socket) and not o.closed]
    assert not open_sockets, open_sockets
    new = {number: target for number, target in _descriptors().items() if number not in descriptors}
    assert not new, new


def _descriptors() -> dict[str, str]:
    """What the open file descriptors of this process point to."""
    targets = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            targets[link.name] = os.readlink(link)
        except FileNotFoundError:
            continue  # the descriptor with which the folder itself is read
    # On machines with uuid-runtime, libuuid keeps its clock open from the first UUID with a time, which uproot makes.
    return {number: target for number, target in targets.items() if target != UUID_CLOCK}
