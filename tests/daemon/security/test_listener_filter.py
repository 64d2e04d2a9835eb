"""The kernel drops the packets of refused addresses, and no others."""

import socket
from collections.abc import Iterator

import pytest

from hltnode.daemon.security.address_accounts import MOST_REFUSED
from hltnode.daemon.security.listener_filter import ListenerFilter, remove_filter

pytestmark = pytest.mark.loopback

DROPPED_AFTER = 0.2


@pytest.fixture(params=["127.0.0.1", "::1"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as server:
        yield server


@pytest.fixture
def ipv4() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def connects(server: socket.socket, source: str) -> bool:
    with socket.socket(server.family) as peer:
        peer.bind((source, 0))
        peer.settimeout(DROPPED_AFTER)
        try:
            peer.connect(server.getsockname()[:2])
        except TimeoutError:
            return False
        return True


def test_only_listed_addresses_are_refused(ipv4: socket.socket) -> None:
    gate = ListenerFilter(ipv4.fileno())
    gate.refuse(["127.0.0.2", "127.9.9.9", "2001:db8::/64"])
    assert [connects(ipv4, f"127.0.0.{i}") for i in (1, 2, 3)] == [True, False, True]
    assert not connects(ipv4, "127.9.9.9")
    gate.refuse(["127.0.0.3"])
    assert [connects(ipv4, f"127.0.0.{i}") for i in (1, 2, 3)] == [True, True, False]
    gate.refuse([])
    assert connects(ipv4, "127.0.0.3")
    gate.close()


def test_only_listed_addresses_are_admitted(ipv4: socket.socket) -> None:
    gate = ListenerFilter(ipv4.fileno())
    gate.admit_only(["127.0.0.2"])
    assert [connects(ipv4, f"127.0.0.{i}") for i in (1, 2, 3)] == [False, True, False]
    gate.admit_only([])
    assert not connects(ipv4, "127.0.0.2")
    gate.close()


def test_addresses_of_both_families_are_told_apart(listener: socket.socket) -> None:
    address = listener.getsockname()[0]
    gate = ListenerFilter(listener.fileno())
    gate.refuse(["127.0.0.7", "2001:db8::/64", "::1:0:0:0:0/64", "0:0:0:1::/64"])
    assert connects(listener, address)
    gate.refuse(["127.0.0.7", "2001:db8::/64", address])
    assert not connects(listener, address)
    gate.admit_only(["127.0.0.7", "2001:db8::/64"])
    assert not connects(listener, address)
    gate.admit_only(["127.0.0.7", "2001:db8::/64", address])
    assert connects(listener, address)
    gate.close()


def test_the_kernel_takes_as_many_addresses_as_are_ever_refused(listener: socket.socket) -> None:
    address = listener.getsockname()[0]
    gate = ListenerFilter(listener.fileno())
    half = MOST_REFUSED // 2
    many = [f"10.0.{i // 250}.{i % 250}" for i in range(half)] + [f"2001:db8:0:{i:x}::/64" for i in range(half - 1)]
    for _ in range(3):
        gate.refuse([*many, address])
        assert not connects(listener, address)
    gate.refuse(many)
    assert connects(listener, address)
    gate.close()


def test_an_accepted_connection_keeps_working_and_loses_the_filter_it_was_born_with(ipv4: socket.socket) -> None:
    gate = ListenerFilter(ipv4.fileno())
    with socket.create_connection(ipv4.getsockname()) as peer, ipv4.accept()[0] as accepted:
        gate.admit_only([])
        peer.sendall(b"before")
        accepted.settimeout(5.0)
        assert accepted.recv(16) == b"before"
        remove_filter(accepted)
        remove_filter(accepted)
        peer.sendall(b"after")
        assert accepted.recv(16) == b"after"
    gate.close()


def test_a_socket_that_does_not_listen_is_refused() -> None:
    with socket.socket() as other, pytest.raises(OSError, match="no listening socket"):
        ListenerFilter(other.fileno())
