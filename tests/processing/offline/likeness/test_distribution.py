import numpy as np
import pytest

from hltnode.processing.offline.likeness.distribution import (
    Distribution,
    Quantity,
    distance_by_chance,
    kolmogorov_distance,
)

COUNT = Quantity(name="n", detector="d", title="n", per="event", low=-0.5, high=9.5, bins=10)


def filled(*values: float) -> Distribution:
    found = Distribution(COUNT)
    found.add(values)
    return found


def test_a_distribution_has_mean_error_and_entries_outside_all_bins() -> None:
    found = filled(1, 2, 3, 20, -4, np.nan)
    assert found.entries == 5
    assert found.mean == pytest.approx(22 / 5)
    assert found.mean_error == pytest.approx(np.std([1, 2, 3, 20, -4], ddof=1) / np.sqrt(5))
    assert (found.counts[0], found.counts[-1]) == (1, 1)
    assert (Distribution(COUNT).mean, filled(3).mean_error, Distribution(COUNT).width) == (None, None, None)


def test_the_width_is_half_of_the_central_two_thirds() -> None:
    wide = Quantity(name="x", detector="d", title="x", per="hit", low=-10, high=10, bins=1000)
    found = Distribution(wide)
    found.add(2 * np.random.default_rng(1).standard_normal(50_000))
    assert found.width == pytest.approx(2, rel=0.02)


def test_the_kolmogorov_distance_of_whole_numbers_is_exact() -> None:
    # Cumulative: 0.5 1 1 | 0 0.25 1, at 1, 2 and 3.
    assert kolmogorov_distance(filled(1, 1, 2, 2).counts, filled(2, 3, 3, 3).counts) == pytest.approx(0.75)
    assert kolmogorov_distance(filled(1, 2).counts, filled(1, 1, 2, 2).counts) == 0.0
    assert kolmogorov_distance(filled(1).counts, filled(99).counts) == 1.0
    assert kolmogorov_distance(filled(1).counts, filled().counts) is None


def test_samples_of_one_distribution_have_the_distance_of_chance() -> None:
    rng, fine = np.random.default_rng(3), np.linspace(0, 1, 2001)
    pairs = [[np.histogram(rng.random(n), fine)[0].astype(float) for n in (200, 300)] for _ in range(300)]
    mean = np.mean([kolmogorov_distance(*pair) for pair in pairs])
    assert mean == pytest.approx(distance_by_chance(*pairs[0]), rel=0.08)
    assert distance_by_chance(filled(1).counts, filled().counts) is None
