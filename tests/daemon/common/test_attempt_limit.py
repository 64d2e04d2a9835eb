"""The limit of attempts by key."""

from hltnode.daemon.common.attempt_limit import MAX_KEYS, AttemptLimit

SECOND = 1_000_000_000


def test_a_burst_is_allowed_and_then_one_attempt_each_interval() -> None:
    limit = AttemptLimit(3, SECOND)
    for _ in range(3):
        assert limit.wait_ns("a", 0) == 0
        limit.count("a", 0)
    assert limit.wait_ns("a", 0) == SECOND
    assert limit.wait_ns("b", 0) == 0
    assert limit.wait_ns("a", SECOND) == 0
    limit.count("a", SECOND)
    assert limit.wait_ns("a", SECOND) == SECOND
    assert limit.wait_ns("a", 10 * SECOND) == 0


def test_many_keys_take_a_limited_memory() -> None:
    limit = AttemptLimit(1, SECOND)
    for number in range(MAX_KEYS + 10):
        limit.count(str(number), 0)
    assert limit.wait_ns(str(MAX_KEYS), 0) == SECOND
    assert limit.wait_ns("0", 0) == 0
    assert len(limit._free_ns) == MAX_KEYS
