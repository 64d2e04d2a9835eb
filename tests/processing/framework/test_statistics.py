from dataclasses import astuple

import numpy as np
import pytest

from hltnode.processing.framework.statistics import WeightSums, fraction, trials_needed, wilson_interval


def test_the_wilson_interval_covers_the_true_rate_in_two_of_three_experiments() -> None:
    rng = np.random.default_rng(5)
    for rate in (0.02, 0.5, 0.97):
        low, high = wilson_interval(rng.binomial(5000, rate, 20_000), 5000)
        assert ((low <= rate) & (rate <= high)).mean() == pytest.approx(0.683, abs=0.03)


def test_the_wilson_interval_has_known_values_and_none_without_entries() -> None:
    # (p + 1/2n +- sqrt(p q/n + 1/4n^2)) / (1 + 1/n) with p = 0.9, n = 10.
    low, high = wilson_interval([9, 10, 0], [10, 10, 0])
    assert low[0] == pytest.approx((0.95 - np.sqrt(0.009 + 0.0025)) / 1.1)
    assert high[0] == pytest.approx((0.95 + np.sqrt(0.009 + 0.0025)) / 1.1)
    assert high[1] == pytest.approx(1.0)
    assert low[1] == pytest.approx(10 / 11)
    assert np.isnan([low[2], high[2]]).all()


def test_a_fraction_of_equal_events_has_the_wilson_interval() -> None:
    total = WeightSums.of(np.ones(400))
    for passed in (0, 1, 37, 400):
        found = fraction(float(passed), float(passed), total)
        assert (found.low, found.high) == tuple(float(end) for end in wilson_interval(passed, 400))
        assert found.value == passed / 400


def test_weights_that_are_all_equal_change_neither_fraction_nor_interval() -> None:
    plain, scaled = (
        fraction(37.0, 37.0, WeightSums.of(np.ones(400))),
        fraction(37 * 0.25, 37 * 0.25**2, WeightSums.of(np.full(400, 0.25))),
    )
    for one, other in zip(astuple(plain), astuple(scaled), strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_the_error_of_a_weighted_fraction_is_the_root_of_the_sum_of_squared_weights() -> None:
    """For a rare fraction, where the error of the sum of all weights does not count."""
    rng = np.random.default_rng(5)
    weights = np.where(rng.random(100_000) < 0.5, 0.01, 1.99)
    of = weights[:300]
    found = fraction(float(of.sum()), float((of**2).sum()), WeightSums.of(weights))
    error = np.sqrt((of**2).sum()) / weights.sum()
    assert (found.high - found.low) / 2 == pytest.approx(error, rel=0.01)


def test_without_a_passing_event_the_upper_end_holds_for_events_of_the_largest_weight() -> None:
    weights = np.array([0.1] * 600 + [2.0] * 300)
    found = fraction(0.0, 0.0, WeightSums.of(weights))
    assert (found.value, found.low) == (0.0, 0.0)
    trials = weights.sum() / 2.0
    assert found.high == pytest.approx(1 / (trials + 1))


def test_the_interval_of_a_weighted_fraction_covers_it_in_two_of_three_samples() -> None:
    """Events pass with a chance of 0.02; half of those that do have a small weight, as in an enriched sample."""
    rng = np.random.default_rng(6)
    covered, zero_covered = list[bool](), list[bool]()
    for _ in range(600):
        rare = rng.random(2000) < 0.5
        # Drawn from a mixture in which one event in two comes from a region of 4 % of the crossings.
        inside = np.where(rare, True, rng.random(2000) < 0.04)
        weights = np.where(inside, 1 / (0.5 + 0.5 / 0.04), 2.0)
        for chance, kept in ((0.5, covered), (0.002, zero_covered)):
            fired = (inside & (rng.random(2000) < chance)) | (~inside & (rng.random(2000) < 0.001 * chance))
            true = 0.04 * chance + 0.96 * 0.001 * chance
            of = weights[fired]
            found = fraction(float(of.sum()), float((of**2).sum()), WeightSums.of(weights))
            kept.append(found.low <= true <= found.high)
    assert np.mean(covered) == pytest.approx(0.683, abs=0.06)
    assert np.mean(zero_covered) > 0.4


@pytest.mark.parametrize("rate", [1e-5, 0.02, 0.5, 0.9, 1.0])
def test_the_needed_trials_give_the_wanted_error(rate: float) -> None:
    n = trials_needed(rate)
    low, high = wilson_interval(rate * n, n)
    assert (high - low) / 2 == pytest.approx(0.1 * rate, rel=0.02)


def test_a_fraction_needs_a_hundred_passing_events_for_ten_per_cent() -> None:
    found = fraction(5.0, 5.0, WeightSums.of(np.ones(50_000)))
    assert found.events_needed == pytest.approx(1e6, rel=3e-3)
