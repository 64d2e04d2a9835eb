"""The guard ends or reports connections that send more than they may."""

import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hltnode.daemon._native import ConnectionGuard

pytestmark = pytest.mark.loopback


@contextmanager
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as peer,
        server.accept()[0] as accepted,
    ):
        accepted.settimeout(5.0)
        peer.settimeout(5.0)
        yield peer, accepted


@pytest.fixture
def guard() -> Iterator[ConnectionGuard]:
    guard = ConnectionGuard()
    yield guard
    guard.close()


def reported(guard: ConnectionGuard, seconds: float = 5.0) -> list[tuple[int, bool]]:
    select.select([guard.report_descriptor], [], [], seconds)
    return guard.reported()


def is_ended(peer: socket.socket) -> bool:
    try:
        return not peer.recv(16)
    except ConnectionResetError:
        return True


def send(peer: socket.socket, accepted: socket.socket, nbytes: int) -> None:
    """Send bytes and read them, as libzmq does."""
    peer.sendall(bytes(nbytes))
    while nbytes and (part := accepted.recv(nbytes)):
        nbytes -= len(part)


def test_a_connection_may_send_its_capacity_and_one_more_byte_ends_it(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        guard.add(accepted.fileno(), 1000, 0.0, True)
        send(peer, accepted, 1000)
        assert reported(guard, 0.05) == []
        peer.sendall(b"x")
        assert reported(guard) == [(accepted.fileno(), True)]
        assert is_ended(peer)
        assert reported(guard, 0.0) == []


def test_a_connection_that_is_only_reported_goes_on_and_is_reported_once(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        guard.add(accepted.fileno(), 1000, 0.0, False)
        send(peer, accepted, 1001)
        assert reported(guard) == [(accepted.fileno(), False)]
        send(peer, accepted, 5000)
        assert reported(guard, 0.05) == []


def test_bytes_allowed_each_second_are_gained_up_to_the_capacity(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        # The pause gains three times the capacity, of which no more than the capacity counts.
        guard.add(accepted.fileno(), 1000, 1e5, True)
        for _ in range(3):
            send(peer, accepted, 900)
            time.sleep(0.03)
        assert reported(guard, 0.05) == []
        peer.sendall(bytes(60_000))
        assert reported(guard) == [(accepted.fileno(), True)]


def test_a_calm_connection_saves_up_no_more_than_its_capacity(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        # A microsecond gains a million bytes.
        guard.add(accepted.fileno(), 1000, 1e12, True)
        peer.sendall(bytes(5000))
        assert reported(guard) == [(accepted.fileno(), True)]


def test_bytes_that_arrived_before_the_guard_followed_count(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        send(peer, accepted, 900)
        guard.add(accepted.fileno(), 1000, 0.0, True)
        send(peer, accepted, 101)
        assert reported(guard) == [(accepted.fileno(), True)]


def test_a_removed_connection_is_not_followed_and_an_unknown_one_is_ignored(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        guard.add(accepted.fileno(), 10, 0.0, True)
        guard.remove(accepted.fileno())
        guard.remove(accepted.fileno())
        send(peer, accepted, 5000)
        assert reported(guard, 0.05) == []


def test_a_report_that_was_not_taken_is_gone_with_its_connection(guard: ConnectionGuard) -> None:
    """The next connection may have the same number."""
    with connection() as (peer, accepted), connection() as (other_peer, other):
        for watched in (accepted, other):
            guard.add(watched.fileno(), 10, 0.0, True)
        for each in (peer, other_peer):
            each.sendall(bytes(11))
            assert is_ended(each)
        guard.remove(accepted.fileno())
        assert reported(guard) == [(other.fileno(), True)]


def test_local_sockets_which_count_no_bytes_are_never_ended(guard: ConnectionGuard) -> None:
    one, other = socket.socketpair()
    with one, other:
        guard.add(other.fileno(), 10, 0.0, True)
        send(one, other, 5000)
        assert reported(guard, 0.05) == []


def test_a_descriptor_that_cannot_be_followed_is_refused(guard: ConnectionGuard) -> None:
    with pytest.raises(ValueError, match="cannot be followed"):
        guard.add(987_654, 10, 0.0, True)


def test_a_descriptor_that_is_added_again_is_followed_with_its_new_limits(guard: ConnectionGuard) -> None:
    with connection() as (peer, accepted):
        guard.add(accepted.fileno(), 1000, 0.0, False)
        guard.add(accepted.fileno(), 10, 0.0, True)
        peer.sendall(bytes(11))
        assert reported(guard) == [(accepted.fileno(), True)]
        assert is_ended(peer)


def test_a_connection_that_sent_too_much_before_it_is_added_leaves_nothing_behind(guard: ConnectionGuard) -> None:
    """The second descriptor of a connection is closed and opened again where a limiter that lags confuses two."""
    with connection() as (peer, accepted):
        send(peer, accepted, 1000)
        # A byte that is not read: epoll reports the connection at once.
        peer.sendall(b"x")
        for _ in range(3000):
            with accepted.dup() as second:
                guard.add(second.fileno(), 10, 0.0, False)
                assert reported(guard) == [(second.fileno(), False)]
