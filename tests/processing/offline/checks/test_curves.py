import numpy as np
import pytest

from hltnode.processing.offline.checks.curves import Curve, Cut


def test_a_curve_counts_ghosts_and_particles_at_each_limit() -> None:
    curve = Curve(Cut("chi2", np.array([1.0, 2.0, 4.0])), ["all", "second"])
    # Track 2 is a ghost; tracks 0 and 3 match the first particle, track 1 the second; the third particle has no track.
    curve.add(
        np.array([3.0, 0.5, 1.5, 1.0]),
        np.array([0, 1, 3]),
        np.array([0, 1, 0]),
        3,
        {"all": np.ones(3, dtype=bool), "second": np.array([False, True, False])},
    )
    found = curve.result()
    assert found["limit"] == [1.0, 2.0, 4.0]
    assert (found["tracks"], found["ghosts"]) == ([2, 3, 4], [0, 1, 1])
    assert found["categories"]["all"] == {"reconstructible": 3, "efficiency": pytest.approx([2 / 3] * 3)}
    assert found["categories"]["second"]["efficiency"] == [1.0, 1.0, 1.0]
    assert found["operating_point"]["ghost_rate"] == 0.25


def test_the_tightest_cut_on_a_least_number_is_its_largest_limit() -> None:
    curve = Curve(Cut("hits", np.array([3.0, 4.0, 5.0]), least=True), ["all"])
    curve.add(np.array([4.0]), np.array([0]), np.array([0]), 1, {"all": np.ones(1, dtype=bool)})
    found = curve.result()
    assert found["limit"] == [5.0, 4.0, 3.0]
    assert found["categories"]["all"]["efficiency"] == [0.0, 1.0, 1.0]
