import numpy as np
import pytest

from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.checks.residuals import ResidualHistogram


def test_values_fall_into_bins_in_the_unit_of_the_axis_and_those_outside_into_none() -> None:
    binning = Binning("p", "GeV", np.array([1.0, 2.0, 4.0]), scale=1e-3)
    bins = binning.bins_of([999.0, 1000.0, 1999.0, 2000.0, 3999.0, 4000.0, np.nan])
    assert bins.tolist() == [2, 0, 0, 1, 1, 2, 2]
    assert binning.count(bins).tolist() == [2.0, 2.0]
    assert binning.count(bins, np.arange(7.0)).tolist() == [3.0, 7.0]


def test_the_width_of_normal_residuals_is_their_standard_deviation_and_outliers_do_not_matter() -> None:
    rng = np.random.default_rng(7)
    against = Binning("n", "", np.array([0.0, 1.0, 2.0]))
    histogram = ResidualHistogram("r", "µm", 100.0, against)
    histogram.add(3 + 12 * rng.standard_normal(50_000), np.full(50_000, 0.5))
    histogram.add(np.array([1e9, -1e9, np.nan, 0.0]), np.array([0.5, 0.5, 0.5, 7.0]))
    found = histogram.result()
    assert found["summary"]["entries"] == 50_002
    assert found["summary"]["width"] == pytest.approx(12, rel=0.02)
    assert found["summary"]["median"] == pytest.approx(3, abs=0.2)
    assert found["summary"]["width_error"] == pytest.approx(12 / np.sqrt(100_000), rel=0.02)
    assert sum(found["counts"][1]) == 0


def test_a_residual_without_entries_has_no_width() -> None:
    histogram = ResidualHistogram("r", "", 1.0, Binning("n", "", np.array([0.0, 1.0])))
    assert histogram.result()["summary"] == {"entries": 0, "median": None, "width": None, "width_error": None}
