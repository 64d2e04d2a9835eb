"""Which control messages of a peer the node handles."""

import pytest

from hltnode.daemon.security.message_budget import (
    ADDRESS_AT_ONCE,
    ADDRESS_PER_SECOND,
    BYTES_PER_UNIT,
    FEEDER_AT_ONCE,
    FEEDER_PER_SECOND,
    FLOOD_MESSAGES,
    FLOOD_NS,
    STRANGERS_AT_ONCE,
    STRANGERS_PER_SECOND,
    MessageBudget,
)

SECOND_NS = 1_000_000_000


@pytest.fixture
def budget() -> MessageBudget:
    return MessageBudget()


def admitted(budget: MessageBudget, address: str, n: int, now_ns: int = 0, nbytes: int = 200) -> int:
    return sum(budget.admits_stranger(address, nbytes, now_ns) for _ in range(n))


def test_an_address_has_its_budget_at_once_and_gains_a_part_of_it_each_second(budget: MessageBudget) -> None:
    assert admitted(budget, "192.0.2.1", 5000) == ADDRESS_AT_ONCE
    assert admitted(budget, "192.0.2.1", 5000, SECOND_NS) == ADDRESS_PER_SECOND
    assert admitted(budget, "192.0.2.1", 5000, 1000 * SECOND_NS) == ADDRESS_AT_ONCE


def test_an_address_that_sends_too_many_leaves_the_budget_of_the_others(budget: MessageBudget) -> None:
    admitted(budget, "192.0.2.1", 100_000)
    assert admitted(budget, "192.0.2.2", 100) == 100


def test_all_strangers_together_have_a_budget(budget: MessageBudget) -> None:
    assert sum(admitted(budget, f"192.0.2.{n}", 100) for n in range(200)) == STRANGERS_AT_ONCE
    assert sum(admitted(budget, f"192.0.3.{n}", 100, SECOND_NS) for n in range(200)) == STRANGERS_PER_SECOND


def test_all_feeders_of_a_large_run_may_say_hello_each_second(budget: MessageBudget) -> None:
    for second in range(60):
        assert all(budget.admits_stranger(f"10.0.{n // 256}.{n % 256}", 300, second * SECOND_NS) for n in range(512))


def test_a_budget_of_other_sizes_has_its_own_for_an_address_and_for_all() -> None:
    budget = MessageBudget(strangers=(5.0, 1.0), address=(3.0, 0.5))
    assert [admitted(budget, address, 10) for address in "abc"] == [3, 2, 0]
    assert [admitted(budget, address, 10, now_ns=4 * SECOND_NS) for address in "abc"] == [2, 2, 0]


def test_a_long_message_costs_as_much_as_many_short_ones(budget: MessageBudget) -> None:
    largest = 1 << 20
    n = int(ADDRESS_AT_ONCE) // (1 + largest // BYTES_PER_UNIT)
    assert admitted(budget, "192.0.2.1", 100, nbytes=largest) == n


def test_a_welcomed_feeder_has_its_own_budget_and_spends_none_of_the_strangers(budget: MessageBudget) -> None:
    assert sum(budget.admits_feeder(b"1", 200, 0) for _ in range(5000)) == FEEDER_AT_ONCE
    assert sum(budget.admits_feeder(b"1", 200, SECOND_NS) for _ in range(5000)) == FEEDER_PER_SECOND
    assert budget.admits_feeder(b"2", 200, SECOND_NS)
    assert sum(admitted(budget, f"192.0.2.{n}", 100) for n in range(200)) == STRANGERS_AT_ONCE


def test_a_connection_floods_when_many_of_its_messages_are_refused_within_a_time(budget: MessageBudget) -> None:
    floods = [budget.is_flood(b"1", 0) for _ in range(10 * FLOOD_MESSAGES)]
    assert floods == [False] * FLOOD_MESSAGES + [True] + [False] * (9 * FLOOD_MESSAGES - 1)
    # A feeder whose hellos, one a second, are refused in a crowd.
    assert not any(budget.is_flood(b"2", second * SECOND_NS) for second in range(100 * FLOOD_NS // SECOND_NS))
