"""Limits on the number of connections: of a socket, of an address, and fairness between addresses."""

from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.security.connection_table import ConnectionLimits, ConnectionTable
from hltnode.daemon.security.tcp_connection import address_group, is_this_machine

LIMITS = ConnectionLimits(connections=10, per_address=4, this_machine=6)


def test_a_connection_above_the_limit_of_its_address_is_refused() -> None:
    table = ConnectionTable(LIMITS)
    assert [table.opened(fd, "10.0.0.1") for fd in range(4)] == [None] * 4
    assert table.opened(4, "10.0.0.1") == (4, ConnectionRefusal.ADDRESS_FULL)
    assert table.opened(5, "10.0.0.2") is None
    table.closed(0)
    assert table.opened(6, "10.0.0.1") is None


def test_the_loopback_has_a_limit_of_its_own() -> None:
    table = ConnectionTable(LIMITS)
    assert [table.opened(fd, "127.0.0.1") for fd in range(6)] == [None] * 6
    assert table.opened(6, "127.0.0.1") == (6, ConnectionRefusal.ADDRESS_FULL)


def test_a_full_socket_refuses_the_newest_connection_of_the_address_that_has_most() -> None:
    table = ConnectionTable(LIMITS)
    for fd, address in enumerate(["10.0.0.1"] * 4 + ["10.0.0.2"] * 4 + ["10.0.0.3", "10.0.0.4"]):
        assert table.opened(fd, address) is None
    # A feeder of a fifth machine is admitted; a machine with many connections loses one.
    assert table.opened(20, "10.0.0.5") == (3, ConnectionRefusal.SOCKET_FULL)
    assert table.opened(21, "10.0.0.6") == (7, ConnectionRefusal.SOCKET_FULL)
    assert len(table) == 10


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.sampled_from(["127.0.0.1", "10.0.0.1", "10.0.0.2"]))))
def test_no_limit_is_ever_exceeded_and_refused_connections_are_removed(steps: list[tuple[bool, int, str]]) -> None:
    table = ConnectionTable(LIMITS)
    known: dict[int, str] = {}
    for is_opened, fd, address in steps:
        table.closed(fd)
        known.pop(fd, None)
        if is_opened:
            known[fd] = address
            if (refusal := table.opened(fd, address)) is not None:
                del known[refusal[0]]
        assert len(table) == len(known) <= LIMITS.connections
        for each in known.values():
            assert list(known.values()).count(each) <= 6


def test_addresses_are_counted_by_machine() -> None:
    assert address_group("192.0.2.7") == "192.0.2.7"
    assert address_group("::ffff:192.0.2.7") == "192.0.2.7"
    assert address_group("2001:db8::1") == address_group("2001:db8::ffff:2") != address_group("2001:db8:0:1::1")
    assert address_group("fe80::1%eth0") == "fe80::/64"
    assert all(is_this_machine(address_group(host)) for host in ("127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"))
    assert not is_this_machine("192.0.2.7")
