"""Which items belong to a sample."""

from hltnode.daemon.common.sampler import Sampler


def test_a_sample_has_the_requested_fraction_with_even_spacing() -> None:
    sampler = Sampler(0.25, 1e6)
    taken = [number for number in range(100) if sampler.takes(number * 1_000_000)]
    assert taken == list(range(3, 100, 4))


def test_a_sample_never_exceeds_its_rate_for_long() -> None:
    sampler = Sampler(1.0, 10.0)
    taken = sum(sampler.takes(number * 1_000_000) for number in range(10_000))
    assert 100 <= taken <= 111


def test_a_fraction_that_is_no_whole_part_is_kept_in_the_long_run() -> None:
    sampler = Sampler(0.375, 1e6)
    taken = [number for number in range(80) if sampler.takes(number * 1_000_000)]
    assert taken == [number for number in range(80) if (3 * number + 3) // 8 > 3 * number // 8]
