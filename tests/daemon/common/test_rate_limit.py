"""How often a line of the log is repeated."""

from hltnode.daemon.common.rate_limit import MAX_LIMITED_KEYS, RateLimit


def test_a_limited_line_appears_once_per_interval_with_the_number_of_suppressed_lines() -> None:
    now = 0
    limit = RateLimit(10, lambda: now)
    assert limit.due("a") == 0
    now = 9
    assert limit.due("a") is None
    assert limit.due("a") is None
    assert limit.due("b") == 0
    now = 10
    assert limit.due("a") == 2
    now = 20
    assert limit.due("a") == 0


def test_the_limiter_forgets_the_oldest_keys_instead_of_growing() -> None:
    limit = RateLimit(10, lambda: 0)
    for key in range(2 * MAX_LIMITED_KEYS):
        limit.due(key)
    assert limit.due(2 * MAX_LIMITED_KEYS - 1) is None
    assert limit.due(0) == 0
