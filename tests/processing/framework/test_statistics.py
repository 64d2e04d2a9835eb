import numpy as np
import pytest

from hltnode.processing.framework.statistics import wilson_interval


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
