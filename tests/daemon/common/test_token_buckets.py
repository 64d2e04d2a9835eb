"""Token buckets of peers."""

from hltnode.daemon.common.token_buckets import MOST_ACCOUNTS, TokenBucket, TokenBuckets

SECOND_NS = 1_000_000_000


def test_a_bucket_tells_when_it_has_enough_again() -> None:
    bucket = TokenBucket(10.0, 4.0, 0)
    assert bucket.wait_ns(10, 0) == 0
    bucket.spend(12)
    wait_ns = bucket.wait_ns(1, 0)
    assert 0.75 * SECOND_NS < wait_ns < 0.76 * SECOND_NS
    assert bucket.wait_ns(1, wait_ns - 1_000_000) > 0
    assert bucket.wait_ns(1, wait_ns) == 0


def test_a_bucket_saves_up_no_more_than_it_holds() -> None:
    bucket = TokenBucket(10.0, 4.0, 0)
    assert bucket.wait_ns(10, 1000 * SECOND_NS) == 0
    bucket.spend(10)
    assert bucket.wait_ns(1, 1000 * SECOND_NS) > 0


def test_a_full_bucket_has_any_number_and_a_clock_that_goes_back_takes_nothing() -> None:
    bucket = TokenBucket(10.0, 4.0, SECOND_NS)
    assert bucket.wait_ns(1000, 0) == 0
    bucket.spend(1)
    assert bucket.wait_ns(1000, 0) > 0


def test_the_peer_that_was_not_seen_for_longest_is_forgotten_and_starts_with_a_full_bucket() -> None:
    buckets = TokenBuckets(1.0, 1.0)
    for peer in ("first", "second"):
        buckets.of(peer, 0).spend(1)
    for n in range(MOST_ACCOUNTS - 1):
        buckets.of(n, 0)
        buckets.of("second", 0)
    assert len(buckets) == MOST_ACCOUNTS
    assert buckets.of("second", 0).wait_ns(1, 0) > 0
    assert buckets.of("first", 0).wait_ns(1, 0) == 0
