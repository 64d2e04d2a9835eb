"""Asymmetries of two charges that a magnet bends to opposite sides."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.daemon.monitoring.mirrored_asymmetry import (
    MIN_ASYMMETRY,
    MIN_COUNTS,
    mirrored_asymmetry,
    plain_asymmetry,
    shown_sign,
)

EDGES = np.linspace(-3200.0, 3200.0, 33)
BENT, WIDTH = 400.0, 1000.0
"""Shift of positive particles by the magnet, and width of both charges, in mm."""


def both(
    n: float, asymmetry: float = 0.0, *, left_lost: float = 0.0, shift: float = 0.0
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Expected counts of `n` particles; a share of those at x < 0 is lost, all others are shifted (mm)."""
    places = np.linspace(-8000.0, 8000.0, 160_001)
    densities = [np.exp(-0.5 * ((places - shift - bent) / WIDTH) ** 2) for bent in (BENT, -BENT)]
    found = [np.histogram(places, EDGES, weights=density)[0] / density.sum() for density in densities]
    kept = np.where(EDGES[:-1] < 0.0, 1.0 - left_lost, 1.0)
    positive, negative = (
        np.round(0.5 * n * (1.0 + sign * asymmetry) * kept * each) for sign, each in zip((1, -1), found, strict=True)
    )
    return positive.astype(np.uint64), negative.astype(np.uint64)


@pytest.mark.parametrize("asymmetry", [0.009, -0.009, 0.1])
def test_both_asymmetries_are_that_of_the_particles(asymmetry: float) -> None:
    for found, error in (plain_asymmetry(*both(1e7, asymmetry)), mirrored_asymmetry(*both(1e7, asymmetry))):
        assert found == pytest.approx(asymmetry, rel=0.01)
        assert 0.0003 < error < 0.0005
    assert shown_sign(*both(1e7, asymmetry)) == np.sign(asymmetry)


def test_losses_on_one_side_show_no_sign() -> None:
    lossy = both(1e7, left_lost=0.2)
    assert plain_asymmetry(*lossy)[0] > 10 * MIN_ASYMMETRY
    assert mirrored_asymmetry(*lossy)[0] == pytest.approx(0.0, abs=5e-4)
    assert shown_sign(*lossy) == 0


def test_a_shift_of_the_detector_shows_no_sign() -> None:
    shifted = both(1e7, shift=20.0)
    assert mirrored_asymmetry(*shifted)[0] < -MIN_ASYMMETRY
    assert plain_asymmetry(*shifted)[0] == pytest.approx(0.0, abs=5e-4)
    assert shown_sign(*shifted) == 0


def test_a_shift_and_losses_of_opposite_sign_show_none() -> None:
    found = both(1e7, left_lost=0.2, shift=20.0)
    assert plain_asymmetry(*found)[0] > MIN_ASYMMETRY
    assert mirrored_asymmetry(*found)[0] < -MIN_ASYMMETRY
    assert shown_sign(*found) == 0


def test_an_asymmetry_needs_five_standard_deviations() -> None:
    # The error of the mirrored asymmetry is that of fewer particles.
    assert 5.0 * mirrored_asymmetry(*both(90_000, 0.02))[1] < 0.02
    assert shown_sign(*both(90_000, 0.02)) == 1
    assert 5.0 * mirrored_asymmetry(*both(60_000, 0.02))[1] > 0.02
    assert shown_sign(*both(60_000, 0.02)) == 0


def test_a_small_asymmetry_shows_no_sign_however_many_particles_there_are() -> None:
    assert shown_sign(*both(1e9, 0.9 * MIN_ASYMMETRY)) == 0
    assert shown_sign(*both(1e9, 1.1 * MIN_ASYMMETRY)) == 1


def test_bins_with_few_entries_and_empty_histograms_show_nothing() -> None:
    few = np.full(32, MIN_COUNTS - 1, np.uint64)
    assert mirrored_asymmetry(100 * few, few) == (0.0, np.inf)
    enough = np.full(32, MIN_COUNTS, np.uint64)
    assert mirrored_asymmetry(enough, enough)[1] < 1.0
    assert plain_asymmetry(0 * few, 0 * few) == (0.0, np.inf)


def test_bins_have_weights_by_their_entries() -> None:
    positive = np.array([MIN_COUNTS, 1_020_000, 1_020_000, MIN_COUNTS], np.uint64)
    negative = np.array([MIN_COUNTS, 1_000_000, 1_000_000, MIN_COUNTS], np.uint64)
    assert mirrored_asymmetry(positive, negative)[0] == pytest.approx(0.0099, rel=0.01)
