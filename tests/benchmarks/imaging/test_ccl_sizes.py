"""The benchmarks of the chain `ccl` over sizes and of sparse images: their numbers and their JSON."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.imaging import ccl_sizes, sparse_ccl
from benchmarks.measure import Result


def test_the_fit_finds_the_rate_and_the_size_of_half_of_it() -> None:
    sizes = [1 << k for k in range(8, 20)]
    rate, half = ccl_sizes.rate_and_half_size(sizes, [(n + 3000) / 250 for n in sizes])
    assert rate == pytest.approx(250)
    assert half == pytest.approx(3000)
    # At that size the rate is half of the asymptotic one.
    assert half / ((half + 3000) / 250) == pytest.approx(rate / 2)


def test_every_size_has_the_same_weight() -> None:
    sizes = np.array([10, 100, 1000, 10000])
    times = (sizes + 50) / 2.0
    times[-1] *= 1.1
    rate, half = ccl_sizes.rate_and_half_size(sizes.tolist(), times.tolist())
    assert 1.8 < rate < 2.0
    assert 40 < half < 60


def test_a_fit_needs_two_sizes() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        ccl_sizes.rate_and_half_size([4, 4], [1.0, 2.0])


def test_the_summaries_have_the_figures() -> None:
    rows = [
        Result("whole_images, 32 x 32", 5.0, "pixels/us", "", None),
        Result("whole_images, r_inf", 250.0, "pixels/us", "", None),
        Result("whole_images, n_half", 3000.0, "pixels", "", None),
    ]
    assert ccl_sizes.summary(rows) == {"whole_images": {"r_inf": 250.0, "n_half": 3000.0}}
    sparse = [
        Result("ordered (published 31.5 us)", 30.0, "us/image", "dense", 4.0),
        Result("row_table (published 17.4 us)", 20.0, "us/image", "dense", 6.5, 10.0),
    ]
    assert sparse_ccl.sparse_ratio(sparse) == 6.5
    assert sparse_ccl.sparse_ratio([]) is None
