"""How long an address is refused, and when all unknown addresses are."""

import pytest

from hltnode.daemon.security.address_accounts import (
    CONNECTIONS_AT_ONCE,
    CONNECTIONS_PER_SECOND,
    FIRST_REFUSAL_NS,
    FORGIVEN_AFTER,
    LONGEST_REFUSAL_NS,
    MANY_OFFENCES,
    MANY_WITHIN_NS,
    MOST_ACCOUNTS,
    MOST_REFUSED,
    AddressAccounts,
)

SECOND = 1_000_000_000


@pytest.fixture
def accounts() -> AddressAccounts:
    return AddressAccounts()


def test_an_address_is_refused_from_its_offence_to_the_end_of_the_refusal(accounts: AddressAccounts) -> None:
    assert not accounts.is_refused("192.0.2.1", 0)
    assert accounts.offended("192.0.2.1", 10) == FIRST_REFUSAL_NS
    assert accounts.is_refused("192.0.2.1", 10)
    assert accounts.is_refused("192.0.2.1", 9 + FIRST_REFUSAL_NS)
    assert not accounts.is_refused("192.0.2.1", 10 + FIRST_REFUSAL_NS)
    assert not accounts.is_refused("192.0.2.2", 10)
    assert accounts.refused(9 + FIRST_REFUSAL_NS) == ("192.0.2.1",)
    assert accounts.refused(10 + FIRST_REFUSAL_NS) == ()


def test_each_refusal_is_twice_as_long_as_the_last_up_to_the_longest(accounts: AddressAccounts) -> None:
    now, lengths = 0, []
    for _ in range(9):
        lengths.append(accounts.offended("192.0.2.1", now))
        now += lengths[-1]
    assert lengths == [min(FIRST_REFUSAL_NS << i, LONGEST_REFUSAL_NS) for i in range(9)]
    assert lengths[-1] == LONGEST_REFUSAL_NS


def test_offences_during_a_refusal_do_not_lengthen_it(accounts: AddressAccounts) -> None:
    accounts.offended("192.0.2.1", 0)
    assert accounts.offended("192.0.2.1", 1) == 0
    assert not accounts.is_refused("192.0.2.1", FIRST_REFUSAL_NS)


def test_an_address_without_offences_for_long_starts_again_with_the_shortest_refusal(accounts: AddressAccounts) -> None:
    accounts.offended("192.0.2.1", 0)
    forgiven_ns = FIRST_REFUSAL_NS * (1 + FORGIVEN_AFTER)
    assert accounts.offended("192.0.2.1", forgiven_ns) == 2 * FIRST_REFUSAL_NS
    forgiven_ns += 2 * FIRST_REFUSAL_NS * (1 + FORGIVEN_AFTER) + 1
    assert accounts.offended("192.0.2.1", forgiven_ns) == FIRST_REFUSAL_NS


def test_peers_of_a_local_socket_have_no_address_and_are_never_refused(accounts: AddressAccounts) -> None:
    for _ in range(2 * MANY_OFFENCES):
        assert accounts.offended("", 0) == 0
        assert accounts.may_connect("", 0)
    assert not accounts.is_refused("", 1)
    assert not accounts.refuses_unknown(1)


def test_an_address_may_connect_as_often_as_correct_peers_do_and_no_more(accounts: AddressAccounts) -> None:
    for _ in range(CONNECTIONS_AT_ONCE):
        assert accounts.may_connect("192.0.2.1", 0)
    assert not accounts.may_connect("192.0.2.1", 0)
    assert accounts.may_connect("192.0.2.2", 0)
    for second in range(1, 5):
        taken = [accounts.may_connect("192.0.2.1", second * SECOND) for _ in range(CONNECTIONS_PER_SECOND + 1)]
        assert taken == [True] * CONNECTIONS_PER_SECOND + [False]


def test_places_are_not_saved_beyond_those_at_once(accounts: AddressAccounts) -> None:
    accounts.may_connect("192.0.2.1", 0)
    n = sum(accounts.may_connect("192.0.2.1", 1000 * SECOND) for _ in range(2 * CONNECTIONS_AT_ONCE))
    assert n == CONNECTIONS_AT_ONCE


def test_offences_of_many_addresses_in_a_short_time_refuse_the_unknown_ones(accounts: AddressAccounts) -> None:
    for i in range(MANY_OFFENCES - 1):
        accounts.offended(f"192.0.2.{i}", 0)
    assert not accounts.refuses_unknown(0)
    accounts.offended("198.51.100.1", MANY_WITHIN_NS)
    assert accounts.refuses_unknown(MANY_WITHIN_NS)
    assert not accounts.refuses_unknown(MANY_WITHIN_NS + FIRST_REFUSAL_NS)
    for i in range(MANY_OFFENCES):
        accounts.offended(f"198.51.100.{i}", MANY_WITHIN_NS + 2 * FIRST_REFUSAL_NS)
    assert accounts.refuses_unknown(MANY_WITHIN_NS + 4 * FIRST_REFUSAL_NS - 1)


def test_the_same_offences_over_a_longer_time_do_not(accounts: AddressAccounts) -> None:
    for i in range(MANY_OFFENCES - 1):
        accounts.offended(f"192.0.2.{i}", 0)
    accounts.offended("198.51.100.1", MANY_WITHIN_NS + 1)
    assert not accounts.refuses_unknown(MANY_WITHIN_NS + 1)


def test_the_tables_are_bounded_and_the_refusal_that_ends_first_gives_its_place(accounts: AddressAccounts) -> None:
    for i in range(MOST_REFUSED + 1):
        accounts.offended(f"10.0.{i // 250}.{i % 250}", i)
    refused = accounts.refused(MOST_REFUSED)
    assert len(refused) == MOST_REFUSED
    assert "10.0.0.0" not in refused
    for i in range(2 * MOST_ACCOUNTS):
        accounts.may_connect(f"10.{i // 62500}.{i // 250 % 250}.{i % 250}", 0)
    assert len(accounts._accounts) == MOST_ACCOUNTS
