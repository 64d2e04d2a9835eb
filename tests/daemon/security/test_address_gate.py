"""Which new connections the gate refuses, here and in the kernel."""

import socket
from collections.abc import Iterator

import pytest

from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.security import listener_filter
from hltnode.daemon.security.address_accounts import CONNECTIONS_AT_ONCE, FIRST_REFUSAL_NS, MANY_OFFENCES
from hltnode.daemon.security.address_gate import AddressGate

UNFINISHED = ConnectionRefusal.UNFINISHED


class Site:
    """A gate with its counters, and the addresses that it knows."""

    def __init__(self) -> None:
        self.counters = OperationCounters()
        self.known: set[str] = set()
        self.gate = AddressGate(self.counters, RateLimit(1, lambda: 0), lambda: self.known)

    def attacked_by_many(self, now_ns: int = 0) -> None:
        for i in range(MANY_OFFENCES):
            self.gate.ended(f"192.0.2.{i}", UNFINISHED, now_ns)
        self.gate.apply(now_ns)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.gate.close()


@pytest.fixture
def server(site: Site) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        site.gate.listens(server.fileno())
        yield server


def connects(server: socket.socket, source: str) -> bool:
    with socket.socket() as peer:
        peer.bind((source, 0))
        peer.settimeout(0.2)
        try:
            peer.connect(server.getsockname())
        except TimeoutError:
            return False
        return True


@pytest.mark.parametrize("reason", ConnectionRefusal)
def test_only_what_a_connection_has_sent_costs_its_address_something(site: Site, reason: ConnectionRefusal) -> None:
    site.gate.ended("192.0.2.1", reason, 0)
    offences = {"unfinished", "stalled", "malformed", "unpermitted", "flood", "unexpected_input", "too_often"}
    expected = ConnectionRefusal.ADDRESS_REFUSED if reason in offences else None
    assert site.gate.opened("192.0.2.1", 1) == expected
    assert site.counters.address_refusals == (expected is not None)
    assert site.gate.opened("192.0.2.2", 1) is None
    assert site.gate.opened("192.0.2.1", FIRST_REFUSAL_NS) is None


def test_an_address_that_connects_too_often_is_refused(site: Site) -> None:
    found = [site.gate.opened("192.0.2.1", 0) for _ in range(CONNECTIONS_AT_ONCE + 1)]
    assert found == [None] * CONNECTIONS_AT_ONCE + [ConnectionRefusal.TOO_OFTEN]


def test_offences_of_many_addresses_leave_only_the_known_ones(site: Site) -> None:
    site.known = {"198.51.100.1", "192.0.2.3"}
    site.attacked_by_many()
    assert site.gate.opened("198.51.100.1", 1) is None
    assert site.gate.opened("198.51.100.2", 1) == ConnectionRefusal.UNKNOWN_REFUSED
    assert site.gate.opened("192.0.2.3", 1) == ConnectionRefusal.ADDRESS_REFUSED
    assert site.gate.opened("", 1) is None
    assert site.counters.refuses_unknown
    site.gate.apply(FIRST_REFUSAL_NS)
    assert site.gate.opened("198.51.100.2", FIRST_REFUSAL_NS) is None
    assert not site.counters.refuses_unknown


def test_a_process_that_has_grown_too_much_leaves_only_the_known_ones_until_it_has_shrunk(site: Site) -> None:
    site.known = {"198.51.100.1"}
    for grown_bytes, expected in ((1, ConnectionRefusal.UNKNOWN_REFUSED), (0, None)):
        site.gate.grown(grown_bytes)
        site.gate.apply(1)
        assert site.gate.opened("198.51.100.1", 1) is None
        assert site.gate.opened("198.51.100.2", 1) == expected
        assert site.counters.refuses_unknown == (grown_bytes > 0)


@pytest.mark.loopback
def test_the_kernel_refuses_what_the_gate_refuses_and_stops_with_it(site: Site, server: socket.socket) -> None:
    site.gate.ended("127.0.0.2", UNFINISHED, 0)
    site.gate.apply(0)
    assert site.counters.refused_addresses == 1
    assert (connects(server, "127.0.0.2"), connects(server, "127.0.0.3")) == (False, True)
    site.gate.apply(FIRST_REFUSAL_NS)
    assert site.counters.refused_addresses == 0
    assert connects(server, "127.0.0.2")
    site.known = {"127.0.0.3", "127.0.0.2"}
    site.gate.ended("127.0.0.2", UNFINISHED, FIRST_REFUSAL_NS)
    site.attacked_by_many(FIRST_REFUSAL_NS)
    assert [connects(server, f"127.0.0.{i}") for i in (2, 3, 4)] == [False, True, False]


@pytest.mark.loopback
def test_a_socket_that_listens_later_gets_the_filter_in_force(site: Site) -> None:
    site.gate.ended("127.0.0.2", UNFINISHED, 0)
    site.gate.apply(0)
    with socket.create_server(("127.0.0.1", 0)) as late:
        site.gate.listens(late.fileno())
        site.gate.apply(0)
        assert not connects(late, "127.0.0.2")


@pytest.mark.loopback
def test_a_kernel_that_takes_no_filter_leaves_the_refusal_to_the_node(
    site: Site, server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_filter, "SO_ATTACH_FILTER", 9999)
    site.gate.ended("127.0.0.2", UNFINISHED, 0)
    site.gate.apply(0)
    assert connects(server, "127.0.0.2")
    assert site.gate.opened("127.0.0.2", 1) == ConnectionRefusal.ADDRESS_REFUSED


def test_a_descriptor_that_does_not_listen_is_ignored(site: Site) -> None:
    with socket.socket() as other:
        site.gate.listens(other.fileno())
    site.attacked_by_many()
