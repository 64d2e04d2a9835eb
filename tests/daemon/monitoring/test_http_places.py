"""Which HTTP clients get a place, and that those of this machine always find one that others cannot take."""

from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.monitoring.http_places import (
    AT_ONCE,
    LOCAL_AT_ONCE,
    LOCAL_PER_SECOND,
    PER_SECOND,
    HttpPlaces,
    may_displace,
)


def test_other_machines_cannot_take_the_places_of_this_one() -> None:
    places = HttpPlaces(in_all=32, per_address=8)
    taken = [places.take(f"10.0.0.{n // 8}") for n in range(40)]
    assert taken == [None] * 24 + [ConnectionRefusal.SOCKET_FULL] * 16
    assert [places.take("127.0.0.1") for _ in range(9)] == [None] * 8 + [ConnectionRefusal.SOCKET_FULL]


def test_one_remote_machine_reaches_its_limit_and_a_second_one_still_gets_a_place() -> None:
    places = HttpPlaces(in_all=32, per_address=8)
    assert [places.take("10.0.0.1") for _ in range(9)] == [None] * 8 + [ConnectionRefusal.ADDRESS_FULL]
    assert places.take("10.0.0.2") is None
    places.leave("10.0.0.1")
    assert places.take("10.0.0.1") is None


def test_a_proxy_on_this_machine_may_use_all_places() -> None:
    places = HttpPlaces(in_all=32, per_address=8)
    assert [places.take("::1") for _ in range(33)] == [None] * 32 + [ConnectionRefusal.SOCKET_FULL]


def test_only_places_of_the_same_address_are_taken_over_when_an_address_has_too_many() -> None:
    reason = ConnectionRefusal.ADDRESS_FULL
    assert may_displace("10.0.0.1", "10.0.0.1", reason)
    assert not may_displace("10.0.0.1", "10.0.0.2", reason)
    assert not may_displace("10.0.0.1", "127.0.0.1", reason)


def test_other_machines_take_over_no_place_of_this_machine() -> None:
    reason = ConnectionRefusal.SOCKET_FULL
    assert may_displace("10.0.0.1", "10.0.0.2", reason)
    assert not may_displace("10.0.0.1", "::1", reason)
    assert may_displace("127.0.0.1", "10.0.0.1", reason)
    assert may_displace("127.0.0.1", "127.0.0.1", reason)


def test_an_address_may_open_connections_at_the_rate_of_correct_clients_and_no_more() -> None:
    places = HttpPlaces()
    second_ns = 1_000_000_000
    for address, at_once, per_second in (("10.0.0.1", AT_ONCE, PER_SECOND), ("::1", LOCAL_AT_ONCE, LOCAL_PER_SECOND)):
        assert sum(places.may_connect(address, 0) for _ in range(5000)) == at_once
        assert sum(places.may_connect(address, second_ns) for _ in range(5000)) == per_second
    assert places.may_connect("10.0.0.2", second_ns)
    assert places.may_connect("127.0.0.1", second_ns)
