"""The second descriptor of a connection, when the first one has ended before it is opened."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hltnode.daemon.security.tcp_connection import TcpConnection

pytestmark = pytest.mark.loopback


@contextmanager
def something_else(kind: str) -> Iterator[int]:
    """The descriptor of a file, of a pipe, or of a connection to another port."""
    match kind:
        case "file":
            with Path("/proc/self/stat").open("rb") as file:
                yield file.fileno()
        case "pipe":
            ends = os.pipe()
            yield ends[0]
            for end in ends:
                os.close(end)
        case _:
            with (
                socket.create_server(("127.0.0.1", 0)) as server,
                socket.create_connection(server.getsockname()) as peer,
            ):
                yield peer.fileno()


@pytest.mark.parametrize("kind", ["file", "pipe", "another port"])
def test_a_number_that_belongs_to_something_else_by_now_leaves_no_descriptor(kind: str) -> None:
    with something_else(kind) as descriptor:
        before = os.listdir("/proc/self/fd")
        for _ in range(10):
            with pytest.raises(OSError):  # noqa: PT011 (of several kinds)
                TcpConnection(descriptor, 1)
        assert len(os.listdir("/proc/self/fd")) == len(before)
